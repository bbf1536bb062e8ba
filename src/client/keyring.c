/*
 * Files: HASH.token (saved), HASH.pending and HASH-RANDOM.pending (in flight, or left by a call
 * without an answer), HASH+HASH.pending and HASH+HASH-RANDOM.pending (the same of a `done
 * --claim-next`). HASH is over what the token is for, so a look-up is one open(). They hold
 * lines of key=value; a later line counts more than an earlier one, so a promotion only appends.
 *
 * Who takes a saved file away, or puts another in its place, holds a lock on it meanwhile.
 *
 * Nothing is synced to the disk: a token that a power failure takes away costs its holder the
 * rest of a lease, which then runs out by itself, while an fsync would double the price of every
 * claim.
 */
#include "client/keyring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/secret.h"

#define KEY_FILE_MAX (64 * 1024)
#define TRIES 16
#define BUSY_MS 500 /* a saved file is locked for a moment only, unless its process was stopped */

/* --- contents ------------------------------------------------------------------------------ */

struct key {
	struct str queue, task, agent, token;
	int64_t fence, contested, parked;
};

/* Paths may hold anything: what would end a line goes as %0a. */
static void add_field(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c < 0x20 || c == '%' || c == 0x7f)
			buf_addf(b, "%%%02x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '\n');
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct str plain(struct str value, struct arena *a)
{
	char *p = arena_alloc(a, value.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < value.n; i++) {
		bool coded = value.p[i] == '%' && i + 2 < value.n &&
			     hex_digit(value.p[i + 1]) >= 0 && hex_digit(value.p[i + 2]) >= 0;

		p[n++] = coded ? (char)(hex_digit(value.p[i + 1]) * 16 + hex_digit(value.p[i + 2]))
			       : value.p[i];
		i += coded ? 2 : 0;
	}
	return str_n(p, n);
}

static void key_describe(struct buf *b, const struct keyring *k, struct str task, struct str token)
{
	add_field(b, "queue", k->queue);
	add_field(b, "task", task);
	add_field(b, "agent", k->agent);
	add_field(b, "run", k->run);
	add_field(b, "work_tree", k->work_tree);
	add_field(b, "token", token);
}

/* false: no such file, or nothing that we wrote; *out then holds what could be made out. */
static bool key_read(const char *path, struct key *out, struct arena *a)
{
	struct str text;

	*out = (struct key){ 0 };
	if (fs_read(a, path, KEY_FILE_MAX, &text))
		return false;
	while (text.n) {
		struct str value = str_cut(&text, '\n'), name = str_cut(&value, '=');

		if (str_is(name, "queue"))
			out->queue = plain(value, a);
		else if (str_is(name, "task"))
			out->task = plain(value, a);
		else if (str_is(name, "agent"))
			out->agent = plain(value, a);
		else if (str_is(name, "token"))
			out->token = value;
		else if (str_is(name, "fence") && !str_to_i64(value, &out->fence))
			return false;
		else if (str_is(name, "contested") && !str_to_i64(value, &out->contested))
			return false;
		else if (str_is(name, "parked") && !str_to_i64(value, &out->parked))
			return false;
	}
	return token_valid(out->token);
}

/* --- where --------------------------------------------------------------------------------- */

int keyring_open(struct keyring *k, struct str queue, struct str agent, struct str run,
		 struct str work_tree, struct arena *a)
{
	*k = (struct keyring){ .dir = fs_user_dir(a, "XDG_STATE_HOME", ".local/state"),
			       .queue = queue,
			       .agent = agent,
			       .run = run,
			       .work_tree = work_tree,
			       .arena = a };
	return k->dir ? 0 : -ENOENT;
}

/* Whoever can write to the folder can hand us tokens: it has to be ours alone. */
static int check_dir(const struct keyring *k)
{
	struct stat st;

	if (!k->dir)
		return -ENOENT;
	if (lstat(k->dir, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & 077 && chmod(k->dir, 0700))
		return -errno;
	return 0;
}

int keyring_folder(const struct keyring *k)
{
	int r = check_dir(k);

	if (r != -ENOENT || !k->dir)
		return r;
	r = fs_make_dirs(k->dir, 0700);
	return r ? r : check_dir(k);
}

static struct str key_name(const struct keyring *k, struct str task, struct str filter)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	struct str name;

	buf_adds(&b, k->queue);
	buf_addc(&b, '\0');
	for (size_t i = 0; i < task.n; i++)
		buf_addc(&b,
			 task.p[i] >= 'A' && task.p[i] <= 'Z' ? (char)(task.p[i] + 32) : task.p[i]);
	buf_addc(&b, '\0');
	buf_adds(&b, k->agent);
	buf_addc(&b, '\0');
	buf_adds(&b, k->run);
	buf_addc(&b, '\0');
	buf_adds(&b, k->work_tree);
	if (filter.n)
		buf_addc(&b, '\0');
	buf_adds(&b, filter);
	name = hash_hex(k->arena, buf_str(&b));
	buf_free(&b);
	return name;
}

static char *key_path(const struct keyring *k, struct str name, const char *ending)
{
	struct str file = arena_printf(k->arena, "%.*s%s", STRF(name), ending);

	return fs_join(k->arena, str_c(k->dir), file);
}

static char *saved_path(const struct keyring *k, struct str task)
{
	return key_path(k, key_name(k, task, STR("")), ".token");
}

static char *random_path(const struct keyring *k, struct str name, const char *ending)
{
	struct str file = arena_printf(k->arena, "%.*s-%08x%08x%s", STRF(name),
				       random_below(UINT32_MAX), random_below(UINT32_MAX), ending);

	return fs_join(k->arena, str_c(k->dir), file);
}

static int lock_now(int fd)
{
	int r;

	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r && errno == EINTR);
	return r;
}

