/*
 * The refusals of the profile pm. The messages and hints of the queue name commands and options of the shell; this
 * profile has other tools and arguments.
 */
#include "base/when.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"

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
