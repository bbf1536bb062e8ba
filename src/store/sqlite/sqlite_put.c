/* Writes a record: its row, its body, its links and its count in the tally. All four change in the one transaction of the
 * change, and a record that is deleted and made again never gets an old revision. */
#include "store/sqlite/sqlite.h"

#define LIST_MAX (16u << 20)

static const char *const names[] = {
	[COL_LANE] = "lane",
	[COL_WAKE] = "wake",
	[COL_STATUS] = "status",
	[COL_CLASS] = "class_rank",
	[COL_PRIORITY] = "priority",
	[COL_ELIGIBLE] = "eligible_at",
	[COL_UPDATED] = "updated_at",
	[COL_CREATED] = "created_at",
	[COL_DUE] = "due_at",
	[COL_ID] = "id=?,id_key",
	[COL_HOLDER] = "holder",
	[COL_TOKEN] = "token",
	[COL_PARENT] = "parent",
	[COL_TYPE] = "type",
	[COL_LABELS] = "labels",
	[COL_DEPENDS] = "depends",
	[COL_HOT] = "hot=?,assignee=?,run=?,attempts=?,fence=?,archived=?,queue_holder=?,host=?,"
		    "acquired=?,expires",
};

/* The first sort key of the index record_lane: eligible_at if a time decides, else 0. In LANE_WAITING a time that has
 * passed no longer decides. */
static int64_t sq_put_wake(const struct sq *s, const struct index *ix)
{
	if (lane_waits(ix->lane))
		return ix->eligible_at > s->now ? ix->eligible_at : 0;
	return ix->lane == LANE_LATER || ix->lane == LANE_GOING ? ix->eligible_at : 0;
}

/* An UPDATE names only the changed columns, so SQLite leaves the indexes over the other columns alone. */
static unsigned changed_columns(const struct sq *s, const struct sq_seen *old,
				const struct record *b)
{
	const struct record *a = old->rec;
	const struct index *x = &a->ix, *y = &b->ix;
	unsigned set = 1u << COL_REV;

#define DIFFERS(col, test) set |= (test) ? 1u << (col) : 0
	DIFFERS(COL_LANE, x->lane != y->lane);
	DIFFERS(COL_WAKE, old->wake != sq_put_wake(s, y));
	DIFFERS(COL_STATUS, x->status != y->status);
	DIFFERS(COL_CLASS, x->class_rank != y->class_rank);
	DIFFERS(COL_PRIORITY, x->priority != y->priority);
	DIFFERS(COL_ELIGIBLE, x->eligible_at != y->eligible_at);
	DIFFERS(COL_UPDATED, x->updated_at != y->updated_at);
	DIFFERS(COL_CREATED, x->created_at != y->created_at);
	DIFFERS(COL_DUE, x->due != y->due);
	DIFFERS(COL_ID, !str_eq(x->id, y->id));
	DIFFERS(COL_HOLDER, !str_eq(x->holder, y->holder));
	DIFFERS(COL_TOKEN, !str_eq(x->token, y->token));
	DIFFERS(COL_PARENT, !str_eq(x->parent, y->parent));
	DIFFERS(COL_TYPE, !str_eq(x->type, y->type));
	DIFFERS(COL_LABELS, !strs_eq(x->labels, y->labels));
	DIFFERS(COL_DEPENDS, !strs_eq(x->depends, y->depends));
	DIFFERS(COL_HOT, !str_eq(a->hot, b->hot));
#undef DIFFERS
	return set;
}

/* The text lives in the arena, because a copy by SQLite could fail for lack of memory without an error. */
static void bind_list(sqlite3_stmt *st, int i, struct strs list, struct arena *a)
{
	struct buf b = BUF_MAX(LIST_MAX);

	sq_list_write(&b, list);
	sq_bind_some(st, i, arena_str(a, buf_str(&b)));
	buf_free(&b);
}

/* NULL keeps a row out of the partial indexes. */
static void bind_name(sqlite3_stmt *st, int i, struct str v)
{
	if (v.n)
		sq_bind(st, i, v);
	else
		sqlite3_bind_null(st, i);
}

