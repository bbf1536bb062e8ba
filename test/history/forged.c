/* Logs written by hand, with right hashes: each kind of violation that `pawl audit` finds, and a similar log that is
 * correct. They enter a queue in memory as the copy of a migration does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/record_form.h"
#include "format/task_form.h"
#include "proof/check/checker.h"
#include "queue/transfer.h"

#define LINES 40
#define T INT64_C(1700000000000)

/* A log about the task t1, and its record. */
struct log {
	struct arena a;
	struct entry lines[LINES];
	size_t n, read;
	struct str head, queue_head; /* of the task's chain, and of the queue's */
	struct task task;
	bool no_record, shared;
	int64_t since;
};

static struct log begin(void)
{
	return (struct log){ .task = { .id = STR("t1"),
				       .title = STR("x"),
				       .status = READY,
				       .class_rank = STANDARD,
				       .version = 1 } };
}

static void add_to(struct log *l, struct str *head, int64_t at, struct event ev)
{
	unsigned char *hash = arena_alloc(&l->a, SHORT_HASH_LEN);
	struct buf b = BUF_MAX(1 << 16);

	assert_true(l->n < LINES);
	ev.prev = *head;
	ev.agent = STR("ann");
	event_pack_hash(&ev, T + at, &b, hash);
	l->lines[l->n++] = (struct entry){ .at = T + at,
					   .key = ev.task.n ? task_key(&l->a, ev.task) : STR(""),
					   .data = arena_str(&l->a, buf_str(&b)) };
	*head = str_n((char *)hash, SHORT_HASH_LEN);
	buf_free(&b);
}

static void line(struct log *l, int64_t at, const char *name, int64_t fence, int64_t from,
		 int64_t to)
{
	add_to(l, &l->head, at,
	       (struct event){ .name = str_c(name),
			       .task = STR("t1"),
			       .fence = fence,
			       .from = from,
			       .to = to });
	l->task.status = to ? to : l->task.status;
	l->task.fence = fence;
}

/* An acquisition whose lease expires at T + 1000. */
static void grant(struct log *l, int64_t at, const char *name, int64_t fence, int64_t from)
{
	int64_t to = from ? IN_PROGRESS : 0;

	add_to(l, &l->head, at,
	       (struct event){ .name = str_c(name),
			       .task = STR("t1"),
			       .fence = fence,
			       .from = from,
			       .to = to,
			       .expires = T + 1000 });
	l->task.status = to ? to : l->task.status;
	l->task.fence = fence;
}

static void about_queue(struct log *l, const char *name)
{
	add_to(l, &l->queue_head, str_is(str_c(name), "log_cut") ? 0 : 100,
	       (struct event){ .name = str_c(name) });
}

/* Created, and claimed with fence 1 until T + 1000. */
static struct log claimed(void)
{
	struct log l = begin();

	line(&l, 0, "created", 0, 0, READY);
	grant(&l, 10, "claimed", 1, READY);
	return l;
}

static struct str packed(struct arena *a, const struct task *t, unsigned part)
{
	struct buf b = BUF_MAX(1 << 16);
	struct str out;

