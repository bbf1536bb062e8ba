/*
 * Chooses the format and the colors of the output, and writes a reply: the answer to standard output,
 * messages and warnings to standard error. Texts of tasks cannot control a terminal.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "base/when.h"
#include "core/lease.h"
#include "face/cli/cli.h"
#include "format/json.h"
#include "format/record_form.h"

#define OUTPUT_MAX (SIZE_MAX / 4)

/* --- the form of the output ----------------------------------------------------------------------- */

static struct str output_configured(const struct settings *s, const char *name,
				    const char *variable)
{
	return s->values ? settings_text(s, name) : str_c(getenv(variable));
}

static enum format output_format(const struct parsed *p, const struct settings *s)
{
	const struct global_args *g = &p->global;
	bool guess = p->code != SUCCESS; /* a command may have a --format of its own */
	struct str word = g->format;

	if (g->json || (guess && p->json && !g->porcelain && !word.n))
		return FORMAT_JSON;
	if (g->porcelain || (guess && p->porcelain && !word.n))
		return FORMAT_PORCELAIN;
	if (!word.n)
		word = output_configured(s, "format", "PAWL_FORMAT");
	return str_is(word, "json")        ? FORMAT_JSON
	       : str_is(word, "porcelain") ? FORMAT_PORCELAIN
					   : FORMAT_TEXT;
}

bool output_has_color(const struct parsed *p, const struct settings *s, int fd)
{
	const struct global_args *g = &p->global;
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	struct str word = g->no_color ? STR("never") : g->color;

	if (!word.n && none && *none)
		return false;
	if (!word.n)
		word = output_configured(s, "color", "PAWL_COLOR");
	if (str_is(word, "always") || str_is(word, "never"))
		return str_is(word, "always");
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

void output_find(struct output *o, const struct parsed *p, const struct settings *s)
{
	struct winsize size;

	o->format = output_format(p, s);
	o->quiet = p->global.quiet;
	if (o->format != FORMAT_TEXT)
		return;
	o->color = output_has_color(p, s, STDOUT_FILENO);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		o->width = size.ws_col;
}

/* --- writing -------------------------------------------------------------------------------------- */

/* Also escapes DEL, which jansson takes for a printable character. */
static int add_ascii(const char *p, size_t n, void *ctx)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == 0x7f)
			buf_adds(ctx, STR("\\u007f"));
		else
			buf_addc(ctx, p[i]);
	return 0;
}

/* Writes JSON for a terminal in ASCII, because tty_write() would escape other characters in a form
 * that is not JSON. */
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

/* The length of `s` without an incomplete character at its end. */
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

/* Prints "pawl: what happened", "hint: what to do", "more: where to read on". After a usage error
 * the command's help is enough. */
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

/* --- porcelain -------------------------------------------------------------------------------- */

/*
 * The lines of files-protocol.md, for shell scripts. Each value stays on its line: control
 * characters are escaped.
 */

static void porcelain_put(struct buf *out, const char *key, struct str value)
{
	if (!value.n)
		return;
	buf_addf(out, " %s=", key);
	text_visible(out, value, false);
}

static void porcelain_line(struct buf *out, const char *word, const struct task *t)
{
	buf_addf(out, "%s:", word);
	porcelain_put(out, "task", t->id);
}

static void put_status(struct buf *out, const struct task *t)
{
	if (t->status)
		porcelain_put(out, "status", str_c(status_name(t->status)));
}

static void put_acquired(struct buf *out, const struct task *t)
{
	porcelain_line(out, "LOCK_ACQUIRED", t);
	porcelain_put(out, "agent", t->lock.holder);
	buf_addc(out, '\n');
}

static struct str time_of(int64_t ms, struct arena *a)
{
	return ms ? when_text(a, ms) : STR("");
}

/* --- list ----------------------------------------------------------------------------------------- */

/* Writes a value of a list: bare if it is one plain word, otherwise in "…", where a \ precedes "
 * and \. So no text of a task can look like another part of the line. */
static void put_value(struct buf *out, struct str value)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@:/+-";
	size_t bare = 0, from = 0;

	while (bare < value.n && memchr(plain, value.p[bare], sizeof(plain) - 1))
		bare++;
	if (value.n && bare == value.n) {
		buf_adds(out, value);
		return;
	}
	buf_addc(out, '"');
	for (size_t i = 0; i <= value.n; i++) {
		if (i < value.n && value.p[i] != '"' && value.p[i] != '\\')
			continue;
		text_visible(out, str_n(value.p + from, i - from), false);
		if (i < value.n)
			buf_addf(out, "\\%c", value.p[i]);
		from = i + 1;
	}
	buf_addc(out, '"');
}

