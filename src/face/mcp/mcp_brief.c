/*
 * A tool's answer for a model, as an object and as a text. mcp_answer.c makes the parts; this file puts
 * them together.
 *
 * An answer contains what the model needs in order to act: the task, its lock, the brief for a new
 * holder, the calls to make next. None of these is ever left out to save room. If the texts of a
 * task were cut, the answer names the call that returns them whole. Texts by others are marked as
 * such.
 *
 * The profile pm and `show full=true` get the command's object instead.
 */
#include "base/text.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"
#include "format/json.h"

#define HELD 5
#define REASON_SHOWN 200 /* bytes */
#define TITLE_SHOWN 80   /* columns of another task's title */

/* --- the brief of a claim ------------------------------------------------------------------------- */

void brief_ask(const struct command *tool, struct request *rq)
{
	/* `status` without an argument only reads */
	bool takes = op_flags(tool->op) & OP_TAKES && (tool != &cmd_status || HAS(rq, status));

	if (takes || tool == &cmd_next)
		GIVE(rq, view, rq->view | VIEW_BRIEF);
}

/* Does the answer grant the lock of ans->task? Then it contains the brief. */
static bool mcp_brief_grants(const struct answer *ans)
{
	return ans->task && ans->lock && ans->lock->token.n;
}

/* Reserves the position of a member that is set later. */
static void mcp_brief_reserve(json_t *o, const char *key, bool wanted)
{
	if (wanted)
		json_object_set_new(o, key, json_null());
}

/* The earlier attempts at the task. */
static json_t *mcp_brief_attempts(struct briefing *b, const struct task *t)
{
	const struct answer *ans = &b->reply->ans;
	struct str why = ans->came_back ? ans->came_back->reason : STR(""),
		   last = why.n ? STR("") : t->blocker_reason; /* `why` is current */
	json_t *o = json_object();

	json_object_set_new(o, "earlier_attempts", json_integer(t->attempts - 1));
	json_object_set_new(o, "abandoned", json_integer(t->abandoned));
	mcp_brief_reserve(o, "history", true);
	json_set_text(o, "why", lean_cut(b, why, REASON_SHOWN));
	json_set_text(o, "last_reason", lean_cut(b, last, REASON_SHOWN));
	lean_spend(b, json_object_get(o, "why"));
	lean_spend(b, json_object_get(o, "last_reason"));
	json_object_set_new(o, "history", lean_history(b));
	return o;
}

/* The related tasks. The answer contains them, because the claim has read them. */
static void add_links(struct briefing *b, json_t *o)
{
	const struct related *r = b->reply->ans.related;
	struct arena *a = b->arena;
	json_t *waits = json_array();

	for (size_t i = 0; r && i < r->n_links; i++) {
		const struct task_link *l = &r->links[i];
		json_t *t = lean_name(l->id, l->status, STR(""));

		json_set_text(t, "title", text_cut(a, text_line(a, l->title), TITLE_SHOWN));
		if (l->kind == LINK_PARENT)
			json_object_set_new(o, "parent", t);
		else
			json_array_append_new(waits, t);
	}
	if (json_array_size(waits))
		json_object_set(o, "waits_for", waits);
	json_decref(waits);
}

static void add_calls(const struct briefing *b, json_t *o, const struct task *t)
{
	const struct profile *p = b->m->profile;
	json_t *calls = json_array();

	/* a lock of the whole queue can only be released */
	for (const char *const *call = t->lock.manual ? p->locked : p->claimed;
	     *call && !(json_array_size(calls) && t->id.p[0] == '@'); call++) {
		const char *at = strstr(*call, "ID");

		json_array_append_new(
			calls, json_str(arena_printf(b->arena, "%.*s%.*s%s", (int)(at - *call),
						     *call, STRF(t->id), at + 2)));
	}
	json_object_set_new(o, "call_next", calls);
}

/* t: the task whose lock the answer grants; or NULL. The attempts leave the rest of the room to the
 * comments. */
