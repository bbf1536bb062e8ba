/*
 * pawl log: shows events. --follow misses none: it watches the queue before its first read, and
 * each read continues after the last event that was shown.
 */
#include <poll.h>

#include "base/os.h"
#include "base/when.h"
#include "cmd/command.h"
#include "format/answer_form.h"

struct log_args {
	struct args args;
	int64_t follow;
	struct strs kinds;
};

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "show only the events of this task"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "50",
	      .help = "show only the newest N events (0 = no limit)"),
	PARAM(after, "after", P_NAME, .value = "CURSOR",
	      .help = "show only the events after this one"),
	PARAM(since, "since", P_TIME, .help = "show only events from this time on"),
	PARAM(until, "until", P_TIME, .help = "show only events before this time"),
	PARAM(holder, "by", P_NAME, .value = "AGENT", .help = "show only events of this agent"),
	LOCAL(log, kinds, "kind", P_NAMES, .value = "KIND",
	      .help = "show only events of this kind, such as done; may be repeated or listed",
	      .model = "only events of these kinds, such as done"),
	PARAM(all, "all", P_FLAG,
	      .help = "show also the locks of the whole queue, which settings and imports take"),
	LOCAL(log, follow, "follow", P_FLAG, .letter = 'f', .flags = P_TERMINAL | P_HERE,
	      .help = "wait for new events and show them"),
	{ 0 }
};

static enum result log_ask(struct session *s, struct args *a, struct reply *out);
static void log_tell(struct session *s, const struct args *a, struct reply *out);
static enum result log_run(struct session *s, struct args *a, struct reply *out);
static bool log_runs(const struct session *s, const struct args *a);
static void log_show(const struct reply *r, struct view *v);

