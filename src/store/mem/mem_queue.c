/* One queue in memory, as reference-counted versions of its records. A version never changes after it was made, so
 * a scan or an undo list may keep it while the queue moves on. */
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "store/mem/mem.h"
#include "store/store_tools.h"

#define SWEEP_EVERY 64 /* commits */

struct blob {
	int refs;
	struct str bytes;
	char data[];
};

struct version {
	int refs;
	struct record rec;
	struct blob *body;
	_Alignas(max_align_t) char data[];
};

struct line {
	struct entry entry;
	char cursor[24];
	char data[];
};

/* --- versions ----------------------------------------------------------------------------------- */

static struct blob *blob_make(struct str bytes)
{
	struct blob *b = mem_alloc(sizeof(*b) + bytes.n);

	b->refs = 1;
	if (bytes.n)
		memcpy(b->data, bytes.p, bytes.n);
	b->bytes = str_n(b->data, bytes.n);
	return b;
}

static void version_drop(struct version *v)
{
	if (!v || --v->refs)
		return;
	if (v->body && --v->body->refs == 0)
		free(v->body);
	free(v);
}

static size_t list_size(struct strs l)
{
	size_t n = l.n * sizeof(struct str);

	for (size_t i = 0; i < l.n; i++)
		n += l.v[i].n;
	return n;
}

static void move_str(char **at, struct str *s)
{
	if (s->n)
		memcpy(*at, s->p, s->n);
	s->p = *at;
	*at += s->n;
}

/* The vectors come first in the block, because they need its alignment. */
static void move_vector(char **at, struct strs *l)
{
	if (l->n)
		memcpy(*at, l->v, l->n * sizeof(*l->v));
	l->v = (struct str *)(void *)*at;
	*at += l->n * sizeof(*l->v);
}

static void move_list(char **at, struct strs *l)
{
	for (size_t i = 0; i < l->n; i++)
		move_str(at, &l->v[i]);
}

/* Copies `r` into one block. The body comes from `old` unless it changed. */
static struct version *version_make(const struct record *r, const struct version *old)
{
	const struct index *ix = &r->ix;
	size_t n = r->key.n + r->hot.n + ix->id.n + ix->holder.n + ix->token.n + ix->parent.n +
		   ix->type.n + list_size(ix->labels) + list_size(ix->depends);
	struct version *v = mem_alloc(sizeof(*v) + n);
	char *at = v->data;

	*v = (struct version){ .refs = 1, .rec = *r };
	move_vector(&at, &v->rec.ix.labels);
	move_vector(&at, &v->rec.ix.depends);
	move_list(&at, &v->rec.ix.labels);
	move_list(&at, &v->rec.ix.depends);
	move_str(&at, &v->rec.key);
	move_str(&at, &v->rec.hot);
	move_str(&at, &v->rec.ix.id);
	move_str(&at, &v->rec.ix.holder);
	move_str(&at, &v->rec.ix.token);
	move_str(&at, &v->rec.ix.parent);
	move_str(&at, &v->rec.ix.type);
	if (r->body_changed)
		v->body = blob_make(r->body);
	else if (old && old->body)
		(v->body = old->body)->refs++;
	v->rec.body = v->body ? v->body->bytes : (struct str){ 0 };
	v->rec.body_changed = false;
	return v;
}

/* --- queues ------------------------------------------------------------------------------------- */

static struct str key_at(const void *list, size_t i)
{
	const struct mem_queue *q = list;

	return q->records[i]->rec.key;
}

static void tally_add(struct mem_queue *q, const struct version *v, int by)
{
	if (v && v->rec.ix.status)
		q->counts[v->rec.ix.status & (STORE_STATUSES - 1)] += by;
}

/* Replaces the version of `key` by `v`, or drops it if `v` is NULL. Returns the former version. */
static struct version *queue_set(struct mem_queue *q, struct str key, struct version *v)
{
	bool found;
	size_t i = search_key(q, q->n, key, key_at, &found);
	struct version *old = found ? q->records[i] : NULL;

