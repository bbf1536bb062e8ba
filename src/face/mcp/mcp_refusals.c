/*
 * Refusals for a model: short, without timestamps, and with the next tool call as the hint. Other
 * faces show the queue's own messages, whose hints are for a shell. No hint here may lead an agent
 * to approve or unblock its own work.
 */
#include "base/text.h"
#include "base/when.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"

#define NAME_SHOWN 40
#define MESSAGE_SHOWN 180

/* One call and its answer. */
struct refused {
	struct mcp *m;
	const struct command *tool;
	const struct request *rq;
	struct answer *ans;
	struct arena *a;
};

/* --- texts without shell commands ------------------------------------------------------------------ */

/* Does the text contain "pawl" and the name of a command? */
static bool names_command(struct str text, struct arena *a)
{
	for (size_t i = 0; i + 5 < text.n; i++) {
		struct str rest = str_n(text.p + i + 5, text.n - i - 5);
		size_t n = 0, used;
		const char *word;

		if (memcmp(text.p + i, "pawl ", 5) != 0 || (i && text.p[i - 1] == '-'))
			continue;
		while (n < rest.n && rest.p[n] >= 'a' && rest.p[n] <= 'z')
			n++;
		word = arena_cstr(a, str_n(rest.p, n));
		if (command_prefix(word) || command_find(&word, 1, &used))
			return true;
	}
	return false;
}

/* The length of the first clause, including the mark that ends it. */
static size_t mcp_refusal_clause(struct str text)
{
	for (size_t i = 0; i + 1 < text.n; i++)
		if (strchr(";:.", text.p[i]) && text.p[i + 1] == ' ')
			return i + 2;
	return text.n;
}

static struct str without_commands(struct str text, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str out;

	while (text.n) {
		struct str part = str_n(text.p, mcp_refusal_clause(text));

		if (!names_command(part, a))
			buf_adds(&b, part);
		text = str_n(text.p + part.n, text.n - part.n);
	}
	while (b.n && strchr(" ;:", b.p[b.n - 1]))
		b.n--;
	out = tool_words(arena_cstr(a, buf_str(&b)), a);
	buf_free(&b);
	return out;
}

/* Finds the server's own words in a text: queue_config.for_agent. */
static bool has_words(struct str text, struct str *before, struct str *words, struct str *after)
{
	static const char opens[] = SERVER_SAYS "\"";
	const char *at = memmem(str_p(text), text.n, opens, sizeof(opens) - 1);

	if (!at)
		return false;
	*before = str_n(text.p, (size_t)(at - text.p));
	*after = str_n(at + sizeof(opens) - 1, text.n - before->n - (sizeof(opens) - 1));
	*words = str_cut(after, '"');
	return true;
}

/* Puts the server's words back into their quotes. */
static struct str mcp_refusal_requoted(struct str before, struct str words, struct str after,
				       struct arena *a)
{
	return arena_printf(a, "%.*s" SERVER_SAYS "\"%.*s\"%.*s", STRF(before), STRF(words),
			    STRF(after));
}

struct str advice_plain(struct str text, struct arena *a)
{
	struct str before, words, after;

	if (!has_words(text, &before, &words, &after))
		return without_commands(text, a);
	return mcp_refusal_requoted(before, without_commands(words, a), after, a);
}

static struct str mcp_refusal_shortened(struct str text, struct arena *a)
{
	struct str before, words, after;

	if (!has_words(text, &before, &words, &after))
		return text_cut(a, text, MESSAGE_SHOWN);
	return mcp_refusal_requoted(text_cut(a, before, MESSAGE_SHOWN),
				    text_cut(a, words, MESSAGE_SHOWN),
				    text_cut(a, after, MESSAGE_SHOWN), a);
}

static struct strs plain_all(struct strs list, struct arena *a)
{
	struct strs out = { 0 };

	for (size_t i = 0; i < list.n; i++)
		out = arena_append(a, out, advice_plain(list.v[i], a));
	return out;
}

/* --- messages and hints ---------------------------------------------------------------------------- */

#define ANOTHER "next claim=true takes another task"

static void mcp_refusal_say(const struct refused *r, struct str message, struct str hint)
{
	r->ans->message = message;
	r->ans->hint = hint;
}

static const struct lock *live_lock(const struct answer *ans)
{
	return ans->task && lease_live(&ans->task->lock, ans->now) ? &ans->task->lock : NULL;
}

