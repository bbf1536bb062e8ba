/* Reads one record, the counts, the log and the time, and makes snapshots. All reads of a snapshot or of a change see one
 * state and one time. */
#include <stdio.h>

#include "base/os.h"
#include "store/postgres/postgres.h"

#define ENTRY_MAX (7u << 20)
#define PAGE 500 /* entries */
#define PAGE_BACK 100

/* --- time ----------------------------------------------------------------------------------------- */

void pg_clock_set(struct pg *s, int64_t server_ms)
{
	int64_t now = s->server_ms ? pg_now(&s->base) : 0;

	s->server_ms = server_ms > now ? server_ms : now;
	s->boot_ms = os_boot_ms();
}

int64_t pg_clock_from(const struct pg *s, int64_t server_ms)
{
	int64_t now = s->boot ? s->epoch + s->boot() : 0;

	return now > server_ms ? now : server_ms;
}

/* Outside a change this does not ask the server. It adds the time since our last reading of the server's clock, by our
 * own boot clock, which no user can set. */
int64_t pg_now(struct store *base)
{
	struct pg *s = pg_of(base);
	int64_t passed;

	if (s->changing || s->depth)
		return s->now;
	passed = os_boot_ms() - s->boot_ms - 1; /* both were cut to whole milliseconds */
	return s->boot ? pg_clock_from(s, s->server_ms) : s->server_ms + (passed > 0 ? passed : 0);
}

/* --- read transactions ---------------------------------------------------------------------------- */

static int pg_read_begin_snapshot(struct pg *s)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc = pg_send(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL);

	pg_int(&args, s->q);
	if (rc == 0)
		rc = pg_ask(s, "SELECT greatest(now,$C) FROM $S.queue WHERE q=$1", &args, &r);
	if (rc < 0)
		return rc;
	s->now = PQntuples(r) ? pg_clock_from(s, pg_int_at(r, 0, 0)) : pg_now(&s->base);
	pg_clock_set(s, s->now);
	PQclear(r);
	return 0;
}

int pg_read_begin(struct pg *s)
{
	int rc = s->changing || s->depth ? 0 : pg_read_begin_snapshot(s);

	if (pg_again(s, rc))
		rc = pg_read_begin_snapshot(s);
	if (rc == 0)
		s->depth++;
	else if (!s->broken)
		pg_rollback(s, rc);
	return rc;
}

int pg_read_end(struct pg *s, int rc)
{
	if (--s->depth > 0 || s->changing)
		return rc;
	return pg_rollback(s, rc);
}

int pg_snapshot(struct store *base, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct pg *s = pg_of(base);
	int rc = pg_guard(s);

	(void)all;
	if (rc == 0)
		rc = pg_read_begin(s);
	return rc < 0 ? rc : pg_read_end(s, fn(ctx));
}

/* --- one record ----------------------------------------------------------------------------------- */

/* Remembers the rows of `r` (PG_COLS, PG_BODY), and that the other keys are absent; clears `r`. */
static void pg_remember_all(struct pg *s, struct strs keys, PGresult *r)
{
	for (size_t i = 0; i < keys.n; i++)
		pg_remember(s, keys.v[i], NULL, false);
	for (int i = 0; i < PQntuples(r); i++) {
		struct record rec;

		pg_row_read(r, i, true, &rec, &s->arena);
		pg_remember(s, rec.key, &rec, true);
	}
	PQclear(r);
}

/* Several records by key, with their bodies. */
int pg_load(struct pg *s, struct strs keys)
{
	struct pg_args args = { .a = &s->arena };
	PGresult *r;
	int rc;

	pg_int(&args, s->q);
	pg_list(&args, keys);
	rc = pg_ask(s,
		    "SELECT " PG_COLS "," PG_BODY
		    " FROM " PG_EACH("$2") " JOIN $S.record r ON r.q=k.q AND r.key=k.v" PG_JOIN,
		    &args, &r);
	if (rc == 0)
		pg_remember_all(s, keys, r);
	return rc;
}

static int get_changing(struct pg *s, struct str key, struct record *out, struct arena *a)
{
	struct pg_seen *seen = pg_seen(s, key);

	if (!seen || (seen->rec && !seen->body)) {
		int rc = pg_load(s, (struct strs){ &key, 1 });

		if (rc < 0)
			return rc;
		seen = pg_seen(s, key);
	}
	if (!seen->rec)
		return 1;
	*out = *record_copy(a, seen->rec);
	return index_gone(&out->ix, s->now);
}

