#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

#define STEP (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens one component at a time. openat2() would be shorter, but older kernels, other systems and
 * the tests that inject failures of system calls do not have it. */

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
