/*
 * pawl done: finishes a task (In Progress to Done). --claim-next takes the next task in the same
 * call.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task that you hold"),
	PARAM_SUMMARY(0, "summary of the work"),
	PARAM(take, "take", P_FLAG, .flags = P_SELDOM,
	      .help = "claim the task first, if it is Ready and not held"),
	PARAM(claim_next, "claim-next", P_FLAG, .help = "claim the next task in the same call",
	      .model = "also take the next task"),
	PARAM(new_token, "next-token", P_TOKEN, .flags = P_TERMINAL,
	      .help = "with --claim-next or --take: the token for that claim"),
	PARAM_WRITE_STATUS,
	{ 0 }
};

static enum result done_ask(struct session *s, struct args *a, struct reply *out);
static void done_show(const struct reply *r, struct view *v);

const struct command cmd_done = {
	.name = "done",
	.group = "work",
	.summary = "finish a task: In Progress → Done",
	.detail =
		"All sub-tasks must be Done or Canceled (else 41). The lock ends, and tasks that depend on this one become "
		"eligible. With --claim-next the exit code is 0 even if there is no next task. With "
		"--take a Ready task that is not held is claimed and completed in one commit.",
	.example = "pawl done t1 --summary \"fixed in 3f2a\" --claim-next\n"
		   "pawl done t2 --take",
	.see = "review, fail, next",
	.model =
		"Finish your task: Done; tasks that depend on it become eligible. INCOMPLETE_SUBTASKS: finish them "
		"first (list parent=ID). " MODEL_LOST MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task next changed paused",
	.params = params,
	.flags = C_WRITE,
	.op = OP_DONE,
	.fails = FAILS(CONFLICT, LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
	.ask = done_ask,
	.show = done_show,
};

static enum result done_ask(struct session *s, struct args *a, struct reply *out)
{
	(void)s;
	if (HAS(&a->rq, new_token) && !a->rq.claim_next && !a->rq.take)
		return run_fail(USAGE, STR("--next-token needs --claim-next or --take"),
				STR("run `pawl help done`"), out);
	return SUCCESS;
}

static void done_show(const struct reply *r, struct view *v)
{
	show_task(r, v);
	if (r->ans.next)
		show_granted_next(r, v);
	else if (r->ans.paused && !v->quiet)
		show_paused(r->ans.paused, v);
	else if (r->ans.has_next && !v->quiet)
		view_text(v, PLAIN, "no next task: no task is eligible now\n");
}