static void add_context(struct briefing *b, json_t *o, const struct task *t)
{
	const struct answer *ans = &b->reply->ans;
	json_t *came_back = t && t->attempts > 1 ? mcp_brief_attempts(b, t) : NULL;

	if (t)
		add_links(b, o);
	if (b->whole && !ans->n_events)
		json_object_set_new(o, "comments", json_array());
	else if (!b->whole && ans->n_events)
		json_object_set_new(o, "comments", lean_comments(b));
	json_object_set_new(o, "came_back", came_back);
	if (t)
		add_calls(b, o, t);
}

/* --- the lean object -------------------------------------------------------------------------------- */

static void announce_cut(const struct briefing *b, json_t *o, const struct task *t)
{
	if (b->cut && t)
		json_set_text(o, "more",
			      arena_printf(b->arena, "show id=%.*s full=true has the whole texts",
					   STRF(t->id)));
}

static json_t *next_json(struct briefing *b)
{
	const struct answer *ans = &b->reply->ans;
	const struct grant *lock = ans->next_lock;
	bool mine = ans->repeated || (lock && lock->token.n), again = ans->next->attempts > 1;
	json_t *o = json_object();

	json_object_set_new(o, "task", lean_task(b, ans->next, true));
	json_object_set_new(o, "lock", lock ? lean_grant(b, lock) : json_null());
	mcp_brief_reserve(o, "comments", mine && again && ans->n_events);
	mcp_brief_reserve(o, "came_back", mine && again && ans->came_back);
	if (mine)
		add_context(b, o, ans->next);
	announce_cut(b, o, ans->next);
	lean_begin(b);
	return o;
}

/* The answer to a repeated `done` has no token for the task that the first call claimed, and a
 * repetition does not claim another task. Unless this session still holds that task, the answer has
 * no `next`: null would mean that no task is eligible. */
static bool next_is_over(struct briefing *b)
{
	const struct answer *ans = &b->reply->ans;

	return ans->repeated && ans->has_next &&
	       !(ans->next && keeper_holds(b->m, ans->next, ans->now, b->arena));
}

/* Makes the tasks and locks of an answer, which come first. */
static json_t *first_members(struct briefing *b, bool no_next)
{
	const struct answer *ans = &b->reply->ans;
	const struct task *t = ans->task;
	bool mine = mcp_brief_grants(ans),
	     texts = mine || b->tool == &cmd_next || b->tool == &cmd_show;
	json_t *o = json_object();

	json_object_set_new(o, "ok", json_true());
	if (ans->code != SUCCESS)
		json_object_set_new(o, "code", json_string(result_name(ans->code)));
	if (t)
		json_object_set_new(o, "task",
				    texts ? lean_task(b, t, mine)
					  : lean_name(t->id, t->status, STR("")));
	mcp_brief_reserve(o, "task", !t && ans->code == NO_TASKS);
	if (ans->lock)
		json_object_set_new(o, "lock", lean_grant(b, ans->lock));
	if (ans->has_next && !no_next)
		json_object_set_new(o, "next", ans->next ? next_json(b) : json_null());
	mcp_brief_reserve(o, "came_back", ans->came_back && !ans->next);
	mcp_brief_reserve(o, "comments",
			  ans->kind == ANSWER_TASK && ans->n_events && !ans->next &&
				  !(mine && t->attempts <= 1));
	return o;
}

static struct notice *cut_notice(struct briefing *b, const struct notice *n, size_t bytes)
{
	struct notice *out = n ? arena_new(b->arena, struct notice) : NULL;

	if (n) {
		*out = *n;
		out->reason = lean_cut(b, n->reason, bytes);
	}
	return out;
}

/* Makes the members that are not built from parts. A refusal has no others: it is about a call, not
 * about the task. */
