/*
 * An edit under construction. Its puts and drops form an overlay over the store, and every read by the edit sees
 * the overlay first. So an edit sees its own writes before the commit.
 */
#include <stdlib.h>

#include "store/store.h"

static struct edit_item *item_find(const struct edit *e, struct str key)
{
	struct edit_item *it = e->n_slots ? e->table[str_hash(key) & (e->n_slots - 1)] : NULL;

	while (it && !str_eq(it->rec.key, key))
		it = it->chain;
	return it;
}

static void item_link(struct edit *e, struct edit_item *it)
{
	struct edit_item **slot = &e->table[str_hash(it->rec.key) & (e->n_slots - 1)];

	it->chain = *slot;
	*slot = it;
}

/* An import puts many thousand records in one change, so a lookup must not scan them all. */
static void table_grow(struct edit *e)
{
	e->n_slots = e->n_slots ? e->n_slots * 4 : 16;
	e->table = arena_array(e->arena, struct edit_item *, e->n_slots);
	for (struct edit_item *it = e->items; it; it = it->next)
		item_link(e, it);
}

static struct edit_item *item_make(struct edit *e, struct str key)
{
	struct edit_item *it = item_find(e, key);

	if (it)
		return it;
	if (e->n_items >= e->n_slots)
		table_grow(e);
	it = arena_new(e->arena, struct edit_item);
	it->rec.key = key;
	it->serial = e->n_items++;
	it->next = e->items;
	e->items = it;
	item_link(e, it);
	return it;
}

/* --- reading ------------------------------------------------------------------------------------ */

static struct strs list_copy(struct arena *a, struct strs list)
{
	struct strs out = { arena_array(a, struct str, list.n), list.n };

	if (list.n)
		memcpy(out.v, list.v, list.n * sizeof(*list.v));
	return out;
}

/* Makes a copy that the caller may modify. If the change read a record without its body and put it again, the
 * body is still in the store. */
static int item_read(struct edit *e, const struct edit_item *it, bool body, struct record *out)
{
	struct record stored;
	int rc;

	*out = it->rec;
	out->body_changed = false;
	out->ix.labels = list_copy(e->arena, out->ix.labels);
	out->ix.depends = list_copy(e->arena, out->ix.depends);
	if (!body || it->rec.body_changed || it->rec.body.n)
		return 0;
	rc = e->store->ops->get(e->store, out->key, &stored, e->arena);
	if (rc == 0)
		out->body = stored.body;
	return rc < 0 ? rc : 0;
}

int edit_get(struct edit *e, struct str key, struct record **out)
{
	const struct edit_item *it = item_find(e, key);
	struct record *r = arena_new(e->arena, struct record);
	int rc;

	*out = NULL;
	if (it)
		rc = it->dropped ? 1 : item_read(e, it, true, r);
	else
		rc = e->store->ops->get(e->store, key, r, e->arena);
	if (rc == 0 && index_gone(&r->ix, e->now))
		rc = 1;
	if (rc == 0)
		*out = r;
	return rc;
}

/* A scan of the store with the edit's own records sorted in. */
struct merge {
	struct edit *e;
	const struct query *q;
	record_fn *fn;
	void *ctx;
	struct record *own; /* the edit's own records that match, in order */
	size_t n_own, next;
	size_t serial;               /* `fn` put the items from here on; this scan ignores them */
	const struct record *anchor; /* the record of q->after */
	size_t sent;
	bool enough;
};

static bool merge_wants(const struct merge *m, const struct index *ix)
{
	return query_matches(m->q, ix, m->e->now) &&
	       (!m->anchor || query_cmp(m->q, ix, &m->anchor->ix) > 0);
}

static int merge_send(struct merge *m, const struct record *r)
{
	int rc = m->fn(r, m->ctx);

	m->sent++;
	if (rc == 0 && m->q->limit && m->sent >= m->q->limit)
		rc = 1;
	m->enough = rc > 0;
	return rc;
}

/* Sends the edit's own records that come before `limit`; NULL: all that remain. */
static int merge_own(struct merge *m, const struct index *limit)
{
	int rc = 0;

	while (rc == 0 && m->next < m->n_own &&
	       (!limit || query_cmp(m->q, &m->own[m->next].ix, limit) < 0))
		rc = merge_send(m, &m->own[m->next++]);
	return rc;
}

static int merge_stored(const struct record *r, void *ctx)
{
	struct merge *m = ctx;
	const struct edit_item *it = item_find(m->e, r->key);
	int rc;

	if ((it && it->serial < m->serial) || !merge_wants(m, &r->ix))
		return 0;
	rc = merge_own(m, &r->ix);
	return rc ? rc : merge_send(m, r);
}

/* One comparison for each order, because standard qsort() passes no context, and variants that do are not portable. */
static int order_by(enum pick pick, const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return query_cmp(&(struct query){ .pick = pick }, &x->ix, &y->ix);
}

static int order_all(const void *a, const void *b)
{
	return order_by(PICK_ALL, a, b);
}

static int order_eligible(const void *a, const void *b)
{
	return order_by(PICK_ELIGIBLE, a, b);
}

static int order_later(const void *a, const void *b)
{
	return order_by(PICK_LATER, a, b);
}

static int (*const orders[])(const void *, const void *) = {
	[PICK_ALL] = order_all,    [PICK_ELIGIBLE] = order_eligible, [PICK_LATER] = order_later,
	[PICK_OTHERS] = order_all, [PICK_WAITING] = order_eligible,
};

