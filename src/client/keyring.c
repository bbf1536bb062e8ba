/*
 * The files:
 *   HASH.token                                        a saved token
 *   HASH.pending, HASH-RANDOM.pending                 sent, or left by a call without an answer
 *   HASH+HASH.pending, HASH+HASH-RANDOM.pending       pending for `done --claim-next`
 * HASH is a hash of queue, task, agent, run and worktree, so a look-up is one open(). The queue is its id and its origin;
 * if it has no id, its label (store and name). A file has lines of key=value. A later line replaces an earlier one, so a
 * promotion from pending to saved only appends.
 *
 * A process that removes or replaces a saved file holds a lock on it.
 *
 * Nothing is synced to the disk. If a power failure loses a token, its holder loses the rest of a lease, which then
 * expires. An fsync would double the cost of every claim.
 */
#include "client/keyring_private.h"
#include "client/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"

#define TRIES 16
#define BUSY_MS 500 /* a process locks a saved file only for a moment, unless it was stopped */

/* --- folder -------------------------------------------------------------------------------- */

int keyring_open(struct keyring *k, struct str queue, struct str agent, struct str run,
		 struct str worktree, struct arena *a)
{
	*k = (struct keyring){ .dir = fs_user_dir(a, "XDG_STATE_HOME", ".local/state"),
			       .queue = queue,
			       .agent = agent,
			       .run = run,
			       .worktree = worktree,
			       .arena = a };
	return k->dir ? 0 : -ENOENT;
}

void keyring_queue(struct keyring *k, struct str id, bool sure)
{
	bool good = token_valid(id);

	memcpy(k->id, good ? id.p : "", good ? TOKEN_LEN : 0);
	k->id[good ? TOKEN_LEN : 0] = '\0';
	k->sure = good && sure;
}

void keyring_server(struct keyring *k, struct str origin)
{
	snprintf(k->origin, sizeof(k->origin), "%.*s", STRF(origin));
}

/* Versions without origins saved only the label. */
bool keyring_is_ours(const struct keyring *k, const struct key_file *f)
{
	bool here = str_eq(f->queue, k->queue);

	if (!f->id.n || !*k->id)
		return here;
	return str_is(f->id, k->id) && (here || str_is(f->origin, k->origin));
}

bool keyring_is_mine(const struct keyring *k, const struct key_file *f)
{
	return str_eq(f->run, k->run) && str_eq(f->agent, k->agent);
}

/* A user who can write to the folder can plant tokens: only its owner may have access. */
int keyring_check(const struct keyring *k)
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
	int r = keyring_check(k);

	if (r != -ENOENT || !k->dir)
		return r;
	r = fs_make_dirs(k->dir, 0700);
	return r ? r : keyring_check(k);
}

static char *random_path(const struct keyring *k, struct str name, const char *ending)
{
	struct str file = arena_printf(k->arena, "%.*s-%08x%08x%s", STRF(name),
				       random_below(UINT32_MAX), random_below(UINT32_MAX), ending);

	return fs_join(k->arena, str_c(k->dir), file);
}

int key_lock_now(int fd)
{
	int r;

	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r && errno == EINTR);
	return r;
}

/* --- pending ------------------------------------------------------------------------------- */

bool key_same_file(int fd, const char *path)
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

/* Takes over the pending file and its token if its process is gone. The process may have just finished, so the lock
 * counts only if the path still names the locked file. */
static bool keyring_adopt(const struct keyring *k, struct str task, struct pending *p, char *path)
{
	struct key key;

	p->path = path;
	p->fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0)
		return false;
	if (key_lock_now(p->fd) == 0 && key_same_file(p->fd, path)) {
		if (key_read(path, &key, k->arena)) {
			p->token = key.token;
			p->adopted = true;
			return true;
		}
		/* Its process died before it wrote the token, so it sent nothing. */
		if (ftruncate(p->fd, 0) == 0 && write_pending(k, task, p) == 0)
			return true;
	}
	pending_close(p);
	return false;
}

/* The beginnings of the file names under which a call may have left a token. */
struct names {
	struct str v[2];
	size_t n;
};

static bool one_of(const struct names *names, struct str file)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_starts(file, names->v[i]))
			return true;
	return false;
}

static bool adopt_any(const struct keyring *k, struct str task, const struct names *names,
		      struct pending *p)
{
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	bool found = false;

