/* Changes several text files together, and shows the difference first. It checks every file again just before it writes the
 * first one, so it does not overwrite another process's change. It refuses a link that leads out of the root, because a clone
 * may contain one. */
#include "client/file_change.h"

#include <errno.h>
#include <unistd.h>

#include "base/fs.h"

#define FILE_MAX (16u << 20)
#define AROUND 3 /* lines of context */

static enum result file_change_refuse(struct answer *ans, const char *path, const char *why,
				      struct arena *a)
{
	return answer_fail(ans, MISCONFIGURED, arena_printf(a, "%s: %s", path, why),
			   STR("nothing was changed"));
}

static bool file_change_inside(const char *path, const char *root)
{
	size_t n = strlen(root);

	return !strncmp(path, root, n) && (path[n] == '/' || (n && root[n - 1] == '/'));
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* The real path of a file; neither the file nor its folders need to exist. NULL: it is a link to nothing. */
static char *real_of(const char *root, const char *name, struct arena *a)
{
	char *path = fs_join(a, str_c(root), str_c(name)), *real = fs_real(a, path);

	if (is_link(path) && (!real || !fs_exists(real)))
		return NULL;
	return real ? real : path;
}

/* Is the file's nearest existing folder `root` itself, or below it, after links are resolved? */
static bool folder_inside(const char *path, const char *root, struct arena *a)
{
	struct str dir = fs_dirname(str_c(path));
	char *real;

	while (dir.n > strlen(root) && !fs_exists(arena_cstr(a, dir)))
		dir = fs_dirname(dir);
	real = fs_real(a, arena_cstr(a, dir));
	return real && (!strcmp(real, root) || file_change_inside(real, root));
}

enum result file_change_load(struct file_change *f, const char *root, const char *name,
			     struct answer *ans, struct arena *a)
{
	char *shown = fs_join(a, str_c(root), str_c(name));
	int r;

	*f = (struct file_change){ .name = arena_cstr(a, str_c(name)), .root = root };
	f->path = real_of(root, name, a);
	if (!f->path)
		return file_change_refuse(ans, shown, "it is a link to a file that does not exist",
					  a);
	if (!folder_inside(f->path, root, a))
		return file_change_refuse(ans, shown, "it is a link that leads out of the folder",
					  a);
	r = fs_read(a, f->path, FILE_MAX, &f->before);
	if (r == -ENOENT) {
		f->stays = false;
		return SUCCESS;
	}
	if (r)
		return file_change_refuse(ans, shown,
					  r == -EINVAL  ? "it is not a regular file"
					  : r == -EFBIG ? "it is larger than 16 MiB"
							: strerror(-r),
					  a);
	if (stat(f->path, &f->was))
		return file_change_refuse(ans, shown, strerror(errno), a);
	if (!(f->was.st_mode & 0222) || access(f->path, W_OK))
		return file_change_refuse(ans, shown, "it is read-only", a);
	f->existed = f->stays = true;
	f->after = f->before;
	return SUCCESS;
}

bool file_change_any(const struct file_change *f)
{
	return f->existed != f->stays || (f->stays && !str_eq(f->before, f->after));
}

/* --- showing ------------------------------------------------------------------------------------- */

/* Lines keep their newline, so that a last line without one differs. */
static struct strs file_change_split(struct str t, struct arena *a)
{
	struct strs out = { 0 };
	size_t n = 1;

	for (size_t i = 0; i < t.n; i++)
		n += t.p[i] == '\n';
	out.v = arena_array(a, struct str, n);
	while (t.n) {
		struct str line = t;

		str_cut(&t, '\n');
		line.n -= t.n;
		out.v[out.n++] = line;
	}
	return out;
}

static void put_lines(struct buf *out, char sign, struct strs lines, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct str line = lines.v[i];

		buf_addc(out, sign);
		buf_adds(out, line);
		if (line.p[line.n - 1] != '\n')
			buf_adds(out, STR("\n\\ No newline at end of file\n"));
	}
}

void file_change_diff(const struct file_change *f, struct buf *out, struct arena *scratch)
{
	struct strs a = file_change_split(f->existed ? f->before : STR(""), scratch),
		    b = file_change_split(f->stays ? f->after : STR(""), scratch);
	size_t head = 0, tail = 0, from, more;

	while (head < a.n && head < b.n && str_eq(a.v[head], b.v[head]))
		head++;
	while (tail < a.n - head && tail < b.n - head &&
	       str_eq(a.v[a.n - 1 - tail], b.v[b.n - 1 - tail]))
		tail++;
	from = head > AROUND ? head - AROUND : 0;
	more = tail > AROUND ? AROUND : tail;
	buf_addf(out, "--- %s\n+++ %s\n", f->existed ? f->name : "/dev/null",
		 f->stays ? f->name : "/dev/null");
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", a.n ? from + 1 : 0, a.n - tail + more - from,
		 b.n ? from + 1 : 0, b.n - tail + more - from);
	put_lines(out, ' ', a, from, head);
	put_lines(out, '-', a, head, a.n - tail);
	put_lines(out, '+', b, head, b.n - tail);
	put_lines(out, ' ', a, a.n - tail, a.n - tail + more);
}

/* --- writing ------------------------------------------------------------------------------------- */

static enum result file_change_failed(struct answer *ans, const char *path, const char *why,
				      struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR, arena_printf(a, "cannot write %s: %s", path, why),
			   STR("nothing was changed"));
}

static enum result file_change_unchanged(const struct file_change *f, struct answer *ans,
					 struct arena *a)
{
	struct str now = STR("");
	int r = fs_read(a, f->path, FILE_MAX, &now);
	bool there = r != -ENOENT;

	if ((r && there) || there != f->existed || (there && !str_eq(now, f->before)))
		return file_change_failed(ans, f->path, "another process has changed it", a);
	return SUCCESS;
}

/* Removes the file's folders, up to root, that have become empty. */
static void file_change_tidy(const char *path, const char *root, struct arena *a)
{
	struct str dir = fs_dirname(str_c(path));

	while (dir.n > strlen(root) && rmdir(arena_cstr(a, dir)) == 0)
		dir = fs_dirname(dir);
}

static int file_change_put(const struct file_change *f, bool there, struct str text,
			   struct arena *a)
{
	int r = 0;

	if (!there) {
		r = unlink(f->path) && errno != ENOENT ? -errno : 0;
		file_change_tidy(f->path, f->root, a);
		return r;
	}
	r = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(f->path))), 0755);
	if (r)
		return r;
	return f->existed ? fs_write_like(f->path, text, &f->was)
			  : fs_write_atomic(f->path, text, 0644);
}

enum result file_change_write(const struct file_change *list, size_t n, struct answer *ans,
			      struct arena *a)
{
	for (size_t i = 0; i < n; i++)
		if (file_change_unchanged(&list[i], ans, a) != SUCCESS)
			return ans->code;
	for (size_t i = 0; i < n; i++) {
		const struct file_change *f = &list[i];
		int r = file_change_any(f) ? file_change_put(f, f->stays, f->after, a) : 0;

		if (!r)
			continue;
		if (!f->existed)
			file_change_tidy(f->path, f->root, a);
		while (i-- > 0)
			if (file_change_any(&list[i]))
				(void)file_change_put(&list[i], list[i].existed, list[i].before, a);
		return file_change_failed(ans, f->path, strerror(-r), a);
	}
	return SUCCESS;
}
