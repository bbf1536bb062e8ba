#include "face/cli/cli.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"
#include "format/record_form.h"
#include "format/json.h"

#define OUTPUT_MAX (SIZE_MAX / 4)

/* jansson takes DEL for a printable character. */
static int add_ascii(const char *p, size_t n, void *ctx)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == 0x7f)
			buf_adds(ctx, STR("\\u007f"));
		else
			buf_addc(ctx, p[i]);
	return 0;
}

/* For a terminal in ASCII: tty_write() would spell out characters in a way that is not JSON. */
static void put_json(struct buf *out, json_t *object)
{
	if (isatty(STDOUT_FILENO))
		json_dump_callback(object, add_ascii, out,
				   JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) |
					   JSON_ENSURE_ASCII);
	else
		json_write(object, out);
	buf_addc(out, '\n');
	json_decref(object);
}

/* The length of `s` without a character of which the rest is still to come. */
static size_t output_whole(struct str s)
{
	size_t n = s.n;
	uint32_t c;

	while (n && s.n - n < 3 && ((uint8_t)s.p[n - 1] & 0xc0) == 0x80)
		n--;
	return n && (uint8_t)s.p[n - 1] >= 0xc0 && !text_char(str_n(s.p + n - 1, s.n - n + 1), &c)
		       ? n - 1
		       : s.n;
}

static void output_put(struct output *o, struct str text)
{
	int r = o->fault || !text.n ? 0
		: o->color          ? tty_write_painted(STDOUT_FILENO, text)
				    : tty_write(STDOUT_FILENO, text);

	if (r < 0)
		o->fault = -r;
}

static void output_drain(struct buf *out, void *ctx)
{
	size_t n = output_whole(buf_str(out));

	output_put(ctx, str_n(out->p, n));
	memmove(out->p, out->p + n, out->n - n);
	out->n -= n;
}

/* Large texts are written piece by piece, so that memory use stays constant. */
static struct buf output_buf(struct output *o)
{
	return (struct buf){ .max = OUTPUT_MAX, .drain = output_drain, .drain_ctx = o };
}

static void output_flush(struct output *o, struct buf *out)
{
	output_put(o, buf_str(out));
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
	if (ans->code != USAGE) {
		struct str topic = ans->fault.n ? ans->fault : str_c(result_name(ans->code));

		view_text(&v, DIM, "more: pawl help %.*s\n", STRF(topic));
	}
	(void)(o->color_err ? tty_write_painted : tty_write)(STDERR_FILENO, buf_str(&err));
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
	(void)(o->color_err ? tty_write_painted : tty_write)(STDERR_FILENO, buf_str(&err));
	buf_free(&err);
}

static void put_reply(struct output *o, const struct command *c, const struct reply *r,
		      struct arena *a)
{
	struct buf out = output_buf(o);
	struct view v = view_of(o, &out, a);

	if (o->format == FORMAT_JSON)
		put_json(&out, command_json(c, r, a));
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_reply(&out, c, r, a);
	else if (reply_ok(r) || (c && c->flags & C_REPORT))
		command_show(c, r, &v);
	output_flush(o, &out);
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
		put_json(&out, event_json(e, a));
	else if (o->format == FORMAT_PORCELAIN)
		porcelain_event(&out, e, a);
	else
		show_event(e, &v);
	output_flush(o, &out);
}

void output_preview(struct output *o, const struct command *c, const struct reply *r,
		    struct arena *a)
{
	put_reply(o, c, r, a);
}
