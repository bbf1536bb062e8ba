/*
 * pawl next: shows the next eligible task. With --claim it finds and takes the task in one
 * operation (OP_TAKE), so that agents do not race for the task that they were shown.
 */
#include "cmd/command.h"
#include "core/lease.h"

struct next_args {
	struct args args;
	int64_t claim, mine;
};

static const struct param params[] = {
	LOCAL(next, claim, "claim", P_FLAG, .help = "claim the task in the same step",
	      .model = "take it"),
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .def = LEASE_DEFAULT, .flags = P_SELDOM,
	      .help = "with --claim: length of the lease"),
	SHARED(wait, "wait", P_DURATION, .letter = 'w', .help = "wait up to DURATION for a task",
	       .model = "wait this long for a task"),
	PARAM(explain, "explain", P_FLAG, .help = "say for each task why it is or is not eligible",
	      .model = "why each task is eligible or not"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100", .flags = P_SELDOM,
	      .help = "with --explain: show at most N tasks (0 = no limit)"),
	PARAM(label, "label", P_NAME, .letter = 'l', .help = "consider only tasks with this label",
	      .model = "only with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c', .flags = P_SELDOM,
	      .help = "consider only tasks of this class"),
	PARAM(type, "type", P_NAME, .flags = P_SELDOM, .help = "consider only tasks of this type"),
	LOCAL(next, mine, "mine", P_FLAG, .flags = P_SELDOM,
	      .help = "consider only tasks that are assigned to you"),
	PARAM_CACHED,
	PARAM_WRITE_STATUS,
	{ 0 }
};

static enum result next_ask(struct session *s, struct args *a, struct reply *out);

const struct command cmd_next = {
	.name = "next",
	.group = "work",
	.summary = "show the next eligible task, or claim it",
	.detail =
		"A task is eligible if it is Ready, not held, past its time, and has no open dependency or sub-task. An In "
		"Progress task is eligible too if its lease expired or somebody handed it back. The order is: class "
		"(Expedite, Fixed Date, Standard, Intangible), higher priority, earlier due date, longest time without an "
		"edit, id (t2 before t10). Without --claim nothing changes. If no task is eligible, or the "
		"queue is paused, the exit code is 10. An assigned task is offered to everybody; --mine offers only tasks "
		"that are assigned to you.",
	.example = "pawl next --claim --wait 5m\n"
		   "pawl next --explain",
	.see = "claim, heartbeat, done, list",
	.model =
		"Find work. claim=true takes the most urgent eligible task: the answer is its whole brief, and its "
		"lock is renewed while you are connected. Without claim the task is shown, not yours. held: tasks "
		"that you hold. NO_TASKS: none is eligible; wait=30 waits, explain=true says why.",
	.gives =
		"task lock candidates count total held paused as_of cached_age_ms parent waits_for comments came_back call_next",
	.params = params,
	.args_size = sizeof(struct next_args),
	.flags = C_WRITE,
	.op = OP_NEXT,
	.fails = FAILS(NO_TASKS),
	.ask = next_ask,
	.show = show_next,
};

static const char *next_misuse(const struct args *a, bool claim)
{
	if (HAS(&a->rq, ttl) && !claim)
		return "--ttl needs --claim";
	if (a->write_status && !claim)
		return "--write-status needs --claim";
	if (HAS(&a->rq, limit) && !a->rq.explain)
		return "--limit needs --explain";
	if (a->rq.explain && claim)
		return "--explain changes nothing, so it cannot be used with --claim";
	if (a->rq.explain && a->wait)
		return "--explain cannot be used with --wait";
	if (a->cached && (claim || a->wait))
		return "--cached shows an earlier state, so it cannot be used with --claim or --wait";
	return NULL;
}

static enum result next_ask(struct session *s, struct args *a, struct reply *out)
{
	bool claim = ((const struct next_args *)a)->claim;
	const char *fault = next_misuse(a, claim);

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help next`"), out);
	a->rq.op = claim ? OP_TAKE : OP_NEXT;
	if (((const struct next_args *)a)->mine)
		GIVE(&a->rq, assignee, HAS(&a->rq, agent) ? a->rq.agent : s->client.self.agent);
	if (a->rq.explain && !HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	return SUCCESS;
}
