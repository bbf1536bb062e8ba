/*
 * Group commit in a store: local_batch.h has the interface, combine.h the protocol. A reply with its batch number is in the slot
 * before the store commits, and the owner is answered only after that. A fault before the commit must not fail the calls of
 * other processes: their owners make the changes alone.
 */
#include <errno.h>
#include <sched.h>

#include "base/os.h"
#include "base/secret.h"
#include "store/local/local_batch.h"

#define MOMENT_NS 50000 /* longest wait for as many calls as the last batch had */
#define SERVES \
	16 /* ms spent on other processes' calls after our own change; see doc/decisions.md */

/* false: group commit does not work here, or the slots file of our unanswered call is gone. */
static bool batch_ready(struct batch *b)
{
	if (b->combine->hopeless || combine_stands(b->combine))
		return !b->combine->hopeless;
	if (b->combine->asked)
		return false;
	combine_close(b->combine);
	return b->ops->open(b) == 0;
}

bool batch_takes_part(const struct batch *b)
{
	return b->store->env.relay && !b->store->env.opt.relaxed;
}

struct str batch_who(const struct batch *b)
{
	return b->store->env.opt.who.n ? b->store->env.opt.who : STR("a process");
}

/* --- in a waiting process ----------------------------------------------------------------------- */

bool batch_ask(struct batch *b, const struct change *c, int64_t deadline)
{
	struct buf call = BUF_MAX(COMBINE_CALL_MAX);
	bool sent;

	if (!batch_takes_part(b) || !batch_ready(b))
		return false;
	b->store->env.relay->pack(c, &call);
	sent = !call.full &&
	       combine_publish(b->combine, (uint32_t)*b->queue, buf_str(&call), deadline);
	buf_free(&call);
	if (sent)
		gate_set_crowded(b->gate);
	return sent;
}

static int take_result(struct batch *b, struct change *c, enum combine_end end,
		       const struct combine_reply *reply)
{
	struct store_env *env = &b->store->env;
	struct store_error *err = env->err;

	if (end == COMBINE_FAULT && reply->report.n == sizeof(*err)) {
		memcpy(err, reply->report.p, sizeof(*err));
		err->text[sizeof(err->text) - 1] = err->hint[sizeof(err->hint) - 1] = '\0';
		return err->fault < 0 ? err->fault : STORE_IO;
	}
	c->rc = reply->rc;
	if (end == COMBINE_RAN && env->relay->accept(c, reply->report) == 0)
		return 0;
	store_fail(env, STORE_IO, "repeat the call",
		   "another process made this change for us, and its answer is damaged");
	err->applied = '?';
	return STORE_IO;
}

int batch_await(struct batch *b, struct change *c, int64_t deadline)
{
	struct store_env *env = &b->store->env;
	struct combine_reply reply = { 0 };
	struct arena a = { 0 };
	enum combine_end end = combine_wait(b->combine, b->gate, batch_who(b), deadline, &reply,
					    &a);
	int rc = 0;

	if (end == COMBINE_GATE) {
		rc = b->ops->lead(b->store, deadline);
		end = combine_result(b->combine, &reply, &a);
		if (rc == 0 && end == COMBINE_LATE && os_boot_ms() < deadline)
			end = COMBINE_ALONE; /* the slots file is gone */
	}
	if (end == COMBINE_ALONE)
		rc = b->ops->alone(b->store, c, deadline);
	else if (end == COMBINE_RAN || end == COMBINE_FAULT)
		rc = take_result(b, c, end, &reply);
	else if (rc == 0 && end == COMBINE_UNKNOWN && os_boot_ms() < deadline)
		rc = store_fail(env, STORE_IO,
				"check whether the change was made (pawl log), or repeat it",
				"a program truncated or overwrote %s while another process made "
				"this change for us",
				b->combine->path ? b->combine->path : b->place);
	else if (rc == 0)
		rc = gate_busy(b->gate, env, b->place);
	if (end == COMBINE_UNKNOWN)
		env->err->applied = '?';
	arena_free(&a);
	return rc;
}

/* --- in the holder of the gate ------------------------------------------------------------------ */

/* Did a holder that died run this call, and perhaps commit it? */
static bool in_doubt(const struct combine_call *call)
{
	return call->batch != 0;
}

static void forget_doubtful(struct batch *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->n; i++)
		if (!in_doubt(&b->calls[i]))
			b->calls[kept++] = b->calls[i];
	b->n = kept;
}

/*
 * Earlier holders died while they served calls, or could not tell whether their commit failed. If a call's batch is the
 * last committed one, its reply is ready. We deliver it after the commit is durable and before our own commit, which
 * overwrites that batch number. If a step fails, these calls get no answer from us, and the next holder settles them.
 */
static int batch_settle(struct batch *b)
{
	uint64_t last = 0;
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < b->n; i++)
		any |= in_doubt(&b->calls[i]);
	if (any)
		rc = b->ops->last(b->store, &last);
	if (any && rc == 0)
		rc = b->ops->make_durable(b->store);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		if (in_doubt(&b->calls[i]) && b->calls[i].batch == last)
			combine_answer(b->combine, &b->calls[i]);
		else
			b->calls[i].batch = 0; /* the call was not committed, so run it now */
	}
	forget_doubtful(b);
	return rc;
}

/* c->fn is NULL if the call cannot be run here. 0, or a fault that ends the whole batch. If only this call fails, its
 * owner makes the change alone. */
static int batch_serve(struct batch *b, const struct combine_call *call, struct change *c,
		       struct arena *a, bool *worth)
{
	struct buf report = BUF_MAX(COMBINE_REPLY_MAX);
	enum combine_end end = COMBINE_ALONE;
	struct edit e;
	int rc = -1;