/* --- pending ------------------------------------------------------------------------------- */

static bool same_file(int fd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
	       ours.st_ino == there.st_ino;
}

static int write_pending(const struct keyring *k, struct str task, struct pending *p)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	int r;

	p->token = token_make(k->arena);
	key_describe(&b, k, task, p->token);
	r = b.full ? -EFBIG : fs_write_all(p->fd, buf_str(&b));
	buf_free(&b);
	return r;
}

static void pending_close(struct pending *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* Takes over the file if its process is gone: true, with its token. Its owner may be about to
 * finish, so the lock counts only if the name still means the file that was locked. */
static bool adopt(const struct keyring *k, struct str task, struct pending *p, char *path)
{
	struct key key;

	p->path = path;
	p->fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0)
		return false;
	if (lock_now(p->fd) == 0 && same_file(p->fd, path)) {
		if (key_read(path, &key, k->arena)) {
			p->token = key.token;
			p->adopted = true;
			return true;
		}
		/* Its process died before it could write, so nothing was sent either. */
		if (ftruncate(p->fd, 0) == 0 && write_pending(k, task, p) == 0)
			return true;
	}
	pending_close(p);
	return false;
}

static bool adopt_any(const struct keyring *k, struct str task, struct str name, struct pending *p)
{
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	bool found = false;

	if (!d)
		return false;
	while (!found && (entry = readdir(d))) {
		struct str file = str_c(entry->d_name);

		if (str_starts(file, name) && str_ends(file, STR(".pending")))
			found = adopt(k, task, p, fs_join(k->arena, str_c(k->dir), file));
	}
	closedir(d);
	return found;
}

static int create(const char *path)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int create_pending(const struct keyring *k, struct str name, struct pending *p)
{
	p->path = key_path(k, name, ".pending");
	for (int i = 0; i < TRIES; i++) {
		p->fd = create(p->path);
		if (p->fd < 0 && p->fd != -EEXIST)
			return p->fd;
		/* Between our two calls another process can have adopted it: then it is that
		 * one's. */
		if (p->fd >= 0 && lock_now(p->fd) == 0 && same_file(p->fd, p->path))
			return 0;
		pending_close(p);
		p->path = random_path(k, name, ".pending");
	}
	return -EBUSY;
}

static int begin(struct keyring *k, struct str task, struct str name, struct pending *p)
{
	int r = keyring_folder(k);

	*p = (struct pending){ .fd = -1 };
	if (r)
		return r;
	if (adopt_any(k, task, name, p))
		return 0;
	r = create_pending(k, name, p);
	if (r)
		return r;
	r = write_pending(k, task, p);
	if (r)
		keyring_drop(k, p);
	return r;
}

int keyring_begin(struct keyring *k, struct str task, struct pending *p)
{
	return begin(k, task, key_name(k, task, STR("")), p);
}

int keyring_begin_any(struct keyring *k, struct str filter, struct str of, struct pending *p)
{
	struct str name = key_name(k, STR(""), filter);

	if (of.n)
		name = arena_printf(k->arena, "%.*s+%.*s", STRF(name),
				    STRF(hash_hex(k->arena, of)));
	return begin(k, STR(""), name, p);
}

void keyring_drop(struct keyring *k, struct pending *p)
{
	(void)k;
	if (p->fd >= 0)
		unlink(p->path); /* before the lock goes, or another could adopt what was refused */
	pending_close(p);
}

void keyring_leave(struct keyring *k, struct pending *p)
{
	(void)k;
	pending_close(p);
}

/* --- saved --------------------------------------------------------------------------------- */

enum key_found keyring_find(struct keyring *k, struct str task, struct str *token, int64_t *fence)
{
	struct key key;

	if (check_dir(k) || !key_read(saved_path(k, task), &key, k->arena))
		return KEY_NONE;
	if (key.contested)
		return KEY_CONTESTED;
	*token = key.token;
	*fence = key.fence;
	return KEY_SAVED;
}

/* Opens a saved file and locks it: until the close it stays what the name means. -ENOENT; -EBUSY if
 * another process keeps it locked. */
static int lock_saved(const char *path)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; i < BUSY_MS; i++) {
		int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return -errno;
		if (lock_now(fd) == 0 && same_file(fd, path))
			return fd;
		close(fd);
		nanosleep(&moment, NULL);
	}
	return -EBUSY;
}

