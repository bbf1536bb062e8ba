/* File operations for folders that other processes and users share. A write replaces the whole file
 * or leaves the old one, and it is durable when it returns. fs_read() refuses links, FIFOs and
 * devices, so a planted one can neither redirect nor block it. beneath_*() open paths in a folder
 * whose content is not trusted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/sysmacros.h>
#endif

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"

#define LINKS_MAX 40   /* the kernel's limit */
#define POLL_MAX 60000 /* milliseconds: a longer time may not fit an int */
#define TEMP_TRIES 16
#define SETTLE_MS 1000

/* Reads to the end instead of `size` bytes, because a file may grow during the read, and files in
 * /proc report size 0. */
static int read_all(struct arena *a, int fd, size_t size, size_t max, struct str *out)
{
	size_t room = size + 1, n = 0;
	char *p = arena_alloc(a, room + 1);

	for (;;) {
		ssize_t got = read(fd, p + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
		if (n > max)
			return -EFBIG;
		if (n == room) {
			char *bigger = arena_alloc(a, room * 2 + 4096);

			memcpy(bigger, p, n);
			p = bigger;
			room = room * 2 + 4095;
		}
	}
	p[n] = '\0';
	*out = str_n(p, n);
	return 0;
}

int fs_read_fd(struct arena *a, int fd, size_t max, struct str *out)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uintmax_t)st.st_size > max)
		return -EFBIG;
	return read_all(a, fd, (size_t)st.st_size, max, out);
}

int fs_read(struct arena *a, const char *path, size_t max, struct str *out)
{
	/* without O_NONBLOCK, opening a FIFO would hang */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno; /* ENXIO: a socket */
	r = fs_read_fd(a, fd, max, out);
	close(fd);
	return r;
}

int fs_read_private(struct arena *a, const char *path, size_t max, struct str *out)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		r = -EPERM;
	else
		r = fs_read_fd(a, fd, max, out);
	close(fd);
	return r;
}

bool fs_read_until(int fd, int64_t end, struct buf *out)
{
	char part[4096];

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - os_boot_ms();
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&p, 1, (int)(left < POLL_MAX ? left : POLL_MAX)) <= 0)
			continue;
		n = read(fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		buf_add(out, part, (size_t)n);
	}
}

