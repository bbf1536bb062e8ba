#include "store/local/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os.h"
#include "base/when.h"

#define TEXT_SIZE 240 /* who holds it; the notes are at the end */
#define CROWD_AT TEXT_SIZE
#define COUNTS_AT GATE_SIZE
#define MAP_SIZE (COUNTS_AT + sizeof(struct store_counts))
#define NOTES_AT (GATE_SIZE - GATE_NOTES * (int)sizeof(uint32_t))

/* Blocks and not only a size: to store into a hole through the mapping, on a full disk, is SIGBUS. */
static int allocate(struct gate *g)
{
	static const char zeros[GATE_SIZE];
	ssize_t n = pwrite(g->fd, zeros, GATE_SIZE, 0);

	return n == GATE_SIZE ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Only who holds the gate: another one could have begun to count. Without room nothing is counted. */
static void make_counts(struct gate *g)
{
	static const char zeros[4096];
	struct stat st;
	off_t at = fstat(g->fd, &st) ? (off_t)MAP_SIZE : st.st_size;

	while (at < (off_t)MAP_SIZE) {
		size_t left = MAP_SIZE - (size_t)at;
		ssize_t n = pwrite(g->fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros), at);

		if (n <= 0)
			return;
		at += n;
	}
	g->counted = true;
}

static int prepare(struct gate *g)
{
	struct stat st;
	int r = 0;

	if (fstat(g->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < GATE_SIZE)
		r = allocate(g);
	if (r)
		return r;
	g->counted = st.st_size >= (off_t)MAP_SIZE;
	g->map = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
	if (g->map == MAP_FAILED) {
		g->map = NULL;
		return -errno;
	}
	return 0;
}

/* The umask must not take away what the database's own file allows; nor must root keep others out. */
static int create(const char *path, const struct stat *like)
{
	mode_t mode = like->st_mode & 0666;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd >= 0) {
		if (geteuid() == 0)
			(void)!fchown(fd, like->st_uid, like->st_gid);
		(void)!fchmod(fd, mode);
	} else if (errno == EEXIST) {
		fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	return fd;
}

int gate_file(const char *path, const struct stat *like)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = create(path, like);
	if (fd < 0)
		return -errno;
	return fd;
}

int gate_open(struct gate *g, const char *path, const struct stat *like)
{
	int r = gate_file(path, like);

	g->map = NULL;
	g->fd = r < 0 ? -1 : r;
	if (r < 0)
		return r;
	r = prepare(g);
	if (r)
		gate_close(g);
	return r;
}

void gate_close(struct gate *g)
{
	if (g->map)
		munmap(g->map, MAP_SIZE);
	if (g->seen)
		munmap(g->seen, MAP_SIZE);
	if (g->fd >= 0)
		close(g->fd);
	g->map = NULL;
	g->seen = NULL;
	g->fd = -1;
}

