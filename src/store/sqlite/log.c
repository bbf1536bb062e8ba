/* Reads the log. */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

#define SQ_ENTRY                                                               \
	SQ_UP_TO(kind, 1048576)                                                \
	"," SQ_UP_TO(task, 1048576) "," SQ_UP_TO(agent, 1048576) "," SQ_UP_TO( \
		run, 1048576) "," SQ_UP_TO(text, 1048576) "," SQ_UP_TO(rest, 1048576)
#define ENTRY_MAX (7u << 20)
#define ALL " FROM event NOT INDEXED WHERE q=?1 AND seq>?2"
#define OF_KEY " FROM event INDEXED BY event_key WHERE q=?1 AND seq>?2 AND key=?3"
#define PLACE "SELECT seq,at"
#define ENTRY "SELECT seq,at,key," SQ_ENTRY
#define FORTH " AND at>=?4 AND at<?5 ORDER BY seq"
#define BACK " ORDER BY seq DESC"

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

#define CURSOR_ROOM 24

static struct entry read_row(sqlite3_stmt *st, char *cursor, struct buf *data)
{
	struct entry e = { .at = sqlite3_column_int64(st, 1),
			   .key = sq_column(st, 2),
			   .data = read_entry(st, 3, data) };

	snprintf(cursor, CURSOR_ROOM, "%lld", sqlite3_column_int64(st, 0));
	e.cursor = str_c(cursor);
	return e;
}

static int take_query(struct sq *s, const char *sql, const struct entry_query *q, int64_t after,
		      sqlite3_stmt **st)
{
	int rc = sq_take(s, sql, st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(*st, 1, s->q);
	sqlite3_bind_int64(*st, 2, after);
	if (q->key.n)
		sq_bind(*st, 3, q->key);
	return 0;
}

/* From the end of the log backwards: the cost depends on the number of entries and on the time that are asked for, not
 * on the size of the log. Moves *after to the entry before the answer. */
static int find_start(struct sq *s, const struct entry_query *q, void *ctx, int64_t *after)
{
	bool decides = q->last && q->counts;
	struct buf data = BUF_MAX(ENTRY_MAX);
	sqlite3_stmt *st;
	size_t n = 0;
	int rc = q->key.n
			 ? take_query(s, decides ? ENTRY OF_KEY BACK : PLACE OF_KEY BACK, q, *after,
				      &st)
			 : take_query(s, decides ? ENTRY ALL BACK : PLACE ALL BACK, q, *after, &st);

	if (rc < 0)
		return rc;
	while ((rc = sq_step(s, st)) == SQLITE_ROW) {
		int64_t seq = sqlite3_column_int64(st, 0), at = sqlite3_column_int64(st, 1);
		bool full = q->last && n == q->last;

		if (full || (at < q->since && !q->unordered)) {
			*after = seq;
			break;
		}
		if (entry_in_time(q, at)) {
			char cursor[CURSOR_ROOM];
			struct entry e = decides ? read_row(st, cursor, &data)
						 : (struct entry){ .at = at };

			n += !decides || entry_counts(q, &e, ctx);
		}
	}
	sq_give(s, st);
	buf_free(&data);
	return rc < 0 ? rc : 0;
}

static int send_entries(struct sq *s, const struct entry_query *q, int64_t after, entry_fn *fn,
			void *ctx)
{
	struct buf data = BUF_MAX(ENTRY_MAX);
	sqlite3_stmt *st;
	int rc = take_query(s, q->key.n ? ENTRY OF_KEY FORTH : ENTRY ALL FORTH, q, after, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 4, q->since);
	sqlite3_bind_int64(st, 5, q->until ? q->until : INT64_MAX);
	while ((rc = sq_step(s, st)) == SQLITE_ROW) {
		char cursor[CURSOR_ROOM];
		struct entry e = read_row(st, cursor, &data);

		rc = fn(&e, ctx);
		if (rc)
			break;
	}
	sq_give(s, st);
	buf_free(&data);
	return rc < 0 ? rc : 0;
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
	rc = sq_read_begin(s); /* so that no entry comes between the two steps */
	if (rc < 0)
		return rc;
	if (q->last || (q->since && !q->unordered))
		rc = find_start(s, q, ctx, &after);
	if (rc == 0)
		rc = send_entries(s, q, after, fn, ctx);
	sq_read_end(s);
	return rc;
}
