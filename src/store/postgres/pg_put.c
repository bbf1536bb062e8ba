/* Writes a record: its row, its texts, its links and its count in the tally. Nothing here waits for the server. */
#include "format/pack.h"
#include "store/postgres/postgres.h"

static void pg_put_count(struct pg *s, int status, int by)
{
	if (status)
		s->row.tally[status & (STORE_STATUSES - 1)] += by;
}

static int run_key(struct pg *s, const char *sql, struct str key)
{
	struct pg_args args = { 0 };

	pg_int(&args, s->q);
	pg_bytes(&args, key);
	return pg_send(s, sql, &args);
}

/* The columns that copy a part of `hot`. */
static void add_copies(struct pg_args *p, const struct record *r)
{
	struct str values[COLUMN_COPIES];
	bool there[COLUMN_COPIES];

	column_copies_of(r, values, there);
	for (int i = 0; i < COLUMN_COPIES; i++) {
		int64_t n = 0;

		if (column_copies[i].kind == FIELD_STR) {
			pg_bytes_or_null(p, there[i] ? values[i] : STR(""));
		} else {
			bool bad = !there[i] || unpack_int(values[i], &n);

			pg_int_or_null(p, n, bad);
		}
	}
}

void pg_claim_columns(struct pg_args *p, const struct record *r)
{
	const struct index *ix = &r->ix;

	pg_bytes(p, r->key);
	pg_int(p, r->rev);
	pg_int_or_null(p, ix->lane, !ix->lane);
	pg_int_or_null(p, ix->status, !ix->status);
	pg_int(p, ix->class_rank);
	pg_int(p, ix->priority);
	pg_int(p, ix->eligible_at);
	pg_int(p, ix->updated_at);
	pg_int_or_null(p, ix->due, !ix->due);
	pg_bytes_or_null(p, ix->holder);
	pg_bytes_or_null(p, ix->token);
	pg_bytes(p, r->hot);
	add_copies(p, r);
}

static void add_row(struct pg *s, struct pg_args *p, const struct record *r)
{
	const struct index *ix = &r->ix;
	char key[ID_KEY_MAX];

	p->a = &s->arena;
	pg_int(p, s->q);
	pg_claim_columns(p, r);
	pg_int(p, ix->created_at);
	pg_bytes(p, ix->id);
	pg_bytes_or_null(p, arena_str(p->a, index_id_key(ix->id, key)));
	pg_bytes_or_null(p, ix->parent);
	pg_bytes_or_null(p, ix->type);
	pg_list(p, ix->labels);
	pg_list(p, ix->depends);
}

static int pg_put_insert(struct pg *s, const struct record *r)
{
	struct pg_args args = { 0 };

	add_row(s, &args, r);
	return pg_send_beside(
		s,
		"INSERT INTO $S.record(q,key,rev,lane,status,class_rank,priority,eligible_at,"
		"updated_at,due_at,holder,token,hot,assignee,run,attempts,fence,archived,"
		"queue_holder,host,acquired,expires,created_at,id,id_key,parent,type,labels,depends) "
		"VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,"
		"$22,$23,$24,$25,$26,$27,$28,$29)",
		&args);
}

int pg_update(struct pg *s, const struct record *r)
{
	struct pg_args args = { 0 };

	add_row(s, &args, r);
	return pg_send(
		s,
		"UPDATE $S.record SET rev=$3,lane=$4,status=$5,class_rank=$6,priority=$7,"
		"eligible_at=$8,updated_at=$9,due_at=$10,holder=$11,token=$12,hot=$13,assignee=$14,"
		"run=$15,attempts=$16,fence=$17,archived=$18,queue_holder=$19,host=$20,acquired=$21,"
		"expires=$22,created_at=$23,id=$24,id_key=$25,parent=$26,type=$27,labels=$28,"
		"depends=$29 WHERE q=$1 AND key=$2",
		&args);
}

static int write_body(struct pg *s, const struct record *r)
{
	struct pg_args args = { 0 };
	struct str texts[COLUMN_TEXTS] = { 0 };
	struct buf rest = BUF_MAX(r->body.n);
	int rc;

	if (!r->body.n)
		return run_key(s, "DELETE FROM $S.text WHERE q=$1 AND key=$2", r->key);
	if (record_is_packed(r))
		column_split(column_text_tags, COLUMN_TEXTS, r->body, texts, &rest);
	else /* a kept answer: it has no texts of a task */
		buf_adds(&rest, r->body);
	pg_int(&args, s->q);
	pg_bytes(&args, r->key);
	for (int i = 0; i < COLUMN_TEXTS; i++)
		pg_bytes(&args, texts[i]);
	pg_bytes(&args, buf_str(&rest));
	rc = pg_send_beside(
		s,
		"INSERT INTO $S.text VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9) ON CONFLICT(q,key) DO UPDATE "
		"SET title=$3,description=$4,acceptance=$5,blocker_reason=$6,unblock_action=$7,"
		"summary=$8,rest=$9",
		&args);
	buf_free(&rest);
	return rc;
}