static void bind_set(sqlite3_stmt *st, int i, int v)
{
	if (v)
		sqlite3_bind_int(st, i, v);
	else
		sqlite3_bind_null(st, i);
}

static void bind_id(sqlite3_stmt *st, int i, struct str id, struct arena *a)
{
	char key[ID_KEY_MAX];

	sq_bind(st, i, id);
	bind_name(st, i + 1, arena_str(a, index_id_key(id, key)));
}

/* Returns the number of the next parameter. */
static int bind_column(struct sq *s, sqlite3_stmt *st, int i, const struct record *r,
		       enum sq_col col)
{
	const struct index *ix = &r->ix;

	switch (col) {
	case COL_KEY:
		sq_bind(st, i, r->key);
		break;
	case COL_REV:
		sqlite3_bind_int64(st, i, r->rev);
		break;
	case COL_LANE:
		bind_set(st, i, ix->lane);
		break;
	case COL_WAKE:
		sqlite3_bind_int64(st, i, sq_put_wake(s, ix));
		break;
	case COL_STATUS:
		bind_set(st, i, ix->status);
		break;
	case COL_CLASS:
		sqlite3_bind_int(st, i, ix->class_rank);
		break;
	case COL_PRIORITY:
		sqlite3_bind_int(st, i, ix->priority);
		break;
	case COL_ELIGIBLE:
		sqlite3_bind_int64(st, i, ix->eligible_at);
		break;
	case COL_UPDATED:
		sqlite3_bind_int64(st, i, ix->updated_at);
		break;
	case COL_CREATED:
		sqlite3_bind_int64(st, i, ix->created_at);
		break;
	case COL_DUE:
		if (ix->due)
			sqlite3_bind_int64(st, i, ix->due);
		else
			sqlite3_bind_null(st, i);
		break;
	case COL_ID:
		bind_id(st, i, ix->id, &s->arena);
		return i + 2;
	case COL_HOLDER:
		bind_name(st, i, ix->holder);
		break;
	case COL_TOKEN:
		if (ix->token.n)
			sq_bind_blob(st, i, ix->token);
		else
			sqlite3_bind_null(st, i);
		break;
	case COL_PARENT:
		bind_name(st, i, ix->parent);
		break;
	case COL_TYPE:
		bind_name(st, i, ix->type);
		break;
	case COL_LABELS:
		bind_list(st, i, ix->labels, &s->arena);
		break;
	case COL_DEPENDS:
		bind_list(st, i, ix->depends, &s->arena);
		break;
	case COL_HOT:
		sq_bind_blob(st, i, r->hot);
		sq_bind_copies(st, i + 1, r, &s->arena);
		return i + 1 + COLUMN_COPIES;
	case COL_RID:
	case COL_TEXTS:
		break;
	}
	return i + 1;
}

static int make_update(struct sq *s, unsigned set, const char *begin, sqlite3_stmt **out)
{
	char sql[600], *end = stpcpy(sql, begin); /* all names together need 400 bytes */

	for (unsigned col = COL_REV + 1; col <= COL_HOT; col++)
		if (set >> col & 1)
			end = stpcpy(stpcpy(stpcpy(end, ","), names[col]), "=?");
	stpcpy(end, " WHERE rid=?");
	return sq_make(s, sql, begin, set, out);
}

static int sq_put_update(struct sq *s, int64_t rid, const struct record *r, unsigned set)
{
	static const char begin[] = "UPDATE record SET rev=?";
	sqlite3_stmt *st = sq_find(s, begin, set);
	int rc = st ? 0 : make_update(s, set, begin, &st), i = 1;

	if (rc < 0)
		return rc;
	for (unsigned col = COL_REV; col <= COL_HOT; col++)
		if (set >> col & 1)
			i = bind_column(s, st, i, r, col);
	sqlite3_bind_int64(st, i, rid);
	return sq_finish(s, st);
}

