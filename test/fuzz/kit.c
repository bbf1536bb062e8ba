#include "kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "../kit/tmp.h"

static char dir[100];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_dir(void)
{
	CHECK(tmp_make(dir, sizeof(dir), "fuzz"));
	atexit(remove_dir);
	return dir;
}

void fuzz_write(const char *path, struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK(fs_write_all(fd, bytes) == 0);
	close(fd);
}

static bool named(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

bool fuzz_only(const char *path, const char *const *names)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool only = true;

	CHECK(d);
	while (only && (e = readdir(d)))
		only = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		       named(e->d_name, names);
	closedir(d);
	return only;
}

/* Written independently of text.c: it looks at bytes, not at ranges of characters. */
bool fuzz_harmless(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;

	for (size_t i = 0; i < s.n; i++) {
		const uint8_t *c = p + i;

		if (c[0] < 0x20 || c[0] == 0x7f)
			return false;
		if (i + 1 < s.n && c[0] == 0xc2 && c[1] < 0xa0)
			return false; /* C1 */
		if (i + 2 >= s.n || c[0] != 0xe2)
			continue;
		if (c[1] == 0x80 &&
		    (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae)))
			return false;
		if (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)
			return false;
	}
	return text_valid(s);
}