static int link_each(struct pg *s, const char *sql, struct str key, struct strs list,
		     struct strs but)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < list.n; i++) {
		struct pg_args args = { 0 };

		if (strs_have(but, list.v[i]))
			continue;
		pg_int(&args, s->q);
		pg_bytes(&args, list.v[i]);
		pg_bytes(&args, key);
		rc = pg_send_beside(s, sql, &args);
	}
	return rc;
}

static int write_links(struct pg *s, struct str key, struct strs old, struct strs new)
{
	int rc = link_each(s, "DELETE FROM $S.link WHERE q=$1 AND target=$2 AND key=$3", key, old,
			   new);

	return rc < 0 ? rc
		      : link_each(s, "INSERT INTO $S.link VALUES($1,$2,$3) ON CONFLICT DO NOTHING",
				  key, new, old);
}

static int pg_put_drop(struct pg *s, struct str key)
{
	const struct record *old = pg_seen(s, key)->rec;
	int rc = 0;

	if (!old)
		return 0;
	pg_put_count(s, old->ix.status, -1);
	if (old->rev > s->row.floor)
		s->row.floor =
			old->rev; /* a later record with this key must not reuse a revision */
	rc = write_links(s, key, old->ix.depends, (struct strs){ 0 });
	if (rc == 0)
		rc = run_key(s, "DELETE FROM $S.text WHERE q=$1 AND key=$2", key);
	if (rc == 0)
		rc = run_key(s, "DELETE FROM $S.record WHERE q=$1 AND key=$2", key);
	pg_remember(s, key, NULL, false);
	pg_wrote(s, key);
	return rc;
}

/* The other columns are the same: those that a claim does not change. */
static bool claims_only(const struct record *old, const struct record *new)
{
	const struct index *a = &old->ix, *b = &new->ix;

	return str_eq(a->id, b->id) && a->created_at == b->created_at &&
	       str_eq(a->parent, b->parent) && str_eq(a->type, b->type) &&
	       strs_eq(a->labels, b->labels) && strs_eq(a->depends, b->depends);
}

static int pg_put_run(struct pg *s, const struct record *r)
{
	const struct pg_seen *seen = pg_seen(s, r->key);
	const struct record *old = seen->rec;
	bool body = r->body_changed || !old || seen->body;
	struct record n = *r;
	bool later;
	int rc = 0;

	if (old && index_gone(&old->ix, s->now)) { /* its body must not reappear */
		rc = pg_put_drop(s, r->key);
		old = NULL;
	}
	n.rev = (old ? old->rev : s->row.floor) + 1;
	pg_put_count(s, old ? old->ix.status : 0, -1);
	pg_put_count(s, r->ix.status, 1);
	later = old && claims_only(old, &n);
	if (rc == 0 && !later)
		rc = old ? pg_update(s, &n) : pg_put_insert(s, &n);
	if (rc == 0 && r->body_changed && (old || r->body.n))
		rc = write_body(s, &n);
	if (rc == 0 && (old ? !strs_eq(old->ix.depends, r->ix.depends) : r->ix.depends.n > 0))
		rc = write_links(s, r->key, old ? old->ix.depends : (struct strs){ 0 },
				 r->ix.depends);
	if (!r->body_changed)
		n.body = old ? old->body : STR("");
	pg_remember(s, r->key, &n, body);
	pg_wrote(s, r->key);
	return rc == 0 && later ? pg_later_update(s, r->key) : rc;
}

/* --- the log -------------------------------------------------------------------------------------- */

static int pg_put_forget(struct pg *s, const struct edit *e)
{
	struct pg_args args = { 0 };

	pg_int(&args, s->q);
	pg_int(&args, e->forget);
	pg_int(&args, e->forget_except);
	pg_int(&args, s->row.seq);
	return pg_send(s,
		       "DELETE FROM $S.log l WHERE l.q=$1 AND l.at<$2 AND l.seq<$4 AND NOT EXISTS("
		       "SELECT 1 FROM $S.record r WHERE r.q=$1 AND r.key=l.key AND "
		       "(1::bigint<<r.status)&$3<>0)",
		       &args);
}

/* --- a whole edit --------------------------------------------------------------------------------- */

/* The revision, the count and the links depend on the record as it was: reads those that the edit wrote blindly. */
static int know_all(struct pg *s, const struct edit *e)
{
	struct strs keys = { arena_array(&s->arena, struct str, e->n_items), 0 };

	for (const struct edit_item *it = e->items; it; it = it->next)
		if (!pg_seen(s, it->rec.key))
			keys.v[keys.n++] = it->rec.key;
	return keys.n ? pg_load(s, keys) : 0;
}

int pg_apply(struct pg *s, const struct edit *e)
{
	int rc = know_all(s, e);

	for (const struct edit_item *it = e->items; rc == 0 && it; it = it->next)
		rc = it->dropped ? pg_put_drop(s, it->rec.key) : pg_put_run(s, &it->rec);
	for (const struct edit_entry *n = e->entries; rc == 0 && n; n = n->next)
		rc = pg_later_entry(s, &n->entry);
	return rc || !e->forget ? rc : pg_put_forget(s, e);
}
