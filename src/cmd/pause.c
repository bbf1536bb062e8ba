/*
 * pawl pause and resume: while the queue is paused, no agent gets a new task. Agents that hold a
 * task may finish it.
 */
#include "cmd/command.h"

static const struct param pause_params[] = {
	PARAM_REASON(0, "why: shown to everybody who asks for work"),
	{ 0 }
};

static const struct param resume_params[] = { PARAM_REASON(0, "why, for the log"), { 0 } };

static void pause_tell_answer(struct session *s, const struct args *a, struct reply *out);
static void pause_show(const struct reply *r, struct view *v);

const struct command cmd_pause = {
	.name = "pause",
	.group = "review",
	.summary = "give out no more tasks until `pawl resume`",
	.detail =
		"While the queue is paused, `next` answers that there is no task (10) and says who paused the queue "
		"and why. `claim ID` is refused (20). Agents that hold a task may finish it: heartbeat, done "
		"and every other change work as before. The pause applies to every agent of the queue, on every machine.",
	.example = "pawl pause --reason \"release in progress\"\n"
		   "pawl resume",
	.see = "resume, status, emergency on",
	.model = "For the operator: give out no more tasks until resume. Holders keep working.",
	.gives = "paused",
	.params = pause_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_PAUSE,
	.tell = pause_tell_answer,
	.show = pause_show,
};

const struct command cmd_resume = {
	.name = "resume",
	.group = "review",
	.summary = "end a pause: agents can claim tasks again",
	.example = "pawl resume",
	.see = "pause, status",
	.model = "For the operator: end the pause, so that next gives out tasks again.",
	.gives = "paused",
	.params = resume_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_RESUME,
	.tell = pause_tell_answer,
	.show = pause_show,
};

/* The answer has `paused` while the queue is paused; after `resume` it is null. */
static void pause_tell_answer(struct session *s, const struct args *a, struct reply *out)
{
	(void)s;
	(void)a;
	if (out->ans.code == SUCCESS && !out->ans.paused)
		json_object_set_new(reply_more(out), "paused", json_null());
}

static void pause_show(const struct reply *r, struct view *v)
{
	const struct notice *p = r->ans.paused;

	if (v->quiet)
		return;
	if (!p) {
		view_text(v, GREEN, r->ans.repeated ? "not paused" : "resumed");
		view_text(v, PLAIN, ": agents can claim tasks\n");
		return;
	}
	show_paused(p, v);
	view_text(v, DIM, "next: pawl resume\n");
}
