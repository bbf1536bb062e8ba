/*
 * Scans. Each index returns rows in the order of the answer. If the answer comes from several ranges (each
 * status by age, READY and due LATER by rank), the scan merges them row by row. So the first row costs O(log n).
 * query_matches() applies the conditions that have no index.
 */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

#define BY_AGE " ORDER BY created_at,id_key"
/* index_cmp(); NULL is no due date */
#define BY_RANK " ORDER BY class_rank,priority DESC,due_at IS NULL,due_at,updated_at,id_key"
#define BY_DUE " ORDER BY wake,id_key" /* wake is eligible_at if that is in the future */
#define BY_TIME " ORDER BY eligible_at,id_key"

/* The cache finds a statement by the address of its text. */
static const char due_waiting[] = "q=?1 AND lane=?2 AND wake>0 AND wake<=?3" BY_RANK;
static const char any_time[] = "q=?1 AND lane=?2 AND wake>0" BY_RANK;
static const char not_due[] = "q=?1 AND lane=?2 AND wake>?3" BY_RANK;
static const char later_waiting[] = "q=?1 AND lane=?2 AND wake>?3" BY_DUE;

struct source {
	sqlite3_stmt *st;
	struct sq_row row;
};

struct scan {
	struct sq *s;
	const struct query *q;
	int64_t now;
	struct source from[STORE_STATUSES];
	size_t n;
	struct record *after; /* the answer begins after this task */
	struct str after_key; /* the key that belongs to its id */
};

int sq_read_begin(struct sq *s)
{
	int rc = 0;

	if (s->depth == 0 && !s->changing)
		rc = sq_run(s, "BEGIN");
	if (rc == 0)
		s->depth++;
	return rc;
}

void sq_read_end(struct sq *s)
{
	if (--s->depth > 0 || s->changing || sqlite3_get_autocommit(s->db))
		return;
	if (sq_run(s, "COMMIT") < 0)
		sq_disconnect(
			s); /* out of memory: disconnecting ends the transaction and needs no memory */
}

/* --- sources ------------------------------------------------------------------------------------ */

static bool sq_query_wanted(const struct scan *c, const struct index *ix)
{
	return query_matches(c->q, ix, c->now) &&
	       (!c->after || query_cmp(c->q, ix, &c->after->ix) > 0);
}

static void source_end(struct scan *c, struct source *src)
{
	sq_give(c->s, src->st);
	src->st = NULL;
}

/* Steps to the next row that belongs to the answer. At the end src->st becomes NULL. */
static int source_next(struct scan *c, struct source *src)
{
	for (;;) {
		int rc = sq_step(c->s, src->st);

		if (rc == SQLITE_ROW)
			sq_row_read(src->st, c->q->body, &src->row);
		else
			source_end(c, src);
		if (rc < 0)
			return rc;
		if (!src->st || sq_query_wanted(c, &src->row.rec.ix))
			return 0;
	}
}

static int make_source(struct scan *c, const char *from, const char *where, sqlite3_stmt **out)
{
	char sql[2400];

	snprintf(sql, sizeof(sql), "SELECT " SQ_COLS "%s FROM %s%s WHERE %s",
		 c->q->body ? "," SQ_BODY : "", from, c->q->body ? SQ_JOIN_BODY : "", where);
	return sq_make(c->s, sql, where, c->q->body, out);
}

/* `where` is a literal that belongs to one `from` only: it is the key of the cached statement. It may use ?1 queue,
 * ?2 a value that the caller binds, ?3 now, ?4 class, ?5 and ?6 created_at and id of c->after. */
