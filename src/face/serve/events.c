/*
 * The live stream of one queue (text/event-stream): a snapshot, then each event of the log with its cursor as id, and
 * each lease that expires, which has no cursor. A reader that reconnects sends Last-Event-ID and gets the events that it
 * missed. If the log does not know the cursor, it gets `reset` and a new snapshot. It may get an expired lease again.
 *
 * A remote queue opens a stream without content: it has a line whenever something changed, and one at the start, since a
 * change may have come just before.
 */
#include "face/serve/serve.h"

#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "format/event.h"
#include "format/task.h"

#define PING_MS 15000
#define PING STR(": \n\n")
#define CHANGE STR("event: change\ndata: {}\n\n")
#define PIECE \
	((size_t)256 << 10) /* is sent at once: a large snapshot must not look like a slow reader */

struct stream {
	struct stream *next;
	struct serve *serve;
	struct desk *desk;
	struct http_exchange *exchange;
	struct guest caller;
	struct http_timer *ping;
	struct buf cursor, out;
	int64_t since; /* see struct job */
	size_t sent;
	bool busy, again, ended;
	bool wakes; /* see struct job */
};

/* --- in the thread of the desk --------------------------------------------------------------------- */

static void add_message(struct buf *out, struct str id, const char *event, json_t *data)
{
	char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(15));

	if (id.n)
		buf_addf(out, "id: %.*s\n", STRF(id));
	buf_addf(out, "event: %s\ndata: ", event);
	buf_adds(out, str_c(text));
	buf_adds(out, STR("\n\n"));
	free(text);
	json_decref(data);
}

static enum result ask(struct desk *d, struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call(d->session.client.queue, rq, ans, a);
	return ans->code;
}

static void set_cursor(struct job *j, struct str cursor)
{
	j->after.n = 0;
	buf_adds(&j->after, cursor);
}

/* The newest event of the log; empty: there is none. */
static enum result newest(struct desk *d, struct str *cursor, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };

	*cursor = STR("");
	GIVE(&rq, limit, 1);
	if (ask(d, &rq, ans, a) == SUCCESS && ans->n_events)
		*cursor = ans->events[ans->n_events - 1].cursor;
	return ans->code;
}

/* Finds the cursor first: an event that comes in between is then sent, although the snapshot may show it. */
static enum result add_snapshot(struct desk *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LIST };
	json_t *tasks;
	struct str cursor;

	if (newest(d, &cursor, ans, a) != SUCCESS || ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	tasks = json_array();
	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(tasks, task_json(&ans->tasks[i], ans->now, a));
	add_message(&j->answer, cursor, "snapshot",
		    json_pack("{s:o, s:I}", "tasks", tasks, "total", (json_int_t)ans->n_tasks));
	set_cursor(j, cursor);
	j->since = ans->now;
	return SUCCESS;
}

/* Is there an event with this cursor? It reads the whole log, once for each reader that comes back. */
static bool is_in_log(struct desk *d, struct str cursor, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans = { 0 };

	GIVE(&rq, limit, 0);
	(void)ask(d, &rq, &ans, a);
	for (size_t i = ans.n_events; i > 0; i--)
		if (str_eq(ans.events[i - 1].cursor, cursor))
			return true;
	return false;
}

/* Cursors that are numbers only grow, so one behind the newest event is of another log. */
static bool is_known(struct desk *d, struct str cursor, struct arena *a)
{
	struct answer ans = { 0 };
	struct str last;
	int64_t then, now;

	if (newest(d, &last, &ans, a) != SUCCESS || !last.n)
		return false;
	if (str_eq(cursor, last))
		return true;
	if (!str_to_i64(last, &now))
		return is_in_log(d, cursor, a);
	return str_to_i64(cursor, &then) && then >= 0 && then <= now;
}

/* The time of the event with this cursor. 0: it is not known, so every expired lease may be news. */
static int64_t time_of(struct desk *d, struct str cursor, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans = { 0 };
	int64_t n;

	GIVE(&rq, limit, 0);
	if (str_to_i64(cursor, &n) && n > 0)
		GIVE(&rq, after, arena_printf(a, "%lld", (long long)(n - 1)));
	(void)ask(d, &rq, &ans, a);
	for (size_t i = 0; i < ans.n_events; i++)
		if (str_eq(ans.events[i].cursor, cursor))
			return ans.events[i].at;
	return 0;
}