static int get_outside(struct pg *s, struct str key, struct record *out, struct arena *a)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	pg_int(&args, s->q);
	pg_bytes(&args, key);
	rc = pg_ask(
		s,
		"SELECT " PG_COLS "," PG_BODY
		",greatest(n.now,$C) FROM $S.queue n LEFT JOIN $S.record r ON r.q=n.q AND r.key=$2" PG_JOIN
		" WHERE n.q=$1",
		&args, &r);
	if (rc < 0)
		return rc;
	rc = PQntuples(r) != 1 || PQgetisnull(r, 0, 0);
	if (PQntuples(r) == 1 && !s->depth)
		pg_clock_set(s, pg_int_at(r, 0, PG_COL_BODY + COLUMN_TEXTS + 1));
	if (rc == 0)
		pg_row_read(r, 0, true, out, a);
	PQclear(r);
	return rc == 0 && index_gone(&out->ix, pg_now(&s->base)) ? 1 : rc;
}

int pg_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct pg *s = pg_of(base);
	int rc = pg_guard(s);

	if (rc < 0)
		return rc;
	if (s->changing)
		return get_changing(s, key, out, a);
	rc = get_outside(s, key, out, a);
	return pg_again(s, rc) ? get_outside(s, key, out, a) : rc;
}

/* --- counts --------------------------------------------------------------------------------------- */

static int read_tally(struct pg *s, int64_t *counts)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	memset(counts, 0, STORE_STATUSES * sizeof(*counts));
	pg_int(&args, s->q);
	rc = pg_ask(s,
		    "SELECT n,t FROM $S.queue,unnest(tally) WITH ORDINALITY AS u(t,n) WHERE q=$1",
		    &args, &r);
	if (rc < 0)
		return rc;
	for (int i = 0; i < PQntuples(r); i++)
		counts[(pg_int_at(r, i, 0) - 1) & (STORE_STATUSES - 1)] = pg_int_at(r, i, 1);
	PQclear(r);
	return 0;
}

int pg_tally(struct store *base, int64_t *counts)
{
	struct pg *s = pg_of(base);
	int rc = pg_guard(s);

	if (rc == 0 && s->changing) {
		memcpy(counts, s->row.tally, sizeof(s->row.tally));
		return 0;
	}
	if (rc == 0)
		rc = read_tally(s, counts);
	return pg_again(s, rc) ? read_tally(s, counts) : rc;
}

/* --- the log -------------------------------------------------------------------------------------- */

#define UP_TO(column) "CASE WHEN octet_length(" column ")<=1048576 THEN " column " END"
#define ENTRY                                                                              \
	"SELECT seq,at,key," UP_TO("kind") "," UP_TO("task") "," UP_TO("agent") "," UP_TO( \
		"run") "," UP_TO("text") "," UP_TO("rest") " FROM $S.log WHERE q=$1 AND seq>$2"
#define OF_KEY " AND key=$6"
#define IN_TIME " AND at>=$3 AND at<$4"

#define CURSOR_ROOM 24

static struct entry read_row(const PGresult *r, int i, char *cursor, struct buf *data)
{
	struct str words[COLUMN_WORDS];
	struct entry e = { .at = pg_int_at(r, i, 1), .key = pg_bytes_at(r, i, 2) };

	for (int k = 0; k < COLUMN_WORDS; k++)
		words[k] = pg_bytes_at(r, i, 3 + k);
	data->n = 0;
	column_join(column_entry_tags, COLUMN_WORDS, words, pg_bytes_at(r, i, 3 + COLUMN_WORDS),
		    data);
	e.data = buf_str(data);
	snprintf(cursor, CURSOR_ROOM, "%lld", (long long)pg_int_at(r, i, 0));
	e.cursor = str_c(cursor);
	return e;
}

/* 0, 1: stop, or a fault. */
static int send_entries(const PGresult *r, entry_fn *fn, void *ctx, int64_t *after)
{
	struct buf data = BUF_MAX(ENTRY_MAX);
	int rc = 0;

	for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
		char cursor[CURSOR_ROOM];
		struct entry e = read_row(r, i, cursor, &data);

		*after = pg_int_at(r, i, 0);
		rc = fn(&e, ctx);
	}
	buf_free(&data);
	return rc;
}

static const char *entries_sql(const struct entry_query *q)
{
	if (q->last)
		return q->key.n ? "SELECT * FROM (" ENTRY IN_TIME OF_KEY
				  " ORDER BY seq DESC LIMIT $5) x ORDER BY seq"
				: "SELECT * FROM (" ENTRY IN_TIME
				  " ORDER BY seq DESC LIMIT $5) x ORDER BY seq";
	return q->key.n ? ENTRY IN_TIME OF_KEY " ORDER BY seq LIMIT $5"
			: ENTRY IN_TIME " ORDER BY seq LIMIT $5";
}