static int source_add(struct scan *c, const char *from, const char *where, sqlite3_stmt **out)
{
	sqlite3_stmt *st = sq_find(c->s, where, c->q->body);
	int rc = st ? 0 : make_source(c, from, where, &st), highest;

	if (rc < 0)
		return rc;
	highest = sqlite3_bind_parameter_count(st);
	sqlite3_bind_int64(st, 1, c->s->q);
	if (highest >= 3)
		sqlite3_bind_int64(st, 3, c->now);
	if (highest >= 4)
		sqlite3_bind_int(st, 4, c->q->class_rank);
	if (highest >= 6) {
		sqlite3_bind_int64(st, 5, c->after->ix.created_at);
		sq_bind(st, 6, c->after_key);
	}
	c->from[c->n++] = (struct source){ .st = st };
	*out = st;
	return 0;
}

/* --- which indexes ------------------------------------------------------------------------------ */

static int add_statuses(struct scan *c)
{
	int64_t counts[STORE_STATUSES];
	sqlite3_stmt *st;
	int rc = sq_tally(&c->s->base, counts);

	for (int i = 1; rc >= 0 && i < STORE_STATUSES; i++) {
		if ((!counts[i] && !c->s->whole) || (c->q->statuses && !(c->q->statuses >> i & 1)))
			continue;
		rc = source_add(
			c, "record INDEXED BY record_status",
			c->after ? "q=?1 AND status=?2 AND (created_at,id_key)>(?5,?6)" BY_AGE
				 : "q=?1 AND status=?2" BY_AGE,
			&st);
		if (rc == 0)
			sqlite3_bind_int(st, 2, i);
	}
	return rc;
}

/* A task that waits for others has a wake-up time only while that time is in the future, or has just passed. */
static int add_timed(struct scan *c, int lane, const char *where)
{
	sqlite3_stmt *st;
	int rc = source_add(c, "record INDEXED BY record_lane", where, &st);

	if (rc == 0)
		sqlite3_bind_int(st, 2, lane);
	return rc;
}

static int add_lane(struct scan *c, int lane)
{
	sqlite3_stmt *st;
	int rc = source_add(c, "record INDEXED BY record_lane",
			    c->q->class_rank
				    ? "q=?1 AND lane=?2 AND wake=0 AND class_rank=?4" BY_RANK
				    : "q=?1 AND lane=?2 AND wake=0" BY_RANK,
			    &st);

	if (rc == 0)
		sqlite3_bind_int(st, 2, lane);
	return rc;
}

static int add_eligible(struct scan *c)
{
	sqlite3_stmt *st;
	int rc = add_lane(c, LANE_READY);

	if (rc == 0 && !(c->s->changing && c->s->all_promoted))
		rc = source_add(c, "record INDEXED BY record_lane",
				"q=?1 AND lane=" LANE_TEXT(LANE_LATER) " AND wake<=?3" BY_RANK,
				&st);
	for (int lane = LANE_WAITING; rc == 0 && lane <= LANE_BOTH; lane++) {
		if (!lane_waits(lane) || !(c->q->waiting & LANE_BIT(lane)))
			continue;
		rc = add_lane(c, lane);
		if (rc == 0)
			rc = add_timed(c, lane, due_waiting);
	}
	return rc;
}

static int add_later(struct scan *c)
{
	sqlite3_stmt *st;
	int rc = source_add(c, "record INDEXED BY record_lane",
			    "q=?1 AND lane=" LANE_TEXT(LANE_LATER) " AND wake>?3" BY_DUE, &st);

	for (int lane = LANE_WAITING; rc == 0 && lane <= LANE_BOTH; lane++)
		if (lane_waits(lane) && c->q->waiting & LANE_BIT(lane))
			rc = add_timed(c, lane, later_waiting);
	return rc;
}

/* The index returns only tasks that wait for others in order; SQLite sorts the tasks with a time. LANE_NONE has no index
 * of its own, so the index of held records finds locks without an end. */