/* An expired lease is not in the log, so the answer does not have its task. */
static const struct task *task_of_event(struct desk *d, const struct answer *ans,
					const struct event *e, struct arena *a)
{
	struct request rq = { .op = OP_SHOW };
	struct answer one = { 0 };

	for (size_t i = 0; i < ans->n_tasks; i++)
		if (str_eq_nocase(ans->tasks[i].id, e->task))
			return &ans->tasks[i];
	if (e->cursor.n || typed_of(e->task))
		return NULL;
	GIVE(&rq, id, e->task);
	return ask(d, &rq, &one, a) == SUCCESS ? one.task : NULL;
}

static enum result add_news(struct desk *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };

	GIVE(&rq, limit, 0);
	GIVE(&rq, log_view, LOG_WITH_TASKS);
	GIVE(&rq, expired_after, j->since);
	if (j->after.n)
		GIVE(&rq, after, arena_str(a, buf_str(&j->after)));
	if (ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	j->since = ans->now;
	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];
		const struct task *t = task_of_event(d, ans, e, a);
		json_t *o = json_pack("{s:o}", "event", event_json(e, a));

		json_object_set_new(o, "task", t ? task_json(t, ans->now, a) : json_null());
		add_message(&j->answer, e->cursor, "event", o);
		if (e->cursor.n)
			set_cursor(j, e->cursor);
	}
	return SUCCESS;
}

/* A change makes an event of the log, or is a lease that expired. */
static enum result add_change(struct desk *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct str cursor = STR("");
	bool news = j->first;

	GIVE(&rq, limit, 1);
	GIVE(&rq, expired_after, j->first ? WHEN_MAX : j->since);
	if (ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	for (size_t i = 0; i < ans->n_events; i++) {
		news |= !ans->events[i].cursor.n;
		if (ans->events[i].cursor.n)
			cursor = ans->events[i].cursor;
	}
	if (news || !str_eq(cursor, buf_str(&j->after)))
		buf_adds(&j->answer, CHANGE);
	set_cursor(j, cursor);
	j->since = ans->now;
	return SUCCESS;
}

static enum result add_events(struct desk *d, struct job *j, struct answer *ans, struct arena *a)
{
	enum result code;

	if (j->first && j->after.n && !is_known(d, buf_str(&j->after), a)) {
		add_message(&j->answer, STR(""), "reset", json_object());
		j->after.n = 0;
	}
	if (j->first && j->after.n)
		j->since = time_of(d, buf_str(&j->after), a);
	if (j->first && !j->after.n)
		code = add_snapshot(d, j, ans, a);
	else
		code = add_news(d, j, ans, a);
	if (j->first && code == SUCCESS && !j->answer.n) /* it came back and missed nothing */
		buf_adds(&j->answer, PING);
	return code;
}

void events_run(struct desk *d, struct job *j)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };
	enum result code = j->wakes ? add_change(d, j, &ans, &a) : add_events(d, j, &ans, &a);

	j->status = code == SUCCESS ? 200 : result_http(code);
	desk_failed(d, &ans);
	arena_free(&a);
}

/* --- in the loop --------------------------------------------------------------------------------- */

static void count(struct stream *t, int by)
{
	struct meter *m = t->caller.meter;
	struct counts *c = &t->serve->counts;

	if (t->wakes) {
		m->waits += by;
		c->waits += (uint64_t)by;
	} else {
		m->streams += by;
		c->streams += (uint64_t)by;
	}
}

static void stream_free(struct stream *t)
{
	struct stream **at = &t->desk->streams;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (!t->desk->streams)
		t->desk->watched = false;
	count(t, -1);
	http_timer_cancel(t->ping);
	caller_free(&t->caller);
	buf_free(&t->cursor);
	buf_free(&t->out);
	free(t);
}

static void stream_end(struct stream *t)
{
	if (!t->ended) {
		http_stream_end(t->exchange);
		http_timer_cancel(t->ping); /* the exchange is gone */
		t->ping = NULL;
	}
	t->ended = true;
	if (!t->busy)
		stream_free(t);
}

static void on_gone(struct http_exchange *x, void *stream)
{
	(void)x;
	stream_end(stream);
}

static void pump(struct http_exchange *x, void *stream)
{
	struct stream *t = stream;
	size_t left = t->out.n - t->sent;
	struct str piece = str_n(t->out.p + t->sent, left < PIECE ? left : PIECE);

	(void)x;
	if (!left) {
		t->out.n = t->sent = 0;
		return;
	}
	t->sent += piece.n;
	if (http_stream_send(t->exchange, piece) < 0)
		return; /* on_gone() comes */
	http_stream_on_room(t->exchange, PIECE, pump, t);
}

