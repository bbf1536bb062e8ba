/*
 * Reads ahead: the records and queries that a change wants are read in the round trip that locks the queue. They are
 * read after the lock was granted, in the same transaction, so they are what the change would read itself. The answer
 * of a query is good until the first edit of the change is applied; a record stays good, since pg_remember() follows
 * each put.
 */
#include "store/postgres/postgres.h"

#define KEYS_MOST 512

static bool usable(const struct query *q)
{
	return !q->after.n && !q->text.n && !q->at &&
	       (q->pick == PICK_ALL || q->pick == PICK_ELIGIBLE);
}

/* With the parent of each task: a task that ends changes the counts of its parent. */
static int send_keys(struct pg *s, const struct change *changes, size_t n)
{
	struct pg_args args = { .a = &s->arena };
	struct strs all = { 0 };

	for (size_t i = 0; i < n && changes[i].wants; i++)
		for (size_t k = 0; k < changes[i].wants->keys.n && all.n < KEYS_MOST; k++)
			all = arena_append(&s->arena, all, changes[i].wants->keys.v[k]);
	s->ahead.keys = all;
	if (!all.n)
		return 0;
	pg_int(&args, s->q);
	pg_list(&args, all);
	return pg_send(s,
		       "SELECT " PG_COLS "," PG_BODY " FROM $S.record r" PG_JOIN
		       " WHERE r.q=$1 AND r.key=ANY($2||ARRAY(SELECT p.parent FROM $S.record p "
		       "WHERE p.q=$1 AND p.key=ANY($2) AND p.parent IS NOT NULL))",
		       &args);
}

/* Only the queries of the first change: the others may depend on its writes. */
int pg_ahead_send(struct pg *s, const struct change *changes, size_t n)
{
	const struct wants *w = n ? changes[0].wants : NULL;
	int rc;

	s->ahead = (struct pg_ahead){ 0 };
	if (!w)
		return 0;
	rc = send_keys(s, changes, n);
	for (size_t i = 0; rc == 0 && i < w->n_queries && s->ahead.n < PG_AHEAD; i++) {
		if (!usable(&w->queries[i]))
			continue;
		s->ahead.queries[s->ahead.n++] = w->queries[i];
		rc = pg_scan_send(s, &w->queries[i]);
	}
	return rc;
}

size_t pg_ahead_results(const struct pg *s)
{
	return s->ahead.n + (s->ahead.keys.n > 0);
}

void pg_ahead_keep(struct pg *s, PGresult **r)
{
	if (s->ahead.keys.n)
		pg_remember_all(s, s->ahead.keys, *r++);
	for (size_t i = 0; i < s->ahead.n; i++) {
		s->ahead.answers[i] = *r;
		*r++ = NULL;
	}
}

void pg_ahead_forget(struct pg *s)
{
	for (size_t i = 0; i < s->ahead.n; i++)
		PQclear(s->ahead.answers[i]);
	s->ahead = (struct pg_ahead){ 0 };
}

static bool same(const struct query *a, const struct query *b)
{
	return a->pick == b->pick && a->waiting == b->waiting && a->statuses == b->statuses &&
	       a->class_rank == b->class_rank && a->held == b->held &&
	       str_eq(a->holder, b->holder) && str_eq(a->token, b->token) &&
	       str_eq(a->type, b->type) && str_eq(a->label, b->label) &&
	       str_eq(a->parent, b->parent) && str_eq(a->depends_on, b->depends_on);
}

const PGresult *pg_ahead(const struct pg *s, const struct query *q)
{
	for (size_t i = 0; s->changing && usable(q) && i < s->ahead.n; i++) {
		const PGresult *r = s->ahead.answers[i];
		size_t rows = (size_t)PQntuples(r), asked = s->ahead.queries[i].limit;
		bool whole = rows < (asked ? asked : PG_FETCH);

		if (same(&s->ahead.queries[i], q) && (whole || (q->limit && q->limit <= rows)))
			return r;
	}
	return NULL;
}
