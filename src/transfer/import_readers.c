/* Reads CSV: a row of field names, then a row for each task. */
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "transfer/foreign.h"

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

/* Removes the mark that export adds to a cell which a spreadsheet would treat as a formula. */
static struct str csv_source_unmarked(struct str s)
{
	if (s.n > 1 && s.p[0] == '\'' && memchr("=+-@\t\r'", s.p[1], 7))
		return str_n(s.p + 1, s.n - 1);
	return s;
}

/* 1: a row; 0: no more; -1: refused, with *why. */
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

/* A cell holds lists, objects and comments as JSON. */
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

/* A column that comes more than once, such as Jira's labels, makes a list. */
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

/* NULL, or why the cell is refused. */
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