	task_pack(t, part, &b);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static int next_item(void *ctx, struct item *out, struct arena *a)
{
	struct log *l = ctx;
	size_t i = l->read++;

	if (i == 0 && !l->no_record) {
		if (!l->task.chain.n)
			l->task.chain = l->head;
		out->rec = (struct record){ .key = STR("task/t1"),
					    .hot = packed(a, &l->task, HOT),
					    .body = packed(a, &l->task, BODY) };
		return 0;
	}
	if (i == !l->no_record && l->queue_head.n) {
		out->rec = (struct record){ .key = STR("meta/chain"), .hot = l->queue_head };
		return 0;
	}
	i -= !l->no_record + (l->queue_head.n > 0);
	if (i >= l->n)
		return 1;
	*out = (struct item){ .line = true, .entry = l->lines[i] };
	return 0;
}

static void rewind_items(void *ctx)
{
	((struct log *)ctx)->read = 0;
}

/* The kinds of violations found, as a set. Frees the log. */
static unsigned found(struct log *l)
{
	static int queues;
	struct queue_config config = { .uri = STR("mem:forged"),
				       .opt.queue = arena_printf(&l->a, "q%d", ++queues),
				       .policy = policy_default };
	struct load load = { .records = (size_t)!l->no_record + (l->queue_head.n > 0),
			     .lines = l->n,
			     .next = next_item,
			     .rewind = rewind_items,
			     .ctx = l };
	struct audit_plan plan = { .since = l->since, .shared = l->shared };
	struct audit_report r;
	struct answer ans = { 0 };
	unsigned kinds = 0;

	assert_int_equal(queue_open(&plan.queue, &config, STORE_CREATE, &ans, &l->a), SUCCESS);
	if (queue_load(plan.queue, &load, &ans, &l->a) != SUCCESS)
		fail_msg("%.*s", STRF(ans.message));
	assert_int_equal(audit_queue(&plan, &r, &ans, &l->a), SUCCESS);
	for (int k = 0; k < AUDIT_KINDS; k++)
		kinds |= (r.counts[k] > 0) << k;
	queue_close(plan.queue);
	arena_free(&l->a);
	return kinds;
}

#define CLEAN(l) assert_int_equal(found(&(l)), 0)
#define CAUGHT(l, k) assert_int_equal(found(&(l)), 1u << AUDIT_##k)

static void fences(void **state)
{
	struct log l = claimed();

	(void)state;
	line(&l, 20, "released", 1, IN_PROGRESS, READY);
	grant(&l, 30, "claimed", 2, READY);
	CLEAN(l);
	l = claimed();
	line(&l, 20, "released", 1, IN_PROGRESS, READY);
	grant(&l, 30, "claimed", 1, READY);
	CAUGHT(l, FENCE);
	l = claimed();
	line(&l, 20, "archived", 2, 0, 0); /* nobody granted it */
	CAUGHT(l, FENCE);
	l = claimed();
	line(&l, 20, "archived", 0, 0, 0);
	CAUGHT(l, FENCE);
	l = claimed();
	line(&l, 20, "updated", 7, 0, 0); /* an import may bring a higher one */
	CLEAN(l);
}

static void holders(void **state)
{
	struct log l = claimed();

	(void)state;
	grant(&l, 999, "claimed", 2, 0);
	CAUGHT(l, HOLDERS);
	l = claimed();
	grant(&l, 1000, "resumed", 2, 0);
	CLEAN(l);
	l = claimed();
	line(&l, 999, "abandoned", 1, 0, 0);
	grant(&l, 999, "claimed", 2, 0);
	CAUGHT(l, HOLDERS);
	l = claimed();
	line(&l, 1000, "abandoned", 1, 0, 0);
	grant(&l, 1000, "claimed", 2, 0);
	CLEAN(l);
	l = claimed();
	add_to(&l, &l.head, 20,
	       (struct event){ .name = STR("abandoned"),
			       .task = STR("t1"),
			       .fence = 1,
			       .text = STR("process 7 died; found by bob") });
	line(&l, 20, "cleaned_up", 1, 0, 0);
	CLEAN(l);
}

/* Another program removes a lock without a line. */
static void shared(void **state)
{
	struct log l = claimed();

	(void)state;
	l.shared = true;
	grant(&l, 20, "claimed", 2, 0);
	line(&l, 30, "abandoned", 2, 0, 0);
	line(&l, 40, "lock_broken", 3, 0, 0); /* of the other program's lock */
	line(&l, 50, "done", 3, IN_PROGRESS, DONE);
	CLEAN(l);
	l = claimed();
	l.shared = true;
	grant(&l, 20, "claimed", 1, 0);
	CAUGHT(l, FENCE);
}

static void manual(void **state)
{
	struct log l = begin();

	(void)state;
	line(&l, 0, "created", 0, 0, READY);
	grant(&l, 10, "locked", 1, 0);
	grant(&l, 20, "claimed", 1, READY);
	line(&l, 30, "done", 1, IN_PROGRESS, DONE);
	CLEAN(l);
	l = claimed();
	grant(&l, 1000, "claimed", 1, 0); /* it is not under a manual lock */
	CAUGHT(l, FENCE);
}

static void ends(void **state)
{
	static const char *const names[] = { "review", "escalated", "failed", "done", "blocked" };
	static const int64_t to[] = { REVIEW, NEEDS_HELP, FAILED, DONE, BLOCKED };

	(void)state;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		struct log l = claimed();

		line(&l, 20, names[i], 1, IN_PROGRESS, to[i]);
		CLEAN(l);
		l = claimed();
		line(&l, 20, "lock_broken", 1, 0, 0);
		line(&l, 30, names[i], 1, IN_PROGRESS, to[i]);
		CAUGHT(l, LOCK);
	}
	for (int lost = 0; lost < 2; lost++) {
		struct log l = claimed();

		line(&l, 20, lost ? "comment" : "lock_broken", 1, 0, 0);
		line(&l, 1030, "abandoned", 1, 0, 0);
		if (lost)
			CLEAN(l);
		else
			CAUGHT(l, LOCK);
	}
}

