#include "http/kept.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"

size_t kept_read(const char *path, void *p, size_t room)
{
	struct arena a = { 0 };
	struct str bytes;
	size_t n = 0;

	if (fs_read_private(&a, path, room, &bytes) == 0) {
		n = bytes.n;
		memcpy(p, bytes.p, n);
	}
	arena_free(&a);
	return n;
}

static bool write_new(const char *path, struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool done;

	if (fd < 0)
		return false;
	done = fs_write_all(fd, bytes) == 0;
	return close(fd) == 0 && done;
}

/* Nothing is synced and no error reported: a lost file costs one handshake. */
void kept_write(const char *path, struct str bytes)
{
	char temp[PATH_MAX];
	struct arena a = { 0 };
	int n = snprintf(temp, sizeof(temp), "%s.%d", path, (int)getpid());

	if (n > 0 && (size_t)n < sizeof(temp) &&
	    fs_make_dirs(arena_cstr(&a, fs_dirname(str_c(path))), 0700) == 0) {
		unlink(temp); /* of a process that was killed */
		if (!write_new(temp, bytes) || rename(temp, path) < 0)
			unlink(temp);
	}
	arena_free(&a);
}

void kept_forget(const char *path)
{
	unlink(path);
}