static json_t *other_members(struct briefing *b)
{
	struct reply rest = *b->reply;
	struct answer *ans = &rest.ans;
	bool in_brief = ans->next || (mcp_brief_grants(ans) && ans->task->attempts > 1);
	json_t *o;

	ans->came_back = in_brief ? NULL : cut_notice(b, ans->came_back, REASON_SHOWN);
	ans->changed = cut_notice(b, ans->changed, REASON_SHOWN);
	ans->paused = cut_notice(b, ans->paused, REASON_SHOWN / 2);
	ans->wait_ms = lean_seconds(ans->wait_ms) * 1000;
	ans->fault = STR("");
	ans->task = ans->next = NULL;
	ans->lock = NULL;
	ans->has_next = 0;
	ans->n_tasks = ans->n_events = 0;
	if (!reply_ok(&rest))
		rest.more = NULL;
	o = reply_json(&rest, b->arena);
	json_object_del(json_object_get(o, "changed"), "at");
	json_object_del(json_object_get(o, "paused"), "since");
	return o;
}

/* Lists the held tasks, so that a restarted agent finds them. */
static void add_held(struct briefing *b, json_t *o)
{
	const struct answer *ans = &b->reply->ans;
	struct task held[HELD];
	size_t n = 0;

	for (size_t i = 0; i < ans->n_tasks && n < HELD; i++)
		if (keeper_holds(b->m, &ans->tasks[i], ans->now, b->arena))
			held[n++] = ans->tasks[i];
	if (n)
		json_object_set_new(o, "held", lean_locks(b, held, n, true));
}

static void add_hint(const struct briefing *b, json_t *o, bool no_next)
{
	const struct answer *ans = &b->reply->ans;

	if (no_next)
		json_set_text(o, "hint", STR("next claim=true takes another task"));
	if (b->tool == &cmd_next && ans->task && !ans->lock)
		json_set_text(o, "hint",
			      arena_printf(b->arena,
					   "%.*s is not yours yet: claim id=%.*s takes it",
					   STRF(ans->task->id), STRF(ans->task->id)));
	if (b->tool == &cmd_list && !ans->total)
		json_set_text(o, "hint", STR("create adds a task"));
}

/* Removes the operator's part of `status`, and the attempts of `show`: the comments and the status
 * cover most of them. */
static void drop_members(json_t *o)
{
	static const char *const names[] = { "people", "agents", "last_hour", "attempts", NULL };
	json_t *counts = json_object_get(o, "counts"), *v;
	const char *key;
	void *next;

	for (const char *const *name = names; *name; name++)
		json_object_del(o, *name);
	json_object_foreach_safe(counts, next, key, v)
		if (!json_integer_value(v))
			json_object_del(counts, key);
	lean_strip(json_object_get(o, "emergency"));
	if (!json_array_size(json_object_get(o, "comments")))
		json_object_del(o, "comments");
}

static bool has_texts(const json_t *o)
{
	static const char *const lists[] = { "tasks",    "held",      "locks",      "events",
					     "comments", "came_back", "candidates", "next",
					     "changed",  "report",    "stats",      NULL };

	if (json_object_get(json_object_get(o, "task"), "title"))
		return true;
	for (const char *const *name = lists; *name; name++) {
		const json_t *v = json_object_get(o, *name);

		if (json_array_size(v) || json_object_size(v))
			return true;
	}
	return false;
}

/* Announces the next page. Rows may have been left out to keep the answer small. */
static void announce_page(const struct briefing *b, json_t *o)
{
	const json_t *tasks = json_object_get(o, "tasks");
	size_t n = json_array_size(tasks);
	int64_t left = b->reply->ans.total - b->skipped - (int64_t)n;
	struct str last = n ? json_get(json_array_get(tasks, n - 1), "id") : STR("");

	if (b->paged && left > 0 && n)
		json_set_text(o, "more",
			      arena_printf(b->arena, "%lld more: the same call with after=%.*s",
					   (long long)left, STRF(last)));
}

