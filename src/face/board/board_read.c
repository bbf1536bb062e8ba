/*
 * All calls of the board to the queue. A failed read leaves the model as it was: the new answers
 * replace the old ones only after all columns were read.
 */
#include <stdio.h>

#include "base/os.h"
#include "base/text.h"
#include "face/board/board.h"

static enum result call_in(struct reader *r, const struct request *rq, struct answer *ans,
			   struct arena *a)
{
	return client_call_in(&r->session->client, rq, ans, a);
}

int64_t reader_now(const struct reader *r)
{
	return r->as_of + (os_boot_ms() - r->read_at);
}

void reader_free(struct reader *r)
{
	arena_free(&r->columns);
	arena_free(&r->detail);
}

/* --- columns ---------------------------------------------------------------------------------------- */

static enum result read_column(struct reader *r, struct ui *u, struct column *c, struct answer *ans,
			       struct arena *a)
{
	struct request rq = { .op = OP_LIST };

	GIVE(&rq, statuses, STATUS_BIT(c->status));
	GIVE(&rq, view, VIEW_GROUPS | VIEW_CAN);
	GIVE(&rq, limit, (int64_t)c->limit);
	if (u->board.search[0])
		GIVE(&rq, text, str_c(u->board.search));
	(void)filter_apply(str_c(u->board.filter), u->agent, &rq, a);
	return call_in(r, &rq, ans, a);
}

static void set_column(struct board *b, struct column *c, const struct answer *ans)
{
	c->tasks = ans->tasks;
	c->standing = ans->standing;
	c->allowed = ans->n_allowed ? ans->allowed : NULL;
	c->n = ans->n_tasks;
	if (board_filtered(b))
		c->count = ans->total;
	if (c->count < (int64_t)c->n) /* the queue changed between the two reads */
		c->count = (int64_t)c->n;
	column_settle(c);
}

/* A column without tasks needs no read, and a collapsed one shows only its count. */
static enum result read_columns(struct reader *r, struct ui *u, struct arena *a, struct answer *ans)
{
	struct board *b = &u->board;

	for (size_t i = 0; i < COLUMNS; i++) {
		struct column *c = &b->col[i];
		struct answer none = { 0 };

		if (!column_open(b, i) || !c->count) {
			set_column(b, c, &none);
			if (board_filtered(b) && c->count)
				c->count = -1;
			continue;
		}
		if (read_column(r, u, c, ans, a) != SUCCESS)
			return ans->code;
		set_column(b, c, ans);
	}
	return SUCCESS;
}

static void set_counts(struct ui *u, const struct answer *ans)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		struct column *c = &u->board.col[i];

		c->count = ans->counts[c->status] - ans->archived[c->status];
		c->waiting = c->status == READY ? ans->waiting : 0;
	}
	u->board.paused = ans->paused;
}

/* Drops all pointers into the old answers. */
static void forget_columns(struct ui *u)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		u->board.col[i].tasks = NULL;
		u->board.col[i].n = 0;
	}
}

/* When the next lease of a shown task expires; INT64_MAX: none does. */
static int64_t next_expiry(const struct board *b)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < COLUMNS; i++)
		for (size_t k = 0; b->col[i].allowed && k < b->col[i].n; k++) {
			int64_t at = b->col[i].tasks[k].lock.expires_at;

			if (b->col[i].allowed[k].live && at && at < next)
				next = at;
		}
	return next;
}

void read_board(struct reader *r, struct ui *u)
{
	int64_t began = os_boot_ms();
	struct request rq = { .op = OP_OVERVIEW };
	struct board old = u->board;
	struct arena fresh = { 0 };
	struct answer all, ans = { 0 };

	GIVE(&rq, limit, 1);
	forget_columns(u);
	if (call_in(r, &rq, &all, &fresh) == SUCCESS) {
		set_counts(u, &all);
		read_columns(r, u, &fresh, &ans);
	} else {
		ans = all;
	}
	r->tried_at = os_boot_ms();
	r->took = r->tried_at - began;
	r->code = ans.code;
	if (ans.code != SUCCESS) {
		u->board = old;
		snprintf(u->board.fault, sizeof(u->board.fault), "%s",
			 arena_cstr(&fresh, text_line(&fresh, ans.message)));
		arena_free(&fresh);
		return;
	}
	u->board.fault[0] = '\0';
	r->expires_at = next_expiry(&u->board);
	if (u->seek)
		board_seek(&u->board);
	u->seek = false;
	arena_free(&r->columns);
	r->columns = fresh;
	r->read_at = began;
	r->as_of = u->board.now = all.now;
}

