/* Group commit: the holder of the gate runs the changes of waiting processes in its own transaction. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/os.h"
#include "base/secret.h"
#include "store/sqlite/sqlite.h"

#define MOMENT_NS 50000 /* longest wait for as many calls as the last batch had */

/* false: group commit does not work here, or no process has asked for it yet; then the gate alone is used. */
static bool ready(struct sq *s)
{
	char *path;
	int rc;

	if (s->combine.hopeless || combine_stands(&s->combine))
		return !s->combine.hopeless;
	if (s->combine.asked)
		return false;
	combine_close(&s->combine);
	path = sqlite3_mprintf("%s-slots", s->path);
	rc = path ? combine_open(&s->combine, path, &s->file) : -ENOMEM;
	sqlite3_free(path);
	return rc == 0;
}

bool sq_takes_part(const struct sq *s)
{
	return s->base.env.relay && !s->base.env.opt.relaxed;
}

/* --- in a waiting process ----------------------------------------------------------------------- */

bool sq_batch_ask(struct sq *s, const struct change *c, int64_t deadline)
{
	struct buf call = BUF_MAX(COMBINE_CALL_MAX);
	bool sent;

	if (!sq_takes_part(s) || !ready(s))
		return false;
	s->base.env.relay->pack(c, &call);
	sent = !call.full && combine_publish(&s->combine, (uint32_t)s->q, buf_str(&call), deadline);
	buf_free(&call);
	if (sent)
		gate_set_crowded(&s->gate);
	return sent;
}

int sq_batch_accept(struct sq *s, struct change *c, enum combine_end end,
		    const struct combine_reply *reply)
{
	struct store_error *err = s->base.env.err;

	if (end == COMBINE_FAULT && reply->report.n == sizeof(*err)) {
		memcpy(err, reply->report.p, sizeof(*err));
		err->text[sizeof(err->text) - 1] = err->hint[sizeof(err->hint) - 1] = '\0';
		return err->fault < 0 ? err->fault : STORE_IO;
	}
	c->rc = reply->rc;
	if (end == COMBINE_RAN && s->base.env.relay->accept(c, reply->report) == 0)
		return 0;
	store_fail(&s->base.env, STORE_IO, "repeat the call",
		   "another process made this change for us, and its answer is damaged");
	err->applied = '?';
	return STORE_IO;
}

/* --- in the holder of the gate ------------------------------------------------------------------ */

static int read_last(struct sq *s, uint64_t *out)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT id FROM batch WHERE q=?", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	rc = sq_step(s, st);
	*out = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

/* The next holder learns from this number whether the calls of this batch were committed. Each queue has its own
 * number: a holder that serves another queue settles none of our calls, so it must not overwrite ours. */
static int write_last(struct sq *s, uint64_t id)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "REPLACE INTO batch(q,id) VALUES(?,?)", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, (int64_t)id);
	return sq_finish(s, st);
}

/* Did a holder that died run this call, and perhaps commit it? */
static bool in_doubt(const struct combine_call *call)
{
	return call->batch != 0;
}

static void forget_doubtful(struct sq_batch *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->n; i++)
		if (!in_doubt(&b->calls[i]))
			b->calls[kept++] = b->calls[i];
	b->n = kept;
}

/*
 * Earlier holders died while they served calls. If the batch of a call is the last committed one, its reply is
 * ready. We deliver it after the commit is durable and before our own commit, which overwrites the number of that
 * batch. If a step fails, these calls get no answer from us, and the next holder settles them.
 */
static int settle(struct sq *s)
{
	struct sq_batch *b = &s->batch;
	uint64_t last = 0;
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < b->n; i++)
		any |= in_doubt(&b->calls[i]);
	if (any)
		rc = read_last(s, &last);
	if (any && rc == 0)
		rc = sq_make_durable(s);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		if (in_doubt(&b->calls[i]) && b->calls[i].batch == last)
			combine_answer(&s->combine, &b->calls[i]);
		else
			b->calls[i].batch = 0; /* not committed: run it now */
	}
	forget_doubtful(b);
	return rc;
}

