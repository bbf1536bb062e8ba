#include "face/cli/cli.h"

#include <errno.h>
#include <unistd.h>

#include "base/fs.h"
#include "format/event.h"

#define OUTPUT_MAX (SIZE_MAX / 4)

static int add_bytes(const char *p, size_t n, void *ctx)
{
	buf_add(ctx, p, n);
	return 0;
}

/* For a terminal in ASCII: escapes characters of a task's text that could act on the terminal (C1, bidi). */
static void put_json(const struct output *o, struct buf *out, json_t *object)
{
	json_dump_callback(object, add_bytes, out,
			   JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) |
				   (o->width ? JSON_ENSURE_ASCII : 0));
	buf_addc(out, '\n');
	json_decref(object);
}

static void drain(struct buf *out, void *ctx)
{
	struct output *o = ctx;
	int r = o->fault || !out->n ? 0 : fs_write_all(STDOUT_FILENO, buf_str(out));

	if (r < 0)
		o->fault = -r;
	out->n = 0;
}

/* Large texts are written piece by piece, so that memory use stays constant. */
static struct buf output_buf(struct output *o)
{
	return (struct buf){ .max = OUTPUT_MAX, .drain = drain, .drain_ctx = o };
}

static void flush(struct output *o, struct buf *out)
{
	drain(out, o);
	buf_free(out);
}

static struct view view_of(const struct output *o, struct buf *out, struct arena *a)
{
	return (struct view){
		.out = out, .arena = a, .color = o->color, .quiet = o->quiet, .width = o->width
	};
}

/* Prints "pawl: what happened", "hint: what to do", "more: where to read on". For a wrong call the help of its
 * command is enough. */
static void put_error(const struct output *o, const struct answer *ans, struct arena *a)
{
	struct buf err = BUF_MAX(OUTPUT_MAX);
	struct view v = { .out = &err, .arena = a, .color = o->color_err };

	view_text(&v, RED, "pawl: ");
	view_data(&v, PLAIN, ans->message);
	view_text(&v, PLAIN, "\n");
	if (ans->code == API_ERROR && ans->applied == '?')
		view_text(
			&v, YELLOW,
			"it is unknown whether the change was made; repeat the call to find out\n");
	if (ans->hint.n) {
		view_text(&v, CYAN, "hint: ");
		view_data(&v, PLAIN, ans->hint);
		view_text(&v, PLAIN, "\n");
	}
	if (ans->code != USAGE)
		view_text(&v, DIM, "more: pawl help %.*s\n",
			  STRF(ans->fault.n ? ans->fault : str_c(result_name(ans->code))));
	(void)fs_write_all(STDERR_FILENO, buf_str(&err));
	buf_free(&err);
}

static void put_warnings(const struct output *o, struct strs list, struct arena *a)
{
	struct buf err = BUF_MAX(OUTPUT_MAX);
	struct view v = { .out = &err, .arena = a, .color = o->color_err };

	for (size_t i = 0; i < list.n; i++) {
		view_text(&v, YELLOW, "warning: ");
		view_data(&v, PLAIN, list.v[i]);
		view_text(&v, PLAIN, "\n");
	}
	(void)fs_write_all(STDERR_FILENO, buf_str(&err));
	buf_free(&err);
}

static void put_reply(struct output *o, const struct command *c, const struct reply *r,
		      struct arena *a)
{
	struct buf out = output_buf(o);
	struct view v = view_of(o, &out, a);

	if (o->format == FORMAT_JSON)
		put_json(o, &out, command_json(c, r, a));
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_reply(&out, c, r, a);
	else if (reply_ok(r) || (c && c->flags & C_REPORT))
		command_show(c, r, &v);
	flush(o, &out);
}

void output_reply(struct output *o, const struct command *c, const struct reply *r, struct arena *a)
{
	if (r->silent)
		return;
	put_reply(o, c, r, a);
	if (o->format == FORMAT_JSON)
		return;
	if (reply_ok(r) && !o->quiet)
		put_warnings(o, r->ans.warnings, a);
	if (!o->quiet)
		put_warnings(o, r->warnings, a);
	if (!reply_ok(r))
		put_error(o, &r->ans, a);
}

void output_event(struct output *o, const struct event *e, struct arena *a)
{
	struct buf out = output_buf(o);
	struct view v = view_of(o, &out, a);

	if (o->format == FORMAT_JSON)
		put_json(o, &out, event_json(e, a));
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_event(&out, e, a);
	else
		show_event(e, &v);
	flush(o, &out);
}

void output_preview(struct output *o, const struct command *c, const struct reply *r,
		    struct arena *a)
{
	put_reply(o, c, r, a);
}
