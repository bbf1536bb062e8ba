/* Reads a record from its row. The strings of a struct sq_row point into its statement, so they are valid only until the
 * statement steps or is given back. A value larger than pawl writes counts as absent. */
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite/sqlite.h"

#define BODY_MAX (2u << 20) /* more than SQ_TASK_MAX */

static void read_list(struct sq_row *row, size_t *used, char **room, struct str json,
		      struct strs *out)
{
	*out = (struct strs){ row->list + *used, 0 };
	while (sq_list_next(&json, room, &row->list[*used])) {
		++*used;
		out->n++;
	}
}

/* An item takes at least three bytes of JSON, so the length of the JSON is room enough. */
static void read_lists(struct sq_row *row, sqlite3_stmt *st)
{
	struct str labels = sq_column(st, COL_LABELS), depends = sq_column(st, COL_DEPENDS);
	size_t most = labels.n + depends.n, used = 0;
	char *room;

	row->rec.ix.labels = row->rec.ix.depends = (struct strs){ 0 };
	if (!most)
		return;
	if (most > row->room) {
		row->list = mem_grow(row->list, most * sizeof(*row->list));
		row->names = mem_grow(row->names, most);
		row->room = most;
	}
	room = row->names;
	read_list(row, &used, &room, labels, &row->rec.ix.labels);
	read_list(row, &used, &room, depends, &row->rec.ix.depends);
}

/* The columns from `first` on are SQ_BODY. If there are texts, the body is joined in *out. */
static struct str read_body(sqlite3_stmt *st, int first, struct buf *out)
{
	struct str texts[COLUMN_TEXTS], rest = sq_column(st, first + COLUMN_TEXTS);
	size_t n = 0;

	for (int i = 0; i < COLUMN_TEXTS; i++) {
		texts[i] = sq_column(st, first + i);
		n += texts[i].n;
	}
	if (!n)
		return rest;
	out->n = 0;
	out->full = false;
	column_join(column_text_tags, COLUMN_TEXTS, texts, rest, out);
	return out->full ? STR("") : buf_str(out);
}

void sq_row_read(sqlite3_stmt *st, bool body, struct sq_row *row)
{
	struct record *r = &row->rec;
	struct index *ix = &r->ix;

	row->rid = sqlite3_column_int64(st, COL_RID);
	row->wake = sqlite3_column_int64(st, COL_WAKE);
	r->key = sq_column(st, COL_KEY);
	r->rev = sqlite3_column_int64(st, COL_REV);
	ix->lane = sqlite3_column_int(st, COL_LANE);
	ix->status = sqlite3_column_int(st, COL_STATUS) & (STORE_STATUSES - 1);
	ix->class_rank = sqlite3_column_int(st, COL_CLASS);
	ix->priority = sqlite3_column_int(st, COL_PRIORITY);
	ix->eligible_at = sqlite3_column_int64(st, COL_ELIGIBLE);
	ix->updated_at = sqlite3_column_int64(st, COL_UPDATED);
	ix->created_at = sqlite3_column_int64(st, COL_CREATED);
	ix->due = sqlite3_column_int64(st, COL_DUE);
	ix->id = sq_column(st, COL_ID);
	ix->holder = sq_column(st, COL_HOLDER);
	ix->token = sq_column(st, COL_TOKEN);
	ix->parent = sq_column(st, COL_PARENT);
	ix->type = sq_column(st, COL_TYPE);
	read_lists(row, st);
	r->hot = sq_column(st, COL_HOT);
	row->body.max = BODY_MAX;
	r->body = body ? read_body(st, COL_TEXTS, &row->body) : (struct str){ 0 };
	r->body_changed = false;
}

void sq_row_free(struct sq_row *row)
{
	free(row->list);
	free(row->names);
	buf_free(&row->body);
	*row = (struct sq_row){ 0 };
}