static int64_t pg_read_most(size_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int pg_read_page(struct pg *s, const struct entry_query *q, int64_t after, PGresult **r)
{
	struct pg_args args = { 0 };

	pg_int(&args, s->q);
	pg_int(&args, after);
	pg_int(&args, q->since);
	pg_int(&args, q->until ? q->until : INT64_MAX);
	pg_int(&args, q->last ? pg_read_most(q->last) : PAGE);
	if (q->key.n)
		pg_bytes(&args, q->key);
	return pg_ask(s, entries_sql(q), &args, r);
}

/* Finds the newest entry before `since`, backwards from the log's end, so the cost depends on the time in the query, not
 * on the log's size. If the newest q->last entries are all later, it does not matter which entry this finds. */
static int find_since(struct pg *s, const struct entry_query *q, int64_t *after)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	pg_int(&args, s->q);
	pg_int(&args, *after);
	pg_int(&args, q->since);
	pg_int(&args, q->last && !q->until ? pg_read_most(q->last) : INT64_MAX);
	rc = pg_ask(s,
		    "SELECT seq FROM (SELECT seq,at FROM $S.log WHERE q=$1 AND seq>$2 "
		    "ORDER BY seq DESC LIMIT $4) x WHERE at<$3 ORDER BY seq DESC LIMIT 1",
		    &args, &r);
	if (rc < 0)
		return rc;
	if (PQntuples(r))
		*after = pg_int_at(r, 0, 0);
	PQclear(r);
	return 0;
}

/* --- the newest entries that count ---------------------------------------------------------------- */

/* Reads the entries that are older than `before`, the newest first. */
static int page_back(struct pg *s, const struct entry_query *q, int64_t after, int64_t before,
		     PGresult **r)
{
	struct pg_args args = { 0 };

	pg_int(&args, s->q);
	pg_int(&args, after);
	pg_int(&args, before);
	pg_int(&args, q->until ? q->until : INT64_MAX);
	pg_int(&args, PAGE_BACK);
	if (q->key.n)
		pg_bytes(&args, q->key);
	return pg_ask(s,
		      q->key.n ? ENTRY " AND seq<$3 AND at<$4" OF_KEY " ORDER BY seq DESC LIMIT $5"
			       : ENTRY " AND seq<$3 AND at<$4 ORDER BY seq DESC LIMIT $5",
		      &args, r);
}

/* Counts the entries of the page, and moves *before to the last one that it checked. true: the answer begins after that
 * entry. */
static bool count_back(const PGresult *r, const struct entry_query *q, void *ctx, size_t *n,
		       int64_t *before)
{
	struct buf data = BUF_MAX(ENTRY_MAX);
	bool found = false;

	for (int i = 0; !found && i < PQntuples(r); i++) {
		char cursor[CURSOR_ROOM];
		struct entry e = read_row(r, i, cursor, &data);

		*before = pg_int_at(r, i, 0);
		found = *n == q->last || (e.at < q->since && !q->unordered);
		*n += !found && entry_in_time(q, e.at) && entry_counts(q, &e, ctx);
	}
	buf_free(&data);
	return found;
}

static int find_counted(struct pg *s, const struct entry_query *q, void *ctx, int64_t *after)
{
	int64_t before = INT64_MAX;
	bool found = false, more = true;
	size_t n = 0;

	while (!found && more) {
		PGresult *r;
		int rc = page_back(s, q, *after, before, &r);

		if (rc < 0)
			return rc;
		more = PQntuples(r) == PAGE_BACK;
		found = count_back(r, q, ctx, &n, &before);
		PQclear(r);
	}
	if (found)
		*after = before;
	return 0;
}

static int read_entries(struct pg *s, const struct entry_query *asked, int64_t after, entry_fn *fn,
			void *ctx)
{
	struct entry_query q = *asked;
	bool more = true;
	int rc = 0;

	if (q.last && q.counts) {
		rc = find_counted(s, &q, ctx, &after);
		q.last = 0; /* all that follow */
	} else if (q.since && !q.key.n && !q.unordered) {
		rc = find_since(s, &q, &after);
	}
	while (rc == 0 && more) {
		PGresult *r;

		rc = pg_read_page(s, &q, after, &r);
		if (rc < 0)
			break;
		more = !q.last && PQntuples(r) == PAGE;
		rc = send_entries(r, fn, ctx, &after);
		PQclear(r);
	}
	return rc < 0 ? rc : 0;
}

