/*
 * Scans. The statement has every condition of the query, so that its limit counts only records of the answer. Where the
 * answer comes from several ranges of an index (each status by age, READY and due LATER by rank), the statement joins
 * the first records of each range. A long answer is read in portions through a cursor.
 */
#include <stdio.h>
#include <stdlib.h>

#include "store/postgres/postgres.h"

/* In a change and in a snapshot the time is known. A query that is read ahead gets its time from the locking statement:
 * NULL if the queue is gone. Otherwise the server takes the time, but never one before the last change. */
#define LOCK_NOW "nullif(current_setting('pawl.now',true),'')::bigint"
#define NOW "coalesce($2," LOCK_NOW ",(SELECT greatest(now,$C) FROM $S.queue WHERE q=$1))"
#define SMALL 8 /* records that a change is likely to write */
#define UNION_MOST 10000

static const char *const orders[] = {
	[PICK_ALL] = "r.created_at,r.id_key",
	[PICK_ELIGIBLE] = "r.class_rank,r.priority DESC,r.due_at,r.updated_at,r.id_key",
	[PICK_LATER] = "r.eligible_at,r.id_key",
	[PICK_OTHERS] = "r.key",
	[PICK_WAITING] = "r.class_rank,r.priority DESC,r.due_at,r.updated_at,r.id_key",
};
/* The orders for joined ranges, whose columns have other names. */
static const char *const outer[] = {
	[PICK_ALL] = "o1,o2", [PICK_ELIGIBLE] = "o1,o2 DESC,o3,o4,o5", [PICK_LATER] = "o1,o2",
	[PICK_OTHERS] = "o1", [PICK_WAITING] = "o1,o2 DESC,o3,o4,o5",
};
static const char *const keys[] = {
	[PICK_ALL] = "r.created_at o1,r.id_key o2",
	[PICK_ELIGIBLE] = "r.class_rank o1,r.priority o2,r.due_at o3,r.updated_at o4,r.id_key o5",
	[PICK_LATER] = "r.eligible_at o1,r.id_key o2",
	[PICK_OTHERS] = "r.key o1",
	[PICK_WAITING] = "r.class_rank o1,r.priority o2,r.due_at o3,r.updated_at o4,r.id_key o5",
};

struct scan {
	struct pg *s;
	const struct query *q;
	struct pg_args *args;
	struct buf more; /* the conditions beside the pick */
	struct buf sql;
	bool body, count;
	bool keep; /* the change is likely to load these records */
	struct arena a;
};

/* --- conditions ----------------------------------------------------------------------------------- */

#define READY_LANE "r.lane=" LANE_TEXT(LANE_READY)
#define DUE_LANES "r." PG_DUE_LANES

/* The lanes whose eligible_at decides: "2,3". */
static const char *pg_scan_timed(const struct query *q, char out[16])
{
	int n = snprintf(out, 16, LANE_TEXT(LANE_LATER));

	for (int lane = LANE_WAITING; lane <= LANE_BOTH; lane++)
		if (lane_waits(lane) && q->waiting & LANE_BIT(lane))
			n += snprintf(out + n, 16 - (size_t)n, ",%d", lane);
	return out;
}

/* The lanes of waiting tasks whose time does not matter. No row has LANE_NONE: it is NULL. */
static const char *pg_scan_untimed(const struct query *q, char out[16])
{
	int n = snprintf(out, 16, LANE_TEXT(LANE_NONE));

	for (int lane = LANE_WAITING; lane <= LANE_BOTH; lane++)
		if (lane_waits(lane) && !(q->waiting & LANE_BIT(lane)))
			n += snprintf(out + n, 16 - (size_t)n, ",%d", lane);
	return out;
}

static void pg_scan_with(struct scan *c, const char *condition, struct str value)
{
	if (!value.n)
		return;
	pg_bytes(c->args, value);
	buf_addf(&c->more, " AND ");
	for (; *condition; condition++) {
		if (*condition == '?')
			buf_addf(&c->more, "$%d", c->args->n);
		else
			buf_addc(&c->more, *condition);
	}
}