	if (!d)
		return false;
	while (!found && (entry = readdir(d))) {
		struct str file = str_c(entry->d_name);

		if (str_ends(file, STR(".pending")) && one_of(names, file))
			found = keyring_adopt(k, task, p, fs_join(k->arena, str_c(k->dir), file));
	}
	closedir(d);
	return found;
}

static int keyring_create(const char *path)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int create_pending(const struct keyring *k, struct str name, struct pending *p)
{
	p->path = key_path(k, name, ".pending");
	for (int i = 0; i < TRIES; i++) {
		p->fd = keyring_create(p->path);
		if (p->fd < 0 && p->fd != -EEXIST)
			return p->fd;
		/* Another process may have adopted the file between open and lock: leave it to that
		 * process. */
		if (p->fd >= 0 && key_lock_now(p->fd) == 0 && key_same_file(p->fd, p->path))
			return 0;
		pending_close(p);
		p->path = random_path(k, name, ".pending");
	}
	return -EBUSY;
}

static int keyring_begin_pending(struct keyring *k, struct str task, const struct names *names,
				 struct pending *p)
{
	int r = keyring_folder(k);

	*p = (struct pending){ .fd = -1 };
	if (r)
		return r;
	if (adopt_any(k, task, names, p))
		return 0;
	r = create_pending(k, names->v[0], p);
	if (r)
		return r;
	r = write_pending(k, task, p);
	if (r)
		keyring_drop(k, p);
	return r;
}

/* By id first, then by label: calls that were made before the queue had an id used the label. */
static struct names names_of(struct keyring *k, struct str task, struct str filter, struct str of)
{
	struct names names = { 0 };
	struct str end = STR("");

	if (of.n)
		end = arena_printf(k->arena, "+%s", arena_cstr(k->arena, hash_hex(k->arena, of)));
	for (int by = *k->id ? KEY_BY_ID : KEY_BY_LABEL; by <= KEY_BY_LABEL; by++) {
		struct str name = key_name(k, (enum key_by)by, task, filter);

		names.v[names.n++] = arena_printf(k->arena, "%.*s%.*s", STRF(name), STRF(end));
	}
	return names;
}

int keyring_begin(struct keyring *k, struct str task, struct pending *p)
{
	struct names names = names_of(k, task, STR(""), STR(""));

	return keyring_begin_pending(k, task, &names, p);
}

int keyring_begin_any(struct keyring *k, struct str filter, struct str of, struct pending *p)
{
	struct names names = names_of(k, STR(""), filter, of);

	return keyring_begin_pending(k, STR(""), &names, p);
}

void keyring_drop(struct keyring *k, struct pending *p)
{
	(void)k;
	if (p->fd >= 0)
		unlink(p->path); /* before the lock ends, or another process could adopt the refused token */
	pending_close(p);
}

void keyring_leave(struct keyring *k, struct pending *p)
{
	(void)k;
	pending_close(p);
}

/* --- saved --------------------------------------------------------------------------------- */

/* Finds the key by the queue's id if that is known, else by the queue's label. */
static char *saved_path(const struct keyring *k, struct str task)
{
	return key_saved(k, *k->id ? KEY_BY_ID : KEY_BY_LABEL, task);
}

/* Finds a token that was saved before the queue had an id. */
static bool find_by_label(struct keyring *k, struct str task, struct key *key)
{
	return key_read(key_saved(k, KEY_BY_LABEL, task), key, k->arena) && !key->id.n;
}

bool keyring_find(struct keyring *k, struct str task, struct str *token, int64_t *fence)
{
	struct key key;

	if (keyring_check(k))
		return false;
	if (!(*k->id && key_read(key_saved(k, KEY_BY_ID, task), &key, k->arena)) &&
	    !find_by_label(k, task, &key) && !(k->sure && keyring_moved(k, task, &key)))
		return false;
	*token = key.token;
	*fence = key.fence;
	return true;
}

bool keyring_seek(struct keyring *k, struct str task, struct str *token, int64_t *fence)
{
	struct key key;

	if (keyring_check(k) || !keyring_older(k, task, &key))
		return false;
	*token = key.token;
	*fence = key.fence;
	return true;
}

/* Opens and locks a saved file: until it is closed, no process replaces it. -ENOENT; -EBUSY if another process keeps
 * it locked. */
