#include <time.h>

#include "base/os.h"
#include "cmd/command.h"

static const struct param params[] = {
	LOCAL(claim, "claim", P_FLAG, .help = "take it, in the same step"),
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .def = "15m",
	      .help = "with --claim: how long it holds without a heartbeat"),
	LOCAL(wait, "wait", P_DURATION, .letter = 'w',
	      .help = "wait so long for work if there is none"),
	PARAM(explain, "explain", P_FLAG, .help = "say for each task why it is or is not eligible"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "with --explain: at most so many; 0 for all"),
	PARAM(label, "label", P_NAME, .letter = 'l', .help = "only tasks with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c', .help = "only tasks of this class"),
	PARAM(type, "type", P_NAME, .help = "only tasks of this type"),
	PARAM_CACHED,
	PARAM_WRITE_STATUS,
	{ 0 }
};

#define WAIT_MAX 30000 /* looks again by itself after so long */
#define PAUSE 50       /* between two looks, however much goes on in the queue */

static void pause_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void wait_for_change(struct session *s, int64_t left, int64_t due)
{
	int64_t began = os_boot_ms(), took, ms = left < WAIT_MAX ? left : WAIT_MAX;

	if (due > 0 && due < ms)
		ms = due;
	queue_wait(s->client.queue, ms);
	took = os_boot_ms() - began;
	if (took < PAUSE)
		pause_ms(left - took < PAUSE - took ? left - took : PAUSE - took);
}

/* One look, in memory of its own: a long wait shall not grow. */
static enum result look(struct session *s, const struct request *rq, json_t **out, int64_t *due)
{
	struct arena scratch = { 0 }, *kept = s->client.arena, *ring = s->client.keyring.arena;
	struct request copy = *rq;
	struct answer ans = { 0 };
	enum result code;

	s->client.arena = s->client.keyring.arena = &scratch;
	client_call(&s->client, &copy, &ans);
	code = run_answer(&ans, &scratch, out);
	*due = ans.wait_ms;
	s->client.arena = kept;
	s->client.keyring.arena = ring;
	arena_free(&scratch);
	return code;
}

static enum result first_look(struct session *s, const struct request *rq, json_t **out,
			      int64_t *due)
{
	struct request copy = *rq;
	struct answer ans = { 0 };

	client_call(&s->client, &copy, &ans);
	*due = ans.wait_ms;
	return run_answer(&ans, s->client.arena, out);
}

static const char *misuse(const struct args *a)
{
	if (HAS(&a->rq, ttl) && !a->claim)
		return "--ttl is for --claim";
	if (a->write_status && !a->claim)
		return "--write-status is for --claim";
	if (HAS(&a->rq, limit) && !a->rq.explain)
		return "--limit is for --explain";
	if (a->rq.explain && a->claim)
		return "--explain changes nothing, so it does not go with --claim";
	if (a->rq.explain && a->wait)
		return "--explain does not go with --wait";
	if (a->cached && (a->claim || a->wait))
		return "--cached shows what was known, so it goes with neither --claim nor --wait";
	return NULL;
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	int64_t end = os_boot_ms() + a->wait, due, left;
	const char *fault = misuse(a);
	enum result code;

	if (fault)
		return run_fail(s, USAGE, str_c(fault), STR("run `pawl help next`"), out);
	a->rq.op = a->claim ? OP_TAKE : OP_NEXT;
	s->client.write_status |= a->write_status;
	if (a->rq.explain && !HAS(&a->rq, limit))
		GIVE(&a->rq, limit, a->global.quiet ? 0 : 100);
	cached_begin(s, a);
	code = first_look(s, &a->rq, out, &due);
	cached_end(s, a, *out);
	while (code == NO_TASKS && (left = end - os_boot_ms()) > 0) {
		wait_for_change(s, left, due);
		json_decref(*out);
		code = look(s, &a->rq, out, &due);
	}
	return code;
}

const struct command cmd_next = {
	.name = "next",
	.group = "work",
	.summary = "show the task that goes first, or take it",
	.detail =
		"Eligible is what is Ready, free, past its time and has its dependencies done; also work whose "
		"holder's lease ran out. First goes the class (Expedite, Fixed Date, Standard, Intangible), then "
		"the higher priority, then what was not edited for longest, then the id. Without --claim nothing "
		"changes. With nothing eligible the exit code is 10.",
	.example = "pawl next --claim --wait 5m\n"
		   "pawl next --explain",
	.see = "claim, heartbeat, done, list",
	.model =
		"Use it to find work. claim=true takes the most urgent eligible task in the same step, so that nobody else gets "
		"it: the answer is the whole brief and a lock, renewed while you are connected. Without claim it only shows. "
		"NO_TASKS is no error: nothing is eligible now; wait=30 waits for work. held lists what you hold already.",
	.gives =
		"task lock candidates count total held as_of cached_age_ms parent waits_for comments came_back call_next",
	.params = params,
	.flags = C_WRITE,
	.op = OP_NEXT,
	.fails = FAILS(NO_TASKS),
	.run = run,
	.show = show_next,
};