static void add_conditions(struct scan *c, const struct record *after, struct str after_key)
{
	const struct query *q = c->q;

	if (q->class_rank)
		buf_addf(&c->more, " AND r.class_rank=%d", q->class_rank);
	if (q->held)
		buf_addf(&c->more, " AND r.holder IS NOT NULL");
	pg_scan_with(c, "r.holder=?", q->holder);
	pg_scan_with(c, "r.token=?", q->token);
	pg_scan_with(c, "r.type=?", q->type);
	pg_scan_with(c, "r.parent=?", q->parent);
	pg_scan_with(c, "?=ANY(r.labels)", q->label);
	pg_scan_with(c, "r.key IN(SELECT key FROM $S.link WHERE q=$1 AND target=?)", q->depends_on);
	if (!after)
		return;
	pg_int(c->args, after->ix.created_at);
	pg_bytes(c->args, after_key);
	buf_addf(&c->more, " AND (r.created_at,r.id_key)>($%d,$%d)", c->args->n - 1, c->args->n);
}

static void add_statuses(const struct query *q, struct buf *out)
{
	char sep = '(';

	if (!q->statuses || (q->pick == PICK_ALL && q->limit && q->limit <= UNION_MOST))
		return;
	buf_addf(out, " AND r.status IN");
	for (int i = 1; i < STORE_STATUSES; i++) {
		if (!(q->statuses >> i & 1))
			continue;
		buf_addf(out, "%c%d", sep, i);
		sep = ',';
	}
	buf_addf(out, sep == '(' ? "(0)" : ")");
}

/* --- ranges --------------------------------------------------------------------------------------- */

static void pg_scan_range(struct scan *c, bool first, const char *where)
{
	const struct query *q = c->q;

	buf_addf(&c->sql, "%s(SELECT " PG_COLS "%s,%s FROM $S.record r%s WHERE r.q=$1 AND %s",
		 first ? "" : " UNION ALL ", c->body ? "," PG_BODY : "", keys[q->pick],
		 c->body ? PG_JOIN : "", where);
	buf_adds(&c->sql, buf_str(&c->more));
	buf_addf(&c->sql, " ORDER BY %s", orders[q->pick]);
	if (q->limit)
		buf_addf(&c->sql, " LIMIT %zu", q->limit);
	buf_addf(&c->sql, ")");
}

static void ranges_eligible(struct scan *c)
{
	char lanes[16];

	pg_scan_range(c, true, READY_LANE);
	pg_scan_range(c, false,
		      arena_printf(&c->a, DUE_LANES " AND r.lane IN(%s) AND r.eligible_at<=" NOW,
				   pg_scan_timed(c->q, lanes))
			      .p);
}

static void ranges_waiting(struct scan *c)
{
	char lanes[16];

	pg_scan_range(c, true,
		      arena_printf(&c->a, DUE_LANES " AND r.lane IN(%s) AND r.eligible_at>" NOW,
				   pg_scan_timed(c->q, lanes))
			      .p);
	pg_scan_range(
		c, false,
		arena_printf(&c->a, DUE_LANES " AND r.lane IN(%s)", pg_scan_untimed(c->q, lanes))
			.p);
	pg_scan_range(c, false, "r.lane IS NULL AND r.status IS NOT NULL AND r.holder IS NOT NULL");
}

static void ranges_later(struct scan *c)
{
	char lanes[16];

	pg_scan_range(c, true,
		      arena_printf(&c->a, DUE_LANES " AND r.lane IN(%s) AND r.eligible_at>" NOW,
				   pg_scan_timed(c->q, lanes))
			      .p);
}

#define NOT_GONE "(r.lane IS DISTINCT FROM " LANE_TEXT(LANE_GOING) " OR r.eligible_at>" NOW ")"