static void porcelain_item(struct buf *out, const struct task *t, const char *before,
			   struct str what, const char *after)
{
	struct str agent = t->lock.holder.n ? t->lock.holder : t->last_holder;

	buf_adds(out, STR("  "));
	text_visible(out, t->id, false);
	buf_adds(out, STR(": "));
	put_value(out, agent.n ? agent : STR("unknown"));
	buf_adds(out, str_c(before));
	put_value(out, what.n ? what : STR("unknown"));
	buf_addf(out, "%s\n", after);
}

/* Writes a task in a status that files-protocol.md does not have: " t1: title="Fix it"". */
static void other_item(struct buf *out, const struct task *t)
{
	buf_adds(out, STR("  "));
	text_visible(out, t->id, false);
	buf_adds(out, STR(":"));
	if (t->status != READY) {
		buf_adds(out, STR(" status="));
		put_value(out, str_c(status_name(t->status)));
	}
	buf_adds(out, STR(" title="));
	put_value(out, t->title);
	buf_addc(out, '\n');
}

/* The section of a task that nobody holds. */
enum section { SECTION_DONE, SECTION_FAILED, SECTION_READY, SECTION_OTHER };

static enum section section_of(const struct task *t)
{
	switch (t->status) {
	case DONE:
		return SECTION_DONE;
	case FAILED:
		return SECTION_FAILED;
	case READY:
		return SECTION_READY;
	default:
		return SECTION_OTHER;
	}
}

/* The three sections of files-protocol.md come first, so that its scripts still find them. */
static void put_sections(struct buf *out, const struct answer *ans, struct arena *a)
{
	static const char *const heads[] = { "Completed", "Failed", "Ready", "Other" };
	const struct task *t = ans->tasks;

	buf_adds(out, STR("=== Active Tasks ===\n"));
	for (size_t i = 0; i < ans->n_tasks; i++)
		if (lease_live(&t[i].lock, ans->now))
			porcelain_item(out, &t[i], " (since ", time_of(t[i].lock.acquired_at, a),
				       ")");
	for (int part = SECTION_DONE; part <= SECTION_OTHER; part++) {
		buf_addf(out, "=== %s Tasks ===\n", heads[part]);
		for (size_t i = 0; i < ans->n_tasks; i++) {
			if ((int)section_of(&t[i]) != part)
				continue;
			if (part == SECTION_DONE)
				porcelain_item(out, &t[i], " (completed ", time_of(t[i].done_at, a),
					       ")");
			else if (part == SECTION_FAILED)
				porcelain_item(out, &t[i], " - ", t[i].blocker_reason, "");
			else if (!lease_live(&t[i].lock, ans->now))
				other_item(out, &t[i]);
		}
	}
}

/* --- everything else ------------------------------------------------------------------------------ */

static void put_scalars(struct buf *out, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v) {
		if (!strcmp(key, "ok") || !strcmp(key, "code"))
			continue;
		if (json_is_string(v)) {
			buf_addf(out, " %s=", key);
			text_visible(out, json_text(v), false);
		} else if (json_is_integer(v)) {
			buf_addf(out, " %s=%lld", key, (long long)json_integer_value(v));
		} else if (json_is_real(v)) {
			buf_addf(out, " %s=%.3f", key, json_real_value(v));
		} else if (json_is_boolean(v)) {
			buf_addf(out, " %s=%s", key, json_is_true(v) ? "true" : "false");
		}
	}
}

/* Writes the counts, as "In-Progress=3": a key contains no blank. */
static void put_counts(struct buf *out, const struct answer *ans)
{
	for (int s = BACKLOG; s < STATUS_END; s++) {
		buf_addc(out, ' ');
		for (const char *c = status_name(s); *c; c++)
			buf_addc(out, *c == ' ' ? '-' : *c);
		buf_addf(out, "=%lld", (long long)ans->counts[s]);
	}
}

/* Prints one line for each element: "LOCK: task=… holder=…". */
static bool put_list(struct buf *out, const json_t *o)
{
	static const char *const lists[][2] = {
		{ "locks", "LOCK" },       { "candidates", "CANDIDATE" }, { "findings", "FINDING" },
		{ "settings", "SETTING" }, { "trusted", "TRUSTED" },      { "results", "ITEM" },
		{ "clients", "CLIENT" },
	};
	size_t i;
	const json_t *v, *list;

	for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
		list = json_object_get(o, lists[k][0]);
		if (!list)
			continue;
		json_array_foreach(list, i, v) {
			buf_addf(out, "%s:", lists[k][1]);
			put_scalars(out, v);
			buf_addc(out, '\n');
		}
		return true;
	}
	return false;
}