static int sq_put_insert(struct sq *s, const struct record *r, int64_t *rid)
{
	sqlite3_stmt *st;
	int rc = sq_take(
		    s,
		    "INSERT INTO record(q,key,rev,lane,wake,status,class_rank,priority,eligible_at,"
		    "updated_at,created_at,due_at,id,id_key,holder,token,parent,type,labels,depends,hot,"
		    "assignee,run,attempts,fence,archived,queue_holder,host,acquired,expires) "
		    "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		    &st),
	    i = 2;

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	for (int col = COL_KEY; col <= COL_HOT; col++)
		i = bind_column(s, st, i, r, col);
	rc = sq_finish(s, st);
	*rid = sqlite3_last_insert_rowid(s->db);
	return rc;
}

static int run_rid(struct sq *s, const char *sql, int64_t rid)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, sql, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, rid);
	return sq_finish(s, st);
}

static int bind_body(struct sq *s, sqlite3_stmt *st, const struct record *r)
{
	struct str texts[COLUMN_TEXTS];
	struct buf rest;
	int rc;

	if (record_is_packed(r)) {
		column_split(column_text_tags, COLUMN_TEXTS, r->body, texts, &rest);
	} else { /* a kept answer: it has no texts of a task */
		memset(texts, 0, sizeof(texts));
		rest = BUF_MAX(r->body.n);
		buf_adds(&rest, r->body);
	}
	for (int i = 0; i < COLUMN_TEXTS; i++)
		sq_bind_blob(st, 2 + i, texts[i]);
	sq_bind_blob(st, 2 + COLUMN_TEXTS, buf_str(&rest));
	rc = sq_finish(s, st);
	buf_free(&rest);
	return rc;
}

static int write_body(struct sq *s, int64_t rid, const struct record *r)
{
	sqlite3_stmt *st;
	int rc;

	if (!r->body.n)
		return run_rid(s, "DELETE FROM body WHERE rid=?", rid);
	rc = sq_take(s,
		     "REPLACE INTO body(rid,title,description,acceptance,blocker_reason,"
		     "unblock_action,summary,rest) VALUES(?,?,?,?,?,?,?,?)",
		     &st);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, rid);
	return bind_body(s, st, r);
}

static int link_each(struct sq *s, const char *sql, int64_t rid, struct strs list, struct strs but)
{
	sqlite3_stmt *st;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < list.n; i++) {
		if (strs_have(but, list.v[i]))
			continue;
		rc = sq_take(s, sql, &st);
		if (rc < 0)
			return rc;
		sqlite3_bind_int64(st, 1, s->q);
		sq_bind(st, 2, list.v[i]);
		sqlite3_bind_int64(st, 3, rid);
		rc = sq_finish(s, st);
	}
	return rc;
}

static int write_links(struct sq *s, int64_t rid, struct strs old, struct strs new)
{
	int rc = link_each(s, "DELETE FROM link WHERE q=? AND target=? AND rid=?", rid, old, new);

	if (rc < 0)
		return rc;
	return link_each(s, "INSERT OR IGNORE INTO link(q,target,rid) VALUES(?,?,?)", rid, new,
			 old);
}

static void sq_put_count(struct sq *s, int status, int by)
{
	if (!status)
		return;
	s->tally[status & (STORE_STATUSES - 1)] += by;
	s->tally_dirty = true;
}