/* Selects the oldest tasks of each status, then the oldest of all these. */
static void ranges_all(struct scan *c)
{
	const struct query *q = c->q;
	char sep = '[';

	if (!q->limit || q->limit > UNION_MOST) {
		pg_scan_range(c, true, "r.status IS NOT NULL AND " NOT_GONE);
		return;
	}
	buf_addf(&c->sql, "SELECT y.* FROM unnest(ARRAY");
	for (int i = 1; i < STORE_STATUSES; i++) {
		if (q->statuses && !(q->statuses >> i & 1))
			continue;
		buf_addf(&c->sql, "%c%d", sep, i);
		sep = ',';
	}
	buf_addf(&c->sql, "%s]::int2[]) AS st(n) CROSS JOIN LATERAL", sep == '[' ? "[0" : "");
	pg_scan_range(c, true, "r.status=st.n AND " NOT_GONE);
	buf_addf(&c->sql, " y");
}

static void pg_scan_build(struct scan *c)
{
	const struct query *q = c->q;

	buf_addf(&c->sql, c->count ? "SELECT count(*) FROM (" : "SELECT * FROM (");
	switch (q->pick) {
	case PICK_ELIGIBLE:
		ranges_eligible(c);
		break;
	case PICK_LATER:
		ranges_later(c);
		break;
	case PICK_WAITING:
		ranges_waiting(c);
		break;
	case PICK_OTHERS:
		pg_scan_range(c, true, "r.status IS NULL AND " NOT_GONE);
		break;
	default:
		ranges_all(c);
	}
	buf_addf(&c->sql, ") x(k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,k16,k17,k18%s",
		 c->body ? ",b1,b2,b3,b4,b5,b6,b7" : "");
	for (const char *p = outer[q->pick], *end; *p; p = end) {
		end = p + strcspn(p, ",");
		buf_addf(&c->sql, ",%.2s", p);
		end += *end == ',';
	}
	buf_addf(&c->sql, ")");
	if (c->count)
		return;
	buf_addf(&c->sql, " ORDER BY %s", outer[q->pick]);
	if (q->limit)
		buf_addf(&c->sql, " LIMIT %zu", q->limit);
}

/* --- the scan ------------------------------------------------------------------------------------- */

static int send_rows(struct scan *c, const PGresult *r, record_fn *fn, void *ctx)
{
	int rc = 0, n = PQntuples(r);

	for (int i = 0; rc == 0 && i < n; i++) {
		struct arena a = { 0 };
		struct record rec;

		pg_row_read(r, i, c->body, &rec, &a);
		if (c->keep && !pg_seen(c->s, rec.key))
			pg_remember(c->s, rec.key, &rec, c->body);
		if (!c->q->body)
			rec.body = (struct str){ 0 };
		rc = fn(&rec, ctx);
		arena_free(&a);
	}
	return rc;
}

static char *text_of(struct scan *c, const char *before)
{
	struct buf b = BUF_MAX(1 << 20);
	char *out;

	buf_addf(&b, "%s", before);
	buf_adds(&b, buf_str(&c->sql));
	buf_addc(&b, '\0');
	out = pg_sql(c->s, b.p);
	buf_free(&b);
	return out;
}

static int ask_rows(struct scan *c, PGresult **r)
{
	char *sql = text_of(c, "");
	int rc = pg_send_composed(c->s, sql, c->args);

	free(sql);
	return rc < 0 ? rc : pg_wait(c->s, r);
}

static int scan_at_once(struct scan *c, record_fn *fn, void *ctx)
{
	PGresult *r;
	int rc = ask_rows(c, &r);

	if (pg_again(c->s, rc))
		rc = ask_rows(c, &r);
	if (rc < 0)
		return rc;
	rc = send_rows(c, r, fn, ctx);
	PQclear(r);
	return rc;
}