void porcelain_event(struct buf *out, const struct event *e, struct arena *a)
{
	json_t *o = event_json(e, a);

	buf_adds(out, STR("EVENT:"));
	put_scalars(out, o);
	buf_addc(out, '\n');
	json_decref(o);
}

static bool takes_lock(const struct command *c)
{
	return c->op == OP_CLAIM || c->op == OP_LOCK_ACQUIRE || c->op == OP_STATUS ||
	       c->op == OP_NEXT;
}

static void put_failure(struct buf *out, const struct command *c, const struct answer *ans,
			struct arena *a)
{
	const struct task *t = ans->task;

	if (ans->code == CONFLICT && t && lease_live(&t->lock, ans->now)) {
		porcelain_line(out, "LOCK_EXISTS", t);
		porcelain_put(out, "agent", t->lock.holder);
		porcelain_put(out, "claimed", time_of(t->lock.acquired_at, a));
	} else if (ans->code == MISCONFIGURED && c && takes_lock(c) && t && t->status == DONE) {
		porcelain_line(out, "TASK_ALREADY_DONE", t);
	} else if (t) {
		porcelain_line(out, result_name(ans->code), t);
		put_status(out, t);
	} else {
		buf_addf(out, "%s:", result_name(ans->code));
		porcelain_put(out, "message", ans->message);
	}
	buf_addc(out, '\n');
}

/* Prints the result for the task, from its new status and the operation. */
static void put_task(struct buf *out, const struct command *c, const struct answer *ans)
{
	const struct task *t = ans->task;
	bool changes = c && !(op_flags(c->op) & OP_READS);

	if (changes && (c->op == OP_DONE || c->op == OP_APPROVE || c->op == OP_STATUS) &&
	    t->status == DONE) {
		porcelain_line(out, "TASK_COMPLETE", t);
	} else if (changes && (c->op == OP_FAIL || c->op == OP_STATUS) && t->status == FAILED) {
		porcelain_line(out, "TASK_FAILED", t);
		porcelain_put(out, "reason", t->blocker_reason);
	} else {
		porcelain_line(out, result_name(ans->code), t);
		put_status(out, t);
	}
	buf_addc(out, '\n');
	if (ans->next)
		put_acquired(out, ans->next);
	else if (ans->has_next)
		buf_adds(out, STR("NO_TASKS:\n"));
}

/* For a command without a format of its own: prints its whole answer in one line. */
static void put_members(struct buf *out, const struct answer *ans, const json_t *o)
{
	buf_addf(out, "%s:", result_name(ans->code));
	if (ans->task)
		porcelain_put(out, "task", ans->task->id);
	if (ans->task && ans->kind == ANSWER_LOCK)
		porcelain_put(out, "agent", ans->task->lock.holder);
	put_scalars(out, o);
	put_scalars(out, json_object_get(o, "setting"));
	put_scalars(out, json_object_get(o, "emergency"));
	put_scalars(out, json_object_get(o, "health"));
	if (ans->paused)
		porcelain_put(out, "paused", STR("true"));
	put_scalars(out, json_object_get(o, "paused"));
	if (ans->kind == ANSWER_OVERVIEW)
		put_counts(out, ans);
	buf_addc(out, '\n');
}

static void put_other(struct buf *out, const struct reply *r, const json_t *o)
{
	struct str text = json_get(o, "text").n ? json_get(o, "text") : json_get(o, "script");

	if (text.n)
		buf_adds(out, text);
	else if (!put_list(out, o))
		put_members(out, &r->ans, o);
}

void porcelain_reply(struct buf *out, const struct command *c, const struct reply *r,
		     struct arena *a)
{
	const struct answer *ans = &r->ans;
	json_t *o = command_json(c, r, a);

	if (!reply_ok(r)) {
		put_list(out, o);
		put_failure(out, c, ans, a);
	} else if (ans->lock && ans->lock->token.n) {
		put_acquired(out, ans->task);
	} else if (json_object_get(o, "tasks")) {
		put_sections(out, ans, a);
	} else if (ans->kind == ANSWER_EVENTS) {
		for (size_t i = 0; i < ans->n_events; i++)
			porcelain_event(out, &ans->events[i], a);
	} else if (ans->task && ans->kind != ANSWER_LOCK) {
		put_task(out, c, ans);
	} else {
		put_other(out, r, o);
	}
	json_decref(o);
}
