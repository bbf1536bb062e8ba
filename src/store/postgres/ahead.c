/*
 * Reads ahead: the records and queries that changes want are read in the round trip that locks the queue. They are read
 * after the lock was granted, in the same transaction, so they are what the changes would read themselves.
 *
 * The answer of a query is a set of keys. Nobody else writes while we hold the lock, so the records that match the query
 * later in the transaction are among these and the records that the transaction itself has written. pg_remember() has
 * the current state of both. So the set stays good after a put, and one set serves all changes of a batch: it has as many
 * records as they want together. Queries by token or by dependency of several changes are one statement.
 */
#include <stdlib.h>

#include "store/postgres/postgres.h"

#define KEYS_MOST 2048
#define KEYS_SHARED 16 /* the first keys are those that all changes want */
#define MERGED_MOST 512

static bool usable(const struct query *q)
{
	return !q->after.n && !q->text.n && !q->at &&
	       (q->pick == PICK_ALL || q->pick == PICK_ELIGIBLE);
}

static bool same(const struct query *a, const struct query *b)
{
	return a->pick == b->pick && a->waiting == b->waiting && a->statuses == b->statuses &&
	       a->class_rank == b->class_rank && a->held == b->held &&
	       str_eq(a->holder, b->holder) && str_eq(a->token, b->token) &&
	       str_eq(a->type, b->type) && str_eq(a->label, b->label) &&
	       str_eq(a->parent, b->parent) && str_eq(a->depends_on, b->depends_on);
}

static bool by_token(const struct query *q)
{
	return q->token.n && same(q, &(struct query){ .token = q->token });
}

static bool by_target(const struct query *q)
{
	return q->depends_on.n && same(q, &(struct query){ .depends_on = q->depends_on });
}

static bool covers(const struct pg_set *set, const struct query *q)
{
	switch (set->kind) {
	case PG_SET_TOKENS:
		return by_token(q) && strs_have(set->values, q->token);
	case PG_SET_TARGETS:
		return by_target(q) && strs_have(set->values, q->depends_on);
	default:
		return same(&set->q, q);
	}
}

/* --- what to ask ---------------------------------------------------------------------------------- */

/* The records of a limited set that are still as they were read, and that no other change was promised. */
static size_t left_in(struct pg *s, const struct pg_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += !pg_seen(s, set->keys.v[i])->written;
	return n > set->promised ? n - set->promised : 0;
}

/* Is the query answered already? */
static bool is_known(struct pg *s, const struct query *q)
{
	for (size_t i = 0; i < s->ahead.kept; i++) {
		struct pg_set *set = &s->ahead.sets[i];

		if (!covers(set, q))
			continue;
		if (set->whole)
			return true;
		if (q->limit && left_in(s, set) >= q->limit) {
			set->promised += q->limit;
			return true;
		}
	}
	return false;
}

static struct pg_set *pending(struct pg *s, enum pg_set_kind kind, const struct query *q)
{
	struct pg_ahead *h = &s->ahead;

	for (size_t i = h->kept; i < h->n; i++)
		if (h->sets[i].kind == kind && (kind != PG_SET_ONE || same(&h->sets[i].q, q)))
			return &h->sets[i];
	if (h->n == PG_SETS)
		return NULL;
	h->sets[h->n] = (struct pg_set){ .kind = kind, .q = *q };
	h->sets[h->n].q.limit = 0;
	h->sets[h->n].open = !q->limit;
	return &h->sets[h->n++];
}

static void want_query(struct pg *s, const struct query *q)
{
	enum pg_set_kind kind = by_token(q)    ? PG_SET_TOKENS
				: by_target(q) ? PG_SET_TARGETS
					       : PG_SET_ONE;
	struct pg_set *set;
	struct str value;

	if (!usable(q) || is_known(s, q))
		return;
	set = pending(s, kind, q);
	if (!set)
		return;
	set->q.limit += q->limit;
	set->open |= !q->limit;
	value = kind == PG_SET_TOKENS ? q->token : q->depends_on;
	if (kind != PG_SET_ONE && set->values.n < MERGED_MOST && !strs_have(set->values, value))
		set->values = arena_append(&s->arena, set->values, value);
}