/* --- one task --------------------------------------------------------------------------------------- */

static struct str place_text(int64_t place, struct arena *a)
{
	if (place == 1)
		return STR("it is next");
	return arena_printf(a, "%lld task%s first", (long long)place - 1,
			    place == 2 ? " comes" : "s come");
}

/* Replaces tabs: texts of several lines keep them, and a tab would move the rest of the line by an
 * unknown width. */
static void without_tabs(struct buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->p[i] == '\t')
			b->p[i] = ' ';
}

static struct str why_not_next(const struct answer *shown, struct arena *a)
{
	const struct allowed *w = shown->allowed;

	if (!shown->n_allowed)
		return STR("");
	return w->position ? place_text(w->position, a) : w->why;
}

struct str detail_text(const struct reader *r, struct arena *a)
{
	struct reply reply = { .ans = r->shown };
	struct buf b = BUF_MAX(4 << 20);
	struct view v = { .out = &b, .arena = a };
	struct str out;

	if (!r->shown.task)
		return text_line(a, r->shown.message);
	reply.ans.now = reader_now(r);
	show_details(&reply, &v);
	buf_adds(&b, STR("\nwhy it is not next\n  "));
	text_visible(&b, why_not_next(&r->shown, a), false);
	buf_addc(&b, '\n');
	without_tabs(&b);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void read_detail(struct reader *r, struct ui *u)
{
	struct request rq = { .op = OP_SHOW };
	struct arena fresh = { 0 };

	if (u->under != UI_DETAIL)
		return;
	GIVE(&rq, id, str_c(u->shown));
	GIVE(&rq, view, VIEW_RELATED | VIEW_CAN);
	if (call_in(r, &rq, &r->shown, &fresh) != SUCCESS)
		r->shown.task = NULL;
	u->here = (struct here){ r->shown.task, r->shown.n_allowed ? r->shown.allowed : NULL };
	arena_free(&r->detail);
	r->detail = fresh;
}

/* --- changes ---------------------------------------------------------------------------------------- */

static void say_refused(struct ui *u, const struct answer *ans, struct arena *a)
{
	ui_say(u, true, "refused: %s%s%s", arena_cstr(a, text_line(a, ans->message)),
	       ans->hint.n ? " · " : "", arena_cstr(a, text_line(a, ans->hint)));
}

void send_draft(struct reader *r, struct ui *u)
{
	struct request rq = draft_request(&u->draft);
	struct arena a = { 0 };
	struct answer ans;

	if (call_in(r, &rq, &ans, &a) != SUCCESS)
		say_refused(u, &ans, &a);
	else if (ans.task)
		ui_say(u, false, "%s %s: done (%s)", u->draft.action->name,
		       arena_cstr(&a, text_line(&a, ans.task->id)), status_name(ans.task->status));
	else
		ui_say(u, false, "%s: done", u->draft.action->name);
	arena_free(&a);
}

void edit_draft(struct reader *r, struct ui *u)
{
	struct session *s = r->session;
	struct arena a = { 0 }, *kept = s->arena, *of_client = s->client.arena,
		     *ring = s->client.keyring.arena;
	struct args *args = args_new(&cmd_edit, &a);
	struct reply reply = { 0 };

	GIVE(&args->rq, id, str_c(u->draft.id));
	GIVE(&args->rq, if_version, u->draft.version);
	s->arena = s->client.arena = s->client.keyring.arena = &a;
	if (command_run(&cmd_edit, s, args, &reply) != SUCCESS)
		say_refused(u, &reply.ans, &a);
	else
		ui_say(u, false, "edited %s", u->draft.id);
	s->arena = kept;
	s->client.arena = of_client;
	s->client.keyring.arena = ring;
	reply_free(&reply);
	arena_free(&a);
}