int pg_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct pg *s = pg_of(base);
	int64_t after = 0;
	int rc = pg_guard(s);

	if (rc < 0)
		return rc;
	if (q->after.n && (!str_to_i64(q->after, &after) || after < 0))
		return store_fail(&base->env, STORE_UNSUPPORTED, NULL,
				  "'%.*s' is not a cursor of this store", STRF(q->after));
	rc = pg_read_begin(s);
	return rc < 0 ? rc : pg_read_end(s, read_entries(s, q, after, fn, ctx));
}

/* --- row -------------------------------------------------------------------------------------- */

/* Reads a record from its row, and remembers the records of a change. */

#define BODY_MAX (17u << 20) /* PG_JOIN reads at most 16 MiB */

static struct str pg_row_copy(const PGresult *r, int row, int col, struct arena *a)
{
	return arena_str(a, pg_bytes_at(r, row, col));
}

static struct str read_body(const PGresult *r, int row, struct arena *a)
{
	struct str texts[COLUMN_TEXTS], rest = pg_bytes_at(r, row, PG_COL_BODY + COLUMN_TEXTS), out;
	struct buf b = BUF_MAX(BODY_MAX);
	size_t n = 0;

	for (int i = 0; i < COLUMN_TEXTS; i++) {
		texts[i] = pg_bytes_at(r, row, PG_COL_BODY + i);
		n += texts[i].n;
	}
	if (!n)
		return arena_str(a, rest);
	column_join(column_text_tags, COLUMN_TEXTS, texts, rest, &b);
	out = b.full ? STR("") : arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void pg_row_read(const PGresult *r, int row, bool body, struct record *out, struct arena *a)
{
	struct index *ix = &out->ix;

	*out = (struct record){ .key = pg_row_copy(r, row, 0, a), .rev = pg_int_at(r, row, 1) };
	ix->lane = (int)pg_int_at(r, row, 2);
	ix->status = (int)pg_int_at(r, row, 3) & (STORE_STATUSES - 1);
	ix->class_rank = (int)pg_int_at(r, row, 4);
	ix->priority = (int)pg_int_at(r, row, 5);
	ix->eligible_at = pg_int_at(r, row, 6);
	ix->updated_at = pg_int_at(r, row, 7);
	ix->created_at = pg_int_at(r, row, 8);
	ix->due = pg_int_at(r, row, 9);
	ix->id = pg_row_copy(r, row, 10, a);
	ix->holder = pg_row_copy(r, row, 11, a);
	ix->token = pg_row_copy(r, row, 12, a);
	ix->parent = pg_row_copy(r, row, 13, a);
	ix->type = pg_row_copy(r, row, 14, a);
	ix->labels = pg_list_at(r, row, 15, a);
	ix->depends = pg_list_at(r, row, 16, a);
	out->hot = pg_row_copy(r, row, 17, a);
	if (body)
		out->body = read_body(r, row, a);
}

/* --- the records of a change ---------------------------------------------------------------------- */

static struct pg_seen **pg_row_slot(struct pg *s, struct str key)
{
	struct pg_seen **at = &s->seen[str_hash(key) % PG_SEEN_SLOTS];

	while (*at && !str_eq((*at)->key, key))
		at = &(*at)->chain;
	return at;
}

struct pg_seen *pg_seen(struct pg *s, struct str key)
{
	return s->changing ? *pg_row_slot(s, key) : NULL;
}

void pg_remember(struct pg *s, struct str key, const struct record *r, bool body)
{
	struct pg_seen **at;

	if (!s->changing)
		return;
	at = pg_row_slot(s, key);
	if (!*at) {
		*at = arena_new(&s->arena, struct pg_seen);
		(*at)->key = arena_str(&s->arena, key);
		s->n_seen++;
	}
	(*at)->rec = r ? record_copy(&s->arena, r) : NULL;
	(*at)->body = body;
}

void pg_wrote(struct pg *s, struct str key)
{
	struct pg_seen *seen = *pg_row_slot(s, key);

	if (seen->written)
		return;
	seen->written = true;
	seen->next_written = s->written;
	s->written = seen;
	s->n_written++;
}

void pg_forget_seen(struct pg *s)
{
	memset(s->seen, 0, sizeof(s->seen));
	s->written = NULL;
	s->n_seen = s->n_written = s->logged = 0;
	s->ahead = (struct pg_ahead){ 0 };
	s->later = (struct pg_later){ 0 };
	arena_free(&s->arena);
}