static struct str mcp_refusal_holder(const struct refused *r)
{
	return text_cut(r->a, text_line(r->a, r->ans->task->lock.holder), NAME_SHOWN);
}

static struct str held_for(const struct refused *r)
{
	const struct lock *l = &r->ans->task->lock;

	if (!l->expires_at)
		return STR("");
	return arena_printf(r->a, " for another %s",
			    arena_cstr(r->a, duration_text(r->a, l->expires_at - r->ans->now)));
}

static struct str with_id(const struct refused *r, const char *before, const char *after)
{
	struct str id = r->ans->task ? r->ans->task->id : r->rq->id;

	return arena_printf(r->a, "%s%.*s%s", before, STRF(id), after);
}

/* The next call for a task in this status that nobody holds. */
static struct str next_step(const struct refused *r)
{
	switch (r->ans->task->status) {
	case READY:
	case IN_PROGRESS:
	case FAILED:
		return with_id(r, "claim id=", " first");
	case BACKLOG:
		return STR("it is not offered yet; " ANOTHER);
	case BLOCKED:
	case NEEDS_HELP:
		return STR("it waits for a person; " ANOTHER);
	case REVIEW:
		return STR("a reviewer decides about it; " ANOTHER);
	default:
		return STR(ANOTHER);
	}
}

static bool mcp_refusal_takes(const struct request *rq)
{
	return rq->op == OP_CLAIM || rq->op == OP_LOCK_ACQUIRE || rq->op == OP_STATUS;
}

/* The answer's `paused` says who paused the queue and why. */
static void mcp_refusal_paused(const struct refused *r)
{
	mcp_refusal_say(r, STR("the queue is paused"),
			STR("next claim=true wait=30 waits until an operator resumes it"));
}

static void mcp_refusal_conflict(const struct refused *r)
{
	const struct task *t = r->ans->task;

	if (r->ans->paused)
		mcp_refusal_paused(r);
	else if (r->rq->op == OP_CREATE)
		r->ans->hint = with_id(r,
				       "show id=", " shows it; create without id makes a new one");
	else if (!live_lock(r->ans))
		r->ans->hint = t ? with_id(r, "show id=", " has its present state") : STR("");
	else if (mcp_refusal_takes(r->rq) && keeper_in_run(r->m, t, r->ans->now, r->a))
		mcp_refusal_say(
			r,
			arena_printf(
				r->a,
				"this session holds %.*s (fence %lld); if you did not claim it, call next",
				STRF(t->id), (long long)t->fence),
			STR(""));
	else
		mcp_refusal_say(
			r,
			arena_printf(r->a, "%.*s is held by %s%s", STRF(t->id),
				     arena_cstr(r->a, mcp_refusal_holder(r)),
				     arena_cstr(r->a, held_for(r))),
			mcp_refusal_takes(r->rq)
				? STR(ANOTHER)
				: with_id(r, "comment id=", " tells its holder what you need"));
}

/* The session never had the lock, or gave it back itself, so it did not lose it. */
static void not_claimed(const struct refused *r)
{
	const struct task *t = r->ans->task;

	if (live_lock(r->ans)) {
		r->ans->code = CONFLICT;
		mcp_refusal_say(r,
				arena_printf(r->a, "this session does not hold %.*s: %s holds it%s",
					     STRF(t->id), arena_cstr(r->a, mcp_refusal_holder(r)),
					     arena_cstr(r->a, held_for(r))),
				STR(ANOTHER));
		return;
	}
	r->ans->code = MISCONFIGURED;
	mcp_refusal_say(r,
			arena_printf(r->a, "this session does not hold %.*s, which is %s",
				     STRF(t->id), status_name(t->status)),
			next_step(r));
}

static void mcp_refusal_lost(const struct refused *r)
{
	const struct task *t = r->ans->task;

	if (!t)
		r->ans->hint = with_id(r, "stop working on it; show id=", " names the holder");
	else if (!r->m->claimed && op_flags(r->rq->op) & OP_OWN)
		not_claimed(r);
	else if (live_lock(r->ans))
		mcp_refusal_say(r,
				arena_printf(r->a, "this session lost %.*s: %s holds it%s",
					     STRF(t->id), arena_cstr(r->a, mcp_refusal_holder(r)),
					     arena_cstr(r->a, held_for(r))),
				STR("stop working on it; " ANOTHER));
	else if (status_ended(t->status) || t->status == REVIEW)
		mcp_refusal_say(
			r,
			with_id(r, "this session lost the lock of ",
				arena_printf(r->a, ", which is %s", status_name(t->status)).p),
			next_step(r));
	else
		mcp_refusal_say(
			r,
			with_id(r, "this session lost the lock of ",
				": its lease expired or a person ended it"),
			arena_printf(
				r->a,
				"claim id=%.*s resume=%lld gets it back if no agent has claimed it since",
				STRF(t->id), (long long)t->fence));
}

