/* The answers for a model: the full brief for a new holder, with texts by others marked as such. */
#include "face/mcp/mcp.h"

#include "base/text.h"
#include "core/lease.h"
#include "format/answer.h"
#include "format/event.h"

#define COMMENTS 5
#define EVENTS 8
#define DEPENDS 5
#define HELD 5
#define NAMED 200      /* at most this many tasks with the agent's name are examined */
#define TITLE_SHOWN 80 /* columns of the title of another task */

/* --- the brief of a claim ------------------------------------------------------------------------- */

static void find_parent(struct mcp *m, struct brief *b, struct arena *a)
{
	struct answer ans;

	if (b->task->parent.n && mcp_show(m, b->task->parent, &ans, a))
		b->parent = ans.task;
}

static void find_depends(struct mcp *m, struct brief *b, struct arena *a)
{
	struct strs depends = b->task->open_deps ? b->task->depends : (struct strs){ 0 };
	struct answer ans;

	for (size_t i = 0; i < depends.n && b->n_waits_for < DEPENDS; i++) {
		if (!mcp_show(m, depends.v[i], &ans, a) || ans.task->status == DONE)
			continue;
		b->waits_for = arena_grow(a, b->waits_for, b->n_waits_for, sizeof(*ans.task));
		b->waits_for[b->n_waits_for++] = *ans.task;
	}
}

static void keep_last(struct event **list, size_t *n, size_t most)
{
	if (*n <= most)
		return;
	*list += *n - most;
	*n = most;
}

/* The answer about a task that came back has some comments already. */
static void find_comments(struct mcp *m, struct brief *b, struct arena *a)
{
	struct answer ans;

	if (b->n_comments < COMMENTS) {
		(void)mcp_show(m, b->task->id, &ans, a);
		b->comments = ans.events;
		b->n_comments = ans.n_events;
	}
	keep_last(&b->comments, &b->n_comments, COMMENTS);
}

static int64_t earlier(const struct brief *b)
{
	return b->task->attempts - 1;
}

/* The events before this claim, which is the last event. */
static void find_history(struct mcp *m, struct brief *b, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans;

	if (earlier(b) < 1)
		return;
	GIVE(&rq, id, b->task->id);
	GIVE(&rq, limit, 4 * EVENTS);
	mcp_ask(m, &rq, &ans, a);
	b->history = ans.events;
	for (size_t i = 0; ans.code == SUCCESS && i + 1 < ans.n_events; i++)
		if (!str_is(ans.events[i].name, "comment") &&
		    !str_is(ans.events[i].name, "created"))
			b->history[b->n_history++] = ans.events[i];
	keep_last(&b->history, &b->n_history, EVENTS);
}

static void find_calls(struct mcp *m, struct brief *b, struct arena *a)
{
	const char *const *list = b->task->lock.manual ? m->profile->locked : m->profile->claimed;

	/* a lock of the whole queue can only be released */
	for (; *list && !(b->call_next.n && b->task->id.p[0] == '@'); list++) {
		const char *at = strstr(*list, "ID");

		b->call_next = arena_append(a, b->call_next,
					    arena_printf(a, "%.*s%.*s%s", (int)(at - *list), *list,
							 STRF(b->task->id), at + 2));
	}
}

static void fill(struct mcp *m, struct brief *b, const struct task *t, const struct grant *lock,
		 struct arena *a)
{
	b->task = t;
	b->lock = lock;
	find_parent(m, b, a);
	find_depends(m, b, a);
	find_comments(m, b, a);
	find_history(m, b, a);
	find_calls(m, b, a);
}

static void complete(struct mcp *m, struct brief *b, const struct task *t, const struct grant *lock,
		     struct arena *a)
{
	if (lock && lock->token.n)
		fill(m, b, t, lock, a);
}

/* A repeated `done` has no token for the task that the first call took, and looks for no other task. Unless this
 * session still holds that task, the answer has no `next`: null would mean that no task is eligible. */
static void complete_next(struct mcp *m, struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;

	if (!ans->repeated || !ans->has_next) {
		complete(m, &b->next, ans->next, ans->next_lock, a);
	} else if (ans->next && keeper_holds(m, ans->next, ans->now, a)) {
		fill(m, &b->next, ans->next, ans->next_lock, a);
	} else {
		b->no_next = true;
		b->hint = STR("next claim=true takes another task");
	}
}

/* --- other answers -------------------------------------------------------------------------------- */

/* An agent that was restarted finds the tasks that it held. */
static void find_held(struct mcp *m, struct briefing *b, struct arena *a)
{
	struct request rq = { .op = OP_LOCKS };
	const struct task *taken = b->reply->ans.task;
	struct answer *held = &b->held;
	size_t n = 0;

	GIVE(&rq, holder, m->session.client.self.agent);
	GIVE(&rq, limit, NAMED);
	mcp_ask(m, &rq, held, a);
	for (size_t i = 0; held->code == SUCCESS && i < held->n_tasks && n < HELD; i++)
		if (!(taken && str_eq(held->tasks[i].id, taken->id)) &&
		    keeper_holds(m, &held->tasks[i], held->now, a))
			held->tasks[n++] = held->tasks[i];
	held->n_tasks = n;
}

/* Finds the holder for a refusal because of a lock. */
static const struct lock *in_the_way(const struct answer *ans)
{
	return ans->task && lease_live(&ans->task->lock, ans->now) ? &ans->task->lock : NULL;
}