static int merge_collect(struct merge *m)
{
	m->serial = m->e->n_items;
	m->own = arena_array(m->e->arena, struct record, m->e->n_items);
	for (const struct edit_item *it = m->e->items; it; it = it->next) {
		int rc;

		if (it->dropped || !merge_wants(m, &it->rec.ix))
			continue;
		rc = item_read(m->e, it, m->q->body, &m->own[m->n_own++]);
		if (rc < 0)
			return rc;
	}
	if (m->n_own > 1)
		qsort(m->own, m->n_own, sizeof(*m->own), orders[m->q->pick]);
	return 0;
}

int edit_scan(struct edit *e, const struct query *q, record_fn *fn, void *ctx)
{
	struct merge m = { .e = e, .q = q, .fn = fn, .ctx = ctx };
	struct query inner = *q;
	struct record *anchor;
	int rc;

	if (q->pick == PICK_ALL && q->after.n) {
		rc = edit_get(e, q->after, &anchor);
		if (rc)
			return rc < 0 ? rc : 0;
		m.anchor = anchor;
		if (item_find(e, q->after)) /* its position in the store may be stale */
			inner.after = (struct str){ 0 };
	}
	rc = merge_collect(&m);
	if (rc < 0)
		return rc;
	if (q->limit && !inner.after.n && m.anchor)
		inner.limit = 0; /* merge_wants() drops the records before the anchor */
	else if (q->limit)
		inner.limit = q->limit +
			      e->n_items; /* each own record hides at most one stored record */
	rc = e->store->ops->scan(e->store, &inner, merge_stored, &m);
	if (rc == 0 && !m.enough)
		rc = merge_own(&m, NULL);
	return rc < 0 ? rc : 0;
}

struct first {
	struct arena *arena;
	struct record *found;
};

static int keep_first(const struct record *r, void *ctx)
{
	struct first *f = ctx;

	f->found = record_copy(f->arena, r);
	return 1;
}

int edit_first(struct edit *e, const struct query *q, struct record **out)
{
	struct first f = { .arena = e->arena };
	struct query one = *q;
	int rc;

	one.limit = 1;
	rc = edit_scan(e, &one, keep_first, &f);
	*out = rc < 0 ? NULL : f.found;
	if (rc < 0)
		return rc;
	return f.found ? 0 : 1;
}

struct record *record_copy(struct arena *a, const struct record *r)
{
	struct record *c = arena_new(a, struct record);

	*c = *r;
	c->key = arena_str(a, r->key);
	c->ix.id = arena_str(a, r->ix.id);
	c->ix.holder = arena_str(a, r->ix.holder);
	c->ix.token = arena_str(a, r->ix.token);
	c->ix.parent = arena_str(a, r->ix.parent);
	c->ix.type = arena_str(a, r->ix.type);
	c->ix.labels = arena_strs(a, r->ix.labels);
	c->ix.depends = arena_strs(a, r->ix.depends);
	c->hot = arena_str(a, r->hot);
	c->body = arena_str(a, r->body);
	return c;
}

/* --- writing ------------------------------------------------------------------------------------ */

void edit_put(struct edit *e, struct record *r)
{
	size_t before = e->n_items;
	struct edit_item *it = item_make(e, r->key);
	struct record old = it->rec;
	bool fresh = e->n_items > before, dropped = it->dropped;

	it->rec = *r;
	it->dropped = false;
	if (fresh || r->body_changed)
		return;
	if (dropped) {
		it->rec.body_changed = true; /* replaces the body of the dropped record */
	} else if (old.body_changed) {
		it->rec.body = old.body;
		it->rec.body_changed = true;
	}
}

void edit_drop(struct edit *e, struct str key)
{
	struct edit_item *it = item_make(e, key);

	it->rec = (struct record){ .key = key };
	it->dropped = true;
}

void edit_forget(struct edit *e, int64_t before, unsigned except)
{
	e->forget = before;
	e->forget_except = except;
}

void edit_log(struct edit *e, struct str key, struct str data)
{
	edit_log_at(e, e->now, key, data);
}

void edit_log_at(struct edit *e, int64_t at, struct str key, struct str data)
{
	struct edit_entry *n = arena_new(e->arena, struct edit_entry);

	n->entry = (struct entry){ .at = at, .key = key, .data = data };
	*e->last = n;
	e->last = &n->next;
}

/* --- reading the log -------------------------------------------------------------------------------- */

static size_t entries_about(const struct edit_entry *list, struct str key)
{
	size_t n = 0;

	for (; list; list = list->next)
		n += str_eq(list->entry.key, key);
	return n;
}

static int entries_send(const struct edit_entry *list, struct str key, size_t *skip, entry_fn *fn,
			void *ctx)
{
	int rc = 0;

	for (; rc == 0 && list; list = list->next) {
		if (!str_eq(list->entry.key, key))
			continue;
		if (*skip)
			--*skip;
		else
			rc = fn(&list->entry, ctx);
	}
	return rc;
}

int edit_entries(struct edit *e, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	const struct edit_entry *earlier = e->store->uncommitted;
	size_t new = entries_about(earlier, q->key) + entries_about(e->entries, q->key);
	size_t skip = q->last && new > q->last ? new - q->last : 0;
	struct entry_query stored = { .key = q->key, .last = q->last ? q->last - (new - skip) : 0 };
	int rc = 0;

	if (!q->last || stored.last)
		rc = e->store->ops->entries(e->store, &stored, fn, ctx);
	if (rc == 0)
		rc = entries_send(earlier, q->key, &skip, fn, ctx);
	return rc ? rc : entries_send(e->entries, q->key, &skip, fn, ctx);
}

int edit_run(struct edit *e, struct store *s, struct arena *a, int64_t now, struct change *c)
{
	*e = (struct edit){ .store = s, .arena = a, .now = now };
	e->last = &e->entries;
	c->rc = c->fn(e, c->ctx);
	return c->rc;
}