/* The task is not in the right status, or the change is never possible. */
static struct str other_status(const struct refused *r)
{
	const struct task *t = r->ans->task;
	bool works = op_flags(r->rq->op) & OP_OWN || mcp_refusal_takes(r->rq);

	if (!works)
		return with_id(r, "show id=", " has its status, parent and depends");
	if (live_lock(r->ans) && !keeper_holds(r->m, t, r->ans->now, r->a))
		return STR(ANOTHER);
	return next_step(r);
}

static void mcp_refusal_misconfigured(const struct refused *r)
{
	struct str tool = tool_name(r->tool, r->a);
	const struct trust *trust = &r->m->session.client.conn.trust;

	if (trust->state == TRUST_MISSING)
		r->ans->hint = trust_advice(trust);
	else if (str_is(r->ans->fault, "forbidden"))
		r->ans->hint = STR("tell the user: this needs another token");
	else if (r->ans->task)
		r->ans->hint = other_status(r);
	else if (!r->m->session.client.conn.queue)
		r->ans->hint = arena_printf(
			r->a, "tell the user; when it is corrected, call %.*s again", STRF(tool));
	else if (r->rq->id.n)
		r->ans->hint = with_id(r, "show id=", " has its status, parent and depends");
	else
		r->ans->hint = arena_printf(r->a, "correct the arguments and call %.*s again",
					    STRF(tool));
}

/* The hint for a shell names commands that end the emergency. Only a person may decide that. */
static bool in_emergency(const struct answer *ans)
{
	struct str hint = ans->hint;

	(void)str_cut_prefix(&hint, STR(SERVER_SAYS "\""));
	return str_starts(hint, STR("pawl emergency "));
}

static void mcp_refusal_failed(const struct refused *r)
{
	if (r->ans->applied == '?')
		r->ans->hint = STR("repeat the same call: it is unknown whether it was applied");
	else if (r->ans->barred)
		r->ans->hint = STR("the whole queue is locked: wait, then call again");
	else if (in_emergency(r->ans))
		r->ans->hint = STR("stop and tell the user; the server keeps renewing your locks");
	else
		r->ans->hint = STR("call again; if it fails again, tell the user");
}

static void mcp_refusal_advise(const struct refused *r)
{
	struct run_task ignored;

	switch (r->ans->code) {
	case CONFLICT:
		mcp_refusal_conflict(r);
		return;
	case LOST_LOCK:
		mcp_refusal_lost(r);
		return;
	case MISCONFIGURED:
		mcp_refusal_misconfigured(r);
		return;
	case INCOMPLETE_SUBTASKS:
		r->ans->hint = with_id(r, "list parent=", " shows them; finish them first");
		return;
	case NOT_FOUND:
		r->ans->hint = STR("list text=WORD finds tasks");
		return;
	case USAGE:
		r->ans->hint = arena_printf(r->a, "correct the arguments and call %s again",
					    arena_cstr(r->a, tool_name(r->tool, r->a)));
		return;
	case NO_TASKS:
		if (r->ans->paused)
			mcp_refusal_paused(r);
		else if (!under_run(r->m, &ignored))
			r->ans->hint =
				STR("next explain=true says why; next wait=30 waits for work");
		return;
	case API_ERROR:
		mcp_refusal_failed(r);
		return;
	default:
		r->ans->hint = advice_plain(r->ans->hint, r->a);
	}
}

void advice_give(struct mcp *m, const struct command *tool, const struct request *rq,
		 struct reply *reply, struct arena *a)
{
	struct refused r = { m, tool, rq, &reply->ans, a };

	if (m->profile->tools == pm_tools)
		return;
	mcp_refusal_advise(&r);
	r.ans->message = advice_plain(r.ans->message, a);
	if (!reply_ok(reply))
		r.ans->message = mcp_refusal_shortened(r.ans->message, a);
	r.ans->warnings = plain_all(r.ans->warnings, a);
	reply->warnings = plain_all(reply->warnings, a);
}

