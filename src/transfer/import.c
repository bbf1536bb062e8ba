#include "transfer/port.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "format/markdown.h"

#define MD_MAX (64u << 20)

enum result port_refuse(struct port_in *in, size_t line, struct str text)
{
	return answer_fail(
		in->ans, MISCONFIGURED,
		arena_printf(in->arena, "%s:%zu: %.*s", in->path, line,
			     STRF(text_line(&in->piece, text))),
		STR("nothing was changed; `pawl help import` and doc/data.md show the formats"));
}

static enum result cannot(struct port_in *in, const char *what, int r)
{
	in->ans->applied = 'n';
	return answer_fail(in->ans, API_ERROR,
			   arena_printf(in->arena, "%s: %s", what, strerror(-r)),
			   STR("nothing was changed"));
}

enum result port_found(struct port_in *in, struct plain *p, size_t line)
{
	const char *fault = plain_end(p);
	struct parcel parcel = { .task = p->task,
				 .comments = p->comments,
				 .n_comments = p->n_comments };
	int r;

	if (!fault)
		fault = parcel_fault(&parcel, &in->piece);
	if (fault)
		return port_refuse(in, line, str_c(fault));
	parcel.where = arena_printf(&in->piece, "%s:%zu", in->path, line);
	r = spool_add(in->spool, &parcel);
	arena_free(&in->piece);
	if (r)
		return cannot(in, "the tasks cannot be kept in TMPDIR meanwhile", r);
	if (in->progress)
		in->progress(in->ctx, in->spool->n);
	return SUCCESS;
}

/* --- Markdown -------------------------------------------------------------------------------------- */

static struct str base_name(struct str path)
{
	size_t dir = path.n;

	while (dir && path.p[dir - 1] != '/')
		dir--;
	return str_n(path.p + dir, path.n - dir);
}

static enum result read_md(struct port_in *in, const char *path)
{
	struct yaml_fault fault = { 0 };
	struct plain p;
	struct str text;
	int r = fs_read(&in->piece, path, MD_MAX, &text);

	in->path = path;
	if (r)
		return cannot(in, path, r);
	plain_start(&p, when_parse, false, &in->piece);
	if (task_md_parse(text, base_name(str_c(path)), &p, &fault))
		return port_refuse(in, fault.line, fault.text);
	return port_found(in, &p, 1);
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum result read_folder(struct port_in *in, const char *folder)
{
	struct strs names = { 0 };
	struct arena a = { 0 };
	enum result code = SUCCESS;
	DIR *d = opendir(folder);
	const struct dirent *e;

	if (!d)
		return cannot(in, folder, -errno);
	while ((e = readdir(d))) {
		struct str name = str_c(e->d_name);

		if (name.p[0] == '.' || !str_ends(name, STR(".md")))
			continue;
		names.v = arena_grow(&a, names.v, names.n, sizeof(*names.v));
		names.v[names.n++] = arena_str(&a, name);
	}
	closedir(d);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	for (size_t i = 0; code == SUCCESS && i < names.n; i++)
		code = read_md(in, fs_join(&a, str_c(folder), names.v[i]));
	arena_free(&a);
	return code;
}

/* --- any -------------------------------------------------------------------------------------------- */

/* What a file without a telling name begins with. */
static enum port_format guess(FILE *f)
{
	int c = getc(f);

	while (c == ' ' || c == '\t' || c == '\r' || c == '\n')
		c = getc(f);
	rewind(f);
	return c == '[' || c == '{' ? PORT_JSON : PORT_NONE;
}

static enum result read_file(struct port_in *in, enum port_format format)
{
	enum result code;

	in->file = !strcmp(in->path, "-") ? stdin : fopen(in->path, "re");
	if (!in->file)
		return cannot(in, in->path, -errno);
	in->line = 1;
	if (in->file == stdin)
		in->path = "standard input";
	if (format == PORT_NONE && in->file != stdin)
		format = guess(in->file);
	if (format == PORT_NONE)
		code = answer_fail(in->ans, USAGE,
				   arena_printf(in->arena,
						"%s: its format cannot be told by its name",
						in->path),
				   STR("give it: --format json, jsonl, csv or md"));
	else
		code = format == PORT_CSV ? port_read_csv(in) : port_read_json(in);
	if (code == SUCCESS && ferror(in->file))
		code = cannot(in, in->path, -EIO);
	if (in->file != stdin)
		fclose(in->file);
	return code;
}

enum result port_read(struct port_in *in, enum port_format format)
{
	enum result code;
	int r = in->spool->file ? 0 : spool_open(in->spool);

	if (r)
		return cannot(in, "no file can be made in TMPDIR", r);
	if (fs_is_dir(in->path))
		code = read_folder(in, in->path);
	else if (format == PORT_MD)
		code = read_md(in, in->path);
	else
		code = read_file(in, format);
	if (code == SUCCESS && fflush(in->spool->file))
		code = cannot(in, "the tasks cannot be kept in TMPDIR meanwhile", -errno);
	arena_free(&in->piece);
	return code;
}
