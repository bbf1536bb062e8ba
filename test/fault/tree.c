#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../race/kit.h"
#include "base/fs.h"

const char *tree_place(char *out, size_t room)
{
	const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	snprintf(out, room, "%s/pawl-fault-XXXXXX", memory);
	CHECK(mkdtemp(out), "no folder");
	return out;
}

void tree_add(struct tree *t, struct str path, bool folder, struct str bytes)
{
	struct tree_node *n = arena_new(&t->a, struct tree_node);

	*n = (struct tree_node){ .path = arena_str(&t->a, path),
				 .folder = folder,
				 .bytes = arena_str(&t->a, bytes) };
	if (!t->last)
		t->last = &t->nodes;
	*t->last = n;
	t->last = &n->next;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void load(struct tree *t, const char *dir, struct str below)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	CHECK(d, "%s: %s", dir, strerror(errno));
	while ((e = readdir(d))) {
		char *full = fs_join(&t->a, str_c(dir), str_c(e->d_name));
		char *path = fs_join(&t->a, below, str_c(e->d_name));
		struct str bytes = STR("");
		bool folder = fs_is_dir(full);

		if (is_dots(e->d_name))
			continue;
		if (!folder)
			CHECK(fs_read(&t->a, full, 1 << 30, &bytes) == 0, "%s", full);
		tree_add(t, str_c(path), folder, bytes);
		if (folder)
			load(t, full, str_c(path));
	}
	closedir(d);
}

void tree_load(struct tree *t, const char *dir)
{
	load(t, dir, STR(""));
}

static void store(const struct tree_node *n, const char *dir)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%.*s", dir, STRF(n->path));
	if (n->folder) {
		CHECK(mkdir(path, 0777) == 0, "%s: %s", path, strerror(errno));
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	CHECK(fd >= 0 && fs_write_all(fd, n->bytes) == 0, "%s: %s", path, strerror(errno));
	close(fd);
}

void tree_store(const struct tree *t, const char *dir)
{
	tree_clear(dir);
	for (const struct tree_node *n = t->nodes; n; n = n->next)
		store(n, dir);
}

void tree_clear(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	CHECK(d, "%s: %s", dir, strerror(errno));
	while ((e = readdir(d))) {
		char path[300];

		if (is_dots(e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (fs_is_dir(path)) {
			tree_clear(path);
			rmdir(path);
		} else {
			unlink(path);
		}
	}
	closedir(d);
}

void tree_free(struct tree *t)
{
	arena_free(&t->a);
	*t = (struct tree){ 0 };
}
