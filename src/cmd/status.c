#include "cmd/command.h"
#include "core/lease.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "task; without one: an overview of the queue"),
	PARAM(status, "STATUS", P_STATUS, .flags = P_POSITIONAL, .help = "status to bring it to"),
	PARAM_REASON(0,
		     "for Blocked, Needs Help, Failed, Canceled, and from Review to In Progress"),
	PARAM_SUMMARY(0, "for Review and Done"),
	PARAM(unblock_action, "unblock-action", P_TEXT, .letter = 'u',
	      .help = "for Blocked: what somebody has to do"),
	PARAM(next_check, "next-check", P_TIME, .help = "for Blocked: when to look again"),
	PARAM_TTL(LEASE_DEFAULT),
	{ 0 }
};

/* Blocked needs two texts: whoever forgot one shall not have to find out about the other. */
static enum result bring(struct session *s, struct args *a, struct reply *out)
{
	enum result code = run_op(s, a, out);

	if (code == USAGE && a->rq.status == BLOCKED)
		out->ans.hint = arena_printf(
			s->arena,
			"e.g. pawl status %.*s blocked --reason TEXT --unblock-action TEXT",
			STRF(a->rq.id));
	return code;
}

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	const uint64_t allowed = UINT64_C(1) << ARG_id | UINT64_C(1) << ARG_token |
				 UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_request_id;

	if (HAS(&a->rq, status)) {
		a->rq.op = OP_STATUS;
		return bring(s, a, out);
	}
	if (a->rq.has & ~allowed) {
		return run_fail(
			USAGE, STR("a status to go to is needed with these options"),
			STR("e.g. pawl status t1 blocked --reason TEXT --unblock-action TEXT"),
			out);
	}
	a->rq.op = HAS(&a->rq, id) ? OP_SHOW : OP_OVERVIEW;
	return run_op(s, a, out);
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
			view_text(v, PLAIN, " for another %.*s",
				  STRF(view_left(v, t->lock.expires_at - ans->now)));
	}
	view_text(v, PLAIN, "\n");
}

static void show(const struct reply *r, struct view *v)
{
	if (r->ans.kind == ANSWER_OVERVIEW)
		show_overview(r, v);
	else if (r->ans.lock && r->ans.lock->token.n)
		show_grant(r, v);
	else
		show_one(&r->ans, v);
}

const struct command cmd_status = {
	.name = "status",
	.group = "look",
	.summary = "an overview of the queue; or bring a task to a status",
	.detail =
		"Alone: how many tasks there are of each status, who holds what and until when. With an id: that "
		"task's status. With a status as well, one call does what leads there, by the same rules and with "
		"the same locks: in-progress claims, review, done, blocked, failed and canceled are the commands "
		"of that name, ready gives back or retries.",
	.example = "pawl status\n"
		   "pawl status t1 in-progress\n"
		   "pawl status t1 done --summary \"fixed\"",
	.see = "list, claim, done, review, block",
	.gives =
		"task lock counts total held held_total parent waits_for comments came_back call_next",
	.params = params,
	.flags = C_WRITE,
	.op = OP_STATUS,
	.fails = FAILS(CONFLICT, LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
	.run = run,
	.show = show,
};