int fs_write_all(int fd, struct str data)
{
	while (data.n) {
		ssize_t put = write(fd, data.p, data.n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		if (put == 0)
			return -EIO;
		data.p += put;
		data.n -= (size_t)put;
	}
	return 0;
}

static int sync_fd(int fd)
{
	int r;

	do
		r = fsync(fd);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

/* Some file systems do not support fsync of a folder. */
static int sync_dir(int dir)
{
	int r = sync_fd(dir);

	return r == -EINVAL ? 0 : r;
}

int fs_sync_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : sync_dir(dir);

	if (dir >= 0)
		close(dir);
	return r;
}

static int open_temp(int dir, char *name, size_t room, mode_t mode)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		int fd;

		snprintf(name, room, ".pawl-%08x%08x.tmp", random_below(UINT32_MAX),
			 random_below(UINT32_MAX));
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Sets the owner before the mode, because fchown() clears mode bits. */
static int make_like(int fd, const struct stat *like)
{
	struct stat now;

	if (fstat(fd, &now))
		return -errno;
	if ((now.st_uid != like->st_uid || now.st_gid != like->st_gid) &&
	    fchown(fd, like->st_uid, like->st_gid))
		return -errno;
	return fchmod(fd, like->st_mode & 07777) ? -errno : 0;
}

/* like: NULL, or the file whose owner and mode the new one gets. */
static int replace_at(int dir, const char *name, struct str data, mode_t mode,
		      const struct stat *like)
{
	char temp[40];
	int fd = open_temp(dir, temp, sizeof(temp), mode);
	int r;

	if (fd < 0)
		return fd;
	r = fs_write_all(fd, data);
	if (!r && like)
		r = make_like(fd, like);
	if (!r)
		r = sync_fd(fd);
	if (close(fd) && !r && errno != EINTR)
		r = -errno;
	if (!r && renameat(dir, temp, dir, name))
		r = -errno;
	if (r) {
		unlinkat(dir, temp, 0);
		return r;
	}
	return sync_dir(dir);
}

int fs_write_atomic_at(int dir, const char *name, struct str data, mode_t mode)
{
	return replace_at(dir, name, data, mode, NULL);
}

static struct str last_part(struct str path)
{
	size_t i = path.n;

	while (i && path.p[i - 1] != '/')
		i--;
	return str_n(path.p + i, path.n - i);
}

static int fs_replace(const char *path, struct str data, mode_t mode, const struct stat *like)
{
	struct arena a = { 0 };
	struct str name = last_part(str_c(path));
	int dir, r;

	if (!name.n || str_is(name, ".") || str_is(name, ".."))
		return -EINVAL;
	dir = open(arena_cstr(&a, fs_dirname(str_c(path))), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		r = -errno;
	} else {
		r = replace_at(dir, name.p, data, mode, like);
		close(dir);
	}
	arena_free(&a);
	return r;
}

int fs_write_atomic(const char *path, struct str data, mode_t mode)
{
	return fs_replace(path, data, mode, NULL);
}

int fs_write_like(const char *path, struct str data, const struct stat *like)
{
	return fs_replace(path, data, 0600,
			  like); /* other users cannot read it before it has its owner */
}

/* Checks the path only after mkdir() has failed, because another process may have created the
 * folder in between. */
static int make_dir(const char *path, mode_t mode)
{
	int err;

	if (!mkdir(path, mode))
		return 0;
	err = errno;
	if (fs_is_dir(path))
		return 0;
	return err == EEXIST ? -ENOTDIR : -err;
}

int fs_make_dirs(const char *path, mode_t mode)
{
	size_t n = strlen(path);
	struct arena a = { 0 };
	char *p = arena_cstr(&a, str_n(path, n));
	int r = 0;

	while (n > 1 && p[n - 1] == '/')
		p[--n] = '\0';
	for (size_t i = 1; i < n && !r; i++) {
		if (p[i] != '/' || p[i - 1] == '/')
			continue;
		p[i] = '\0';
		r = make_dir(p, mode | 0300); /* else nothing could be created inside */
		p[i] = '/';
	}
	if (!r)
		r = make_dir(p, mode);
	arena_free(&a);
	return r;
}

bool fs_is_settling(int dir, const char *path)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };
	struct stat st;
	int64_t age;

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	age = os_wall_ms() - ((int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000);
	if (age < -SETTLE_MS || age > SETTLE_MS)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

struct fs_id fs_id_of(const struct stat *st)
{
	return (struct fs_id){ st->st_dev, st->st_ino, (int64_t)st->st_size };
}

bool fs_identify(const char *path, struct fs_id *out)
{
	struct stat st;
#ifdef __linux__
	struct statx x;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_SIZE, &x) == 0) {
		*out = (struct fs_id){ makedev(x.stx_dev_major, x.stx_dev_minor), (ino_t)x.stx_ino,
				       (int64_t)x.stx_size };
		return true;
	}
#endif
	if (lstat(path, &st)) /* a sandbox may forbid statx() */
		return false;
	*out = fs_id_of(&st);
	return true;
}

bool fs_is_at(const char *path, const struct fs_id *file, int64_t *size)
{
	struct fs_id id;

	if (!fs_identify(path, &id) || id.ino != file->ino || id.dev != file->dev)
		return false;
	if (size)
		*size = id.size;
	return true;
}

bool fs_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool fs_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

char *fs_join(struct arena *a, struct str dir, struct str name)
{
	bool slash = dir.n && dir.p[dir.n - 1] != '/';
	char *p = arena_alloc(a, dir.n + slash + name.n + 1);

	if (dir.n)
		memcpy(p, dir.p, dir.n);
	if (slash)
		p[dir.n] = '/';
	if (name.n)
		memcpy(p + dir.n + slash, name.p, name.n);
	return p;
}

