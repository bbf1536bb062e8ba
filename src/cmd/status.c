/*
 * pawl status: shows the overview or the status of a task, or sets that status. OP_STATUS follows
 * the rules of the command for the new status, so it is not a way around them.
 */
#include "cmd/command.h"
#include "cmd/cmd.h"
#include "core/lease.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "task; without ID: an overview of the queue"),
	PARAM(status, "STATUS", P_STATUS, .flags = P_POSITIONAL, .help = "status to set"),
	PARAM_REASON(
		0, "reason, for Blocked, Needs Help, Failed, Canceled, and Review to In Progress"),
	PARAM_SUMMARY(0, "summary, for Review and Done"),
	PARAM(unblock_action, "unblock-action", P_TEXT, .letter = 'u',
	      .help = "for Blocked: the action that a person must take"),
	PARAM(next_check, "next-check", P_TIME,
	      .help = "for Blocked: time to check the task again"),
	PARAM_TTL(LEASE_DEFAULT),
	{ 0 }
};

static enum result status_ask(struct session *s, struct args *a, struct reply *out);
static void status_tell(struct session *s, const struct args *a, struct reply *out);
static void status_show(const struct reply *r, struct view *v);

const struct command cmd_status = {
	.name = "status",
	.group = "look",
	.summary = "show an overview of the queue, or set the status of a task",
	.detail =
		"Without ID: the number of tasks in each status, the agents that work, are idle or lost their task (dead), "
		"the tasks that wait for a person with the reason of each, and the work of the last hour. With ID: the "
		"status of that task. With ID and STATUS: one call sets that status, by the same rules and locks as the "
		"command for it. in-progress claims; ready releases or retries; review, done, blocked, failed and canceled "
		"act like the commands review, done, block, fail and cancel.",
	.example = "pawl status\n"
		   "pawl status t1 in-progress\n"
		   "pawl status t1 done --summary \"fixed\"",
	.see = "list, claim, done, review, block",
	.model =
		"Without id: how many tasks each status has, and who holds what. With id: its status. With id and "
		"status: sets it by the rules of claim, release, review, done, block, escalate, fail, retry and "
		"cancel. Never set your own work from Review to Done. CONFLICT: it is held; call next. "
		"INCOMPLETE_SUBTASKS: finish those first (list parent=ID). " MODEL_LOST
			MODEL_NOT_FOUND,
	.gives =
		"task lock counts waiting total held held_total paused changed parent waits_for comments came_back call_next",
	.params = params,
	.flags = C_WRITE,
	.op = OP_STATUS,
	.fails = FAILS(CONFLICT, LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
	.ask = status_ask,
	.tell = status_tell,
	.show = status_show,
};

static enum result status_ask(struct session *s, struct args *a, struct reply *out)
{
	const uint64_t allowed = UINT64_C(1) << ARG_id | UINT64_C(1) << ARG_token |
				 UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_request_id;

	(void)s;
	a->rq.op = HAS(&a->rq, status) ? OP_STATUS : HAS(&a->rq, id) ? OP_SHOW : OP_OVERVIEW;
	if (a->rq.op != OP_STATUS && a->rq.has & ~allowed)
		return run_fail(
			USAGE, STR("these options need a status"),
			STR("e.g. pawl status t1 blocked --reason TEXT --unblock-action TEXT"),
			out);
	return SUCCESS;
}

static void status_tell(struct session *s, const struct args *a, struct reply *out)
{
	if (out->ans.code == SUCCESS && a->rq.op == OP_OVERVIEW)
		overview_tell(s, out);
	/* Blocked needs two texts. The hint names both, so that the user does not find out one by
	 * one. */
	if (out->ans.code == USAGE && a->rq.status == BLOCKED)
		out->ans.hint = arena_printf(
			s->arena,
			"e.g. pawl status %.*s blocked --reason TEXT --unblock-action TEXT",
			STRF(a->rq.id));
}

static void show_one(const struct answer *ans, struct view *v)
{
	const struct task *t = ans->task;

	view_data(v, BOLD, t->id);
	view_text(v, PLAIN, " is ");
	view_status(v, t->status, "gone");
	if (lease_live(&t->lock, ans->now)) {
		view_text(v, PLAIN, ", held by ");
		view_data(v, CYAN, t->lock.holder);
		if (t->lock.expires_at)
			view_text(
				v, PLAIN, " for another %s",
				arena_cstr(v->arena, view_left(v, t->lock.expires_at - ans->now)));
	} else if (lease_abandoned(t, ans->now)) {
		view_text(v, RED, ", abandoned");
		view_text(v, PLAIN, " by ");
		view_data(v, CYAN, t->lock.holder);
		view_text(v, PLAIN, ": the lease expired %s",
			  arena_cstr(v->arena, view_lost(v, &t->lock, ans->now)));
	}
	view_text(v, PLAIN, "\n");
}

static void status_show(const struct reply *r, struct view *v)
{
	if (r->ans.kind == ANSWER_OVERVIEW)
		show_overview(r, v);
	else if (r->ans.lock && r->ans.lock->token.n)
		show_grant(r, v);
	else
		show_one(&r->ans, v);
}
