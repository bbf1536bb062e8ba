/*
 * Reads ahead: the round trip that locks the queue also reads the records and queries that the changes want. The server
 * reads them after it has granted the lock, in the same transaction, so the changes would read the same data themselves.
 *
 * A query's answer is a set of keys. No other process writes while we hold the lock. So a record that matches the query
 * later in the transaction is in this set, or the transaction itself has written it. pg_remember() has the current state
 * of both kinds. So the set stays valid after a put, and one set serves all changes of a batch: it has as many records as
 * they want together. The queries by token of several changes share one set, and so do the queries by dependency.
 */
#include <stdlib.h>

#include "store/postgres/postgres.h"

#define KEYS_MOST 2048
#define KEYS_SHARED 16 /* the first keys are those that all changes want */
#define MERGED_MOST 512

static bool pg_ahead_usable(const struct query *q)
{
	return !q->after.n && !q->text.n && !q->at &&
	       (q->pick == PICK_ALL || q->pick == PICK_ELIGIBLE);
}

static bool pg_ahead_same(const struct query *a, const struct query *b)
{
	return a->pick == b->pick && a->waiting == b->waiting && a->statuses == b->statuses &&
	       a->class_rank == b->class_rank && a->held == b->held &&
	       str_eq(a->holder, b->holder) && str_eq(a->token, b->token) &&
	       str_eq(a->type, b->type) && str_eq(a->label, b->label) &&
	       str_eq(a->parent, b->parent) && str_eq(a->depends_on, b->depends_on);
}

static bool by_token(const struct query *q)
{
	return q->token.n && pg_ahead_same(q, &(struct query){ .token = q->token });
}

static bool by_target(const struct query *q)
{
	return q->depends_on.n && pg_ahead_same(q, &(struct query){ .depends_on = q->depends_on });
}

static bool pg_ahead_covers(const struct pg_set *set, const struct query *q)
{
	switch (set->kind) {
	case PG_SET_TOKENS:
		return by_token(q) && strs_have(set->values, q->token);
	case PG_SET_TARGETS:
		return by_target(q) && strs_have(set->values, q->depends_on);
	default:
		return pg_ahead_same(&set->q, q);
	}
}

/* --- choosing the queries ------------------------------------------------------------------------- */

/* Counts the records of a limited set that are unchanged since they were read and not promised to another change. */
static size_t left_in(struct pg *s, const struct pg_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += !pg_seen(s, set->keys.v[i])->written;
	return n > set->promised ? n - set->promised : 0;
}

