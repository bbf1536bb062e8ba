/* The answers for a model: the full brief for a new holder, with texts by others marked as such. */
#include "face/mcp/mcp.h"

#include "base/text.h"
#include "core/lease.h"
#include "format/answer.h"
#include "format/event.h"
#include "format/json_value.h"

#define HELD 5
#define TITLE_SHOWN 80 /* columns of the title of another task */

/* --- the brief of a claim ------------------------------------------------------------------------- */

void brief_ask(const struct command *tool, struct request *rq)
{
	/* `status` without an argument only reads */
	bool takes = op_flags(tool->op) & OP_TAKES && (tool != &cmd_status || HAS(rq, status));

	if (takes || tool == &cmd_next)
		GIVE(rq, view, rq->view | VIEW_BRIEF);
}

bool brief_granted(const struct answer *ans)
{
	return ans->lock && ans->lock->token.n;
}

/* A repeated `done` has no token for the task that the first call took, and looks for no other task. Unless this
 * session still holds that task, the answer has no `next`: null would mean that no task is eligible. */
static bool next_is_over(const struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;

	return ans->repeated && ans->has_next &&
	       !(ans->next && keeper_holds(b->m, ans->next, ans->now, a));
}

/* The members of another task that show its relation to this one. */
static json_t *outline(const struct task_link *t, struct arena *a)
{
	json_t *o = json_object();

	json_set_text(o, "id", t->id);
	json_object_set_new(o, "status", json_string(status_name(t->status)));
	json_set_text(o, "title", text_cut(a, text_line(a, t->title), TITLE_SHOWN));
	return o;
}

static json_t *events_json(const struct event *list, size_t n, struct arena *a)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(out, event_json(&list[i], a));
	return out;
}

/* The earlier attempts at the task. */
static json_t *attempts(const struct answer *ans, const struct task *t, struct arena *a)
{
	const struct related *r = ans->related;
	struct str why = ans->came_back ? ans->came_back->reason : STR(""),
		   last = t->blocker_reason;
	json_t *o = json_object();

	/* the sentence has the reason already, unless it is an older one */
	if (why.n && last.n && memmem(why.p, why.n, last.p, last.n))
		last = STR("");
	json_object_set_new(o, "earlier_attempts", json_integer(t->attempts - 1));
	json_object_set_new(o, "abandoned", json_integer(t->abandoned));
	json_object_set_new(o, "history",
			    events_json(r ? r->history : NULL, r ? r->n_history : 0, a));
	json_set_text(o, "why", why);
	json_set_text(o, "last_reason", last);
	return o;
}

/* The tasks around it: the answer has them, because the claim has read them. */
static void add_links(json_t *o, const struct related *r, struct arena *a)
{
	json_t *waits = json_array();

	for (size_t i = 0; r && i < r->n_links; i++) {
		const struct task_link *l = &r->links[i];

		if (l->kind == LINK_PARENT)
			json_object_set_new(o, "parent", outline(l, a));
		else
			json_array_append_new(waits, outline(l, a));
	}
	if (json_array_size(waits))
		json_object_set(o, "waits_for", waits);
	json_decref(waits);
}

static void add_calls(const struct briefing *b, json_t *o, const struct task *t, struct arena *a)
{
	const struct profile *p = b->m->profile;
	json_t *calls = json_array();

	/* a lock of the whole queue can only be released */
	for (const char *const *call = t->lock.manual ? p->locked : p->claimed;
	     *call && !(json_array_size(calls) && t->id.p[0] == '@'); call++) {
		const char *at = strstr(*call, "ID");

		json_array_append_new(calls,
				      json_str(arena_printf(a, "%.*s%.*s%s", (int)(at - *call),
							    *call, STRF(t->id), at + 2)));
	}
	json_object_set_new(o, "call_next", calls);
}

static void add_brief(const struct briefing *b, json_t *o, const struct task *t, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;

	add_links(o, ans->related, a);
	json_object_set_new(o, "comments", events_json(ans->events, ans->n_events, a));
	if (t->attempts > 1)
		json_object_set_new(o, "came_back", attempts(ans, t, a));
	add_calls(b, o, t, a);
}

/* A refusal because of a lock names the holder in `error`, where every client looks. */
static void name_holder(json_t *error, const struct answer *ans, struct arena *a)
{
	const struct lock *l = ans->task ? &ans->task->lock : NULL;

	if (!l || !lease_live(l, ans->now) || (ans->code != CONFLICT && ans->code != LOST_LOCK))
		return;
	json_set_text(error, "holder", text_cut(a, text_line(a, l->holder), TITLE_SHOWN));
	if (l->expires_at)
		json_object_set_new(error, "expires_in",
				    json_integer((l->expires_at - ans->now + 999) / 1000));
}