static int lock_saved(const char *path)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; i < BUSY_MS; i++) {
		int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return -errno;
		if (key_lock_now(fd) == 0 && key_same_file(fd, path))
			return fd;
		close(fd);
		nanosleep(&moment, NULL);
	}
	return -EBUSY;
}

static int note_success(const struct keyring *k, int fd, struct str task, int64_t fence)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	int r;

	if (*k->id) /* a queue's first claim learns the id only from its answer */
		line_add(&b, "queue_id", str_c(k->id));
	line_add(&b, "task", task);
	buf_addf(&b, "fence=%lld\n", (long long)fence);
	r = fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	return r;
}

/* Does the saved token belong to a later lock? Then our lock has ended, and we were slow to save its token. Only
 * fences of the same queue in the same place can be compared. */
static bool is_later(const struct keyring *k, const char *saved, int64_t fence)
{
	struct key old;

	return k->sure && key_read(saved, &old, k->arena) && str_is(old.id, k->id) &&
	       str_eq(old.queue, k->queue) && old.fence > fence;
}

/* Makes the pending file at `path`, open as fd, the saved one. It replaces an older token: the grant of a lock means
 * that all earlier locks of the task have ended. */
static int keyring_promote(const struct keyring *k, int fd, const char *path, struct str task,
			   int64_t fence)
{
	const char *saved = saved_path(k, task);
	int r = note_success(k, fd, task, fence), held = -ENOENT;

	if (r)
		return r;
	for (int i = 0; i < TRIES && held == -ENOENT; i++) {
		/* link, not rename: of two processes that save at once, one must see that it
		 * replaces the other's token */
		if (link(path, saved) == 0)
			return unlink(path) ? -errno : 0;
		if (key_same_file(fd, saved)) /* a process died between link and unlink */
			return unlink(path) ? -errno : 0;
		held = lock_saved(saved); /* -ENOENT: another process has just removed it */
	}
	if (is_later(k, saved, fence))
		r = unlink(path) ? -errno : 0;
	else if (rename(path, saved))
		r = -errno;
	if (held >= 0)
		close(held);
	return r;
}

/* Keeps the file if another process has saved a later lock's token in it. A stale token that stays does no harm, because
 * the next call notices it. */
static void forget_file(struct keyring *k, const char *path, int64_t fence, struct str token)
{
	struct key key;
	int fd = lock_saved(path);

	if (fd < 0)
		return;
	if (!key_read(path, &key, k->arena) ||
	    (token.n ? secret_eq(key.token, token) : key.fence <= fence))
		unlink(path);
	close(fd);
}

int keyring_keep(struct keyring *k, struct pending *p, struct str task, int64_t fence)
{
	int r = p->fd < 0 ? -EBADF : keyring_promote(k, p->fd, p->path, task, fence);

	pending_close(p);
	if (!r && *k->id)
		forget_file(k, key_saved(k, KEY_BY_LABEL, task), fence, STR(""));
	return r;
}

int keyring_save(struct keyring *k, struct str task, struct str token, int64_t fence)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	char *path;
	int fd, r = keyring_folder(k);

	if (r)
		return r;
	path = random_path(k, key_name(k, KEY_BY_LABEL, task, STR("")), ".tmp");
	fd = keyring_create(path);
	if (fd < 0)
		return fd;
	key_describe(&b, k, task, token);
	r = b.full ? -EFBIG : fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	if (!r)
		r = keyring_promote(k, fd, path, task, fence);
	if (r)
		unlink(path);
	else if (*k->id)
		forget_file(k, key_saved(k, KEY_BY_LABEL, task), fence, STR(""));
	close(fd);
	return r;
}

static void keyring_forget_lock(struct keyring *k, struct str task, int64_t fence, struct str token)
{
	if (keyring_check(k))
		return;
	if (*k->id)
		forget_file(k, key_saved(k, KEY_BY_ID, task), fence, token);
	forget_file(k, key_saved(k, KEY_BY_LABEL, task), fence, token);
}

void keyring_forget(struct keyring *k, struct str task, int64_t fence)
{
	keyring_forget_lock(k, task, fence, STR(""));
}

void keyring_forget_token(struct keyring *k, struct str task, struct str token)
{
	if (token.n)
		keyring_forget_lock(k, task, 0, token);
}