/* Has the server already answered the query? */
static bool is_known(struct pg *s, const struct query *q)
{
	for (size_t i = 0; i < s->ahead.kept; i++) {
		struct pg_set *set = &s->ahead.sets[i];

		if (!pg_ahead_covers(set, q))
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

static struct pg_set *pg_ahead_pending(struct pg *s, enum pg_set_kind kind, const struct query *q)
{
	struct pg_ahead *h = &s->ahead;

	for (size_t i = h->kept; i < h->n; i++)
		if (h->sets[i].kind == kind &&
		    (kind != PG_SET_ONE || pg_ahead_same(&h->sets[i].q, q)))
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

	if (!pg_ahead_usable(q) || is_known(s, q))
		return;
	set = pg_ahead_pending(s, kind, q);
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

static void pg_ahead_want(struct pg *s, const struct wants *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->keys.n; i++)
		want_key(s, w->keys.v[i]);
	for (size_t i = 0; i < w->n_queries; i++)
		want_query(s, &w->queries[i]);
	s->ahead.parents |= w->parents;
}

/* --- asking --------------------------------------------------------------------------------------- */

/*
 * One statement reads the records of all keys, and the records that queries by token, by dependency and by rank find. Each
 * branch of the statement finds keys, and the number beside a key names its set: 0 for the keys that the changes named.
 * Each statement counts its sets from 1, so that a later statement of the transaction has the same text. A branch costs
 * the server a fraction of a statement that reads whole records.
 */
#define FOUND_BEFORE \
	"SELECT " PG_COLS "," PG_BODY ",k.n FROM (SELECT $1::bigint AS q,u.v,u.n FROM ("
#define FOUND_AFTER ") u(v,n) OFFSET 0) k JOIN $S.record r ON r.q=k.q AND r.key=k.v" PG_JOIN
#define PARENTS                                \
	"ARRAY(SELECT p.parent FROM " PG_EACH( \
		"$2") " JOIN $S.record p ON "  \
		      "p.q=k.q AND p.key=k.v WHERE p.parent IS NOT NULL)"
#define TASKS " AND r.status IS NOT NULL LIMIT 512)"
#define RANKED_MOST 4 /* sets by rank in a statement: each may have seven parameters */

struct asking {
	struct pg *s;
	struct pg_args args;
	struct buf branches;
};

static void begin_branch(struct asking *k)
{
	if (k->branches.n)
		buf_addf(&k->branches, " UNION ALL ");
}

/* DISTINCT, because many changes may want one record, many tasks may have one parent, and each row of the answer carries
 * the record's whole text. */
static void ask_keys(struct asking *k)
{
	if (!k->s->ahead.keys.n)
		return;
	begin_branch(k);
	buf_addf(&k->branches, "SELECT DISTINCT u.v,0 FROM unnest($2%s) u(v)",
		 k->s->ahead.parents ? "||" PARENTS : "");
}

static void ask_merged(struct asking *k, const struct pg_set *set, int n)
{
	begin_branch(k);
	pg_list(&k->args, set->values);
	if (set->kind == PG_SET_TOKENS)
		buf_addf(&k->branches,
			 "(SELECT r.key,%d FROM " PG_EACH(
				 "$%d") " JOIN $S.record r ON r.q=k.q "
					"AND r.token=k.v WHERE r.token IS NOT NULL" TASKS,
			 n, k->args.n);
	else
		buf_addf(
			&k->branches,
			"(SELECT DISTINCT l.key,%d FROM " PG_EACH(
				"$%d") " JOIN $S.link l ON "
				       "l.q=k.q AND l.target=k.v JOIN $S.record r ON r.q=l.q AND r.key=l.key"
				       " WHERE true" TASKS,
			n, k->args.n);
}

static size_t limit_of(const struct pg_set *set)
{
	if (set->kind != PG_SET_ONE)
		return MERGED_MOST;
	return set->open || set->q.limit > PG_FETCH ? PG_FETCH : set->q.limit;
}

/* A separate statement has the limit in its text. With powers of two there are only a few different texts, so the server
 * has prepared them already. */
static size_t pg_ahead_rounded(size_t limit)
{
	size_t n = 1;

	while (n < limit)
		n *= 2;
	return n;
}

static void ask_sets(struct asking *k)
{
	struct pg_ahead *h = &k->s->ahead;
	int ranked = 0;

	for (size_t i = h->kept; i < h->n; i++) {
		struct pg_set *set = &h->sets[i];
		int n = (int)(i - h->kept) + 1;

		set->apart = set->kind == PG_SET_ONE &&
			     (set->q.pick != PICK_ELIGIBLE || ranked++ >= RANKED_MOST);
		set->limit = set->apart ? pg_ahead_rounded(limit_of(set)) : limit_of(set);
		set->q.limit = set->limit;
		if (set->kind != PG_SET_ONE)
			ask_merged(k, set, n);
		else if (!set->apart) {
			begin_branch(k);
			pg_scan_keys(k->s, &set->q, n, &k->args, &k->branches);
		}
	}
}

static int send_found(struct asking *k)
{
	struct buf all = BUF_MAX(1 << 20);
	char *sql;
	int rc;

	buf_addf(&all, FOUND_BEFORE);
	buf_adds(&all, buf_str(&k->branches));
	buf_addf(&all, FOUND_AFTER);
	buf_addc(&all, '\0');
	sql = pg_sql(k->s, all.p);
	buf_free(&all);
	rc = pg_send_composed(k->s, sql, &k->args);
	free(sql);
	return rc;
}

static int send_together(struct pg *s)
{
	struct asking k = { .s = s, .args.a = &s->arena, .branches = BUF_MAX(1 << 19) };
	int rc = 0;

	pg_int(&k.args, s->q);
	pg_list(&k.args, s->ahead.keys);
	ask_keys(&k);
	ask_sets(&k);
	s->ahead.together = k.branches.n > 0;
	if (s->ahead.together)
		rc = send_found(&k);
	buf_free(&k.branches);
	return rc;
}

int pg_ahead_send(struct pg *s, const struct wants *const *w, size_t n)
{
	int rc;

	s->ahead.keys = (struct strs){ 0 };
	s->ahead.parents = false;
	for (size_t i = 0; i < n; i++)
		pg_ahead_want(s, w[i]);
	rc = send_together(s);
	for (size_t i = s->ahead.kept; rc == 0 && i < s->ahead.n; i++)
		if (s->ahead.sets[i].apart)
			rc = pg_scan_send(s, &s->ahead.sets[i].q);
	return rc;
}

size_t pg_ahead_results(const struct pg *s)
{
	size_t n = s->ahead.together;

	for (size_t i = s->ahead.kept; i < s->ahead.n; i++)
		n += s->ahead.sets[i].apart;
	return n;
}

/* --- the answers ---------------------------------------------------------------------------------- */

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

/* We must not overwrite a remembered record, because the change may have written it since. */
static const struct record *keep_row(struct pg *s, const PGresult *r, int row)
{
	struct record *rec = arena_new(&s->arena, struct record);
	const struct pg_seen *seen;

	pg_row_read(r, row, true, rec, &s->arena);
	seen = pg_seen(s, rec->key);
	if (!seen || (!seen->written && (!seen->rec || !seen->body)))
		pg_remember(s, rec->key, rec, true);
	return rec;
}

static void keep_set(struct pg *s, struct pg_set *set, const struct record *const *rows, size_t n)
{
	set->whole = n < set->limit;
	set->n = n < set->limit ? n : set->limit;
	set->keys = (struct strs){ arena_array(&s->arena, struct str, set->n), set->n };
	for (size_t i = 0; i < set->n; i++)
		set->keys.v[i] = rows[i]->key;
	if (set->n)
		set->last = rows[set->n - 1]->ix;
	if (!set->whole && set->kind != PG_SET_ONE)
		set->values.n = 0; /* the set has no order, so a part of it answers no query */
}

static void keep_apart(struct pg *s, struct pg_set *set, const PGresult *r)
{
	size_t n = (size_t)PQntuples(r);
	const struct record **rows = arena_array(&s->arena, const struct record *, n);

	for (size_t i = 0; i < n; i++)
		rows[i] = keep_row(s, r, (int)i);
	keep_set(s, set, rows, n);
}

/* The rows of an ordered set arrive in any order. There may be more than its limit, because each lane sends its own. */
static void keep_together(struct pg *s, const PGresult *r)
{
	size_t all = (size_t)PQntuples(r);
	const struct record **rows = arena_array(&s->arena, const struct record *, all);
	const struct record **some = arena_array(&s->arena, const struct record *, all);

	for (size_t i = 0; i < s->ahead.keys.n; i++)
		if (!pg_seen(s, s->ahead.keys.v[i]))
			pg_remember(s, s->ahead.keys.v[i], NULL, false);
	for (size_t i = 0; i < all; i++)
		rows[i] = keep_row(s, r, (int)i);
	for (size_t at = s->ahead.kept; at < s->ahead.n; at++) {
		struct pg_set *set = &s->ahead.sets[at];
		int64_t number = (int64_t)(at - s->ahead.kept) + 1;
		size_t n = 0;

		for (size_t i = 0; !set->apart && i < all; i++)
			if (pg_int_at(r, (int)i, PG_COL_SET) == number)
				some[n++] = rows[i];
		if (n > 1 && set->kind == PG_SET_ONE)
			qsort(some, n, sizeof(*some), order_eligible);
		if (!set->apart)
			keep_set(s, set, some, n);
	}
}

void pg_ahead_keep(struct pg *s, PGresult **r)
{
	if (s->ahead.together) {
		keep_together(s, *r);
		PQclear(*r++);
	}
	for (; s->ahead.kept < s->ahead.n; s->ahead.kept++) {
		struct pg_set *set = &s->ahead.sets[s->ahead.kept];

		if (!set->apart)
			continue;
		keep_apart(s, set, *r);
		PQclear(*r++);
	}
	s->ahead.keys = (struct strs){ 0 };
	s->ahead.together = false;
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

/* If the set is only a part of the answer, other records may follow its last one, and these were not read. */
static bool in_reach(const struct pg_set *set, const struct query *q, const struct record *rec)
{
	return set->whole || query_cmp(q, &rec->ix, &set->last) <= 0;
}

static void pg_ahead_add(struct pg *s, const struct pg_set *set, const struct query *q,
			 const struct pg_seen *seen, struct pg_found *out)
{
	if (!seen->rec || !query_matches(q, &seen->rec->ix, s->now) || !in_reach(set, q, seen->rec))
		return;
	out->bodies &= seen->body;
	out->v[out->n++] = seen->rec;
}

static void pg_ahead_collect(struct pg *s, const struct pg_set *set, const struct query *q,
			     struct pg_found *out)
{
	*out = (struct pg_found){ .v = arena_array(&s->arena, const struct record *,
						   set->n + s->n_written),
				  .bodies = true };
	for (size_t i = 0; i < set->n; i++) {
		const struct pg_seen *seen = pg_seen(s, set->keys.v[i]);

		if (!seen->written)
			pg_ahead_add(s, set, q, seen, out);
	}
	for (const struct pg_seen *seen = s->written; seen; seen = seen->next_written)
		pg_ahead_add(s, set, q, seen, out);
	if (out->n > 1)
		qsort(out->v, out->n, sizeof(*out->v),
		      q->pick == PICK_ALL ? order_all : order_eligible);
}

bool pg_ahead_find(struct pg *s, const struct query *q, struct pg_found *out)
{
	if (!s->changing || !pg_ahead_usable(q) || s->now > s->ahead.until)
		return false;
	for (size_t i = 0; i < s->ahead.kept; i++) {
		const struct pg_set *set = &s->ahead.sets[i];

		if (!pg_ahead_covers(set, q))
			continue;
		pg_ahead_collect(s, set, q, out);
		if (q->limit && out->n > q->limit)
			out->n = q->limit;
		if ((set->whole || (q->limit && out->n == q->limit)) && (out->bodies || !q->body))
			return true;
	}
	return false;
}
