#include "http/kept.h"

#include <fcntl.h>
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

/* Nothing is synced and no error reported: a lost file costs one handshake. So does a file that is incomplete, because a
 * reader recognises it. A temporary file would need a name of its own, and a killed process would leave its secret. */
void kept_write(const char *path, struct str bytes)
{
	struct arena a = { 0 };
	int fd = -1;

	if (fs_make_dirs(arena_cstr(&a, fs_dirname(str_c(path))), 0700) == 0) {
		unlink(path); /* others may have opened or linked it */
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd >= 0) {
		(void)fs_write_all(fd, bytes);
		close(fd);
	}
	arena_free(&a);
}

void kept_forget(const char *path)
{
	unlink(path);
}