	tally_add(q, old, -1);
	tally_add(q, v, 1);
	if (v && found) {
		q->records[i] = v;
	} else if (v) {
		if (q->n == q->room)
			q->records = mem_grow(q->records,
					      (q->room = q->room * 2 + 16) * sizeof(*q->records));
		memmove(q->records + i + 1, q->records + i, (q->n++ - i) * sizeof(*q->records));
		q->records[i] = v;
	} else if (found) {
		memmove(q->records + i, q->records + i + 1, (--q->n - i) * sizeof(*q->records));
	}
	return old;
}

static void queue_log(struct mem_queue *q, const struct entry *e)
{
	struct line *l = mem_alloc(sizeof(*l) + e->key.n + e->data.n);
	char *at = l->data;

	l->entry = *e;
	move_str(&at, &l->entry.key);
	move_str(&at, &l->entry.data);
	snprintf(l->cursor, sizeof(l->cursor), "%zu", q->n_log + 1);
	l->entry.cursor = str_c(l->cursor);
	if (q->n_log == q->log_room)
		q->log = mem_grow(q->log, (q->log_room = q->log_room * 2 + 16) * sizeof(*q->log));
	q->log[q->n_log++] = l;
}

void mem_queue_empty(struct mem_queue *q)
{
	for (size_t i = 0; i < q->n; i++)
		version_drop(q->records[i]);
	for (size_t i = 0; i < q->n_log; i++)
		free(q->log[i]);
	free(q->records);
	free(q->log);
	free(q->name);
	*q = (struct mem_queue){ .next = q->next };
}

void mem_queue_free(struct mem_queue *q)
{
	mem_queue_empty(q);
	free(q);
}

/* Frees the memory of expired records, which no reader sees any more. */
static void queue_sweep(struct mem_queue *q, int64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < q->n; i++) {
		struct version *v = q->records[i];

		if (!index_gone(&v->rec.ix, now)) {
			q->records[kept++] = v;
			continue;
		}
		tally_add(q, v, -1);
		version_drop(v);
	}
	q->n = kept;
}

void mem_queue_put(struct mem_queue *q, const struct record *r)
{
	version_drop(queue_set(q, r->key, version_make(r, NULL)));
}

void mem_queue_drop(struct mem_queue *q, struct str key)
{
	version_drop(queue_set(q, key, NULL));
}

/* --- reading ------------------------------------------------------------------------------------ */

const struct record *mem_queue_get(const struct mem_queue *q, struct str key, int64_t now)
{
	bool found;
	size_t i = search_key(q, q->n, key, key_at, &found);

	return found && !index_gone(&q->records[i]->rec.ix, now) ? &q->records[i]->rec : NULL;
}

/* False if no record can match. */
static bool fill_heap(struct heap *h, const struct mem_queue *queue, int64_t now)
{
	const struct index *after = NULL;
	bool found;

	if (h->q->pick == PICK_ALL && h->q->after.n) {
		size_t i = search_key(queue, queue->n, h->q->after, key_at, &found);

		if (!found)
			return false;
		after = &queue->records[i]->rec.ix;
	}
	h->v = mem_alloc(queue->n * sizeof(*h->v));
	for (size_t i = 0; i < queue->n; i++) {
		struct version *v = queue->records[i];

		if (!query_matches(h->q, &v->rec.ix, now) ||
		    (after && query_cmp(h->q, &v->rec.ix, after) <= 0))
			continue;
		v->refs++;
		h->v[h->n++] = v;
	}
	heap_order(h);
	return true;
}

int mem_queue_scan(struct mem_queue *q, const struct query *query, int64_t now, record_fn *fn,
		   void *ctx)
{
	struct heap h = { .q = query, .index = offsetof(struct version, rec.ix) };
	size_t left = query->limit ? query->limit : SIZE_MAX;
	int rc = 0;

	if (!fill_heap(&h, q, now))
		return 0;
	while (rc == 0 && h.n && left--) {
		struct version *v = heap_pop(&h);
		struct record r = v->rec;

		if (!query->body)
			r.body = (struct str){ 0 };
		rc = fn(&r, ctx);
		version_drop(v);
	}
	while (h.n)
		version_drop(h.v[--h.n]);
	free(h.v);
	return rc < 0 ? rc : 0;
}