static void tame(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

/* Only of a file that is as long as the mapping its pages may be touched. */
static void look_inside(struct gate *g)
{
	g->whole = pread(g->fd, g->inside, sizeof(g->inside), CROWD_AT) ==
		   (ssize_t)sizeof(g->inside);
	if (g->whole)
		return;
	memset(g->inside, 0, sizeof(g->inside));
	g->whole = allocate(g) == 0; /* somebody has cut it */
}

void gate_again(struct gate *g, struct str who)
{
	char text[TEXT_SIZE];

	look_inside(g);
	if (!g->whole)
		return; /* ours, without a name */
	if (!g->counted)
		make_counts(g);
	if (who.n > 150)
		who.n = 150;
	snprintf(text, sizeof(text), "pid %ld since %" PRId64 " %.*s", (long)getpid(), os_boot_ms(),
		 STRF(who));
	memcpy(g->map, text, strlen(text) + 1);
}

int gate_lock(struct gate *g, int64_t timeout_ms, struct str who)
{
	int r = os_lock(g->fd, timeout_ms);

	if (r == 0)
		gate_again(g, who);
	return r;
}

void gate_unlock(struct gate *g)
{
	os_unlock(g->fd);
}

void gate_announce(struct gate *g, const uint32_t notes[GATE_NOTES])
{
	(void)!pwrite(g->fd, notes, GATE_NOTES * sizeof(*notes), NOTES_AT);
}

void gate_notes(const struct gate *g, uint32_t notes[GATE_NOTES])
{
	memcpy(notes, g->inside + 1, GATE_NOTES * sizeof(*notes));
}

#define CROWDED 1u
#define MARKED 2u

static _Atomic uint32_t *flags(const struct gate *g)
{
	return (_Atomic uint32_t *)(void *)(g->map + CROWD_AT);
}

bool gate_was_crowded(const struct gate *g)
{
	return g->inside[0] & CROWDED;
}

/* Not through the mapping: without the lock nobody knows that the file is as long as that. false: it is cut. */
static bool read_flags(const struct gate *g, uint32_t *out)
{
	return pread(g->fd, out, sizeof(*out), CROWD_AT) == (ssize_t)sizeof(*out);
}

bool gate_crowded(const struct gate *g)
{
	uint32_t n;

	return read_flags(g, &n) && n & CROWDED;
}

void gate_set_crowded(struct gate *g)
{
	uint32_t n;

	if (read_flags(g, &n) && !(n & CROWDED))
		atomic_fetch_or(flags(g), CROWDED);
}

void gate_mark(struct gate *g, bool on)
{
	if (!g->whole)
		return;
	if (on)
		atomic_fetch_or(flags(g), MARKED);
	else
		atomic_fetch_and(flags(g), ~MARKED);
}

bool gate_was_marked(const struct gate *g)
{
	return g->inside[0] & MARKED;
}

bool gate_peek(int fd, uint32_t notes[GATE_NOTES])
{
	ssize_t size = GATE_NOTES * (ssize_t)sizeof(*notes);

	return pread(fd, notes, (size_t)size, NOTES_AT) == size;
}

/* Somebody may have cut the file since: to touch what is not there is SIGBUS. */
static bool has_counts(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)MAP_SIZE;
}

static struct store_counts *counts_in(char *map)
{
	return map ? (struct store_counts *)(void *)(map + COUNTS_AT) : NULL;
}

struct store_counts *gate_counts(struct gate *g)
{
	return g->map && has_counts(g->fd) ? counts_in(g->map) : NULL;
}

struct store_counts *gate_counts_at(struct gate *g, const char *path)
{
	int fd = g->seen ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && has_counts(fd)) {
		void *map = mmap(NULL, MAP_SIZE, PROT_READ, MAP_SHARED, fd, 0);

		g->seen = map == MAP_FAILED ? NULL : map;
	}
	if (fd >= 0)
		close(fd);
	return counts_in(g->seen);
}

bool gate_holder(const struct gate *g, struct gate_holder *out)
{
	char text[TEXT_SIZE];
	int64_t since;
	ssize_t n = pread(g->fd, text, TEXT_SIZE - 1, 0);

	if (n < 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "pid %" SCNd64 " since %" SCNd64 " %159[^\n]", &out->pid, &since,
		   out->who) != 3)
		return false;
	tame(out->who);
	out->ms = os_boot_ms() - since;
	return true;
}

int gate_busy(const struct gate *g, const struct store_env *env, const char *path)
{
	struct arena a = { 0 };
	struct gate_holder h;
	int rc;

	if (gate_holder(g, &h))
		rc = store_fail(env, STORE_BUSY,
				"try again, or look at that process: it may be stopped",
				"%s (pid %" PRId64 ") has been writing to %s for %s; waited %s",
				h.who, h.pid, path, duration_text(&a, h.ms > 0 ? h.ms : 1).p,
				duration_text(&a, env->timeout_ms).p);
	else
		rc = store_fail(env, STORE_BUSY, "try again", "another process is writing to %s",
				path);
	arena_free(&a);
	return rc;
}