static json_t *lean_json(struct briefing *b)
{
	const struct answer *ans = &b->reply->ans;
	bool no_next = next_is_over(b);
	json_t *o = first_members(b, no_next), *others = other_members(b);

	if (ans->code == SUCCESS)
		json_object_del(others, "code");
	json_object_update(o, others);
	json_decref(others);
	if (ans->kind == ANSWER_LOCK && ans->task && ans->task->lock.holder.n) {
		json_object_set_new(o, "lock", lean_lock(b, ans->task));
		json_object_set(o, "locked", json_object_get(json_object_get(o, "lock"), "live"));
	}
	lean_spend(b, json_object_get(o, "changed"));
	lean_spend(b, json_object_get(json_object_get(o, "came_back"), "why"));
	if (ans->kind == ANSWER_TASK && !ans->next)
		add_context(b, o, mcp_brief_grants(ans) ? ans->task : NULL);
	if (b->tool == &cmd_next)
		add_held(b, o);
	add_hint(b, o, no_next);
	lean_add_texts(o, "warnings", b->m->news);
	announce_cut(b, o, ans->task);
	lean_lists(b, o);
	drop_members(o);
	if (has_texts(o))
		json_object_set_new(o, "untrusted", json_string(UNTRUSTED));
	announce_page(b, o);
	return o;
}

/* --- other objects ---------------------------------------------------------------------------------- */

/* If a lock caused the refusal, `error` names the holder, because every client reads `error`. */
static void name_holder(const struct briefing *b, json_t *error)
{
	const struct answer *ans = &b->reply->ans;
	const struct lock *l = ans->task ? &ans->task->lock : NULL;
	struct arena *a = b->arena;

	if (!l || !lease_live(l, ans->now) || (ans->code != CONFLICT && ans->code != LOST_LOCK))
		return;
	json_set_text(error, "holder", text_cut(a, text_line(a, l->holder), TITLE_SHOWN));
	if (l->expires_at)
		json_object_set_new(error, "expires_in",
				    json_integer(lean_seconds(l->expires_at - ans->now)));
}

void brief_mark(json_t *object, const struct answer *ans)
{
	bool ok = ans->code == SUCCESS || ans->code == NO_TASKS || ans->code == LOCK_FREE;

	if (ans->task || (ok && (ans->next || ans->n_tasks || ans->n_events || ans->n_candidates)))
		json_object_set_new(object, "untrusted", json_string(UNTRUSTED));
}

json_t *brief_json(struct briefing *b)
{
	const struct answer *ans = &b->reply->ans;
	json_t *o;

	b->whole = b->full || b->m->profile->tools == pm_tools;
	lean_begin(b);
	if (!b->whole && reply_ok(b->reply))
		return lean_json(b);
	o = b->whole ? command_json(b->tool, b->reply, b->arena) : other_members(b);
	if (mcp_brief_grants(ans))
		add_context(b, o, ans->task);
	name_holder(b, json_object_get(o, "error"));
	lean_add_texts(o, "warnings", b->m->news);
	if (!b->whole)
		return o;
	if (json_object_get(o, "error"))
		json_object_del(o, "task");
	if (!b->full)
		lean_strip(o);
	brief_mark(o, ans);
	return o;
}

/* --- as a text -------------------------------------------------------------------------------------
 *
 * Some clients show a model only the object, others only the text, so both have the same content.
 * Texts by others are quoted line by line, so that they cannot look like ours.
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
		put_members(b, v); /* the answer's own task */
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
static void put_own_text(struct buf *b, const struct briefing *of, const json_t *o)
{
	struct view v = { .out = b, .arena = of->arena };
	const json_t *warning;
	size_t i;

	buf_adds(b, of->tool->flags & C_WRITE ? STR("") : STR(UNTRUSTED "\n"));
	command_show(of->tool, of->reply, &v);
	json_array_foreach(json_object_get(o, "warnings"), i, warning)
		put_line(b, "warning: ", json_text(warning));
}

json_t *brief_text(const struct briefing *b, const json_t *o)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);
	json_t *text;

	if (!b->whole || b->full || mcp_brief_grants(&b->reply->ans) || !reply_ok(b->reply))
		put_object(&out, o);
	else
		put_own_text(&out, b, o);
	text = json_str(buf_str(&out));
	buf_free(&out);
	return text;
}