static int add_waiting(struct scan *c)
{
	sqlite3_stmt *st;
	int rc = source_add(c, "record INDEXED BY record_lane",
			    "q=?1 AND lane=" LANE_TEXT(LANE_LATER) " AND wake>?3" BY_RANK, &st);

	for (int lane = LANE_WAITING; rc == 0 && lane <= LANE_BOTH; lane++) {
		bool ignored = c->q->waiting & LANE_BIT(lane);

		if (!lane_waits(lane))
			continue;
		rc = ignored ? 0 : add_lane(c, lane);
		if (rc == 0)
			rc = add_timed(c, lane, ignored ? not_due : any_time);
	}
	if (rc == 0)
		rc = source_add(c, "record INDEXED BY record_held",
				"q=?1 AND holder IS NOT NULL AND lane IS NULL" BY_RANK, &st);
	return rc;
}

static int add_others(struct scan *c)
{
	sqlite3_stmt *st;

	return source_add(c, "record", "q=?1 AND status IS NULL", &st);
}

/* A condition that only a few records meet, so SQLite can sort them. */
struct narrow {
	const char *from, *where[3]; /* by enum pick */
	struct str value;
	bool blob;
	const char *any; /* a quick test whether any record matches: often none does */
};

#define NARROW(from_, where_) \
	.from = (from_), .where = { where_ BY_AGE, where_ BY_RANK, where_ BY_TIME }

static bool find_narrow(const struct query *q, struct narrow *out)
{
	if (q->token.n)
		*out = (struct narrow){ NARROW("record INDEXED BY record_held",
					       "q=?1 AND token=?2"),
					.value = q->token, .blob = true,
					.any = "SELECT 1 FROM record INDEXED BY record_held"
					       " WHERE q=?1 AND token=?2" };
	else if (q->depends_on.n)
		*out = (struct narrow){
			NARROW("link CROSS JOIN record USING(rid)", "link.q=?1 AND target=?2"),
			.value = q->depends_on, .any = "SELECT 1 FROM link WHERE q=?1 AND target=?2"
		};
	else if (q->parent.n)
		*out = (struct narrow){ NARROW("record INDEXED BY record_parent",
					       "q=?1 AND parent=?2"),
					.value = q->parent };
	else if (q->holder.n)
		*out = (struct narrow){ NARROW("record INDEXED BY record_held",
					       "q=?1 AND holder=?2"),
					.value = q->holder };
	else if (q->held)
		*out = (struct narrow){ NARROW("record INDEXED BY record_held",
					       "q=?1 AND holder IS NOT NULL") };
	else
		return false;
	return true;
}

static void bind_narrow(const struct narrow *n, sqlite3_stmt *st)
{
	if (n->blob)
		sq_bind_blob(st, 2, n->value);
	else if (n->value.n)
		sq_bind(st, 2, n->value);
}

/* 0, 1 if no record matches. */
static int find_any(struct scan *c, const struct narrow *n)
{
	sqlite3_stmt *st;
	int rc = sq_take(c->s, n->any, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, c->s->q);
	bind_narrow(n, st);
	rc = sq_step(c->s, st);
	sq_give(c->s, st);
	return rc < 0 ? rc : rc != SQLITE_ROW;
}

static int add_narrow(struct scan *c, const struct narrow *n)
{
	sqlite3_stmt *st;
	int rc = n->any ? find_any(c, n) : 0;

	if (rc)
		return rc < 0 ? rc : 0;
	rc = source_add(c, n->from,
			n->where[c->q->pick == PICK_WAITING ? PICK_ELIGIBLE : c->q->pick], &st);
	if (rc == 0)
		bind_narrow(n, st);
	return rc;
}

static int add_sources(struct scan *c)
{
	struct narrow few;

	if (find_narrow(c->q, &few))
		return add_narrow(c, &few);
	switch (c->q->pick) {
	case PICK_ELIGIBLE:
		return add_eligible(c);
	case PICK_LATER:
		return add_later(c);
	case PICK_OTHERS:
		return add_others(c);
	case PICK_WAITING:
		return add_waiting(c);
	default:
		return add_statuses(c);
	}
}

/* --- the scan ----------------------------------------------------------------------------------- */

static struct source *scan_least(struct scan *c)
{
	struct source *best = NULL;

