#include "transfer/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITER_MS 5000 /* how long to wait for a program that opens the pipe for writing */
#define PAUSE_MS 20
#define NONE (-1)

/* A pipe without a writer reads as ended; with a writer it has a byte, or EAGAIN. *first: the byte that was read, or
 * NONE. */
static int await_writer(int fd, int *first)
{
	for (int waited = 0; waited < WRITER_MS; waited += PAUSE_MS) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		unsigned char c;
		ssize_t n = read(fd, &c, 1);

		if (n > 0)
			*first = c;
		if (n > 0 || (n < 0 && errno == EAGAIN))
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (poll(&p, 1, PAUSE_MS) > 0 && p.revents & POLLHUP && !(p.revents & POLLIN))
			return 0; /* a writer has come and gone */
	}
	return -ETIMEDOUT;
}

static int source_check(int fd, int *first)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISFIFO(st.st_mode))
		return await_writer(fd, first);
	return S_ISREG(st.st_mode) || isatty(fd) ? 0 : -EINVAL;
}

/* Opening a device can have side effects, so this checks the kind of file first. */
FILE *source_open(const char *path, int *r)
{
	struct stat st;
	FILE *f = NULL;
	int fd, first = NONE;

	*r = stat(path, &st) ? -errno : S_ISBLK(st.st_mode) || S_ISSOCK(st.st_mode) ? -EINVAL : 0;
	if (*r)
		return NULL;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		*r = -errno;
		return NULL;
	}
	*r = source_check(fd, &first);
	if (!*r && fcntl(fd, F_SETFL, O_RDONLY))
		*r = -errno;
	if (!*r && !(f = fdopen(fd, "r")))
		*r = -errno;
	if (*r)
		close(fd);
	else if (first != NONE)
		ungetc(first, f);
	return f;
}
