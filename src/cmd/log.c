#include <poll.h>

#include "base/os.h"
#include "base/when.h"
#include "cmd/command.h"
#include "format/answer.h"

struct log_args {
	struct args args;
	int64_t follow;
};

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "show only the events of this task"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "50",
	      .help = "show only the newest N events (0 = no limit)"),
	PARAM(after, "after", P_NAME, .value = "CURSOR",
	      .help = "show only the events after this one"),
	LOCAL(log, follow, "follow", P_FLAG, .letter = 'f', .flags = P_TERMINAL,
	      .help = "wait for new events and show them"),
	{ 0 }
};

#define LOOK_MS 1000 /* also the longest delay before a lost reader is noticed */
#define PAUSE_MS 50  /* minimum time between two looks, even in a busy queue */

struct following {
	struct session *s;
	struct arena scratch; /* of the last look at the queue */
	struct request rq;
	struct buf after; /* the last event of the log that was shown */
	int64_t since;    /* leases that expired before this time were shown; in the store's time */
	int64_t expiry_at; /* when the next lease expires; 0: none is known */
};

/* Shows each event. Only events of the log have a cursor. false: the reader is gone. */
static bool emit_all(struct following *f, const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];

		if (!f->s->emit(f->s, e))
			return false;
		if (!e->cursor.n)
			continue;
		f->after.n = 0;
		buf_adds(&f->after, e->cursor);
	}
	return !f->s->listening || f->s->listening(f->s);
}

/* Makes one call in an arena of its own, so that following for days does not use more memory. locks: look at the
 * leases as well. */
static enum result look(struct following *f, bool locks, struct answer *ans)
{
	struct client *c = &f->s->client;
	struct arena *kept = c->arena;
	struct request rq = f->rq;

	arena_free(&f->scratch);
	f->scratch = (struct arena){ 0 };
	*ans = (struct answer){ 0 };
	c->arena = &f->scratch;
	if (locks)
		GIVE(&rq, expired_after, f->since);
	client_call(c, &rq, ans);
	if (locks && ans->code == SUCCESS) {
		f->since = ans->now;
		f->expiry_at = ans->wait_ms ? os_boot_ms() + ans->wait_ms : 0;
	}
	c->arena = kept;
	return ans->code;
}

/* Waits until the queue changes, a lease expires, or the reader must be checked. Returns whether to look at the
 * leases. */
static bool wait_for_news(struct following *f)
{
	int64_t began = os_boot_ms(), left = f->expiry_at - began;
	bool due = f->expiry_at && left <= LOOK_MS, changed;

	changed = queue_wait(f->s->client.queue, !due ? LOOK_MS : left > 0 ? left : 0);
	left = began + PAUSE_MS - os_boot_ms();
	if (changed && left > 0)
		(void)poll(NULL, 0, (int)left);
	return changed || (f->expiry_at && os_boot_ms() >= f->expiry_at);
}

static enum result follow_on(struct following *f, struct answer *ans)
{
	enum result code = look(f, true, ans);

	GIVE(&f->rq, limit, 0);
	while (code == SUCCESS && emit_all(f, ans)) {
		bool locks = wait_for_news(f);

		if (f->after.n)
			GIVE(&f->rq, after, buf_str(&f->after));
		code = look(f, locks, ans);
	}
	return code;
}

/* Leases that expired before the start are not shown. The watch begins before the first look, so that no event is
 * missed in between. */
static enum result follow(struct session *s, struct args *a, struct reply *out)
{
	struct following f = { .s = s, .rq = a->rq, .since = WHEN_MAX };
	struct answer ans = { 0 };
	enum result code = client_open(&s->client, STORE_READ, &ans);

	if (code != SUCCESS)
		return run_answer(&ans, out);
	queue_wake_fd(s->client.queue);
	f.after = BUF_MAX(NAME_MAX_BYTES);
	buf_adds(&f.after, a->rq.after);
	code = follow_on(&f, &ans);
	out->ans = answer_copy(&ans, s->arena);
	out->silent = code == SUCCESS;
	buf_free(&f.after);
	arena_free(&f.scratch);
	return code;
}

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, HAS(&a->rq, after) ? 0 : 50);
	return ((const struct log_args *)a)->follow && s->emit ? follow(s, a, out)
							       : run_op(s, a, out);
}

const struct command cmd_log = {
	.name = "log",
	.group = "look",
	.summary = "show the events of a task or of the whole queue",
	.detail =
		"Events appear oldest first. Each event has a cursor, shown with --json; --after continues from it. With "
		"--follow and --json each event is an object on its own line. --follow also shows each lease that expires, "
		"as an event `expired`; it is not in the log and has no cursor.",
	.example = "pawl log t1\n"
		   "pawl log --follow --json",
	.see = "show, comment, status",
	.gives = "events count",
	.params = params,
	.args_size = sizeof(struct log_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LOG,
	.fails = FAILS(NOT_FOUND),
	.run = run,
	.show = show_events,
};