const struct command cmd_log = {
	.name = "log",
	.group = "look",
	.summary = "show the events of a task or of the whole queue",
	.detail =
		"Events appear oldest first: the newest 50, or all since the time of --since. On a terminal times are local; "
		"elsewhere they are UTC. An event `updated` says what changed: priority 2 → 3. Each event has a cursor, "
		"shown with --json; --after continues from it. --follow shows events from now on, and past ones only with "
		"--limit, --since or --after. With --json each event is then an object on its own line. --follow also shows "
		"each lease that expires, as an event `expired`; it is not in the log and has no cursor.",
	.example = "pawl log t1\n"
		   "pawl log --since yesterday --kind done,failed\n"
		   "pawl log --follow --json",
	.see = "report, stats, show, comment",
	.model =
		"The events of a task, or of the whole queue, oldest first. after=CURSOR begins after that event. "
		"Changes nothing. " MODEL_NOT_FOUND,
	.gives = "events count",
	.params = params,
	.args_size = sizeof(struct log_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LOG,
	.fails = FAILS(NOT_FOUND),
	.ask = log_ask,
	.tell = log_tell,
	.run = log_run,
	.runs = log_runs,
	.show = log_show,
};

#define POLL_MS 1000 /* longest time until a lost reader is noticed */
#define PAUSE_MS 50  /* minimum time between two reads, even in a busy queue */

struct following {
	struct session *s;
	struct arena scratch; /* memory of the last read */
	struct request rq;
	struct buf after;  /* the last event of the log that was shown */
	int64_t since;     /* store time; leases that expired before it were shown */
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

/* Makes one read in an arena of its own, so that following for days does not use more memory.
 * locks: also read the leases. */
static enum result check_once(struct following *f, bool locks, struct answer *ans)
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

/* Retries once, because a server may end the connection during a read; the next read connects
 * again. */
static enum result log_poll(struct following *f, bool locks, struct answer *ans)
{
	enum result code = check_once(f, locks, ans);

	return code == API_ERROR ? check_once(f, locks, ans) : code;
}

/* Waits until the queue changes, a lease expires, or the reader must be checked. Returns whether to
 * read the leases as well. */
static bool wait_for_news(struct following *f)
{
	int64_t began = os_boot_ms(), left = f->expiry_at - began;
	bool due = f->expiry_at && left <= POLL_MS, changed;

	changed = queue_wait(f->s->client.conn.queue, !due ? POLL_MS : left > 0 ? left : 0);
	left = began + PAUSE_MS - os_boot_ms();
	if (changed && left > 0)
		(void)poll(NULL, 0, (int)left);
	return changed || (f->expiry_at && os_boot_ms() >= f->expiry_at);
}

/* Skips past events if the caller asked for none: moves the position behind the newest event. */
static void start_now(struct following *f, struct answer *ans)
{
	for (size_t i = 0; i < ans->n_events; i++)
		if (ans->events[i].cursor.n) {
			f->after.n = 0;
			buf_adds(&f->after, ans->events[i].cursor);
		}
	ans->n_events = 0;
}

static bool from_now(const struct request *rq)
{
	return !HAS(rq, limit) && !HAS(rq, after) && !HAS(rq, since);
}

static enum result follow_on(struct following *f, struct answer *ans)
{
	bool now = from_now(&f->rq);
	enum result code;

	if (now)
		GIVE(&f->rq, limit, 1);
	code = log_poll(f, true, ans);
	if (now)
		start_now(f, ans);
	GIVE(&f->rq, limit, 0);
	while (code == SUCCESS && emit_all(f, ans)) {
		bool locks = wait_for_news(f);

		ans->n_events = 0;
		if (!locks && queue_is_remote(f->s->client.conn.queue))
			continue; /* the server would have reported a change: do not ask it */
		if (f->after.n)
			GIVE(&f->rq, after, buf_str(&f->after));
		code = log_poll(f, locks, ans);
	}
	return code;
}

/* The watch begins before the first read, so that no event is missed in between. Leases that
 * expired before the start are not shown. */
static enum result log_follow(struct session *s, struct args *a, struct reply *out)
{
	struct following f = { .s = s, .rq = a->rq, .since = WHEN_MAX };
	struct answer ans = { 0 };
	enum result code = client_open(&s->client, STORE_READ, &ans);

	if (code != SUCCESS)
		return run_answer(&ans, out);
	queue_wake_fd(s->client.conn.queue);
	f.after = BUF_MAX(NAME_MAX_BYTES);
	buf_adds(&f.after, a->rq.after);
	code = follow_on(&f, &ans);
	out->ans = answer_copy(&ans, s->arena);
	out->silent = code == SUCCESS;
	buf_free(&f.after);
	arena_free(&f.scratch);
	return code;
}

/* Puts the kinds into the request, as one text. */
static enum result set_kinds(struct args *a, struct arena *arena, struct reply *out)
{
	const struct strs *kinds = &((const struct log_args *)a)->kinds;
	struct str text = STR("");

	for (size_t i = 0; i < kinds->n; i++)
		text = arena_printf(arena, "%.*s%s%.*s", STRF(text), i ? "," : "",
				    STRF(kinds->v[i]));
	if (text.n > NAME_MAX_BYTES)
		return run_fail(USAGE, STR("too many kinds"), STR("name fewer of them with --kind"),
				out);
	if (text.n)
		GIVE(&a->rq, type, text);
	return SUCCESS;
}

#define BIT(name) (UINT64_C(1) << ARG_##name)
#define FILTERS (BIT(since) | BIT(until) | BIT(holder) | BIT(type) | BIT(after))

static bool log_runs(const struct session *s, const struct args *a)
{
	return ((const struct log_args *)a)->follow && s->emit;
}

static enum result ask_for_some(struct session *s, struct args *a, struct reply *out)
{
	enum result code = set_kinds(a, s->arena, out);

	if (!a->rq.all && !HAS(&a->rq, id))
		GIVE(&a->rq, log_view, LOG_OF_TASKS);
	return code;
}

static enum result log_run(struct session *s, struct args *a, struct reply *out)
{
	enum result code = ask_for_some(s, a, out);

	return code == SUCCESS ? log_follow(s, a, out) : code;
}

static enum result log_ask(struct session *s, struct args *a, struct reply *out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, HAS(&a->rq, after) || HAS(&a->rq, since) ? 0 : 50);
	return ask_for_some(s, a, out);
}

static void log_tell(struct session *s, const struct args *a, struct reply *out)
{
	(void)s;
	out->own = a->rq.has & FILTERS ? a : NULL;
}

/* own: set if the request leaves some events out. */
static void log_show(const struct reply *r, struct view *v)
{
	if (!r->ans.n_events && !v->quiet && r->own)
		view_text(v, DIM, "no event matches\n");
	else
		show_events(r, v);
}