	if (c->fn)
		rc = edit_run(&e, b->store, a, b->ops->now(b->store), c);
	if (rc < 0 && b->ops->lost(b->store))
		return STORE_IO;
	if (rc >= 0) {
		b->store->env.relay->report(c, &report);
		end = report.full ? COMBINE_ALONE : COMBINE_RAN;
	}
	if (end == COMBINE_ALONE)
		report.n = 0;
	combine_at("ran");
	combine_reply(b->combine, call, b->id, end, rc, buf_str(&report));
	buf_free(&report);
	if (rc != 0 || end == COMBINE_ALONE)
		return 0;
	*worth = true;
	b->wrote = true;
	return b->ops->apply(b->store, &e);
}

static int serve_all(struct batch *b, size_t from, struct arena *a, bool *worth)
{
	struct change *changes = arena_array(a, struct change, b->n - from);
	int rc;

	for (size_t i = from; i < b->n; i++)
		if (b->store->env.relay->adopt(b->calls[i].bytes, &changes[i - from], a))
			changes[i - from] = (struct change){ 0 };
	rc = b->ops->prepare(b->store, changes, b->n - from);
	for (size_t i = from; rc == 0 && i < b->n; i++)
		rc = batch_serve(b, &b->calls[i], &changes[i - from], a, worth);
	return rc;
}

static size_t take_more(struct batch *b, bool first, struct arena *a)
{
	size_t before = b->n;

	b->n += combine_take(b->combine, (uint32_t)*b->queue, first, b->calls + b->n,
			     COMBINE_SLOTS - b->n, a);
	return b->n - before;
}

/* How many of these calls are not our own? A process that got the gate while it waited still has a call in its slot. */
static uint32_t batch_others(const struct batch *b, const struct combine_call *calls, size_t n)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += (int)calls[i].slot != b->combine->slot;
	return found;
}

/* A process that has just got its answer often publishes its next call at once. Waiting for it makes the batch larger. */
static void take_first(struct batch *b, struct arena *a)
{
	uint32_t expected = combine_expected(b->combine);
	int64_t end = os_monotonic_ns() + MOMENT_NS;

	take_more(b, true, a);
	while (!b->combine->checks && batch_others(b, b->calls, b->n) < expected &&
	       os_monotonic_ns() < end) {
		sched_yield();
		take_more(b, false, a);
	}
}

static bool batch_leads(struct batch *b)
{
	return batch_takes_part(b) && gate_was_crowded(b->gate) && batch_ready(b);
}

size_t batch_check(struct batch *b, struct combine_call *out, struct arena *a)
{
	int64_t end = os_monotonic_ns() + MOMENT_NS;
	size_t n;

	b->combine->checks = true;
	if (!batch_leads(b))
		return 0;
	n = combine_check(b->combine, (uint32_t)*b->queue, out, COMBINE_SLOTS, a);
	while (batch_others(b, out, n) < combine_expected(b->combine) && os_monotonic_ns() < end) {
		sched_yield();
		n = combine_check(b->combine, (uint32_t)*b->queue, out, COMBINE_SLOTS, a);
	}
	return n;
}

int batch_run(struct batch *b, struct arena *a, bool *worth)
{
	size_t served = 0;
	int rc;

	if (!batch_leads(b) || (b->elsewhere && !combine_own(b->combine)))
		return 0;
	b->id = (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX) | 1;
	gate_count_served(b->gate);
	take_first(b, a);
	rc = batch_settle(b);
	while (rc == 0 && served < b->n) {
		rc = serve_all(b, served, a, worth);
		served = b->n;
		if (rc == 0)
			take_more(b, false, a);
	}
	combine_learn(b->combine, batch_others(b, b->calls, b->n));
	if (rc == 0 && b->wrote)
		rc = b->ops->note(b->store, b->id);
	return rc;
}

/* After a fault each owner makes its change alone, because nothing was committed. If the commit may have happened, the
 * owners get no answer from us. The next holder learns the outcome from the batch number. */
void batch_end(struct batch *b, int fault)
{
	bool unsure = fault < 0 && b->store->env.err->applied == '?';

	for (size_t i = 0; !unsure && i < b->n; i++) {
		if (fault < 0)
			combine_reply(b->combine, &b->calls[i], 0, COMBINE_ALONE, 0, STR(""));
		combine_answer(b->combine, &b->calls[i]);
	}
	if (b->elsewhere)
		combine_disown(b->combine);
	b->n = 0;
	b->wrote = false;
}

/* Are several processes waiting for the holder, and none in the kernel's line? */
static bool batch_waits(struct batch *b)
{
	return batch_leads(b) && !gate_line(b->gate) &&
	       combine_crowd(b->combine, (uint32_t)*b->queue);
}

/* The process that made the last commit is awake and has the pages in memory, so it serves the next calls sooner than another
 * would. Its own caller has to wait, but a fault here does not affect that caller, because its change is already committed. */
int batch_serve_on(struct batch *b, int64_t deadline)
{
	int64_t now = os_boot_ms(), end = now + SERVES < deadline ? now + SERVES : deadline;
	int rc = 0;

	while (rc == 0 && now < end && batch_waits(b)) {
		combine_at("serving on");
		rc = b->ops->again(b->store, deadline - now);
		now = os_boot_ms();
	}
	return rc < 0 ? rc : 0;
}

bool batch_nudge(struct batch *b)
{
	if (!gate_crowded(b->gate) || !batch_ready(b) || !combine_nudge(b->combine))
		return false;
	/* The process that we wake would run only its own call, and our next call would wait for it. If it waits a moment
	 * for us instead, two processes share each commit. */
	if (!combine_expected(b->combine))
		combine_learn(b->combine, 1);
	return true;
}