void brief_make(struct mcp *m, struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;
	struct brief *first = ans->next ? &b->next : &b->own; /* the task of the comments */

	if (reply_ok(b->reply) && ans->kind == ANSWER_TASK) {
		first->comments = ans->events;
		first->n_comments = ans->n_events;
		first->why = ans->came_back ? ans->came_back->reason : STR("");
	}
	complete(m, &b->own, ans->task, ans->lock, a);
	complete_next(m, b, a);
	if (b->tool == &cmd_next)
		find_held(m, b, a);
	if (b->tool == &cmd_next && ans->task && !ans->lock)
		b->hint = arena_printf(a, "%.*s is not yours yet: claim id=%.*s takes it",
				       STRF(ans->task->id), STRF(ans->task->id));
	if (b->tool == &cmd_list && reply_ok(b->reply) && !ans->total)
		b->hint = STR("create adds a task");
	b->lean = m->profile->tools != pm_tools && !b->full;
}

/* --- as an object --------------------------------------------------------------------------------- */

static void set_text(json_t *o, const char *key, struct str text)
{
	if (text.n)
		json_object_set_new(o, key, json_str(text));
}

/* The members of another task that show its relation to this one. */
static json_t *outline(const struct task *t, struct arena *a)
{
	json_t *o = json_object();

	set_text(o, "id", t->id);
	json_object_set_new(o, "status", json_string(status_name(t->status)));
	set_text(o, "title", text_cut(a, text_line(a, t->title), TITLE_SHOWN));
	return o;
}

static json_t *events_json(const struct event *list, size_t n, struct arena *a)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(out, event_json(&list[i], a));
	return out;
}

static json_t *return_json(const struct brief *b, struct arena *a)
{
	json_t *o = json_pack("{s:I, s:I, s:o}", "earlier_attempts", (json_int_t)earlier(b),
			      "abandoned", (json_int_t)b->task->abandoned, "history",
			      events_json(b->history, b->n_history, a));

	set_text(o, "why", b->why);
	/* the sentence has the reason already, unless it is an older one */
	if (!b->why.n || !b->task->blocker_reason.n ||
	    !memmem(b->why.p, b->why.n, b->task->blocker_reason.p, b->task->blocker_reason.n))
		set_text(o, "last_reason", b->task->blocker_reason);
	return o;
}

static void add_brief(json_t *o, const struct brief *b, struct arena *a)
{
	json_t *waits = json_array(), *calls = json_array();

	if (b->parent)
		json_object_set_new(o, "parent", outline(b->parent, a));
	for (size_t i = 0; i < b->n_waits_for; i++)
		json_array_append_new(waits, outline(&b->waits_for[i], a));
	if (b->n_waits_for)
		json_object_set(o, "waits_for", waits);
	json_object_set_new(o, "comments", events_json(b->comments, b->n_comments, a));
	if (earlier(b) >= 1)
		json_object_set_new(o, "came_back", return_json(b, a));
	for (size_t i = 0; i < b->call_next.n; i++)
		json_array_append_new(calls, json_str(b->call_next.v[i]));
	json_object_set_new(o, "call_next", calls);
	json_decref(waits);
}

/* A refusal because of a lock names the holder in `error`, where every client looks. */
static void name_holder(json_t *error, const struct answer *ans, struct arena *a)
{
	const struct lock *l = in_the_way(ans);

	if (!error || !l || (ans->code != CONFLICT && ans->code != LOST_LOCK))
		return;
	set_text(error, "holder", text_cut(a, text_line(a, l->holder), TITLE_SHOWN));
	if (l->expires_at)
		json_object_set_new(error, "expires_in",
				    json_integer((l->expires_at - ans->now + 999) / 1000));
}

static void add_held(json_t *o, const struct answer *held, struct arena *a)
{
	json_t *found = answer_json(held, a);

	json_object_set(o, "held", json_object_get(found, "locks"));
	json_decref(found);
}

static bool has_texts(const struct answer *ans)
{
	if (ans->code != SUCCESS && ans->code != NO_TASKS && ans->code != LOCK_FREE)
		return ans->task;
	return ans->task || ans->next || ans->n_tasks || ans->n_events || ans->n_candidates;
}

void brief_mark(json_t *object, const struct answer *ans)
{
	if (has_texts(ans))
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

json_t *brief_json(const struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;
	json_t *o = command_json(b->tool, b->reply, a);

	if (b->own.task)
		add_brief(o, &b->own, a);
	if (b->no_next)
		json_object_del(o, "next");
	if (b->next.task)
		add_brief(json_object_get(o, "next"), &b->next, a);
	if (b->held.n_tasks)
		add_held(o, &b->held, a);
	name_holder(json_object_get(o, "error"), ans, a);
	if (b->hint.n)
		json_object_set_new(o, "hint", json_str(b->hint));
	add_news(o, b->news);
	if (b->lean) {
		lean(o, b, a);
		count_rows(o, b, a);
		return o;
	}
	if (json_object_get(o, "error"))
		json_object_del(o, "task");
	if (!b->full)
		lean_strip(o);
	brief_mark(o, b->held.n_tasks ? &b->held : ans);
	return o;
}

/* A tool of the profile pm has a text of its own, except for the brief. */
struct str brief_text(const struct briefing *b, const json_t *o, struct arena *a)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);
	struct view v = { .out = &out, .arena = a };
	const json_t *warning;
	struct str text;
	size_t i;

	if (b->lean || b->full || b->own.task || !reply_ok(b->reply))
		return say_text(o, a);
	buf_adds(&out, b->tool->flags & C_WRITE ? STR("") : STR(UNTRUSTED "\n"));
	command_show(b->tool, b->reply, &v);
	json_array_foreach(json_object_get(o, "warnings"), i, warning) {
		buf_adds(&out, STR("warning: "));
		text_visible(&out, json_text(warning), false);
		buf_addc(&out, '\n');
	}
	text = arena_str(a, buf_str(&out));
	buf_free(&out);
	return text;
}
