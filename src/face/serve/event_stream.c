/*
 * The loop's part of a live stream (serve_events.c has the worker's): keeps the open streams, asks the
 * worker for the next page when the peer has taken the one before, and sends it. A stream has at
 * most one job at its worker, so its pages arrive in order.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "face/serve/serve.h"
#include "format/answer_form.h"
#include "format/json.h"
#include "format/record_form.h"

#define PING_MS 15000
#define PING STR(": \n\n")
#define CHANGE STR("event: change\ndata: {}\n\n")
#define PIECE ((size_t)256 << 10) /* sent at once: a large page must not look like a slow reader */

struct stream {
	struct stream *next;
	struct serve *serve;
	struct worker *worker;
	struct http_exchange *exchange;
	struct http_caller caller;
	struct http_timer *ping;
	struct buf cursor, out;
	struct buf page; /* see struct job */
	int64_t since;
	size_t sent, pages;
	bool busy, again, ended;
	bool wakes; /* see struct job */
};

static void stream_count(struct stream *t, int by)
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
	struct stream **at = &t->worker->streams;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (!t->worker->streams)
		t->worker->watched = false;
	stream_count(t, -1);
	http_timer_cancel(t->ping);
	caller_free(&t->caller);
	buf_free(&t->cursor);
	buf_free(&t->page);
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

static void stream_check(struct stream *t, bool first);

static void stream_pump(struct http_exchange *x, void *stream)
{
	struct stream *t = stream;
	size_t left = t->out.n - t->sent;
	struct str piece = str_n(t->out.p + t->sent, left < PIECE ? left : PIECE);

	(void)x;
	if (!left) {
		t->out.n = t->sent = 0;
		if (t->again && !t->busy)
			stream_check(t, false);
		return;
	}
	t->sent += piece.n;
	if (http_stream_send(t->exchange, piece) < 0)
		return; /* the HTTP server calls on_gone() next */
	http_stream_on_room(t->exchange, PIECE, stream_pump, t);
}

/* false: the stream has ended. */
static bool send_all(struct stream *t, struct str text)
{
	bool idle = !t->out.n;

	buf_adds(&t->out, text);
	if (t->out.full) { /* the peer reads too slowly; it can resume with its last id */
		stream_end(t);
		return false;
	}
	if (idle && text.n)
		stream_pump(t->exchange, t);
	return true;
}

static void stream_ping(void *stream)
{
	struct stream *t = stream;

	t->ping = NULL;
	if (!serve_login_holds(t->serve, &t->caller)) {
		stream_end(t);
		return;
	}
	t->ping = http_timer_start(t->serve->http, PING_MS, stream_ping, t);
	if (!t->out.n)
		(void)http_stream_send(t->exchange, PING);
}

static void stream_check(struct stream *t, bool first)
{
	struct http_caller reader = { .role = serve_role(t->serve, &t->caller) };
	struct job *j;

	/* the peer must take a page before the worker reads the next one */
	if (t->busy || (!t->wakes && t->out.n)) {
		t->again = true;
		return;
	}
	t->again = false;
	j = job_new(JOB_EVENTS, NULL, &reader);
	j->owner = t;
	j->payer = t->caller.meter;
	j->first = first;
	j->wakes = t->wakes;
	j->since = t->since;
	j->pages = t->pages;
	buf_adds(&j->after, buf_str(&t->cursor));
	buf_adds(&j->page, buf_str(&t->page));
	t->busy = true;
	worker_put(t->worker, j);
}

/* One read serves all streams without content. The oldest stream reads, because no other stream
 * missed a change that it knows. */
static void find_wakes(struct worker *d)
{
	struct stream *oldest = NULL;

	for (struct stream *t = d->streams; t; t = t->next) /* the newest comes first */
		if (t->wakes && !t->ended)
			oldest = t;
	if (oldest)
		stream_check(oldest, false);
}

void events_check(void *worker)
{
	struct worker *d = worker;

	for (struct stream *t = d->streams; t; t = t->next)
		if (!t->wakes)
			stream_check(t, false);
	find_wakes(d);
}

static void wake_others(struct worker *d, const struct stream *checked)
{
	for (struct stream *t = d->streams, *next; t; t = next) {
		next = t->next;
		if (!t->wakes || t->ended || t == checked)
			continue;
		if (serve_login_holds(t->serve, &t->caller))
			(void)send_all(t, CHANGE);
		else
			stream_end(t);
	}
}

void events_done(struct job *j)
{
	struct stream *t = j->owner;
	struct worker *d = t->worker;
	bool failed = j->status != 200, again = t->again || j->more || failed, wakes = t->wakes;

	t->busy = t->again = false;
	t->cursor.n = t->page.n = 0;
	buf_adds(&t->cursor, buf_str(&j->after));
	buf_adds(&t->page, buf_str(&j->page));
	t->pages = j->pages;
	t->since = j->since;
	if (t->wakes && !j->first && j->answer.n)
		wake_others(t->worker, t);
	if (t->ended) {
		stream_free(t);
	} else if (failed || j->answer.full || !serve_login_holds(t->serve, &t->caller)) {
		stream_end(t); /* the reader reconnects with the last id that it received */
	} else {
		if (send_all(t, buf_str(&j->answer)) && again)
			stream_check(t, false);
		again = false;
	}
	if (wakes && again) /* the others still wait for a read by this stream */
		find_wakes(d);
	job_free(j);
}

void events_start(struct serve *s, struct http_exchange *x, struct worker *d, struct http_caller *c,
		  bool wakes)
{
	static const struct http_header extra[] = { { { "Cache-Control", 13 }, { "no-store", 8 } },
						    { { "X-Accel-Buffering", 17 }, { "no", 2 } } };
	struct str last = http_header(http_request_of(x)->headers, "last-event-id");
	struct stream *t;

	t = mem_alloc(sizeof(*t));
	*t = (struct stream){ .next = d->streams,
			      .serve = s,
			      .worker = d,
			      .exchange = x,
			      .caller = *c,
			      .wakes = wakes,
			      .cursor = BUF_MAX(NAME_MAX_BYTES),
			      .page = BUF_MAX(NAME_MAX_BYTES),
			      .out = BUF_MAX(wakes ? PIECE : ANSWER_MAX) };
	*c = (struct http_caller){ 0 };
	buf_adds(&t->cursor, last.n <= NAME_MAX_BYTES ? last : STR("0"));
	d->streams = t;
	d->watched = true;
	stream_count(t, 1);
	http_stream_start(x, 200, "text/event-stream", (struct http_headers){ extra, 2 });
	t->ping = http_timer_start(s->http, PING_MS, stream_ping, t);
	stream_check(t, true);
	http_on_gone(x, on_gone, t); /* may end the stream at once */
}

void events_end_all(struct serve *s)
{
	for (struct worker *d = s->workers; d; d = d->next)
		for (struct stream *t = d->streams, *next; t; t = next) {
			next = t->next;
			stream_end(t);
		}
}