static int note_success(int fd, struct str task, int64_t fence)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	int r;

	add_field(&b, "task", task);
	buf_addf(&b, "fence=%lld\n", (long long)fence);
	r = fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	return r;
}

/* Puts the file at `path`, open as fd, in the place of the saved one. */
static int replace_saved(const struct keyring *k, int fd, const char *path, const char *saved,
			 struct str token, bool resumed)
{
	struct key old;
	int r = 0;

	if (key_read(saved, &old, k->arena) &&
	    (old.contested || (!resumed && !old.parked && !secret_eq(old.token, token))))
		r = fs_write_all(fd, STR("contested=1\n"));
	if (!r && rename(path, saved))
		r = -errno;
	return r;
}

/* Gives the file at `path`, open as fd, the name of the saved token. */
static int promote(const struct keyring *k, int fd, const char *path, struct str token,
		   struct str task, int64_t fence, bool resumed)
{
	const char *saved = saved_path(k, task);
	int r = note_success(fd, task, fence), held = -ENOENT;

	if (r)
		return r;
	for (int i = 0; i < TRIES && held == -ENOENT; i++) {
		/* Not rename: of two that save at once, one has to see that it replaces the
		 * other's. */
		if (link(path, saved) == 0)
			return unlink(path) ? -errno : 0;
		if (same_file(fd, saved)) /* a process died between link and unlink */
			return unlink(path) ? -errno : 0;
		held = lock_saved(saved); /* -ENOENT: it was taken away just now */
	}
	r = replace_saved(k, fd, path, saved, token, resumed);
	if (held >= 0)
		close(held);
	return r;
}

int keyring_keep(struct keyring *k, struct pending *p, struct str task, int64_t fence, bool resumed)
{
	int r = p->fd < 0 ? -EBADF : promote(k, p->fd, p->path, p->token, task, fence, resumed);

	pending_close(p);
	return r;
}

int keyring_save(struct keyring *k, struct str task, struct str token, int64_t fence, bool resumed)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	char *path;
	int fd, r = keyring_folder(k);

	if (r)
		return r;
	path = random_path(k, key_name(k, task, STR("")), ".tmp");
	fd = create(path);
	if (fd < 0)
		return fd;
	key_describe(&b, k, task, token);
	r = b.full ? -EFBIG : fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	if (!r)
		r = promote(k, fd, path, token, task, fence, resumed);
	if (r)
		unlink(path);
	close(fd);
	return r;
}

/* The saved file, locked, with what is in it; < 0: there is none to be had. */
static int open_saved(struct keyring *k, struct str task, char **path, struct key *key, bool *good)
{
	int fd = check_dir(k);

	if (fd)
		return fd < 0 ? fd : -ENOENT;
	*path = saved_path(k, task);
	fd = lock_saved(*path);
	if (fd >= 0)
		*good = key_read(*path, key, k->arena);
	return fd;
}

void keyring_park(struct keyring *k, struct str task, int64_t fence)
{
	char *path;
	struct key key;
	bool good;
	int fd = open_saved(k, task, &path, &key, &good);

	if (fd < 0)
		return;
	if (good && key.fence <= fence)
		/* else a later claim is contested: safe, only unhandy */
		(void)fs_write_all(fd, STR("parked=1\n"));
	close(fd);
}

/* By now it can be the file of a later lock, which another process of ours took. A token too many
 * does no harm: the next call finds it out. */
static void forget(struct keyring *k, struct str task, int64_t fence, struct str token)
{
	char *path;
	struct key key;
	bool good;
	int fd = open_saved(k, task, &path, &key, &good);

	if (fd < 0)
		return;
	if (!good || (token.n ? secret_eq(key.token, token) : key.fence <= fence))
		unlink(path);
	close(fd);
}

void keyring_forget(struct keyring *k, struct str task, int64_t fence)
{
	forget(k, task, fence, STR(""));
}

void keyring_forget_token(struct keyring *k, struct str task, struct str token)
{
	if (token.n)
		forget(k, task, 0, token);
}

/* --- for doctor ---------------------------------------------------------------------------- */

static void show_file(const struct keyring *k, struct str name, key_file_fn *fn, void *ctx)
{
	struct key_file f = { .path = fs_join(k->arena, str_c(k->dir), name) };
	struct stat st;
	struct key key;

	if (lstat(f.path, &st))
		return;
	f.modified = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	f.pending = !str_ends(name, STR(".token"));
	if (key_read(f.path, &key, k->arena)) {
		f.queue = key.queue;
		f.task = key.task;
		f.agent = key.agent;
	}
	fn(ctx, &f);
}

int keyring_each(struct keyring *k, key_file_fn *fn, void *ctx)
{
	const struct dirent *entry;
	int r = check_dir(k);
	DIR *d;

	if (r)
		return r == -ENOENT ? 0 : r;
	d = opendir(k->dir);
	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		struct str name = str_c(entry->d_name);

		if (str_ends(name, STR(".token")) || str_ends(name, STR(".pending")) ||
		    str_ends(name, STR(".tmp")))
			show_file(k, name, fn, ctx);
	}
	closedir(d);
	return 0;
}
