#include "face/cli/cli.h"

#include <errno.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"

#define OUTPUT_MAX (SIZE_MAX / 4)

static int add_bytes(const char *p, size_t n, void *ctx)
{
	buf_add(ctx, p, n);
	return 0;
}

/* On a terminal in ASCII: what a task's text could do there (C1, bidi) is spelt out. */
static void put_json(const struct output *o, struct buf *out, const json_t *object)
{
	json_dump_callback(object, add_bytes, out,
			   JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) |
				   (o->width ? JSON_ENSURE_ASCII : 0));
	buf_addc(out, '\n');
}

static void flush(struct output *o, struct buf *out)
{
	int r = o->fault || !out->n ? 0 : fs_write_all(STDOUT_FILENO, buf_str(out));

	if (r < 0)
		o->fault = -r;
	buf_free(out);
}

static void show(const struct output *o, const struct command *c, const json_t *object,
		 struct buf *out, struct arena *a)
{
	struct view v = {
		.out = out, .arena = a, .color = o->color, .quiet = o->quiet, .width = o->width
	};

	if (c && c->show)
		c->show(object, &v);
	else
		show_task(object, &v);
}

/* Where there is more about it. What is wrong with a call is said by the help of its command. */
static void put_more(struct view *v, const json_t *error)
{
	const char *code = view_get(error, "code"), *fault = view_get(error, "fault");

	if (!str_is(str_c(code), result_name(USAGE)))
		view_text(v, DIM, "more: pawl help %s\n", fault ? fault : code);
}

/* "pawl: what happened", "hint: what to do", "more: where to read on". */
static void put_error(const struct output *o, const json_t *error, struct arena *a)
{
	struct buf err = BUF_MAX(OUTPUT_MAX);
	struct view v = { .out = &err, .arena = a, .color = o->color_err };
	const char *hint = view_get(error, "hint"), *applied = view_get(error, "applied");

	view_text(&v, RED, "pawl: ");
	view_data(&v, PLAIN, view_get(error, "message"));
	view_text(&v, PLAIN, "\n");
	if (applied && !strcmp(applied, "unknown"))
		view_text(
			&v, YELLOW,
			"whether the change was made is not known; repeat the call to find out\n");
	if (hint) {
		view_text(&v, CYAN, "hint: ");
		view_data(&v, PLAIN, hint);
		view_text(&v, PLAIN, "\n");
	}
	put_more(&v, error);
	(void)fs_write_all(STDERR_FILENO, buf_str(&err));
	buf_free(&err);
}

static void put_warnings(const struct output *o, const json_t *list, struct arena *a)
{
	struct buf err = BUF_MAX(OUTPUT_MAX);
	struct view v = { .out = &err, .arena = a, .color = o->color_err };
	size_t i;
	const json_t *w;

	json_array_foreach(list, i, w) {
		view_text(&v, YELLOW, "warning: ");
		view_data(&v, PLAIN, json_string_value(w));
		view_text(&v, PLAIN, "\n");
	}
	(void)fs_write_all(STDERR_FILENO, buf_str(&err));
	buf_free(&err);
}

void output_answer(struct output *o, const struct command *c, enum result code,
		   const json_t *object, struct arena *a)
{
	struct buf out = BUF_MAX(OUTPUT_MAX);
	const json_t *error = json_object_get(object, "error"),
		     *warnings = json_object_get(object, "warnings");

	if (!object)
		return;
	if (o->format == FORMAT_JSON)
		put_json(o, &out, object);
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_answer(&out, c, code, object);
	else if (!error || (c && c->flags & C_REPORT))
		show(o, c, object, &out, a);
	flush(o, &out);
	if (o->format == FORMAT_JSON)
		return;
	if (warnings && !o->quiet)
		put_warnings(o, warnings, a);
	if (error)
		put_error(o, error, a);
}

void output_one(struct output *o, const struct command *c, const json_t *object, struct arena *a)
{
	struct buf out = BUF_MAX(OUTPUT_MAX);

	if (o->format == FORMAT_JSON)
		put_json(o, &out, object);
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_event(&out, object);
	else
		show(o, c, object, &out, a);
	flush(o, &out);
}