static int pg_scan_fetch(struct scan *c, unsigned cursor, record_fn *fn, void *ctx)
{
	char sql[60];
	PGresult *r;
	int rc = 0, n = PG_FETCH;

	snprintf(sql, sizeof(sql), "FETCH FORWARD %d FROM c%u", PG_FETCH, cursor);
	while (rc == 0 && n == PG_FETCH) {
		rc = pg_send_text(c->s, sql, NULL);
		if (rc == 0)
			rc = pg_wait(c->s, &r);
		if (rc < 0)
			return rc;
		n = PQntuples(r);
		rc = send_rows(c, r, fn, ctx);
		PQclear(r);
	}
	return rc;
}

static int scan_in_portions(struct scan *c, record_fn *fn, void *ctx)
{
	struct pg *s = c->s;
	unsigned cursor = ++s->cursors;
	char begin[60];
	char *sql;
	int rc = 0;

	snprintf(begin, sizeof(begin), "DECLARE c%u NO SCROLL CURSOR FOR ", cursor);
	sql = text_of(c, begin);
	rc = pg_send_text(s, sql, c->args);
	free(sql);
	if (rc == 0)
		rc = pg_scan_fetch(c, cursor, fn, ctx);
	if (rc >= 0 && s->changing) {
		snprintf(begin, sizeof(begin), "CLOSE c%u", cursor);
		if (pg_send_text(s, begin, NULL) < 0)
			rc = s->base.env.err->fault;
	}
	return rc;
}

/* 0, 1 if the task of q->after is absent. */
static int pg_scan_start(struct scan *c)
{
	struct record after;
	char key[ID_KEY_MAX];
	bool paged = c->q->pick == PICK_ALL && c->q->after.n;
	bool known = c->s->changing || c->s->depth || c->s->boot;
	int rc = paged ? pg_get(&c->s->base, c->q->after, &after, &c->a) : 0;

	if (rc)
		return rc;
	pg_int(c->args, c->s->q);
	pg_int_or_null(c->args, c->q->at ? c->q->at : pg_now(&c->s->base), !c->q->at && !known);
	add_statuses(c->q, &c->more);
	add_conditions(c, paged ? &after : NULL,
		       paged ? arena_str(&c->a, index_id_key(after.ix.id, key)) : STR(""));
	pg_scan_build(c);
	return 0;
}

static void pg_scan_end(struct scan *c)
{
	buf_free(&c->more);
	buf_free(&c->sql);
	arena_free(&c->a);
}

static struct scan pg_scan_make(struct pg *s, const struct query *q, bool count,
				struct pg_args *args)
{
	bool small = s->changing && q->limit && q->limit <= SMALL;

	return (struct scan){ .s = s,
			      .q = q,
			      .args = args,
			      .more = BUF_MAX(4096),
			      .sql = BUF_MAX(256u << 10),
			      .count = count,
			      .keep = !count && small,
			      .body = !count && (q->body || small) };
}

static int pg_scan_run(struct pg *s, const struct query *q, bool once, record_fn *fn, void *ctx)
{
	struct pg_args args = { 0 };
	struct scan c = pg_scan_make(s, q, false, &args);
	int rc = pg_scan_start(&c);

	if (rc == 0)
		rc = once ? scan_at_once(&c, fn, ctx) : scan_in_portions(&c, fn, ctx);
	pg_scan_end(&c);
	return rc < 0 ? rc : 0;
}

/* A long answer is cut off, and then not used. The rows include bodies, because the change is likely to load the records. */
int pg_scan_send(struct pg *s, const struct query *q)
{
	struct pg_args args = { 0 };
	struct scan c = pg_scan_make(s, q, false, &args);
	char *sql;
	int rc;

	c.body = true;
	pg_int(&args, s->q);
	pg_int_or_null(&args, 0, true);
	add_statuses(q, &c.more);
	add_conditions(&c, NULL, STR(""));
	pg_scan_build(&c);
	if (!q->limit)
		buf_addf(&c.sql, " LIMIT %d", PG_FETCH);
	sql = text_of(&c, "");
	rc = pg_send_composed(s, sql, &args);
	free(sql);
	pg_scan_end(&c);
	return rc;
}

