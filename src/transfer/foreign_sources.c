/* The programs whose tasks pawl reads, and how it recognises their files. */
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "transfer/foreign.h"

#define HEAD_MAX 65536 /* bytes of a file that are searched for marks */

const struct foreign *foreign_find(struct str name)
{
	for (const struct foreign *const *f = foreign_all; *f; f++)
		if (str_is(name, (*f)->name))
			return *f;
	return NULL;
}

/* `place` below the folder; if the folder is itself the first part of it, the rest. NULL: not there. */
static const char *foreign_sources_below(const struct foreign *f, const char *folder,
					 struct arena *a)
{
	struct str rest = str_c(f->place), first = str_cut(&rest, '/');
	const char *path = fs_join(a, str_c(folder), str_c(f->place)), *real;

	if (fs_exists(path))
		return path;
	real = rest.n ? fs_real(a, folder) : NULL;
	if (!real || !str_ends(str_c(real), arena_printf(a, "/%.*s", STRF(first))))
		return NULL;
	path = fs_join(a, str_c(folder), rest);
	return fs_exists(path) ? path : NULL;
}

const char *foreign_path(const struct foreign *f, const char *path, struct arena *a)
{
	const char *found = f->place && fs_is_dir(path) ? foreign_sources_below(f, path, a) : NULL;

	return found ? found : path;
}

/* --- recognition by shape --------------------------------------------------------------------------- */

/* Cuts a JSON string, after its first quote, from *rest; escapes stay as they are. */
static struct str cut_string(struct str *rest)
{
	size_t n = 0;
	struct str s;

	while (n < rest->n && rest->p[n] != '"')
		n += 1 + (rest->p[n] == '\\');
	n = n < rest->n ? n : rest->n;
	s = str_n(rest->p, n);
	n += n < rest->n;
	*rest = str_n(rest->p + n, rest->n - n);
	return s;
}

/* Does the first object have this key? nested: or one inside it. */
static bool has_key(struct str text, const char *key, bool nested)
{
	size_t level = 0;

	while (text.n) {
		char c = text.p[0];
		struct str s;

		text = str_n(text.p + 1, text.n - 1);
		level += c == '{';
		level -= c == '}' && level;
		if (c == '}' && !level)
			return false;
		if (c != '"')
			continue;
		s = cut_string(&text);
		if ((level == 1 || (nested && level)) && str_is(s, key) &&
		    str_starts(str_trim(text), STR(":")))
			return true;
	}
	return false;
}

static bool has_column(struct str text, const char *name)
{
	struct str row = str_cut(&text, '\n');

	while (row.n) {
		struct str cell = str_trim(str_cut(&row, ','));

		if (cell.n > 1 && cell.p[0] == '"')
			cell = str_n(cell.p + 1, cell.n - 2);
		if (str_is(cell, name))
			return true;
	}
	return false;
}

static bool has_marks(const struct foreign *f, struct str head)
{
	bool objects = str_starts(head, STR("{")) || str_starts(head, STR("["));

	for (const char *const *mark = f->marks; *mark; mark++)
		if (f->shape == OBJECTS ? !objects || !has_key(head, *mark, f->nested)
					: !has_column(head, *mark))
			return false;
	return f->marks[0];
}

/* Is the first line, after headings, an item with a box? */
static bool is_checklist(struct str text)
{
	struct str line = STR("");

	while (text.n && (!line.n || line.p[0] == '#'))
		line = str_trim(str_cut(&text, '\n'));
	return line.n > 5 && memchr("-*+", line.p[0], 3) &&
	       (!memcmp(line.p + 1, " [ ] ", 5) || !memcmp(line.p + 1, " [x] ", 5));
}

static bool has_shape(const struct foreign *f, const char *path, struct str head)
{
	(void)str_cut_prefix(&head, STR("\xef\xbb\xbf"));
	if (f->shape == CHECKLIST)
		return str_ends(str_c(path), STR(".md")) && is_checklist(head);
	return has_marks(f, str_trim(head));
}

/* The first bytes of a regular file; empty for anything else. */
static struct str head_of(const char *path, char *room)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, room, HEAD_MAX);
	if (fd >= 0)
		close(fd);
	return str_n(room, n > 0 ? (size_t)n : 0);
}

/* By the name of the folder or file, or by the files at the usual place below a folder. */
static bool in_place(const struct foreign *f, const char *path, struct arena *a)
{
	const char *file = f->place ? foreign_path(f, path, a) : NULL;
	char *real = file ? fs_real(a, file) : NULL;

	if (!real || !str_ends(str_c(real), arena_printf(a, "/%s", f->place)))
		return false;
	return !f->sign || fs_exists(fs_join(a, str_c(real), str_c(f->sign)));
}

const struct foreign *foreign_recognise(const char *path)
{
	struct arena a = { 0 };
	const struct foreign *found = NULL;
	struct str head = head_of(path, arena_alloc(&a, HEAD_MAX));

	for (const struct foreign *const *f = foreign_all; *f; f++)
		if ((!found || (*f)->rank > found->rank) &&
		    (in_place(*f, path, &a) || has_shape(*f, path, head)))
			found = *f;
	arena_free(&a);
	return found;
}