static void statuses(void **state)
{
	struct log l = claimed();

	(void)state;
	line(&l, 20, "approved", 1, IN_PROGRESS, DONE);
	CAUGHT(l, STATUS);
	l = claimed();
	line(&l, 20, "done", 1, IN_PROGRESS, FAILED);
	CAUGHT(l, STATUS);
	l = claimed();
	line(&l, 20, "review", 1, IN_PROGRESS, REVIEW);
	line(&l, 30, "retried", 1, FAILED, READY); /* it was not Failed */
	CAUGHT(l, STATUS);
	l = claimed();
	line(&l, 20, "review", 1, IN_PROGRESS, REVIEW);
	line(&l, 30, "retried", 1, FAILED, READY);
	l.shared = true; /* another program may have done that */
	CLEAN(l);
	l = claimed();
	line(&l, 20, "of a newer pawl", 1, 0, FAILED);
	CLEAN(l);
}

static void records(void **state)
{
	struct log l = claimed();

	(void)state;
	l.task.status = READY;
	CAUGHT(l, RECORD);
	l = claimed();
	l.task.status = READY;
	l.shared = true;
	CLEAN(l);
	l = claimed();
	l.task.fence = 2;
	CAUGHT(l, RECORD);
	l = claimed();
	line(&l, 20, "lock_broken", 1, 0, 0);
	l.task.lock =
		(struct lock){ .holder = STR("ann"), .token = STR("x"), .expires_at = T + 1000 };
	CAUGHT(l, RECORD);
	l = claimed();
	l.task.lock =
		(struct lock){ .holder = STR("ann"), .token = STR("x"), .expires_at = T + 1000 };
	CLEAN(l);
	l = claimed();
	l.task.chain = STR("0123456789abcdef");
	CAUGHT(l, RECORD);
	l = claimed();
	l.no_record = true;
	CAUGHT(l, RECORD);
	l = begin();
	l.task.chain = STR("0123456789abcdef");
	CAUGHT(l, RECORD); /* its lines are gone */
}

static void chains(void **state)
{
	struct log l = claimed();

	(void)state;
	l.head = STR("0123456789abcdef");
	line(&l, 20, "comment", 1, 0, 0);
	CAUGHT(l, CHAIN);
	l = claimed();
	l.head = STR("");
	line(&l, 20, "comment", 1, 0, 0);
	CAUGHT(l, CHAIN);
	l = claimed();
	l.head = STR("");
	line(&l, 20, "imported", 1, 0, 0);
	CLEAN(l);
	l = begin();
	l.head = STR("0123456789abcdef");
	line(&l, 0, "created", 0, 0, READY);
	CAUGHT(l, CHAIN);
	l = begin();
	l.head = STR("0123456789abcdef");
	line(&l, 0, "created", 0, 0, READY);
	l.since = T + 1;
	CLEAN(l);
}

/* Lines of another time, and a restore within the lines of a restore. */
static void restores(void **state)
{
	struct log l = claimed();

	(void)state;
	about_queue(&l, "restoring");
	l.head = STR("0123456789abcdef"); /* of a line that this log does not have */
	line(&l, 5, "comment", 0, 0, 0);
	about_queue(&l, "restored");
	l.head = STR("");
	line(&l, 30, "comment", 1, 0, 0);
	CLEAN(l);
	l = claimed();
	about_queue(&l, "restoring");
	about_queue(&l, "restored");
	line(&l, 30, "comment", 1, 0, 0); /* continues the chain that ended */
	CAUGHT(l, CHAIN);
	l = begin();
	about_queue(&l, "restoring");
	{
		struct str outer = l.queue_head;

		l.queue_head = STR("fedcba9876543210");
		about_queue(&l, "log_cut");
		about_queue(&l, "restoring");
		about_queue(&l, "restored");
		l.queue_head = outer;
		about_queue(&l, "restored");
	}
	line(&l, 30, "created", 0, 0, READY);
	CLEAN(l);
	l = begin();
	about_queue(&l, "restoring");
	l.queue_head = STR("fedcba9876543210");
	about_queue(&l, "log_cut");
	about_queue(&l, "log_cut");
	l.queue_head = STR("another one here");
	about_queue(&l, "log_cut");
	line(&l, 30, "created", 0, 0, READY);
	CAUGHT(l, CHAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fences),  cmocka_unit_test(holders), cmocka_unit_test(manual),
		cmocka_unit_test(shared),  cmocka_unit_test(ends),    cmocka_unit_test(statuses),
		cmocka_unit_test(records), cmocka_unit_test(chains),  cmocka_unit_test(restores),
	};

	return cmocka_run_group_tests_name("forged logs", tests, NULL, NULL);
}
