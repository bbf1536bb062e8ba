#include "store/git/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define FOLDER (O_RDONLY | O_DIRECTORY)

int git_folders_open(struct git *s, const char *dir)
{
	s->top = beneath_dir(dir, "");
	if (s->top < 0)
		return s->top;
	if (s->foreign)
		s->refs = beneath_open(s->top, "refs", FOLDER, 0);
	else
		s->refs = openat(s->top, "refs", FOLDER | O_CLOEXEC);
	return s->refs >= 0 ? 0 : s->foreign ? s->refs : -errno;
}

void git_folders_close(struct git *s)
{
	if (s->top >= 0)
		close(s->top);
	if (s->refs >= 0)
		close(s->refs);
	s->top = s->refs = -1;
}

/* Makes one folder after the other. Another process may make the same ones, and git removes empty ones. */
static int git_folder_make(int dir, const char *path)
{
	struct arena a = { 0 };
	struct str rest = str_c(path);
	int at = dir;

	while (at >= 0 && rest.n) {
		const char *name = arena_cstr(&a, str_cut(&rest, '/'));
		int next = mkdirat(at, name, 0777) && errno != EEXIST
				   ? -errno
				   : beneath_open(at, name, FOLDER, 0);

		if (at != dir)
			close(at);
		at = next;
	}
	arena_free(&a);
	return at;
}

int git_folder(int dir, const char *path, bool may_make)
{
	int fd = beneath_open(dir, path, FOLDER, 0);

	return fd == -ENOENT && may_make ? git_folder_make(dir, path) : fd;
}

int git_gate_open(struct gate *g, int top, const char *name)
{
	struct stat like;
	int dir = git_folder(top, "pawl", true), rc;

	if (dir < 0)
		return dir;
	rc = fstatat(top, "objects", &like, 0) ? -errno : 0;
	like.st_mode &= (mode_t)~0111;
	if (rc == 0)
		rc = gate_open_at(g, dir, name, &like);
	close(dir);
	return rc;
}

bool git_errno_full(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EFBIG;
}

static int fault_of(int err)
{
	if (git_errno_full(err))
		return STORE_FULL;
	if (err == ELOOP || err == EXDEV)
		return STORE_UNSUPPORTED;
	return err == EACCES || err == EROFS || err == EPERM ? STORE_READONLY : STORE_IO;
}

int git_fail_errno(struct git *s, int err, const char *what)
{
	int fault = fault_of(err);

	return store_fail(
		&s->base.env, fault,
		fault == STORE_UNSUPPORTED
			? "pawl does not follow links there: find out who made the link, and remove it"
			: "check the owner and the mode of the repository, and the free space",
		"%s: %s: %s", s->remote, what,
		fault == STORE_UNSUPPORTED ? "it is a symbolic link" : strerror(err));
}