int64_t mem_queue_count(const struct mem_queue *q, const struct query *query, int64_t now)
{
	int64_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		n += query_matches(query, &q->records[i]->rec.ix, now);
	return n;
}

static bool entry_wanted(const struct mem_queue *q, size_t i, const struct entry_query *eq)
{
	const struct entry *e = q->log[i] ? &q->log[i]->entry : NULL;

	return e && (!eq->key.n || str_eq(eq->key, e->key)) && entry_in_time(eq, e->at);
}

/* The index of the oldest of the newest eq->last entries. */
static size_t entry_first(const struct mem_queue *q, const struct entry_query *eq, size_t after,
			  void *ctx)
{
	size_t i = q->n_log, n = 0;

	while (i > after && n < eq->last) {
		i--;
		n += entry_wanted(q, i, eq) && entry_counts(eq, &q->log[i]->entry, ctx);
	}
	return i;
}

int mem_queue_entries(struct mem_queue *q, const struct entry_query *eq, size_t after, entry_fn *fn,
		      void *ctx)
{
	int rc = 0;

	for (size_t i = eq->last ? entry_first(q, eq, after, ctx) : after; rc == 0 && i < q->n_log;
	     i++)
		if (entry_wanted(q, i, eq))
			rc = fn(&q->log[i]->entry, ctx);
	return rc < 0 ? rc : 0;
}

/* --- changing ----------------------------------------------------------------------------------- */

struct mem_undo {
	struct mem_undo *next;
	struct str key;
	struct version *old;
};

void mem_queue_apply(struct mem_queue *q, const struct edit *e, struct mem_undo **undo)
{
	for (const struct edit_item *it = e->items; it; it = it->next) {
		struct mem_undo *u = arena_new(e->arena, struct mem_undo);
		struct version *v = NULL;
		bool found;
		size_t i = search_key(q, q->n, it->rec.key, key_at, &found);

		if (!it->dropped) {
			struct version *old = found ? q->records[i] : NULL;

			v = version_make(&it->rec,
					 old && !index_gone(&old->rec.ix, e->now) ? old : NULL);
			v->rec.rev = ++q->rev;
		}
		*u = (struct mem_undo){ *undo, it->rec.key, queue_set(q, it->rec.key, v) };
		*undo = u;
	}
	for (const struct edit_entry *n = e->entries; n; n = n->next)
		queue_log(q, &n->entry);
	if (e->forget) {
		q->forget = e->forget;
		q->forget_except = e->forget_except;
	}
}

/* A cursor counts the entries before it, so a forgotten entry keeps its place. */
static void queue_forget(struct mem_queue *q, int64_t now)
{
	for (size_t i = 0; i + 1 < q->n_log; i++) {
		const struct entry *e = q->log[i] ? &q->log[i]->entry : NULL;
		const struct record *r = e && e->at < q->forget ? mem_queue_get(q, e->key, now)
								: NULL;

		if (!e || e->at >= q->forget || (r && q->forget_except >> r->ix.status & 1))
			continue;
		free(q->log[i]);
		q->log[i] = NULL;
	}
	q->forget = 0;
}

void mem_queue_take_back(struct mem_queue *q, struct mem_undo *u, size_t n_log)
{
	for (; u; u = u->next)
		version_drop(queue_set(q, u->key, u->old));
	while (q->n_log > n_log)
		free(q->log[--q->n_log]);
	q->forget = 0;
}

void mem_queue_commit(struct mem_queue *q, struct mem_undo *u, int64_t now)
{
	for (; u; u = u->next)
		version_drop(u->old);
	if (q->forget)
		queue_forget(q, now);
	if (++q->commits % SWEEP_EVERY == 0)
		queue_sweep(q, now);
}