static void want_key(struct pg *s, struct str key)
{
	struct strs first = s->ahead.keys;

	if (first.n > KEYS_SHARED)
		first.n = KEYS_SHARED;
	if (s->ahead.keys.n < KEYS_MOST && !pg_seen(s, key) && !strs_have(first, key))
		s->ahead.keys = arena_append(&s->arena, s->ahead.keys, key);
}

static void want(struct pg *s, const struct wants *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->keys.n; i++)
		want_key(s, w->keys.v[i]);
	for (size_t i = 0; i < w->n_queries; i++)
		want_query(s, &w->queries[i]);
}

/* --- asking --------------------------------------------------------------------------------------- */

#define ROWS "SELECT " PG_COLS "," PG_BODY " FROM "
#define PARENTS                                \
	"ARRAY(SELECT p.parent FROM " PG_EACH( \
		"$2") " JOIN $S.record p ON "  \
		      "p.q=k.q AND p.key=k.v WHERE p.parent IS NOT NULL)"

/* Many tasks may have one parent, and each row of the answer has its whole text. */
#define ONCE(list) "(SELECT DISTINCT $1::bigint AS q,u.v FROM unnest(" list ") u(v) OFFSET 0) k"

/* With the parent of each task: a task that ends changes the counts of its parent. */
static int send_keys(struct pg *s)
{
	struct pg_args args = { .a = &s->arena };

	pg_int(&args, s->q);
	pg_list(&args, s->ahead.keys);
	return pg_send(
		s, ROWS ONCE("$2||" PARENTS) " JOIN $S.record r ON r.q=k.q AND r.key=k.v" PG_JOIN,
		&args);
}

#define LINKED                                      \
	"(SELECT DISTINCT l.q,l.key FROM " PG_EACH( \
		"$2") " JOIN $S.link l ON l.q=k.q AND l.target=k.v) k"
#define FIRST " AND r.status IS NOT NULL LIMIT 512"

static int send_merged(struct pg *s, const struct pg_set *set)
{
	struct pg_args args = { .a = &s->arena };

	pg_int(&args, s->q);
	pg_list(&args, set->values);
	if (set->kind == PG_SET_TOKENS)
		return pg_send(
			s,
			ROWS PG_EACH("$2") " JOIN $S.record r ON r.q=k.q AND r.token=k.v" PG_JOIN
					   " WHERE r.token IS NOT NULL" FIRST,
			&args);
	return pg_send(s,
		       ROWS LINKED " JOIN $S.record r ON r.q=k.q AND r.key=k.key" PG_JOIN
				   " WHERE true" FIRST,
		       &args);
}

/* A power of two: few statements differ in their limit, so the server knows them all. */
static size_t rounded(const struct pg_set *set)
{
	size_t n = 1;

	if (set->open || set->q.limit > PG_FETCH)
		return PG_FETCH;
	while (n < set->q.limit)
		n *= 2;
	return n;
}

static int send_sets(struct pg *s)
{
	int rc = 0;

	for (size_t i = s->ahead.kept; rc == 0 && i < s->ahead.n; i++) {
		struct pg_set *set = &s->ahead.sets[i];

		set->limit = set->kind == PG_SET_ONE ? rounded(set) : MERGED_MOST;
		set->q.limit = set->limit;
		rc = set->kind == PG_SET_ONE ? pg_scan_send(s, &set->q) : send_merged(s, set);
	}
	return rc;
}

int pg_ahead_send(struct pg *s, const struct wants *const *w, size_t n)
{
	int rc = 0;

	s->ahead.keys = (struct strs){ 0 };
	for (size_t i = 0; i < n; i++)
		want(s, w[i]);
	if (s->ahead.keys.n)
		rc = send_keys(s);
	return rc < 0 ? rc : send_sets(s);
}

size_t pg_ahead_results(const struct pg *s)
{
	return s->ahead.n - s->ahead.kept + (s->ahead.keys.n > 0);
}

/* --- the answers ---------------------------------------------------------------------------------- */

/* A record that is known already may have been written since. */
static void keep_row(struct pg *s, const PGresult *r, int row, struct record *rec)
{
	const struct pg_seen *seen;

	pg_row_read(r, row, true, rec, &s->arena);
	seen = pg_seen(s, rec->key);
	if (!seen || (!seen->written && (!seen->rec || !seen->body)))
		pg_remember(s, rec->key, rec, true);
}

