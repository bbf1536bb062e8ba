/* The gate; gate.h says what its file contains. Another program may truncate the file at any time. So the flags and notes
 * that decide about data are read with pread(), and the holder restores a short file before it writes to it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/when.h"
#include "store/local/gate.h"

#define TEXT_SIZE 232 /* bytes for the holder's name; the counters, flags and notes follow */
#define SERVED_AT TEXT_SIZE
#define AWAITED_AT (SERVED_AT + (int)sizeof(uint32_t))
#define CROWD_AT (AWAITED_AT + (int)sizeof(uint32_t))
#define COUNTS_AT GATE_SIZE
#define MAP_SIZE (COUNTS_AT + sizeof(struct store_counts))
#define LINE_AT (INT64_C(1) << 30) /* the byte that processes in line lock, shared */
#define HURRY_MS 1000
#define NOTES_AT (GATE_SIZE - GATE_NOTES * (int)sizeof(uint32_t))

#define CROWDED 1u
#define MARKED 2u
#define LINED 4u

/* Writes real blocks, because on a full disk a write through the mapping into a hole raises SIGBUS. A truncated file may
 * have had the mark of a commit, so this sets it. */
static int gate_allocate(struct gate *g)
{
	static const uint32_t words[GATE_SIZE / sizeof(uint32_t)] = { [CROWD_AT /
								       sizeof(uint32_t)] = MARKED };
	ssize_t n = pwrite(g->fd, words, GATE_SIZE, 0);

	return n == GATE_SIZE ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Only the holder of the gate may call this, because another process may have begun to count. On a full disk there are
 * no counters. */
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

static void gate_unmap(struct gate *g)
{
	bus_release(g->bus);
	if (g->map)
		munmap(g->map, MAP_SIZE);
	g->map = NULL;
	g->bus = NULL;
}

static int gate_map(struct gate *g)
{
	char *p = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	g->map = p;
	g->bus = bus_guard(p, MAP_SIZE);
	return 0;
}

static int gate_prepare(struct gate *g)
{
	struct stat st;
	int r = 0;

	if (fstat(g->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	g->file = fs_id_of(&st);
	if (st.st_size < GATE_SIZE)
		r = gate_allocate(g);
	if (r)
		return r;
	g->counted = st.st_size >= (off_t)MAP_SIZE;
	return gate_map(g);
}

/* All users of the database must be able to use the gate, even if root or a process with a strict umask creates it. */
static int gate_create(int dir, const char *path, const struct stat *like)
{
	mode_t mode = like->st_mode & 0666;
	int fd = openat(dir, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd >= 0) {
		if (geteuid() == 0)
			(void)!fchown(fd, like->st_uid, like->st_gid);
		(void)!fchmod(fd, mode);
	} else if (errno == EEXIST) {
		fd = openat(dir, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	return fd;
}

static int file_at(int dir, const char *path, const struct stat *like)
{
	int fd;

	do {
		fd = openat(dir, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			fd = gate_create(dir, path, like);
		if (fd < 0)
			fd = -errno;
	} while (fd == -EACCES && fs_is_settling(dir, path));
	return fd;
}

int gate_file(const char *path, const struct stat *like)
{
	return file_at(AT_FDCWD, path, like);
}

int gate_open_at(struct gate *g, int dir, const char *path, const struct stat *like)
{
	int r = file_at(dir, path, like);
	struct xfsz hold;

	g->map = NULL;
	g->bus = NULL;
	g->fd = r < 0 ? -1 : r;
	if (r < 0)
		return r;
	xfsz_hold(&hold);
	r = gate_prepare(g);
	xfsz_release(&hold);
	if (r)
		gate_close(g);
	return r;
}

int gate_open(struct gate *g, const char *path, const struct stat *like)
{
	return gate_open_at(g, AT_FDCWD, path, like);
}

void gate_close(struct gate *g)
{
	gate_unmap(g);
	bus_release(g->bus_seen);
	if (g->seen)
		munmap(g->seen, MAP_SIZE);
	if (g->fd >= 0)
		close(g->fd);
	g->seen = NULL;
	g->bus_seen = NULL;
	g->fd = -1;
}

bool gate_stands(const struct gate *g, const char *path)
{
	return g->fd >= 0 && fs_is_at(path, &g->file, NULL);
}

static void gate_escape(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

static _Atomic uint32_t *word_at(const struct gate *g, int at)
{
	return (_Atomic uint32_t *)(void *)(g->map + at);
}

static _Atomic uint32_t *gate_flags(const struct gate *g)
{
	return word_at(g, CROWD_AT);
}

/* --- the line ----------------------------------------------------------------------------------- */

bool gate_line(const struct gate *g)
{
	return g->map && atomic_load(gate_flags(g)) & LINED && os_boot_ms() >= g->hurry_until &&
	       os_byte_shared(g->fd, LINE_AT);
}

void gate_line_stuck(struct gate *g)
{
	g->hurry_until = os_boot_ms() + HURRY_MS;
}

/* For the holder. Clears the flag before the check, so that a process that joins the line in between sets it again. */
static void check_line(struct gate *g)
{
	atomic_fetch_and(gate_flags(g), ~LINED);
	if (os_byte_shared(g->fd, LINE_AT))
		atomic_fetch_or(gate_flags(g), LINED);
}

uint32_t gate_served(const struct gate *g)
{
	return g->map ? atomic_load(word_at(g, SERVED_AT)) : 0;
}

void gate_count_served(struct gate *g)
{
	if (!g->map)
		return;
	atomic_fetch_add(word_at(g, SERVED_AT), 1);
	if (atomic_exchange(word_at(g, AWAITED_AT), 0))
		os_word_wake_all(word_at(g, SERVED_AT));
}

bool gate_await_served(struct gate *g, uint32_t seen, int64_t ms)
{
	if (!g->map || gate_served(g) != seen)
		return true;
	atomic_store(word_at(g, AWAITED_AT), 1);
	os_word_wait(word_at(g, SERVED_AT), seen, ms);
	return gate_served(g) != seen;
}

/* --- the holder --------------------------------------------------------------------------------- */

/* Reads with pread() and checks the length, because touching a mapped page behind the end of the file raises SIGBUS. */
static void search_inside(struct gate *g)
{
	g->whole = pread(g->fd, g->inside, sizeof(g->inside), CROWD_AT) ==
		   (ssize_t)sizeof(g->inside);
	if (g->whole)
		return;
	memset(g->inside, 0, sizeof(g->inside));
	g->inside[0] = MARKED;
	g->counted = false;
	g->whole = gate_allocate(g) == 0; /* a program has truncated the file */
}

/* After a truncation our mapping does not show the restored pages of the file. */
static void map_again(struct gate *g)
{
	gate_unmap(g);
	g->whole = g->whole && gate_map(g) == 0;
}

void gate_again(struct gate *g, struct str who)
{
	char text[TEXT_SIZE];

	search_inside(g);
	if (!g->map || bus_torn(g->bus))
		map_again(g);
	if (!g->whole)
		return; /* we hold the gate, but cannot write our name */
	if (g->inside[0] & LINED)
		check_line(g);
	if (!g->counted)
		make_counts(g);
	if (who.n > 150)
		who.n = 150;
	snprintf(text, sizeof(text), "pid %ld since %" PRId64 " %.*s", (long)getpid(), os_boot_ms(),
		 STRF(who));
	memcpy(g->map, text, strlen(text) + 1);
}

static int wait_in_line(struct gate *g, int64_t timeout_ms)
{
	bool lined = os_share_byte(g->fd, LINE_AT) == 0;
	int r;

	if (lined && g->map)
		atomic_fetch_or(gate_flags(g), LINED);
	r = os_lock(g->fd, timeout_ms);
	if (lined)
		os_leave_byte(g->fd, LINE_AT);
	return r;
}

int gate_try(struct gate *g, struct str who)
{
	return gate_line(g) ? -ETIMEDOUT : gate_lock(g, 0, who);
}

int gate_lock(struct gate *g, int64_t timeout_ms, struct str who)
{
	int r = os_lock(g->fd, 0);

	if (r == -ETIMEDOUT && timeout_ms > 0)
		r = wait_in_line(g, timeout_ms);
	if (r == 0) {
		xfsz_hold(&g->size_signal);
		gate_again(g, who);
	}
	return r;
}

void gate_unlock(struct gate *g)
{
	os_unlock(g->fd);
	xfsz_release(&g->size_signal);
}

void gate_announce(struct gate *g, const uint32_t notes[GATE_NOTES])
{
	(void)!pwrite(g->fd, notes, GATE_NOTES * sizeof(*notes), NOTES_AT);
}

void gate_notes(const struct gate *g, uint32_t notes[GATE_NOTES])
{
	memcpy(notes, g->inside + 1, GATE_NOTES * sizeof(*notes));
}

bool gate_was_crowded(const struct gate *g)
{
	return g->inside[0] & CROWDED;
}

/* Does not use the mapping, which shows zeros for a truncated file. false: the file is truncated. */
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

	if (g->map && atomic_load(gate_flags(g)) & CROWDED && !bus_torn(g->bus))
		return; /* the value is set already, so the usual case needs no system call */
	if (read_flags(g, &n) && !(n & CROWDED))
		atomic_fetch_or(gate_flags(g), CROWDED);
}

void gate_mark(struct gate *g, bool on)
{
	if (!g->whole)
		return;
	if (on)
		atomic_fetch_or(gate_flags(g), MARKED);
	else
		atomic_fetch_and(gate_flags(g), ~MARKED);
}

bool gate_was_marked(const struct gate *g)
{
	return g->inside[0] & MARKED;
}

bool gate_marked(const struct gate *g)
{
	uint32_t n;

	return read_flags(g, &n) && n & MARKED;
}

bool gate_peek(int fd, uint32_t notes[GATE_NOTES])
{
	ssize_t size = GATE_NOTES * (ssize_t)sizeof(*notes);

	return pread(fd, notes, (size_t)size, NOTES_AT) == size;
}

/* A program may have truncated the file, and touching the missing pages raises SIGBUS. */
static bool has_counts(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)MAP_SIZE;
}

static struct store_counts *counts_in(char *p)
{
	return p ? (struct store_counts *)(void *)(p + COUNTS_AT) : NULL;
}

struct store_counts *gate_counts(struct gate *g)
{
	return g->map && has_counts(g->fd) ? counts_in(g->map) : NULL;
}

struct store_counts *gate_counts_at(struct gate *g, const char *path)
{
	int fd = g->seen ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && has_counts(fd)) {
		void *p = mmap(NULL, MAP_SIZE, PROT_READ, MAP_SHARED, fd, 0);

		g->seen = p == MAP_FAILED ? NULL : p;
		g->bus_seen = g->seen ? bus_guard(g->seen, MAP_SIZE) : NULL;
	}
	if (fd >= 0)
		close(fd);
	return counts_in(g->seen);
}

struct gate_holder {
	int64_t pid, ms; /* ms: time since the holder took the gate */
	char who[160];
};

/* The holder, if the file names one. */
static bool gate_holder(const struct gate *g, struct gate_holder *out)
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
	gate_escape(out->who);
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
				"try again, or check that process: it may be stopped",
				"%s (pid %" PRId64 ") has been writing to %s for %s; waited %s",
				h.who, h.pid, path, duration_text(&a, h.ms > 0 ? h.ms : 1).p,
				duration_text(&a, env->opt.timeout_ms).p);
	else
		rc = store_fail(env, STORE_BUSY, "try again", "another process is writing to %s",
				path);
	arena_free(&a);
	return rc;
}
