#include "transfer/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define BEGINNING 4096

static bool begins_with(const char *path, const struct str *beginnings)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[BEGINNING];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	bool any = n == 0;

	if (fd >= 0)
		close(fd);
	for (size_t i = 0; n > 0 && !any && beginnings[i].n; i++)
		any = str_starts(str_n(text, (size_t)n), beginnings[i]);
	return any;
}

int target_check(const char *path, const struct str *beginnings)
{
	struct stat st, to;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return stat(path, &to) || S_ISREG(to.st_mode) ? -ELOOP : 1;
	if (!S_ISREG(st.st_mode))
		return 1;
	return begins_with(path, beginnings) ? 0 : -EEXIST;
}