/* 0, or a fault that ends the whole batch. If only this call fails, its owner makes the change alone. */
static int serve(struct sq *s, const struct combine_call *call, struct arena *a, bool *worth)
{
	const struct relay *relay = s->base.env.relay;
	struct change c = { 0 };
	struct buf report = BUF_MAX(COMBINE_REPLY_MAX);
	enum combine_end end = COMBINE_ALONE;
	struct edit e;
	int rc = -1;

	if (relay->adopt(call->bytes, &c, a) == 0)
		rc = edit_run(&e, &s->base, a, s->now, &c);
	if (rc < 0 && sqlite3_get_autocommit(s->db))
		return STORE_IO; /* SQLite has rolled back the whole transaction */
	if (rc >= 0) {
		relay->report(&c, &report);
		end = report.full ? COMBINE_ALONE : COMBINE_RAN;
	}
	if (end == COMBINE_ALONE)
		report.n = 0;
	combine_at("ran");
	combine_reply(&s->combine, call, s->batch.id, end, rc, buf_str(&report));
	buf_free(&report);
	if (rc != 0 || end == COMBINE_ALONE)
		return 0;
	*worth = true;
	s->batch.wrote = true;
	return sq_apply(s, &e);
}

static int serve_all(struct sq *s, size_t from, struct arena *a, bool *worth)
{
	struct sq_batch *b = &s->batch;
	int rc = 0;

	for (size_t i = from; rc == 0 && i < b->n; i++)
		rc = serve(s, &b->calls[i], a, worth);
	return rc;
}

static int64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static size_t take_more(struct sq *s, bool first, struct arena *a)
{
	struct sq_batch *b = &s->batch;
	size_t before = b->n;

	b->n += combine_take(&s->combine, (uint32_t)s->q, first, b->calls + b->n,
			     COMBINE_SLOTS - b->n, a);
	return b->n - before;
}

/* A process that has just got its answer often asks again at once: waiting for it makes the batch larger. */
static void take_first(struct sq *s, struct arena *a)
{
	uint32_t expected = combine_expected(&s->combine);
	int64_t end = nanoseconds() + MOMENT_NS;

	take_more(s, true, a);
	while (s->batch.n < expected && nanoseconds() < end) {
		sched_yield();
		take_more(s, false, a);
	}
}

int sq_batch_run(struct sq *s, struct arena *a, bool *worth)
{
	struct sq_batch *b = &s->batch;
	size_t served = 0;
	int rc;

	if (!sq_takes_part(s) || !gate_was_crowded(&s->gate) || !ready(s))
		return 0;
	b->id = (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX) | 1;
	gate_count_served(&s->gate);
	take_first(s, a);
	rc = settle(s);
	while (rc == 0 && served < b->n) {
		sq_clock_again(s);
		rc = serve_all(s, served, a, worth);
		served = b->n;
		if (rc == 0)
			take_more(s, false, a);
	}
	combine_learn(&s->combine, (uint32_t)b->n);
	if (rc == 0 && b->wrote)
		rc = write_last(s, b->id);
	return rc;
}

/* After a fault each owner makes its change alone, since nothing was committed. If the commit may have happened, the
 * owners get no answer from us: the next holder learns the outcome from the number of the batch. */
void sq_batch_end(struct sq *s, int fault)
{
	struct sq_batch *b = &s->batch;
	bool unsure = fault < 0 && s->base.env.err->applied == '?';

	for (size_t i = 0; !unsure && i < b->n; i++) {
		if (fault < 0)
			combine_reply(&s->combine, &b->calls[i], 0, COMBINE_ALONE, 0, STR(""));
		combine_answer(&s->combine, &b->calls[i]);
	}
	b->n = 0;
	b->wrote = false;
}

bool sq_batch_waits(struct sq *s)
{
	return sq_takes_part(s) && gate_was_crowded(&s->gate) && ready(s) && !gate_line(&s->gate) &&
	       combine_crowd(&s->combine, (uint32_t)s->q);
}

bool sq_batch_nudge(struct sq *s)
{
	return gate_crowded(&s->gate) && ready(s) && combine_nudge(&s->combine);
}
