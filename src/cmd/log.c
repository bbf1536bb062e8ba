#include "cmd/command.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "only what happened to this task"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "50",
	      .help = "only the newest so many; 0: all"),
	PARAM(after, "after", P_NAME, .value = "CURSOR", .help = "only what came after that event"),
	LOCAL(follow, "follow", P_FLAG, .letter = 'f', .flags = P_TERMINAL,
	      .help = "go on with what happens from now on"),
	{ 0 }
};

#define LOOK_MS 1000 /* also how long it may take to see that nobody listens */

/* Shows each event; the last cursor goes to `after`. false: nobody listens any more. */
static bool emit_all(struct session *s, const json_t *o, struct buf *after)
{
	const json_t *list = json_object_get(o, "events");
	size_t i;
	json_t *e;

	json_array_foreach(list, i, e) {
		const char *cursor = view_get(e, "cursor");

		if (!s->emit(s, &cmd_log, e))
			return false;
		after->n = 0;
		buf_adds(after, str_c(cursor));
	}
	return true;
}

/* One call, in memory of its own: following for days shall not grow. */
static enum result look(struct session *s, const struct request *rq, json_t **out)
{
	struct arena scratch = { 0 }, *kept = s->client.arena;
	struct request copy = *rq;
	struct answer ans = { 0 };
	enum result code;

	s->client.arena = &scratch;
	client_call(&s->client, &copy, &ans);
	code = run_answer(&ans, &scratch, out);
	s->client.arena = kept;
	arena_free(&scratch);
	return code;
}

static enum result follow(struct session *s, struct args *a, json_t **out)
{
	struct buf after = BUF_MAX(NAME_MAX_BYTES);
	struct request rq = a->rq;
	enum result code = run_op(s, a, out);

	buf_adds(&after, a->rq.after);
	while (code == SUCCESS && emit_all(s, *out, &after) && (!s->listening || s->listening(s))) {
		queue_wait(s->client.queue, LOOK_MS);
		json_decref(*out);
		GIVE(&rq, limit, 0);
		if (after.n)
			GIVE(&rq, after, buf_str(&after));
		code = look(s, &rq, out);
	}
	buf_free(&after);
	if (code == SUCCESS) {
		json_decref(*out);
		*out = NULL;
	}
	return code;
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, HAS(&a->rq, after) ? 0 : 50);
	return a->follow && s->emit ? follow(s, a, out) : run_op(s, a, out);
}

const struct command cmd_log = {
	.name = "log",
	.group = "look",
	.summary = "what happened, to a task or in the whole queue",
	.detail =
		"Oldest first. Each event has a cursor, in --json, from which --after goes on. With --follow and "
		"--json each event is an object on a line of its own.",
	.example = "pawl log t1\n"
		   "pawl log --follow --json",
	.see = "show, comment, status",
	.gives = "events count",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOG,
	.fails = FAILS(NOT_FOUND),
	.run = run,
	.show = show_events,
};
