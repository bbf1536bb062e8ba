#include "format/ini.h"

#include <ini.h>
#include <stdio.h>

#include "base/arena.h"

struct reading {
	struct str rest;
	int line, too_long; /* too_long: number of the first line that is too long, or 0 */
	ini_line_fn *fn;
	void *ctx;
};

/* Replaces fgets() for inih. inih would read the rest of a long line as another line, and an indented line as a
 * continuation of the value before it. This function passes on neither. */
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