static struct str without_slashes(struct str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

struct str fs_dirname(struct str path)
{
	path = without_slashes(path);
	while (path.n && path.p[path.n - 1] != '/')
		path.n--;
	return path.n ? without_slashes(path) : STR(".");
}

static char *real_path(struct arena *a, const char *path)
{
	char *p = realpath(path, NULL), *copy;

	if (!p)
		return NULL;
	copy = arena_cstr(a, str_c(p));
	free(p);
	return copy;
}

/* The target of the link at `path`, relative to its folder; NULL if it is not a link. */
static char *link_target(struct arena *a, const char *path, struct str dir)
{
	char *to = arena_alloc(a, PATH_MAX);
	ssize_t n = readlink(path, to, PATH_MAX - 1);

	if (n <= 0)
		return NULL;
	return to[0] == '/' ? to : fs_join(a, dir, str_n(to, (size_t)n));
}

char *fs_real(struct arena *a, const char *path)
{
	/* loops only for a link to a path that does not exist yet */
	for (int i = 0; i < LINKS_MAX; i++) {
		struct str whole = without_slashes(str_c(path));
		char *real = real_path(a, path), *dir, *plain, *to;

		if (real || errno != ENOENT || !whole.n)
			return real;
		dir = real_path(a, arena_cstr(a, fs_dirname(whole)));
		if (!dir || !fs_is_dir(dir))
			return NULL;
		plain = fs_join(a, str_c(dir), last_part(whole));
		to = link_target(a, plain, str_c(dir));
		if (!to)
			return plain;
		path = to;
	}
	return NULL;
}

char *fs_user_dir(struct arena *a, const char *variable, const char *usual)
{
	const char *base = getenv(variable), *home = getenv("HOME");
	struct str name, folder;

	if (base && base[0] == '/')
		return fs_join(a, str_c(base), STR("pawl"));
	if (!home || home[0] != '/') {
		os_user(&name, &folder, a);
		home = arena_cstr(a, folder);
	}
	return home[0] == '/' ? arena_cstr(a, arena_printf(a, "%s/%s/pawl", home, usual)) : NULL;
}

/* --- beneath ---------------------------------------------------------------------------------- */

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

#define STEP (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens one component at a time. openat2() would be shorter, but older kernels, other systems and
 * the tests that inject system call failures do not support it. */

static bool is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int beneath_step(int dir, const char *name)
{
	int fd = openat(dir, name, STEP);
	int error = errno;

	if (fd >= 0)
		return fd;
	return error == ENOTDIR && is_link(dir, name) ? -ELOOP : -error;
}

/* Takes the first component off PATH. */
static int beneath_cut(const char **path, char name[NAME_MAX + 1])
{
	size_t n = strcspn(*path, "/");

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, *path, n);
	name[n] = 0;
	*path += n;
	*path += strspn(*path, "/");
	return strcmp(name, "..") == 0 ? -EXDEV : 0;
}

/* The last component of a path, and its folder. */
struct last {
	int dir;
	bool owned; /* we must close `dir` */
	char name[NAME_MAX + 1];
};

static void last_close(struct last *l)
{
	if (l->owned)
		close(l->dir);
}

static int last_find(struct last *l, int dir, const char *path)
{
	int r = *path == '/' ? -EXDEV : *path ? beneath_cut(&path, l->name) : -ENOENT;

	l->dir = dir;
	l->owned = false;
	while (!r && *path) {
		int next = beneath_step(l->dir, l->name);

		last_close(l);
		if (next < 0)
			return next;
		l->dir = next;
		l->owned = true;
		r = beneath_cut(&path, l->name);
	}
	if (r)
		last_close(l);
	return r;
}

static int open_last(int dir, const char *name, int flags, mode_t mode)
{
	struct stat st;
	int fd, error;

	fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
	error = errno;
	if (fd < 0)
		return error == ENOTDIR && is_link(dir, name)                     ? -ELOOP
		       : error == ENXIO || (error == EISDIR && !(flags & O_PATH)) ? -EINVAL
										  : -error;
	if (flags & (O_DIRECTORY | O_PATH))
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int beneath_open(int dir, const char *path, int flags, mode_t mode)
{
	struct last l;
	int r = last_find(&l, dir, path);

	if (r)
		return r;
	r = open_last(l.dir, l.name, flags, mode);
	last_close(&l);
	return r;
}

int beneath_dir(const char *root, const char *path)
{
	int fd, dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	if (!*path)
		return dir;
	fd = beneath_open(dir, path, O_PATH | O_DIRECTORY, 0);
	close(dir);
	return fd;
}

DIR *beneath_list(const char *root, const char *path)
{
	int dir = beneath_dir(root, path),
	    fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (dir >= 0)
		close(dir);
	if (!d && fd >= 0)
		close(fd);
	return d;
}
