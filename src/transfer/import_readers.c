/* Reads CSV: a row of field names, then a row for each task. One row is in memory at a time. It removes the mark that
 * export puts before a cell that a spreadsheet would run as a formula. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "transfer/foreign.h"
#include "transfer/port.h"

#define ROW_MAX (64u << 20)
#define COLUMNS_MAX 1000

struct row {
	struct strs cells;
	struct arena arena;
	size_t line; /* the line on which it begins */
};

static int csv_source_get(struct port_in *in)
{
	int c = getc_unlocked(in->file);

	in->line += c == '\n';
	return c;
}

/* Reads a quoted cell, in which "" means one quote. Returns the character after the cell, or -2 if the closing quote is
 * missing. */
static int get_quoted(struct port_in *in, struct buf *cell)
{
	for (;;) {
		int c = csv_source_get(in);

		if (c == EOF)
			return -2;
		if (c == '"') {
			c = csv_source_get(in);
			if (c != '"')
				return c;
		}
		buf_addc(cell, (char)c);
	}
}

static int get_plain(struct port_in *in, int c, struct buf *cell)
{
	while (c != EOF && c != ',' && c != '\n' && c != '\r') {
		buf_addc(cell, (char)c);
		c = csv_source_get(in);
	}
	return c;
}

/* Removes the mark that export adds to a cell that a spreadsheet would treat as a formula. */
static struct str csv_source_unmarked(struct str s)
{
	if (s.n > 1 && s.p[0] == '\'' && memchr("=+-@\t\r'", s.p[1], 7))
		return str_n(s.p + 1, s.n - 1);
	return s;
}

/* 1: a row; 0: the end; -1: the row is refused, and *why has the reason. */
static int get_row(struct port_in *in, struct row *row, const char **why)
{
	struct buf cell = BUF_MAX(ROW_MAX);
	int c;

	arena_free(&row->arena);
	row->cells = (struct strs){ 0 };
	row->line = in->line;
	*why = NULL;
	do {
		cell.n = 0;
		c = csv_source_get(in);
		if (c == EOF && !row->cells.n)
			break;
		c = c == '"' ? get_quoted(in, &cell) : get_plain(in, c, &cell);
		if (c == '\r')
			c = csv_source_get(in);
		if (c != EOF && c != ',' && c != '\n')
			*why = c == -2 ? "this row has a quote that does not end"
				       : "a comma or the end of the row must follow a cell";
		if (cell.full || row->cells.n == COLUMNS_MAX)
			*why = "this row is too large";
		row->cells.v = arena_grow(&row->arena, row->cells.v, row->cells.n,
					  sizeof(struct str));
		row->cells.v[row->cells.n++] = arena_str(&row->arena,
							 csv_source_unmarked(buf_str(&cell)));
	} while (c == ',' && !*why);
	buf_free(&cell);
	return *why ? -1 : row->cells.n > 0;
}

/* Lists, objects and comments are JSON in their cell. */
static json_t *cell_json(struct str name, struct str cell)
{
	const struct field *f = field_find(name);
	bool nested = str_is(name, "comments") ||
		      (f && (f->kind == FIELD_LIST || f->kind == FIELD_JSON));
	json_t *v = NULL;

	if (nested && (cell.p[0] == '[' || cell.p[0] == '{'))
		v = json_loadb(cell.p, cell.n, 0, NULL);
	return v ? v : json_stringn(cell.p, cell.n);
}

/* A column that occurs more than once, such as Jira's labels, makes a list. */
static void add_value(json_t *o, const char *name, json_t *v)
{
	json_t *old = json_object_get(o, name);

	if (!old) {
		json_object_set_new(o, name, v);
		return;
	}
	if (!json_is_array(old)) {
		old = json_pack("[O]", old);
		json_object_set_new(o, name, old);
	}
	json_array_append_new(old, v);
}

