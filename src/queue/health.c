/* What is counted: added to by every process that changes something, with one atomic instruction each. */
#include <stdatomic.h>
#include <time.h>

#include "base/os.h"
#include "queue/act.h"
#include "store/local/counts.h"

#define OPS 64 /* as many as there will ever be: another number would be another layout */

struct op_counts {
	_Atomic uint64_t done, failed, wait_us, wait_max_us, held, hold_us, hold_max_us;
	_Atomic uint32_t waits[HEALTH_RANGES];
};

struct queue_counts {
	_Atomic uint64_t failures;
	_Atomic int64_t last_failed[16];
	struct op_counts op[OPS];
};

_Static_assert(OP_END <= OPS && sizeof(struct queue_counts) <= COUNTS_ROOM, "there is room");

int64_t health_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct queue_counts *counts_of(struct store *s)
{
	struct store_counts *c = s->ops->counts ? s->ops->counts(s) : NULL;

	return c ? (struct queue_counts *)(void *)c->room : NULL;
}

static void add(_Atomic uint64_t *n, int64_t by)
{
	atomic_fetch_add_explicit(n, by > 0 ? (uint64_t)by : 0, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *n, int64_t to)
{
	uint64_t was = atomic_load_explicit(n, memory_order_relaxed);

	while (to > 0 && was < (uint64_t)to &&
	       !atomic_compare_exchange_weak_explicit(n, &was, (uint64_t)to, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static void count_wait(struct op_counts *o, int64_t us)
{
	add(&o->wait_us, us);
	raise_to(&o->wait_max_us, us);
	atomic_fetch_add_explicit(&o->waits[health_range(us)], 1, memory_order_relaxed);
}

static void count_failed(struct queue_counts *c, const struct job *j, int64_t asked_ns)
{
	struct op_counts *o = &c->op[j->rq->op];
	uint64_t at = atomic_fetch_add_explicit(&c->failures, 1, memory_order_relaxed);

	atomic_store_explicit(&c->last_failed[at % 16], os_wall_ms(), memory_order_relaxed);
	add(&o->failed, 1);
	count_wait(o, (health_ns() - asked_ns) / 1000);
}

static void count_done(struct queue_counts *c, const struct job *j, int64_t asked_ns)
{
	struct op_counts *o = &c->op[j->rq->op];
	int64_t hold = (j->ended_ns - j->began_ns) / 1000;

	add(&o->done, 1);
	count_wait(o, (j->began_ns - asked_ns) / 1000);
	if (j->handed)
		return;
	add(&o->held, 1);
	add(&o->hold_us, hold);
	raise_to(&o->hold_max_us, hold);
}

void health_count(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns)
{
	struct queue_counts *c = n && s->env.counting ? counts_of(s) : NULL;

	for (size_t i = 0; c && i < n; i++) {
		if (jobs[i].failed)
			count_failed(c, &jobs[i], asked_ns);
		else if (!jobs[i].ans->barred)
			count_done(c, &jobs[i], asked_ns);
	}
}

void health_count_failed(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns)
{
	struct queue_counts *c = s->env.counting ? counts_of(s) : NULL;

	for (size_t i = 0; c && i < n; i++)
		count_failed(c, &jobs[i], asked_ns);
}

/* --- read ---------------------------------------------------------------------------------------- */

static void read_op(const struct op_counts *o, struct health_op *out)
{
	*out = (struct health_op){
		.done = (int64_t)o->done,
		.failed = (int64_t)o->failed,
		.wait_us = (int64_t)o->wait_us,
		.wait_max_us = (int64_t)o->wait_max_us,
		.held = (int64_t)o->held,
		.hold_us = (int64_t)o->hold_us,
		.hold_max_us = (int64_t)o->hold_max_us,
	};
	for (int i = 0; i < HEALTH_RANGES; i++)
		out->waits[i] = o->waits[i];
}

static void add_op(struct health_op *all, const struct health_op *o)
{
	all->done += o->done;
	all->failed += o->failed;
	all->wait_us += o->wait_us;
	all->held += o->held;
	all->hold_us += o->hold_us;
	if (o->wait_max_us > all->wait_max_us)
		all->wait_max_us = o->wait_max_us;
	if (o->hold_max_us > all->hold_max_us)
		all->hold_max_us = o->hold_max_us;
	for (int i = 0; i < HEALTH_RANGES; i++)
		all->waits[i] += o->waits[i];
}

bool health_read(struct store *s, struct health *out)
{
	const struct store_counts *of_store = s->ops->counts ? s->ops->counts(s) : NULL;
	const struct queue_counts *c;

	*out = (struct health){ 0 };
	if (!of_store)
		return false;
	c = (const struct queue_counts *)(const void *)of_store->room;
	for (int op = OP_NONE; op < OP_END; op++) {
		read_op(&c->op[op], &out->op[op]);
		add_op(&out->all, &out->op[op]);
	}
	for (size_t i = 0; i < sizeof(out->last_failed) / sizeof(*out->last_failed); i++)
		out->last_failed[i] = c->last_failed[i];
	out->commits = (int64_t)of_store->commits;
	out->changes = (int64_t)of_store->changes;
	out->handed = (int64_t)of_store->handed;
	return true;
}
