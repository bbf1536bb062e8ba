#include <time.h>

#include "base/os.h"
#include "cmd/command.h"
#include "core/lease.h"
#include "format/answer.h"

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

#define WAIT_MAX 30000 /* maximum time between two looks */
#define PAUSE 50       /* minimum time between two looks, even in a busy queue */

static void pause_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* A queue behind a server waits there. If the call came back at once, the server lets no more calls wait: then wait
 * here. */
static void wait_for_change(struct session *s, int64_t left, int64_t due, bool *parked)
{
	int64_t began = os_boot_ms(), took, ms = left < WAIT_MAX ? left : WAIT_MAX;

	*parked = !*parked && queue_park(s->client.conn.queue, left);
	if (*parked)
		return;
	if (due > 0 && due < ms)
		ms = due;
	queue_wait(s->client.conn.queue, ms);
	took = os_boot_ms() - began;
	if (took < PAUSE)
		pause_ms(left - took < PAUSE - took ? left - took : PAUSE - took);
}

/* Looks repeatedly, each time in an arena of its own, so that a long wait does not use more memory. */
static void wait_for_work(struct session *s, const struct request *rq, int64_t end,
			  struct answer *ans)
{
	struct arena scratch = { 0 }, *kept = s->client.arena, *ring = s->client.keyring.arena;
	int64_t left, began;
	bool parked = false;

	while (ans->code == NO_TASKS && (left = end - os_boot_ms()) > 0) {
		struct request copy = *rq;

		wait_for_change(s, left, ans->wait_ms, &parked);
		began = os_boot_ms();
		arena_free(&scratch);
		scratch = (struct arena){ 0 };
		*ans = (struct answer){ 0 };
		s->client.arena = s->client.keyring.arena = &scratch;
		client_call(&s->client, &copy, ans);
		parked = parked && os_boot_ms() - began < PAUSE;
		s->client.arena = kept;
		s->client.keyring.arena = ring;
	}
	*ans = answer_copy(ans, kept);
	arena_free(&scratch);
}

static const char *misuse(const struct args *a, bool claim)
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

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	int64_t end = os_boot_ms() + a->wait;
	bool claim = ((const struct next_args *)a)->claim;
	const char *fault = misuse(a, claim);
	struct request first;

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help next`"), out);
	a->rq.op = claim ? OP_TAKE : OP_NEXT;
	if (((const struct next_args *)a)->mine)
		GIVE(&a->rq, assignee, HAS(&a->rq, agent) ? a->rq.agent : s->client.self.agent);
	s->client.conn.config.opt.write_status |= a->write_status;
	if (a->rq.explain && !HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	cached_begin(s, a);
	first = a->rq;
	client_call(&s->client, &first, &out->ans);
	cached_end(s, a, out);
	if (out->ans.code == NO_TASKS && a->wait)
		wait_for_work(s, &a->rq, end, &out->ans);
	return out->ans.code;
}

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
	.run = run,
	.show = show_next,
};