static void keep_keys(struct pg *s, const PGresult *r)
{
	struct record rec;

	for (size_t i = 0; i < s->ahead.keys.n; i++)
		if (!pg_seen(s, s->ahead.keys.v[i]))
			pg_remember(s, s->ahead.keys.v[i], NULL, false);
	for (int i = 0; i < PQntuples(r); i++)
		keep_row(s, r, i, &rec);
}

static void keep_set(struct pg *s, struct pg_set *set, const PGresult *r)
{
	set->n = (size_t)PQntuples(r);
	set->whole = set->n < set->limit;
	set->keys = (struct strs){ arena_array(&s->arena, struct str, set->n), set->n };
	for (size_t i = 0; i < set->n; i++) {
		struct record rec;

		keep_row(s, r, (int)i, &rec);
		set->keys.v[i] = rec.key;
		set->last = rec.ix;
	}
	if (!set->whole && set->kind != PG_SET_ONE)
		set->values.n = 0; /* it has no order, so a part of it answers nothing */
}

void pg_ahead_keep(struct pg *s, PGresult **r)
{
	if (s->ahead.keys.n) {
		keep_keys(s, *r);
		PQclear(*r++);
	}
	for (; s->ahead.kept < s->ahead.n; s->ahead.kept++) {
		keep_set(s, &s->ahead.sets[s->ahead.kept], *r);
		PQclear(*r++);
	}
	s->ahead.keys = (struct strs){ 0 };
}

int pg_ahead_more(struct pg *s, const struct wants *const *w, size_t n)
{
	PGresult *r[PG_SETS + 1];
	int rc = pg_later_send(s);

	if (rc == 0)
		rc = pg_room(s, PG_SETS + 1);
	if (rc == 0)
		rc = pg_ahead_send(s, w, n);
	if (rc == 0 && pg_ahead_results(s)) {
		rc = pg_wait_all(s, r, pg_ahead_results(s));
		if (rc == 0)
			pg_ahead_keep(s, r);
	}
	return rc;
}

/* --- a query -------------------------------------------------------------------------------------- */

static int order_all(const void *a, const void *b)
{
	const struct record *const *x = a, *const *y = b;

	return query_cmp(&(struct query){ .pick = PICK_ALL }, &(*x)->ix, &(*y)->ix);
}

static int order_eligible(const void *a, const void *b)
{
	const struct record *const *x = a, *const *y = b;

	return query_cmp(&(struct query){ .pick = PICK_ELIGIBLE }, &(*x)->ix, &(*y)->ix);
}

/* A part of an answer: beyond its last record there may be others that were not read. */
static bool in_reach(const struct pg_set *set, const struct query *q, const struct record *rec)
{
	return set->whole || query_cmp(q, &rec->ix, &set->last) <= 0;
}

static void add(struct pg *s, const struct pg_set *set, const struct query *q,
		const struct pg_seen *seen, struct pg_found *out)
{
	if (!seen->rec || !query_matches(q, &seen->rec->ix, s->now) || !in_reach(set, q, seen->rec))
		return;
	out->bodies &= seen->body;
	out->v[out->n++] = seen->rec;
}

static void collect(struct pg *s, const struct pg_set *set, const struct query *q,
		    struct pg_found *out)
{
	*out = (struct pg_found){ .v = arena_array(&s->arena, const struct record *,
						   set->n + s->n_written),
				  .bodies = true };
	for (size_t i = 0; i < set->n; i++) {
		const struct pg_seen *seen = pg_seen(s, set->keys.v[i]);

		if (!seen->written)
			add(s, set, q, seen, out);
	}
	for (const struct pg_seen *seen = s->written; seen; seen = seen->next_written)
		add(s, set, q, seen, out);
	if (out->n > 1)
		qsort(out->v, out->n, sizeof(*out->v),
		      q->pick == PICK_ALL ? order_all : order_eligible);
}

bool pg_ahead_find(struct pg *s, const struct query *q, struct pg_found *out)
{
	if (!s->changing || !usable(q) || s->now > s->ahead.until)
		return false;
	for (size_t i = 0; i < s->ahead.kept; i++) {
		const struct pg_set *set = &s->ahead.sets[i];

		if (!covers(set, q))
			continue;
		collect(s, set, q, out);
		if (q->limit && out->n > q->limit)
			out->n = q->limit;
		if ((set->whole || (q->limit && out->n == q->limit)) && (out->bodies || !q->body))
			return true;
	}
	return false;
}
