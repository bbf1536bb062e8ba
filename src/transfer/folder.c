/*
 * Reads a folder of Markdown files and its sub-folders. It follows no link: a hostile folder must not make us read a
 * file outside of it. The answer lists the files that were left out, and counts the hidden names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "transfer/port.h"

#define DEPTH_MAX 16
#define FILES_MAX 100000

struct walk {
	struct port_in *in;
	struct arena a;
	int root;
	struct strs files; /* their paths below the root */
	enum result code;
};

static void leave_out(struct walk *w, struct str path, const char *why)
{
	struct port_in *in = w->in;

	if (in->left_out.n < PORT_LEFT_OUT) {
		in->left_out.v = arena_grow(in->arena, in->left_out.v, in->left_out.n,
					    sizeof(struct str));
		in->left_out.v[in->left_out.n++] =
			arena_printf(in->arena, "%s: %s",
				     fs_join(&w->a, str_c(in->path), text_line(&w->a, path)), why);
	}
	in->n_left_out++;
}

static void add_file(struct walk *w, struct str path)
{
	if (w->files.n == FILES_MAX) {
		w->code = port_refuse_rest(w->in, 1, STR("more than 100,000 Markdown files"));
		return;
	}
	w->files.v = arena_grow(&w->a, w->files.v, w->files.n, sizeof(*w->files.v));
	w->files.v[w->files.n++] = path;
}

static void walk_folder(struct walk *w, struct str path, int depth);

static void walk_entry(struct walk *w, int dir, struct str folder, const char *name, int depth)
{
	struct str path = str_c(fs_join(&w->a, folder, str_c(name)));
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return; /* another program has just removed it */
	if (S_ISLNK(st.st_mode))
		leave_out(w, path, "it is a link");
	else if (S_ISDIR(st.st_mode) && depth == DEPTH_MAX)
		leave_out(w, path, "it is more than 16 folders deep");
	else if (S_ISDIR(st.st_mode))
		walk_folder(w, path, depth + 1);
	else if (!str_ends(path, STR(".md")) && w->in->foreign)
		return; /* another program keeps its settings there */
	else if (!str_ends(path, STR(".md")))
		leave_out(w, path, "its name does not end in .md");
	else if (!S_ISREG(st.st_mode))
		leave_out(w, path, "it is not a regular file");
	else
		add_file(w, path);
}

/* These hidden names need no notice: no one expects tasks in them. */
static bool is_expected(const char *hidden)
{
	static const char *const names[] = { ".", "..", ".git", ".pawl" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(hidden, names[i]))
			return true;
	return false;
}

static void walk_folder(struct walk *w, struct str path, int depth)
{
	int fd = beneath_open(w->root, path.n ? path.p : ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		w->code = port_cannot(w->in, fs_join(&w->a, str_c(w->in->path), path),
				      fd < 0 ? fd : -errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	while (w->code == SUCCESS && (e = readdir(d)))
		if (e->d_name[0] != '.')
			walk_entry(w, dirfd(d), path, e->d_name, depth);
		else
			w->in->hidden += !w->in->foreign && !is_expected(e->d_name);
	closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

enum result port_read_folder(struct port_in *in, const char *folder)
{
	struct walk w = { .in = in, .root = beneath_dir(folder, ""), .code = SUCCESS };

	if (w.root < 0)
		return port_cannot(in, folder, w.root);
	in->path = folder;
	walk_folder(&w, STR(""), 0);
	if (w.files.n)
		qsort(w.files.v, w.files.n, sizeof(*w.files.v), by_name);
	for (size_t i = 0; w.code == SUCCESS && i < w.files.n; i++)
		w.code = port_read_md(in, w.root, w.files.v[i].p,
				      fs_join(&w.a, str_c(folder), w.files.v[i]));
	close(w.root);
	arena_free(&w.a);
	return w.code;
}
