/* Reads the log. */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

#define SQ_ENTRY                                                               \
	SQ_UP_TO(kind, 1048576)                                                \
	"," SQ_UP_TO(task, 1048576) "," SQ_UP_TO(agent, 1048576) "," SQ_UP_TO( \
		run, 1048576) "," SQ_UP_TO(text, 1048576) "," SQ_UP_TO(rest, 1048576)
#define ENTRY_MAX (7u << 20)
#define IN_TIME " AND at>=?5 AND at<?6"
#define EVENTS "SELECT seq,at,key," SQ_ENTRY " FROM event NOT INDEXED WHERE q=?1 AND seq>?2" IN_TIME
#define EVENTS_OF                     \
	"SELECT seq,at,key," SQ_ENTRY \
	" FROM event INDEXED BY event_key WHERE q=?1 AND key=?3 AND seq>?2" IN_TIME
#define LAST(select) "SELECT * FROM (" select " ORDER BY seq DESC LIMIT ?4) ORDER BY seq"

static struct str read_entry(sqlite3_stmt *st, int first, struct buf *out)
{
	struct str words[COLUMN_WORDS];

	for (int i = 0; i < COLUMN_WORDS; i++)
		words[i] = sq_column(st, first + i);
	out->n = 0;
	column_join(column_entry_tags, COLUMN_WORDS, words, sq_column(st, first + COLUMN_WORDS),
		    out);
	return buf_str(out);
}

static int send_entries(struct sq *s, sqlite3_stmt *st, entry_fn *fn, void *ctx)
{
	struct buf data = BUF_MAX(ENTRY_MAX);
	int rc;

	while ((rc = sq_step(s, st)) == SQLITE_ROW) {
		char cursor[24];
		struct entry e = { .at = sqlite3_column_int64(st, 1),
				   .key = sq_column(st, 2),
				   .data = read_entry(st, 3, &data) };

		snprintf(cursor, sizeof(cursor), "%lld", sqlite3_column_int64(st, 0));
		e.cursor = str_c(cursor);
		rc = fn(&e, ctx);
		if (rc)
			break;
	}
	buf_free(&data);
	return rc < 0 ? rc : 0;
}

static int64_t most(const struct entry_query *q)
{
	return q->last > INT64_MAX ? INT64_MAX : (int64_t)q->last;
}

/* The newest entry before `since`, from the end of the log backwards: the cost depends on the time that is asked for,
 * not on the size of the log. */
static int find_start(struct sq *s, const struct entry_query *q, int64_t *after)
{
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"SELECT seq FROM event NOT INDEXED WHERE q=?1 AND seq>?2 AND at<?3 ORDER BY seq DESC LIMIT 1",
		&st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, *after);
	sqlite3_bind_int64(st, 3, q->since);
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		*after = sqlite3_column_int64(st, 0);
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

/* The entry before the newest q->last ones of a record, by its index alone: reading them in order then needs no
 * sorter. */
static int find_last(struct sq *s, const struct entry_query *q, int64_t *after)
{
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"SELECT seq FROM event INDEXED BY event_key WHERE q=?1 AND key=?3 AND seq>?2 ORDER BY seq DESC LIMIT 1 OFFSET ?4",
		&st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, *after);
	sq_bind(st, 3, q->key);
	sqlite3_bind_int64(st, 4, most(q));
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		*after = sqlite3_column_int64(st, 0);
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

/* All entries that match, or with `last` only the newest ones. */
static int read_entries(struct sq *s, const struct entry_query *q, int64_t after, bool last,
			entry_fn *fn, void *ctx)
{
	sqlite3_stmt *st;
	int rc;

	if (q->key.n)
		rc = sq_take(s, last ? LAST(EVENTS_OF) : EVENTS_OF " ORDER BY seq", &st);
	else
		rc = sq_take(s, last ? LAST(EVENTS) : EVENTS " ORDER BY seq", &st);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, after);
	if (q->key.n)
		sq_bind(st, 3, q->key);
	if (last)
		sqlite3_bind_int64(st, 4, most(q));
	sqlite3_bind_int64(st, 5, q->since);
	sqlite3_bind_int64(st, 6, q->until ? q->until : INT64_MAX);
	rc = send_entries(s, st, fn, ctx);
	sq_give(s, st);
	return rc;
}

/* In one transaction, so that no entry comes between the two steps. */
static int read_last_entries(struct sq *s, const struct entry_query *q, int64_t after, entry_fn *fn,
			     void *ctx)
{
	int rc = sq_read_begin(s);

	if (rc < 0)
		return rc;
	rc = find_last(s, q, &after);
	if (rc == 0)
		rc = read_entries(s, q, after, false, fn, ctx);
	sq_read_end(s);
	return rc;
}

int sq_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct sq *s = sq_of(base);
	int64_t after = 0;
	int rc = sq_read_guard(s);

	if (rc < 0)
		return rc;
	if (q->after.n && (!str_to_i64(q->after, &after) || after < 0))
		return store_fail(&base->env, STORE_UNSUPPORTED, NULL,
				  "'%.*s' is not a cursor of this store", STRF(q->after));
	if (q->since && !q->key.n && !q->unordered)
		rc = find_start(s, q, &after);
	if (rc < 0)
		return rc;
	if (q->last && q->key.n && !q->since && !q->until)
		return read_last_entries(s, q, after, fn, ctx);
	return read_entries(s, q, after, q->last > 0, fn, ctx);
}