/* An agent that was restarted finds the tasks that it held. */
static void add_held(const struct briefing *b, json_t *o, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;
	struct task held[HELD];
	struct answer found = { .kind = ANSWER_LOCKS, .now = ans->now, .tasks = held };
	json_t *locks;

	for (size_t i = 0; i < ans->n_tasks && found.n_tasks < HELD; i++)
		if (keeper_holds(b->m, &ans->tasks[i], ans->now, a))
			held[found.n_tasks++] = ans->tasks[i];
	if (!found.n_tasks)
		return;
	locks = answer_json(&found, a);
	json_object_set(o, "held", json_object_get(locks, "locks"));
	json_decref(locks);
}

static void add_hint(const struct briefing *b, json_t *o, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;

	if (b->no_next)
		json_set_text(o, "hint", STR("next claim=true takes another task"));
	if (b->tool == &cmd_next && ans->task && !ans->lock)
		json_set_text(o, "hint",
			      arena_printf(a, "%.*s is not yours yet: claim id=%.*s takes it",
					   STRF(ans->task->id), STRF(ans->task->id)));
	if (b->tool == &cmd_list && reply_ok(b->reply) && !ans->total)
		json_set_text(o, "hint", STR("create adds a task"));
}

void brief_mark(json_t *object, const struct answer *ans)
{
	bool ok = ans->code == SUCCESS || ans->code == NO_TASKS || ans->code == LOCK_FREE;

	if (ans->task || (ok && (ans->next || ans->n_tasks || ans->n_events || ans->n_candidates)))
		json_object_set_new(object, "untrusted", json_string(UNTRUSTED));
}

static void add_news(json_t *o, struct strs news)
{
	json_t *list = json_object_get(o, "warnings");

	if (news.n && !list) {
		list = json_array();
		json_object_set_new(o, "warnings", list);
	}
	for (size_t i = 0; i < news.n; i++)
		json_array_append_new(list, json_str(news.v[i]));
}

/* Rows may have been left out to keep the answer small. */
static void count_rows(json_t *o, const struct briefing *b, struct arena *a)
{
	const json_t *tasks = json_object_get(o, "tasks"),
		     *last = json_array_get(tasks, json_array_size(tasks) - 1);
	size_t n = json_array_size(tasks);
	int64_t left = b->reply->ans.total - b->skipped - (int64_t)n;

	if (!tasks)
		return;
	json_object_set_new(o, "count", json_integer((json_int_t)n));
	if (b->paged && left > 0 && n)
		json_object_set_new(o, "more",
				    json_str(arena_printf(
					    a, "%lld more: the same call with after=%s",
					    (long long)left, arena_cstr(a, json_get(last, "id")))));
}

json_t *brief_json(struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;
	json_t *o;

	b->lean = b->m->profile->tools != pm_tools && !b->full;
	b->no_next = next_is_over(b, a);
	o = b->lean ? lean_begin(b, a) : command_json(b->tool, b->reply, a);
	if (brief_granted(ans))
		add_brief(b, o, ans->task, a);
	if (ans->next && !b->no_next && (ans->repeated || ans->next_lock->token.n))
		add_brief(b, json_object_get(o, "next"), ans->next, a);
	if (b->tool == &cmd_next)
		add_held(b, o, a);
	name_holder(json_object_get(o, "error"), ans, a);
	add_hint(b, o, a);
	add_news(o, b->m->news);
	if (b->lean) {
		lean(o, b, a);
		count_rows(o, b, a);
		return o;
	}
	if (json_object_get(o, "error"))
		json_object_del(o, "task");
	if (!b->full)
		lean_strip(o);
	brief_mark(o, ans);
	return o;
}

/* --- as a text -------------------------------------------------------------------------------------
 *
 * Some clients show a model only the object, others only the text, so the text says the same. Texts by others are quoted
 * line by line: they cannot look like ours.
 */

static void put_key(struct buf *b, const char *key, const char *after)
{
	buf_adds(b, str_c(key));
	buf_adds(b, str_c(after));
}

static void put_line(struct buf *b, const char *before, struct str text)
{
	buf_adds(b, str_c(before));
	text_visible(b, text, false);
	buf_addc(b, '\n');
}

static void put_lines(struct buf *b, const char *key, struct str text)
{
	put_key(b, key, ":\n");
	while (text.n)
		put_line(b, "> ", str_cut(&text, '\n'));
}

static void put_scalar(struct buf *b, const json_t *v)
{
	char *text;

	if (json_is_string(v)) {
		text_visible(b, json_text(v), false);
	} else if (json_is_integer(v)) {
		buf_addf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	} else {
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		text_visible(b, str_c(text), false);
		free(text);
	}
}