static enum result take_foreign_row(struct port_in *in, const struct row *head,
				    const struct row *row)
{
	json_t *o = json_object();
	enum result code = SUCCESS;

	for (size_t i = 0; i < row->cells.n && i < head->cells.n; i++) {
		struct str cell = row->cells.v[i];

		if (!text_valid(cell))
			code = port_refuse(in, row->line, STR("not valid UTF-8"));
		else if (cell.n)
			add_value(o, arena_cstr(&in->piece, head->cells.v[i]),
				  json_stringn(cell.p, cell.n));
	}
	if (code == SUCCESS)
		code = foreign_found(in, o, row->line);
	json_decref(o);
	return code;
}

static struct str id_in(const struct row *head, const struct row *row)
{
	for (size_t i = 0; i < row->cells.n && i < head->cells.n; i++)
		if (str_is(head->cells.v[i], "id"))
			return row->cells.v[i];
	return STR("");
}

/* NULL, or the reason for refusing the cell. */
static const char *take_cell(struct plain *p, struct str name, struct str cell)
{
	const char *fault;
	json_t *v;

	if (!cell.n)
		return NULL;
	v = text_valid(cell) ? cell_json(name, cell) : NULL;
	fault = v ? plain_set(p, name, v) : "not valid UTF-8";
	json_decref(v);
	return fault;
}

static enum result take_row(struct port_in *in, const struct row *head, const struct row *row)
{
	bool bad = row->cells.n > head->cells.n;
	struct plain p;

	if (bad)
		(void)port_refuse(
			in, row->line,
			arena_printf(&in->piece,
				     "this row has %zu cells, but the first row has %zu names",
				     row->cells.n, head->cells.n));
	plain_start(&p, when_parse, false, &in->piece);
	for (size_t i = 0; i < row->cells.n && i < head->cells.n && (in->check || !bad); i++) {
		const char *fault = take_cell(&p, head->cells.v[i], row->cells.v[i]);

		if (fault)
			(void)port_refuse(in, row->line, str_c(fault));
		bad |= fault != NULL;
	}
	if (!bad)
		return port_found(in, &p, row->line);
	plain_abort(&p);
	return port_stub(in, id_in(head, row), row->line);
}

static enum result check_head(struct port_in *in, struct row *head)
{
	(void)str_cut_prefix(&head->cells.v[0], STR("\xef\xbb\xbf"));
	for (size_t i = 0; i < head->cells.n; i++) {
		struct str name = head->cells.v[i] = str_trim(head->cells.v[i]);

		if (!name.n || !text_valid(name))
			return port_refuse_rest(
				in, 1,
				STR("a field name in the first row is empty or not valid UTF-8"));
		for (size_t k = 0; k < i && !in->foreign; k++)
			if (str_eq(head->cells.v[k], name))
				return port_refuse_rest(
					in, 1,
					arena_printf(&in->piece,
						     "the first row names the field %.*s twice",
						     STRF(name)));
	}
	return SUCCESS;
}

enum result port_read_csv(struct port_in *in)
{
	struct row head = { 0 }, row = { 0 };
	enum result code = SUCCESS;
	const char *why;
	int r = get_row(in, &head, &why);

	if (r > 0)
		code = check_head(in, &head);
	while (r > 0 && code == SUCCESS && (r = get_row(in, &row, &why)) > 0)
		if (row.cells.n > 1 || row.cells.v[0].n) /* not an empty line */
			code = in->foreign ? take_foreign_row(in, &head, &row)
					   : take_row(in, &head, &row);
	if (r < 0)
		code = port_refuse_rest(in, head.cells.n ? row.line : 1, str_c(why));
	arena_free(&head.arena);
	arena_free(&row.arena);
	return code;
}

/* --- json ------------------------------------------------------------------------------------- */

/* Reads JSON: an array of objects, or objects one after the other. Only one object is in memory at a time. */

#define OBJECT_MAX (64u << 20)

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int json_source_get(struct port_in *in)
{
	int c = getc_unlocked(in->file);

	in->line += c == '\n';
	return c;
}