static int read_floor(struct sq *s)
{
	sqlite3_stmt *st;
	int rc;

	if (s->floor >= 0)
		return 0;
	rc = sq_take(s, "SELECT floor FROM queue WHERE n=?", &st);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	rc = sq_step(s, st);
	s->floor = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

static int put_new(struct sq *s, const struct record *r)
{
	struct record n = *r;
	int64_t rid;
	int rc = read_floor(s);

	if (rc < 0)
		return rc;
	if (sq_row_absent(s, r->key))
		s->n_absent = 0;
	n.rev = s->floor + 1;
	rc = sq_put_insert(s, &n, &rid);
	if (rc == 0 && r->body_changed && r->body.n)
		rc = write_body(s, rid, r);
	if (rc == 0 && r->ix.depends.n)
		rc = write_links(s, rid, (struct strs){ 0 }, r->ix.depends);
	sq_put_count(s, r->ix.status, 1);
	return rc;
}

static int put_over(struct sq *s, const struct sq_seen *old, const struct record *r)
{
	const struct record *was = old->rec;
	unsigned set = changed_columns(s, old, r);
	struct record n = *r;
	int rc = 0;

	n.rev = was->rev + 1;
	if (set >> COL_DEPENDS & 1)
		rc = write_links(s, old->rid, was->ix.depends, r->ix.depends);
	if (was->ix.status != r->ix.status) {
		sq_put_count(s, was->ix.status, -1);
		sq_put_count(s, r->ix.status, 1);
	}
	if (rc == 0)
		rc = sq_put_update(s, old->rid, &n, set);
	if (rc == 0 && r->body_changed)
		rc = write_body(s, old->rid, r);
	return rc;
}

/* 0, 1 if the key has no row. */
static int find_old(struct sq *s, struct str key, struct sq_seen *out)
{
	const struct sq_seen *seen = sq_row_seen(s, key);
	struct sq_row row = { 0 };
	sqlite3_stmt *st;
	int rc;

	if (seen) {
		*out = *seen;
		return 0;
	}
	rc = sq_row_find(s, key, &row, &st);
	if (rc)
		return rc;
	*out = (struct sq_seen){ row.rid, row.wake, record_copy(&s->arena, &row.rec), false };
	sq_give(s, st);
	sq_row_free(&row);
	return 0;
}

int sq_put(struct sq *s, const struct record *r)
{
	struct sq_seen old;
	int rc = find_old(s, r->key, &old);

	sq_row_forget(s, r->key);
	if (r->ix.lane == LANE_LATER && r->ix.eligible_at <= s->now)
		s->all_promoted = false;
	if (sq_put_wake(s, &r->ix) > 0 && sq_put_wake(s, &r->ix) < s->next_due)
		s->next_due = sq_put_wake(s, &r->ix);
	if (rc == 0 && index_gone(&old.rec->ix, s->now)) { /* its body must not reappear */
		rc = sq_drop(s, r->key);
		if (rc == 0)
			rc = put_new(s, r);
	} else if (rc == 0) {
		rc = put_over(s, &old, r);
	} else if (rc > 0) {
		rc = put_new(s, r);
	}
	return rc;
}

/* Raises the floor to this revision, because a later record with the same key must not reuse an old one. */
static int raise_floor(struct sq *s, int64_t rev)
{
	sqlite3_stmt *st;
	int rc = read_floor(s);

	if (rc < 0 || rev <= s->floor)
		return rc;
	s->floor = rev;
	rc = sq_take(s, "UPDATE queue SET floor=?2 WHERE n=?1", &st);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, rev);
	return sq_finish(s, st);
}

int sq_drop(struct sq *s, struct str key)
{
	struct sq_seen old;
	int rc = find_old(s, key, &old);

	sq_row_forget(s, key);
	if (rc)
		return rc < 0 ? rc : 0;
	sq_put_count(s, old.rec->ix.status, -1);
	rc = write_links(s, old.rid, old.rec->ix.depends, (struct strs){ 0 });
	if (rc == 0)
		rc = raise_floor(s, old.rec->rev);
	if (rc == 0)
		rc = run_rid(s, "DELETE FROM body WHERE rid=?", old.rid);
	if (rc == 0)
		rc = run_rid(s, "DELETE FROM record WHERE rid=?", old.rid);
	return rc;
}

int sq_tally_flush(struct sq *s)
{
	sqlite3_stmt *st;
	int rc = 0;

	if (!s->tally_dirty)
		return 0;
	for (int i = 0; rc >= 0 && i < STORE_STATUSES; i++) {
		if (!s->tally[i])
			continue;
		rc = sq_take(s, "UPDATE tally SET n=n+?3 WHERE q=?1 AND status=?2", &st);
		if (rc < 0)
			return rc;
		sqlite3_bind_int64(st, 1, s->q);
		sqlite3_bind_int(st, 2, i);
		sqlite3_bind_int64(st, 3, s->tally[i]);
		rc = sq_finish(s, st);
		s->tally[i] = 0;
	}
	s->tally_dirty = false;
	return rc;
}
