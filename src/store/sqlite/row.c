/* A record from its row. */
#include <stdlib.h>

#include "format/pack.h"
#include "store/sqlite/sqlite.h"

static void unpack_list(struct sq_row *row, size_t *used, struct str packed, struct strs *out)
{
	struct unpack u = { packed };
	struct str item;
	uint8_t tag;

	*out = (struct strs){ NULL, 0 };
	while (unpack_next(&u, &tag, &item) == 1) {
		row->list[(*used)++] = item;
		out->n++;
	}
}

/* An item takes at least two bytes, so this is room enough. */
static void read_lists(struct sq_row *row, sqlite3_stmt *st)
{
	struct str labels = sq_column(st, COL_LABELS), depends = sq_column(st, COL_DEPENDS);
	size_t most = (labels.n + depends.n) / 2 + 1, used = 0, first;

	if (most > row->room) {
		row->list = mem_grow(row->list, most * sizeof(*row->list));
		row->room = most;
	}
	unpack_list(row, &used, labels, &row->rec.ix.labels);
	first = used;
	unpack_list(row, &used, depends, &row->rec.ix.depends);
	row->rec.ix.labels.v = row->list;
	row->rec.ix.depends.v = row->list + first;
}

void sq_row_read(sqlite3_stmt *st, bool body, struct sq_row *row)
{
	struct record *r = &row->rec;
	struct index *ix = &r->ix;

	row->rid = sqlite3_column_int64(st, COL_RID);
	row->due = sqlite3_column_int64(st, COL_DUE);
	r->key = sq_column(st, COL_KEY);
	r->rev = sqlite3_column_int64(st, COL_REV);
	ix->lane = sqlite3_column_int(st, COL_LANE);
	ix->status = sqlite3_column_int(st, COL_STATUS) & (SQ_STATUSES - 1);
	ix->class_rank = sqlite3_column_int(st, COL_CLASS);
	ix->priority = sqlite3_column_int(st, COL_PRIORITY);
	ix->eligible_at = sqlite3_column_int64(st, COL_ELIGIBLE);
	ix->updated_at = sqlite3_column_int64(st, COL_UPDATED);
	ix->created_at = sqlite3_column_int64(st, COL_CREATED);
	ix->id = sq_column(st, COL_ID);
	ix->holder = sq_column(st, COL_HOLDER);
	ix->token = sq_column(st, COL_TOKEN);
	ix->parent = sq_column(st, COL_PARENT);
	ix->type = sq_column(st, COL_TYPE);
	read_lists(row, st);
	r->hot = sq_column(st, COL_HOT);
	r->body = body ? sq_column(st, COL_BODY) : (struct str){ 0 };
	r->body_changed = false;
}

void sq_row_free(struct sq_row *row)
{
	free(row->list);
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

int sq_row_body(struct sq *s, int64_t rid, struct arena *a, struct str *out)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT data FROM body WHERE rid=?", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, rid);
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		*out = arena_str(a, sq_column(st, 0));
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

void sq_row_remember(struct sq *s, const struct sq_row *row)
{
	if (s->changing)
		s->seen[s->n_seen++ % SQ_SEEN] =
			(struct sq_seen){ row->rid, row->due, record_copy(&s->arena, &row->rec) };
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

const struct sq_seen *sq_row_seen(const struct sq *s, struct str key)
{
	for (unsigned i = 0; s->changing && i < slots_used(s); i++)
		if (s->seen[i].rec && str_eq(s->seen[i].rec->key, key))
			return &s->seen[i];
	return NULL;
}

void sq_row_forget(struct sq *s, struct str key)
{
	for (unsigned i = 0; i < slots_used(s); i++)
		if (s->seen[i].rec && str_eq(s->seen[i].rec->key, key))
			s->seen[i].rec = NULL;
}
