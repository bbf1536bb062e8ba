/* The mem: store: places that all handles of the process share by name. It has no locks, because only one thread
 * may use it; a change inside a change fails instead of waiting. */
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "store/local/batch_counts.h"
#include "store/mem/mem.h"

struct place {
	struct place *next;
	char *name; /* NULL: not shared */
	int refs;
	struct mem_queue *queues;
	struct store_counts counts;
	int64_t epoch;                        /* wall clock at boot */
	int64_t (*wall)(void), (*boot)(void); /* the clocks that `epoch` was computed with */
};

struct mem {
	struct store base;
	struct place *place;
	struct mem_queue *queue;
};

static struct place *places; /* the named places */

/* --- places ------------------------------------------------------------------------------------- */

static char *name_copy(struct str s)
{
	char *p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

static void place_drop(struct place *p)
{
	struct mem_queue *next;

	if (--p->refs)
		return;
	for (struct mem_queue *q = p->queues; q; q = next) {
		next = q->next;
		mem_queue_free(q);
	}
	free(p->name);
	free(p);
}

static struct place *place_get(struct str name, bool create)
{
	struct place *p;

	for (p = places; p; p = p->next) {
		if (name.n && str_is(name, p->name)) {
			p->refs++;
			return p;
		}
	}
	if (!create)
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = (struct place){ .refs = 1 };
	if (name.n) {
		p->name = name_copy(name);
		p->refs++; /* the list's own reference */
		p->next = places;
		places = p;
	}
	return p;
}

static struct mem_queue *place_queue(struct place *p, struct str name, bool create)
{
	struct mem_queue *q = p->queues;

	while (q && !(q->name && str_is(name, q->name)))
		q = q->next;
	if (q || !create)
		return q;
	q = mem_alloc(sizeof(*q));
	*q = (struct mem_queue){ .name = name_copy(name), .next = p->queues };
	p->queues = q;
	return q;
}

void mem_reset(void)
{
	struct place *p = places, *next;

	places = NULL;
	for (; p; p = next) {
		next = p->next;
		place_drop(p);
	}
}

/* --- opening ------------------------------------------------------------------------------------ */

static int64_t boot_ms(const struct store_env *env)
{
	return env->opt.boot ? env->opt.boot() : os_boot_ms();
}

/* Sets a place's epoch once, so that its time advances evenly. Only a caller with other clocks sets it again. */
static void place_clock(struct place *p, const struct store_env *env)
{
	if (p->epoch && p->boot == env->opt.boot && p->wall == env->opt.wall)
		return;
	p->wall = env->opt.wall;
	p->boot = env->opt.boot;
	p->epoch = (env->opt.wall ? env->opt.wall() : os_wall_ms()) - boot_ms(env);
}

static int mem_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	struct str name = env->opt.queue.n ? env->opt.queue : STR("default");
	bool create = env->mode == STORE_CREATE;
	struct place *place = place_get(uri->path, create);
	struct mem_queue *queue = place ? place_queue(place, name, create) : NULL;
	struct mem *m;

	if (!queue) {
		if (place)
			place_drop(place);
		return store_fail(env, STORE_ABSENT, "pawl init",
				  "there is no queue '%.*s' in mem:%.*s", STRF(name),
				  STRF(uri->path));
	}
	place_clock(place, env);
	m = mem_alloc(sizeof(*m));
	*m = (struct mem){ .base = { .ops = &store_mem, .env = *env },
			   .place = place,
			   .queue = queue };
	*out = &m->base;
	return 0;
}

static void mem_close(struct store *s)
{
	struct mem *m = (struct mem *)s;

	place_drop(m->place);
	free(m);
}

static int64_t mem_now(struct store *s)
{
	struct mem *m = (struct mem *)s;

	if (m->queue->writer == m)
		return m->queue->frozen;
	if (s->env.opt.wall && !s->env.opt.boot)
		return s->env.opt.wall();
	return m->place->epoch + boot_ms(&s->env);
}

/* --- reading ------------------------------------------------------------------------------------ */

static int mem_get(struct store *s, struct str key, struct record *out, struct arena *a)
{
	const struct record *r = mem_queue_get(((struct mem *)s)->queue, key, mem_now(s));

	if (!r)
		return 1;
	*out = *record_copy(a, r);
	return 0;
}

static int mem_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx)
{
	return mem_queue_scan(((struct mem *)s)->queue, q, mem_now(s), fn, ctx);
}