/* The answer need not be in order: it has at most the first records of each lane, and rarely any of the second lane. The
 * limit is a parameter, so that one plan serves batches of every size. The planner assumes that a limit parameter means a
 * tenth of all records, and might prefer to sort them. So the inner query has a second limit in its text. The locking
 * statement has set the time. */
static void key_branch(struct scan *c, const char *where, int n, int limit)
{
	buf_addf(&c->sql,
		 "(SELECT r.key,%d FROM (SELECT r.key,%s FROM $S.record r WHERE r.q=$1 AND %s", n,
		 keys[c->q->pick], where);
	buf_adds(&c->sql, buf_str(&c->more));
	buf_addf(&c->sql, " ORDER BY %s LIMIT %d) r ORDER BY %s LIMIT $%d)", orders[c->q->pick],
		 PG_FETCH, outer[c->q->pick], limit);
}

void pg_scan_keys(struct pg *s, const struct query *q, int n, struct pg_args *args, struct buf *sql)
{
	struct scan c = pg_scan_make(s, q, false, args);
	char lanes[16];
	int limit;

	pg_int(args, (int64_t)q->limit);
	limit = args->n;
	add_statuses(q, &c.more);
	add_conditions(&c, NULL, STR(""));
	key_branch(&c, READY_LANE, n, limit);
	buf_addf(&c.sql, " UNION ALL ");
	key_branch(&c,
		   arena_printf(&c.a, DUE_LANES " AND r.lane IN(%s) AND r.eligible_at<=" LOCK_NOW,
				pg_scan_timed(q, lanes))
			   .p,
		   n, limit);
	buf_adds(sql, buf_str(&c.sql));
	pg_scan_end(&c);
}

static int send_found(const struct query *q, const struct pg_found *f, record_fn *fn, void *ctx)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n; i++) {
		struct record rec = *f->v[i];

		if (!q->body)
			rec.body = (struct str){ 0 };
		rc = fn(&rec, ctx);
	}
	return rc < 0 ? rc : 0;
}

int pg_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx)
{
	struct pg *s = pg_of(base);
	bool once = q->limit && q->limit <= PG_FETCH;
	struct pg_found found;
	int rc = pg_guard(s);

	if (rc == 0 && pg_ahead_find(s, q, &found))
		return send_found(q, &found, fn, ctx);
	if (rc == 0 && once)
		return pg_scan_run(s, q, once, fn, ctx);
	if (rc == 0)
		rc = pg_read_begin(s);
	return rc < 0 ? rc : pg_read_end(s, pg_scan_run(s, q, once, fn, ctx));
}

static int count_rows(struct pg *s, const struct query *q, int64_t *n)
{
	struct pg_args args = { 0 };
	struct scan c = pg_scan_make(s, q, true, &args);
	PGresult *r;
	char *sql;
	int rc = pg_scan_start(&c);

	sql = text_of(&c, "");
	if (rc == 0)
		rc = pg_send_composed(s, sql, &args);
	free(sql);
	pg_scan_end(&c);
	if (rc == 0)
		rc = pg_wait(s, &r);
	if (rc)
		return rc < 0 ? rc : 0;
	*n = pg_int_at(r, 0, 0);
	PQclear(r);
	return 0;
}

int pg_count(struct store *base, const struct query *q, int64_t *n)
{
	struct query all = query_to_count(q);
	int64_t counts[STORE_STATUSES];
	int rc;

	*n = 0;
	if (!query_only_statuses(q)) {
		rc = pg_guard(pg_of(base));
		if (rc == 0)
			rc = count_rows(pg_of(base), &all, n);
		return pg_again(pg_of(base), rc) ? count_rows(pg_of(base), &all, n) : rc;
	}
	rc = pg_tally(base, counts);
	if (rc == 0)
		*n = query_sum(q, counts);
	return rc;
}