	for (size_t i = 0; i < c->n; i++) {
		struct source *src = &c->from[i];

		if (src->st && (!best || query_cmp(c->q, &src->row.rec.ix, &best->row.rec.ix) < 0))
			best = src;
	}
	return best;
}

static int scan_rows(struct scan *c, record_fn *fn, void *ctx)
{
	size_t sent = 0;
	struct source *src;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n; i++)
		rc = source_next(c, &c->from[i]);
	while (rc == 0 && (src = scan_least(c))) {
		if (c->q->limit && c->q->limit <= SQ_SEEN / 2)
			sq_row_remember(c->s, &src->row); /* the change is likely to write it */
		rc = fn(&src->row.rec, ctx);
		if (rc == 0 && ++sent == c->q->limit)
			return 0;
		if (rc == 0)
			rc = source_next(c, src);
	}
	return rc < 0 ? rc : 0;
}

/* 0, 1 if the task of q->after is absent. */
static int scan_after(struct scan *c, struct arena *a)
{
	char key[ID_KEY_MAX];
	int rc;

	if (c->q->pick != PICK_ALL || !c->q->after.n)
		return 0;
	c->after = arena_new(a, struct record);
	rc = c->s->base.ops->get(&c->s->base, c->q->after, c->after, a);
	c->after_key = arena_str(a, index_id_key(c->after->ix.id, key));
	return rc;
}

static int scan_in_state(struct scan *c, record_fn *fn, void *ctx)
{
	struct arena a = { 0 };
	int rc;

	c->now = c->q->at ? c->q->at : sq_now(&c->s->base);
	rc = scan_after(c, &a);
	if (rc == 0)
		rc = add_sources(c);
	if (rc == 0)
		rc = scan_rows(c, fn, ctx);
	for (size_t i = 0; i < c->n; i++) {
		source_end(c, &c->from[i]);
		sq_row_free(&c->from[i].row);
	}
	arena_free(&a);
	return rc < 0 ? rc : 0;
}

int sq_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx)
{
	struct scan c = { .s = sq_of(base), .q = q };
	int rc = sq_read_guard(c.s);

	if (rc == 0)
		rc = sq_read_begin(c.s);
	if (rc < 0)
		return rc;
	rc = scan_in_state(&c, fn, ctx);
	sq_read_end(c.s);
	return rc;
}

int sq_snapshot(struct store *base, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct sq *s = sq_of(base);
	int rc = sq_read_guard(s);

	if (rc == 0)
		rc = sq_read_begin(s);
	if (rc < 0)
		return rc;
	s->whole = all;
	rc = fn(ctx);
	s->whole = false;
	sq_read_end(s);
	return rc;
}

static int count_one(const struct record *r, void *ctx)
{
	(void)r;
	++*(int64_t *)ctx;
	return 0;
}

int sq_count(struct store *base, const struct query *q, int64_t *n)
{
	struct query all = query_to_count(q);
	int64_t counts[STORE_STATUSES];
	int rc;

	*n = 0;
	if (!query_only_statuses(q))
		return sq_scan(base, &all, count_one, n);
	rc = sq_tally(base, counts);
	if (rc == 0)
		*n = query_sum(q, counts);
	return rc;
}

int sq_tally(struct store *base, int64_t *counts)
{
	struct sq *s = sq_of(base);
	sqlite3_stmt *st;
	int rc = sq_read_guard(s);

	memset(counts, 0, STORE_STATUSES * sizeof(*counts));
	if (rc == 0)
		rc = sq_tally_flush(s);
	if (rc == 0)
		rc = sq_take(s, "SELECT status,n FROM tally WHERE q=?1", &st);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	while ((rc = sq_step(s, st)) == SQLITE_ROW) {
		int status = sqlite3_column_int(st, 0) & (STORE_STATUSES - 1);

		counts[status] = sqlite3_column_int64(st, 1);
	}
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}