/* The next character that is not white space. */
static int get_next(struct port_in *in)
{
	int c = json_source_get(in);

	while (is_space(c))
		c = json_source_get(in);
	return c;
}

/* Copies an object up to its closing '}', after its '{' was read; false: it does not end, or is too large. */
static bool get_object(struct port_in *in, struct buf *out)
{
	char piece[512] = "{"; /* calling buf_add() for each byte would cost too much */
	bool text = false, escaped = false;
	size_t depth = 1, n = 1;

	while (depth && !out->full) {
		int c = json_source_get(in);

		if (c == EOF)
			return false;
		piece[n++] = (char)c;
		if (escaped) {
			escaped = false;
		} else if (c == '"') {
			text = !text;
		} else if (text) {
			escaped = c == '\\';
		} else {
			depth += c == '{' || c == '[';
			depth -= c == '}' || c == ']';
		}
		if (n == sizeof(piece) || !depth) {
			buf_add(out, piece, n);
			n = 0;
		}
	}
	return !out->full;
}

static enum result take_task(struct port_in *in, const json_t *o, size_t line)
{
	struct plain p;

	bool bad = false;

	if (!json_is_object(o))
		return port_refuse(in, line, STR("not an object"));
	plain_start(&p, when_parse, false, &in->piece);
	for (void *at = json_object_iter((json_t *)o); at && (in->check || !bad);
	     at = json_object_iter_next((json_t *)o, at)) {
		const char *fault = plain_set(&p, str_c(json_object_iter_key(at)),
					      json_object_iter_value(at));

		if (fault) {
			(void)port_refuse(in, line, str_c(fault));
			bad = true;
		}
	}
	if (!bad)
		return port_found(in, &p, line);
	plain_abort(&p);
	return port_stub(in, json_get(o, "id"), line);
}

static enum result take_object(struct port_in *in, struct str text, size_t line)
{
	json_error_t err;
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &err);
	const json_t *tasks = json_object_get(o, "tasks");
	enum result code = SUCCESS;

	if (!o)
		return port_refuse(in, line + (size_t)(err.line > 0 ? err.line - 1 : 0),
				   str_c(err.text));
	if (in->foreign)
		code = foreign_object(in, o, text, line);
	else if (!json_is_array(tasks))
		code = take_task(in, o, line);
	else /* the output of `pawl list --json` */
		for (size_t i = 0; code == SUCCESS && i < json_array_size(tasks); i++)
			code = take_task(in, json_array_get(tasks, i), line);
	json_decref(o);
	return code;
}

enum result port_read_json(struct port_in *in)
{
	struct buf b = BUF_MAX(OBJECT_MAX);
	enum result code = SUCCESS;
	int c = get_next(in);
	bool array, more = false;

	if (c == 0xef && json_source_get(in) == 0xbb && json_source_get(in) == 0xbf)
		c = get_next(in);
	array = c == '[';
	if (array)
		c = get_next(in);
	while (code == SUCCESS && c == '{') {
		size_t line = in->line;

		b.n = 0;
		code = get_object(in, &b)
			       ? take_object(in, buf_str(&b), line)
			       : port_refuse_rest(in, line, STR("this object does not end"));
		c = get_next(in);
		more = array && c == ',';
		if (more)
			c = get_next(in);
		else if (array && c != ']' && code == SUCCESS)
			code = port_refuse_rest(in, in->line, STR("',' or ']' expected"));
	}
	if (code == SUCCESS && array && c == ']' && !more)
		c = get_next(in);
	else if (code == SUCCESS && array)
		code = port_refuse_rest(in, in->line, STR("an object expected"));
	if (code == SUCCESS && c != EOF)
		code = port_refuse_rest(in, in->line, STR("an object expected"));
	buf_free(&b);
	return code;
}

/* --- folder ----------------------------------------------------------------------------------- */

/*
 * Reads a folder of Markdown files and its sub-folders. It follows no link, because a hostile folder must not make us read
 * a file outside of it. The answer lists the files that were left out, and counts the hidden names.
 */

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