int sq_row_find(struct sq *s, struct str key, struct sq_row *row, sqlite3_stmt **st)
{
	int rc = sq_take(s, "SELECT " SQ_COLS " FROM record WHERE q=?1 AND key=?2", st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(*st, 1, s->q);
	sq_bind(*st, 2, key);
	rc = sq_step(s, *st);
	if (rc == SQLITE_ROW) {
		sq_row_read(*st, false, row);
		return 0;
	}
	sq_give(s, *st);
	*st = NULL;
	return rc < 0 ? rc : 1;
}

int sq_row_body(struct sq *s, int64_t rid, bool task, struct arena *a, struct str *out)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT " SQ_BODY " FROM body WHERE rid=?1 AND " SQ_BODY_SIZE "<=?2",
			 &st);
	struct buf b = BUF_MAX(BODY_MAX);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, rid);
	sqlite3_bind_int(st, 2, task ? SQ_TASK_MAX : SQ_ANSWER_MAX);
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		*out = arena_str(a, read_body(st, 0, &b));
	sq_give(s, st);
	buf_free(&b);
	return rc < 0 ? rc : 0;
}

struct sq_seen *sq_row_remember(struct sq *s, const struct sq_row *row)
{
	struct sq_seen *seen = &s->seen[s->n_seen % SQ_SEEN];

	if (!s->changing)
		return NULL;
	*seen = (struct sq_seen){ row->rid, row->wake, record_copy(&s->arena, &row->rec), false };
	s->n_seen++;
	return seen;
}

void sq_row_remember_absent(struct sq *s, struct str key)
{
	if (!s->changing || s->n_absent || key.n > sizeof(s->absent))
		return;
	memcpy(s->absent, key.p, key.n);
	s->n_absent = key.n;
}

bool sq_row_absent(const struct sq *s, struct str key)
{
	return s->n_absent && str_eq(str_n(s->absent, s->n_absent), key);
}

static unsigned slots_used(const struct sq *s)
{
	return s->n_seen < SQ_SEEN ? s->n_seen : SQ_SEEN;
}

struct sq_seen *sq_row_seen(struct sq *s, struct str key)
{
	for (unsigned i = 0; s->changing && i < slots_used(s); i++)
		if (s->seen[i].rec && str_eq(s->seen[i].rec->key, key))
			return &s->seen[i];
	return NULL;
}

static struct strs own_list(struct strs list, struct arena *a)
{
	struct strs out = { arena_array(a, struct str, list.n), list.n };

	if (list.n)
		memcpy(out.v, list.v, list.n * sizeof(*list.v));
	return out;
}

/* In a batch, many calls may ask for one task. Its body is read once, and they share the bytes in the change's arena. */
int sq_row_again(struct sq *s, struct sq_seen *seen, struct record *out, struct arena *a)
{
	struct record *rec = seen->rec;
	int rc = 0;

	if (!seen->has_body)
		rc = sq_row_body(s, seen->rid, rec->ix.status, &s->arena, &rec->body);
	seen->has_body = rc == 0;
	*out = a == &s->arena ? *rec : *record_copy(a, rec);
	out->ix.labels = own_list(out->ix.labels, a);
	out->ix.depends = own_list(out->ix.depends, a);
	return rc;
}

void sq_row_forget(struct sq *s, struct str key)
{
	for (unsigned i = 0; i < slots_used(s); i++)
		if (s->seen[i].rec && str_eq(s->seen[i].rec->key, key))
			s->seen[i].rec = NULL;
}

/* --- log -------------------------------------------------------------------------------------- */

/* Reads the event log. Both steps of a read, finding the start and sending the entries, see one snapshot. */

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

/* Reads the log backwards from its end, so the cost depends on the number of entries and the time in the query, not on
 * the log's size. Moves *after to the entry before the answer. */
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
	rc = sq_read_begin(s); /* one transaction, so that no entry comes between the two steps */
	if (rc < 0)
		return rc;
	if (q->last || (q->since && !q->unordered))
		rc = find_start(s, q, ctx, &after);
	if (rc == 0)
		rc = send_entries(s, q, after, fn, ctx);
	sq_read_end(s);
	return rc;
}