static void send_all(struct stream *t, struct str text)
{
	bool idle = !t->out.n;

	buf_adds(&t->out, text);
	if (t->out.full) /* it reads too slowly; it resumes with its last id */
		stream_end(t);
	else if (idle && text.n)
		pump(t->exchange, t);
}

static void ping(void *stream)
{
	struct stream *t = stream;

	t->ping = NULL;
	if (!access_holds(t->serve, &t->caller)) {
		stream_end(t);
		return;
	}
	t->ping = http_timer_start(t->serve->http, PING_MS, ping, t);
	if (!t->out.n)
		(void)http_stream_send(t->exchange, PING);
}

static void look(struct stream *t, bool first)
{
	struct guest none = { 0 };
	struct job *j;

	if (t->busy) {
		t->again = true;
		return;
	}
	j = job_new(JOB_EVENTS, NULL, &none);
	j->owner = t;
	j->payer = t->caller.meter;
	j->first = first;
	j->wakes = t->wakes;
	j->since = t->since;
	buf_adds(&j->after, buf_str(&t->cursor));
	t->busy = true;
	desk_put(t->desk, j);
}

/* One look serves all streams without content. The oldest one looks, because it knows no change that another one missed. */
static void look_for_wakes(struct desk *d)
{
	struct stream *oldest = NULL;

	for (struct stream *t = d->streams; t; t = t->next) /* the newest comes first */
		if (t->wakes && !t->ended)
			oldest = t;
	if (oldest)
		look(oldest, false);
}

void events_look(void *desk)
{
	struct desk *d = desk;

	for (struct stream *t = d->streams; t; t = t->next)
		if (!t->wakes)
			look(t, false);
	look_for_wakes(d);
}

static void wake_others(struct desk *d, const struct stream *looked)
{
	for (struct stream *t = d->streams, *next; t; t = next) {
		next = t->next;
		if (!t->wakes || t->ended || t == looked)
			continue;
		if (access_holds(t->serve, &t->caller))
			send_all(t, CHANGE);
		else
			stream_end(t);
	}
}

void events_done(struct job *j)
{
	struct stream *t = j->owner;
	struct desk *d = t->desk;
	bool failed = j->status != 200, again = t->again || failed, wakes = t->wakes;

	t->busy = t->again = false;
	t->cursor.n = 0;
	buf_adds(&t->cursor, buf_str(&j->after));
	t->since = j->since;
	if (t->wakes && !j->first && j->answer.n)
		wake_others(t->desk, t);
	if (t->ended) {
		stream_free(t);
	} else if (failed || j->answer.full || !access_holds(t->serve, &t->caller)) {
		stream_end(t); /* the reader comes back with its last id */
	} else {
		if (again)
			look(t, false);
		again = false;
		send_all(t, buf_str(&j->answer));
	}
	if (wakes && again) /* it owed the others a look */
		look_for_wakes(d);
	job_free(j);
}

void events_start(struct serve *s, struct http_exchange *x, struct desk *d, struct guest *c,
		  bool wakes)
{
	static const struct http_header extra[] = { { { "Cache-Control", 13 }, { "no-store", 8 } },
						    { { "X-Accel-Buffering", 17 }, { "no", 2 } } };
	struct str last = http_header(http_request_of(x)->headers, "last-event-id");
	struct stream *t;

	t = mem_alloc(sizeof(*t));
	*t = (struct stream){ .next = d->streams,
			      .serve = s,
			      .desk = d,
			      .exchange = x,
			      .caller = *c,
			      .wakes = wakes,
			      .cursor = BUF_MAX(NAME_MAX_BYTES),
			      .out = BUF_MAX(ANSWER_MAX) };
	*c = (struct guest){ 0 };
	buf_adds(&t->cursor, last.n <= NAME_MAX_BYTES ? last : STR("0"));
	d->streams = t;
	d->watched = true;
	count(t, 1);
	http_stream_start(x, 200, "text/event-stream", (struct http_headers){ extra, 2 });
	t->ping = http_timer_start(s->http, PING_MS, ping, t);
	look(t, true);
	http_on_gone(x, on_gone, t); /* may end the stream at once */
}

void events_end_all(struct serve *s)
{
	for (struct desk *d = s->desks; d; d = d->next)
		for (struct stream *t = d->streams, *next; t; t = next) {
			next = t->next;
			stream_end(t);
		}
}