/* A small object on one line: "t1 Ready: Fix it", "fence 1, expires_in 900". */
static void put_row(struct buf *b, const json_t *o)
{
	static const char *const bare[] = { "id", "task", "status", "event", NULL },
				 *const last[] = { "title", "text", NULL };
	const json_t *v, *text = NULL;
	const char *key, *between = "";

	json_object_foreach((json_t *)o, key, v) {
		if (lean_name_in(key, last)) {
			text = v;
			continue;
		}
		buf_adds(b, str_c(between));
		if (!lean_name_in(key, bare))
			put_key(b, key, " ");
		put_scalar(b, v);
		between = lean_name_in(key, bare) ? " " : ", ";
	}
	if (!text)
		return;
	buf_adds(b, str_c(*between ? ": " : ""));
	put_scalar(b, text);
}

static void put_list(struct buf *b, const char *key, const json_t *list)
{
	static const char *const steps[] = { "call_next", "warnings", NULL };
	const json_t *v;
	size_t i;

	if (!json_array_size(list))
		return;
	put_key(b, key, ":");
	json_array_foreach(list, i, v) {
		if (json_is_object(v)) {
			buf_adds(b, STR("\n> "));
			put_row(b, v);
		} else {
			buf_adds(b, lean_name_in(key, steps) ? STR("\n- ")
				    : i                      ? STR(", ")
							     : STR(" "));
			put_scalar(b, v);
		}
	}
	buf_addc(b, '\n');
}

static void put_members(struct buf *b, const json_t *o);

/* The first line: the result in a few words. */
static void put_head(struct buf *b, const json_t *o)
{
	const json_t *task = json_object_get(o, "task"), *lock = json_object_get(o, "lock");
	struct str code = json_get(o, "code"), id = json_get(task, "id");

	if (code.n && !str_is(code, result_name(SUCCESS)))
		put_line(b, "", code);
	if (json_is_object(task) && lock && json_object_get(o, "call_next"))
		buf_addf(b, "You hold %.*s (fence %lld).\n", STRF(id),
			 (long long)json_integer_value(json_object_get(lock, "fence")));
}

static void put_member(struct buf *b, const char *key, const json_t *v)
{
	static const char *const lines[] = { "description",
					     "acceptance",
					     "summary",
					     "blocker_reason",
					     "unblock_action",
					     "last_reason",
					     NULL },
				 *const parts[] = { "next", "came_back", NULL };

	if (json_is_null(v)) {
		buf_adds(b,
			 !strcmp(key, "next") ? STR("next: no task is eligible now\n") : STR(""));
	} else if (json_is_array(v)) {
		put_list(b, key, v);
	} else if (!strcmp(key, "task") && json_object_get(v, "title")) {
		put_members(b, v); /* the task of the answer */
	} else if (json_is_object(v) && lean_name_in(key, parts)) {
		put_key(b, key, ":\n");
		put_head(b, v);
		put_members(b, v);
	} else if (json_is_string(v) && lean_name_in(key, lines)) {
		put_lines(b, key, json_text(v));
	} else {
		put_key(b, key, ": ");
		if (json_is_object(v))
			put_row(b, v);
		else
			put_scalar(b, v);
		buf_addc(b, '\n');
	}
}

static void put_members(struct buf *b, const json_t *o)
{
	static const char *const shown[] = { "ok", "untrusted", "error", "code", NULL };
	const json_t *v;
	const char *key;

	json_object_foreach((json_t *)o, key, v)
		if (!lean_name_in(key, shown))
			put_member(b, key, v);
}

static void put_error(struct buf *b, const json_t *error)
{
	text_visible(b, json_get(error, "code"), false);
	put_line(b, ": ", json_get(error, "message"));
	if (json_get(error, "hint").n)
		put_line(b, "hint: ", json_get(error, "hint"));
}

static void put_object(struct buf *b, const json_t *o)
{
	if (json_object_get(o, "error"))
		put_error(b, json_object_get(o, "error"));
	put_head(b, o);
	if (json_object_get(o, "untrusted"))
		put_line(b, "", json_get(o, "untrusted"));
	put_members(b, o);
	if (!b->n)
		buf_adds(b, STR("done\n"));
}

/* A tool of the profile pm has a text of its own, except for the brief. */
static void put_own_text(struct buf *b, const struct briefing *of, const json_t *o, struct arena *a)
{
	struct view v = { .out = b, .arena = a };
	const json_t *warning;
	size_t i;

	buf_adds(b, of->tool->flags & C_WRITE ? STR("") : STR(UNTRUSTED "\n"));
	command_show(of->tool, of->reply, &v);
	json_array_foreach(json_object_get(o, "warnings"), i, warning)
		put_line(b, "warning: ", json_text(warning));
}

json_t *brief_text(const struct briefing *b, const json_t *o, struct arena *a)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);
	json_t *text;

	if (b->lean || b->full || brief_granted(&b->reply->ans) || !reply_ok(b->reply))
		put_object(&out, o);
	else
		put_own_text(&out, b, o, a);
	text = json_str(buf_str(&out));
	buf_free(&out);
	return text;
}