static int mem_count(struct store *s, const struct query *q, int64_t *n)
{
	*n = mem_queue_count(((struct mem *)s)->queue, q, mem_now(s));
	return 0;
}

static int mem_tally(struct store *s, int64_t *counts)
{
	struct mem *m = (struct mem *)s;

	memcpy(counts, m->queue->counts, sizeof(m->queue->counts));
	return 0;
}

static int mem_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct mem_queue *queue = ((struct mem *)s)->queue;
	int64_t after = 0;

	if (q->after.n &&
	    (!str_to_i64(q->after, &after) || after < 0 || (uint64_t)after > queue->n_log))
		return store_fail(&s->env, STORE_UNSUPPORTED, NULL,
				  "'%.*s' is not a cursor of this queue", STRF(q->after));
	return mem_queue_entries(queue, q, (size_t)after, fn, ctx);
}

static int mem_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx)
{
	(void)s; /* there is only one thread */
	(void)all;
	return fn(ctx);
}

/* --- changing ----------------------------------------------------------------------------------- */

static int run_all(struct mem *m, struct change *changes, size_t n, struct arena *a,
		   struct mem_undo **undo)
{
	for (size_t i = 0; i < n; i++) {
		struct edit e;
		int rc = edit_run(&e, &m->base, a, m->queue->frozen, &changes[i]);

		if (rc < 0)
			return rc;
		if (rc == 0)
			mem_queue_apply(m->queue, &e, undo);
	}
	return 0;
}

static int may_write(struct store *s)
{
	const struct mem_queue *q = ((struct mem *)s)->queue;

	if (s->env.mode == STORE_READ)
		return store_fail(&s->env, STORE_READONLY, NULL,
				  "the store was opened for reading only");
	if (q->writer) /* there is only one thread: waiting would not help */
		return store_fail(&s->env, STORE_BUSY, NULL, "%.*s is changing the queue",
				  STRF(q->writer->base.env.opt.who));
	return 0;
}

static int mem_modify(struct store *s, struct change *changes, size_t n)
{
	struct mem *m = (struct mem *)s;
	struct mem_queue *q = m->queue;
	size_t n_log = q->n_log;
	struct mem_undo *undo = NULL;
	struct arena a = { 0 };
	int rc = may_write(s);

	if (rc < 0)
		return rc;
	if (!q->name)
		return store_fail(&s->env, STORE_ABSENT, "pawl init",
				  "the queue was removed while it was open");
	q->frozen = mem_now(s);
	q->writer = m;
	rc = run_all(m, changes, n, &a, &undo);
	if (rc < 0 || s->env.trial)
		mem_queue_take_back(q, undo, n_log);
	else
		mem_queue_commit(q, undo, q->frozen);
	for (size_t i = 0; rc < 0 && i < n; i++)
		changes[i].rc = rc;
	q->writer = NULL;
	arena_free(&a);
	return rc;
}

/* --- the rest ----------------------------------------------------------------------------------- */

static int mem_wake_fd(struct store *s)
{
	(void)s;
	return -1;
}

static void mem_wake_clear(struct store *s)
{
	(void)s;
}

static int mem_check(struct store *s, check_fn *fn, void *ctx)
{
	struct mem *m = (struct mem *)s;
	char text[80];

	snprintf(text, sizeof(text), "in memory, %zu records, lost when this process ends",
		 m->queue->n);
	fn(ctx, CHECK_NOTE, "store", str_c(text), STR("use sqlite: to keep tasks"));
	return 0;
}

static struct store_counts *mem_counts(struct store *s)
{
	return &((struct mem *)s)->place->counts;
}

static int mem_queues(struct store *s, name_fn *fn, void *ctx)
{
	for (const struct mem_queue *q = ((struct mem *)s)->place->queues; q; q = q->next)
		if (q->name)
			fn(ctx, str_c(q->name));
	return 0;
}

static int mem_discard(struct store *s)
{
	int rc = may_write(s);

	if (rc == 0)
		mem_queue_empty(((struct mem *)s)->queue);
	return rc;
}

const struct store_ops store_mem = {
	.scheme = "mem",
	.open = mem_open,
	.close = mem_close,
	.now = mem_now,
	.get = mem_get,
	.scan = mem_scan,
	.count = mem_count,
	.tally = mem_tally,
	.modify = mem_modify,
	.entries = mem_entries,
	.snapshot = mem_snapshot,
	.wake_fd = mem_wake_fd,
	.wake_clear = mem_wake_clear,
	.check = mem_check,
	.queues = mem_queues,
	.discard = mem_discard,
	.counts = mem_counts,
};