/* --- pm refuse -------------------------------------------------------------------------------- */

/*
 * The refusals of the profile pm. The queue's own messages and hints name shell commands and
 * options; this profile has other tools and arguments, so no refusal may send a model to a shell.
 */

static const char *const pm_next_steps[] = {
	[BACKLOG] = "update_task_status task_id=%.*s status=READY first",
	[READY] = "update_task_status task_id=%.*s status=IN_PROGRESS first",
	[IN_PROGRESS] = "acquire_task_lock task_id=%.*s, then call again",
	[BLOCKED] = "update_task_status task_id=%.*s status=IN_PROGRESS unblocks it",
	[NEEDS_HELP] = "update_task_status task_id=%.*s status=IN_PROGRESS takes it up again",
	[REVIEW] =
		"update_task_status task_id=%.*s status=DONE, or status=IN_PROGRESS with a reason",
	[DONE] = "%.*s has ended: take another with get_available_tasks",
	[FAILED] = "update_task_status task_id=%.*s status=READY makes it available again",
	[CANCELED] = "%.*s has ended: take another with get_available_tasks",
};

/* "a reason is needed: --reason TEXT" → "a reason is needed: reason" */
static struct str without_options(struct arena *a, struct str text)
{
	struct buf b = BUF_MAX(TEXT_MAX);
	struct str out;

	while (text.n) {
		struct str word = str_cut(&text, ' ');
		bool option = str_cut_prefix(&word, STR("--"));

		if (b.n && !str_is(word, "TEXT"))
			buf_addc(&b, ' ');
		for (size_t i = 0; !str_is(word, "TEXT") && i < word.n; i++)
			buf_addc(&b, option && word.p[i] == '-' ? '_' : word.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static struct str pm_next_step(const struct answer *ans, struct arena *a)
{
	const struct task *t = ans->task;

	if (ans->code == NOT_FOUND)
		return STR("list_tasks shows the tasks");
	if (ans->code == INCOMPLETE_SUBTASKS)
		return STR(
			"list_tasks shows the open sub-tasks; set them to DONE or CANCELED first");
	if (ans->code == MISCONFIGURED && t && t->status >= BACKLOG && t->status < STATUS_END)
		return arena_printf(a, pm_next_steps[t->status], STRF(t->id));
	return STR("");
}
#pragma GCC diagnostic pop

static bool names_shell(struct str text)
{
	return str_has_nocase(text, STR("pawl ")) || str_has_nocase(text, STR("--"));
}

static void explain_held(struct session *s, const struct request *rq, struct answer *ans)
{
	const struct lock *l = &ans->task->lock;
	struct str until = l->expires_at ? when_text(s->arena, l->expires_at)
					 : STR("it is removed");

	ans->message = arena_printf(s->arena, "%.*s is locked by %.*s until %.*s", STRF(rq->id),
				    STRF(l->holder), STRF(until));
	if (str_eq(l->holder, s->client.self.agent))
		ans->hint = STR(
			"another session took this lock under the same name: wait until then, or take "
			"another with get_available_tasks");
	else
		ans->hint = arena_printf(
			s->arena,
			"wait until then, take another with get_available_tasks, or ask %.*s",
			STRF(l->holder));
}

static void explain_lost(struct session *s, const struct request *rq, struct answer *ans)
{
	struct str agent = s->client.self.agent;

	ans->message = arena_printf(
		s->arena, "%.*s is not locked by %.*s: the lock expired or was never taken",
		STRF(rq->id), STRF(agent));
	ans->hint = arena_printf(s->arena,
				 "acquire_task_lock task_id=%.*s agent_id=%.*s, then call again",
				 STRF(rq->id), STRF(agent));
}

void pm_explain(struct session *s, const struct request *rq, struct answer *ans)
{
	bool locked = ans->task && lease_live(&ans->task->lock, ans->now);

	if (ans->code == SUCCESS || ans->code == API_ERROR) /* their hints are for the operator */
		return;
	if (ans->code == CONFLICT || ans->code == LOST_LOCK) {
		if (locked)
			explain_held(s, rq, ans);
		else
			explain_lost(s, rq, ans);
		return;
	}
	if (names_shell(ans->message))
		ans->message = without_options(s->arena, ans->message);
	if (names_shell(ans->hint))
		ans->hint = pm_next_step(ans, s->arena);
}
