/* Reads and edits files of "name = value" lines. The editor finds lines with the same parser that
 * reads them, and reads its result back, so that a setting never lands in another section or gets
 * another value. */
#include <ini.h>
#include <stdio.h>

#include "base/arena.h"
#include "format/ini.h"

struct reading {
	struct str rest;
	int line, too_long; /* too_long: number of the first line that is too long, or 0 */
	ini_line_fn *fn;
	void *ctx;
};

/* Replaces fgets() for inih. inih would read the rest of a long line as another line, and an
 * indented line as part of the value before it. So this function drops long lines and removes
 * indentation. */
static char *next_line(char *out, int room, void *stream)
{
	struct reading *r = stream;
	struct str line;

	if (!r->rest.n)
		return NULL;
	line = str_trim(str_cut(&r->rest, '\n'));
	while (line.n && (line.p[0] == '\v' || line.p[0] == '\f'))
		line = str_trim(str_n(line.p + 1, line.n - 1));
	r->line++;
	if (line.n && (line.p[0] == '#' || line.p[0] == ';'))
		line.n = 0;
	if (line.n > INI_LINE_MAX || line.n >= (size_t)room) {
		if (!r->too_long)
			r->too_long = r->line;
		line.n = 0;
	}
	if (line.n)
		memcpy(out, line.p, line.n);
	out[line.n] = '\0';
	return out;
}

static int got_line(void *user, const char *section, const char *name, const char *value)
{
	struct reading *r = user;
	char full[2 * INI_LINE_MAX];
	int n = snprintf(full, sizeof(full), "%s%s%s", section, *section ? "." : "", name);

	r->fn(r->ctx, r->line, str_n(full, (size_t)n), str_c(value));
	return 1;
}

int ini_file_each(struct str text, ini_line_fn *fn, void *ctx)
{
	struct reading r = { .rest = text, .fn = fn, .ctx = ctx };
	int bad = ini_parse_stream(next_line, &r, got_line, &r);

	if (r.too_long && (bad <= 0 || r.too_long < bad))
		return r.too_long;
	return bad > 0 ? bad : 0;
}

/* --- ini edit --------------------------------------------------------------------------------- */

struct looking {
	struct str name, value; /* value: the last value found */
	struct arena *arena;
	bool *sets; /* by line number, from 1 */
	int last;   /* 0: no line sets it */
};

static void check_one(void *ctx, int line, struct str name, struct str value)
{
	struct looking *l = ctx;

	if (!str_eq(name, l->name))
		return;
	l->sets[line] = true;
	l->last = line;
	l->value = arena_str(l->arena, value);
}

/* Uses inih to find the lines that set the name, so that reading and writing agree. */
static void search_for(struct looking *l, struct str text, struct str name, struct arena *a)
{
	size_t lines = 2;

	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	*l = (struct looking){ .name = name, .arena = a, .sets = arena_array(a, bool, lines) };
	ini_file_each(text, check_one, l);
}

/* Replaces the value in a line, and keeps the text before it and a comment after it. */
static void add_changed(struct buf *b, struct str line, struct str value)
{
	struct str end = line.n && line.p[line.n - 1] == '\r' ? STR("\r") : STR("");
	size_t sep = 0, start, comment;

	while (sep < line.n && line.p[sep] != '=' && line.p[sep] != ':')
		sep++;
	for (start = sep + 1; start < line.n && strchr(" \t", line.p[start]); start++)
		;
	for (comment = sep + 1; comment < line.n; comment++)
		if (line.p[comment] == ';' && strchr(" \t", line.p[comment - 1]))
			break;
	buf_add(b, line.p, start);
	buf_adds(b, value);
	if (comment < line.n) {
		buf_addc(b, ' ');
		buf_add(b, line.p + comment, line.n - comment);
	} else {
		buf_adds(b, end);
	}
	buf_addc(b, '\n');
}

/* A new line goes before the first section, because below a section header its name would mean
 * another setting. */
static int insert_before(struct str text)
{
	int line = 0, comments = 0;

	while (text.n) {
		struct str s = str_trim(str_cut(&text, '\n'));

		line++;
		if (s.n && s.p[0] == '[')
			return line - comments; /* keeps the comments above the section with it */
		comments = s.n && (s.p[0] == '#' || s.p[0] == ';') ? comments + 1 : 0;
	}
	return 0;
}

static void ini_edit_rewrite(struct buf *b, struct str text, const struct looking *l,
			     const struct str *value)
{
	int insert = value && !l->last ? insert_before(text) : 0, line = 0;
	bool inserted = !value || l->last;

	while (text.n) {
		struct str s = str_cut(&text, '\n');

		line++;
		if (line == insert) {
			buf_addf(b, "%.*s = %.*s\n", STRF(l->name), STRF(*value));
			inserted = true;
		}
		if (value && line == l->last) {
			add_changed(b, s, *value);
		} else if (value || !l->sets[line]) {
			buf_adds(b, s);
			buf_addc(b, '\n');
		}
	}
	if (!inserted)
		buf_addf(b, "%.*s = %.*s\n", STRF(l->name), STRF(*value));
}

bool ini_edit(struct buf *b, struct str text, struct str name, const struct str *value,
	      struct arena *a)
{
	struct looking l;

	search_for(&l, text, name, a);
	ini_edit_rewrite(b, text, &l, value);
	if (b->full)
		return false;
	search_for(&l, buf_str(b), name, a);
	return value ? l.last && str_eq(l.value, *value) : !l.last;
}

bool ini_has(struct str text, struct str name, struct arena *a)
{
	struct looking l;

	search_for(&l, text, name, a);
	return l.last > 0;
}
