/* Writes a record: its row, its texts, its links and its count in the tally. Nothing here waits for the server. */
#include <arpa/inet.h>
#include <endian.h>

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

/* Are all columns that a claim does not change the same? */
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

/* The revision, the count and the links depend on the old record, so this reads the records that the edit wrote without
 * reading them first. */
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

/* --- args ------------------------------------------------------------------------------------- */

/* Parameters and results in PostgreSQL's binary format. A list's lengths are checked before they are used, because the
 * server may be another program. */

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_BYTEA_LIST = 1001, OID_INT8_LIST = 1016 };

static void pg_args_add(struct pg_args *p, Oid type, const char *v, size_t n, int format)
{
	p->types[p->n] = type;
	p->values[p->n] = v;
	p->lengths[p->n] = (int)n;
	p->formats[p->n++] = format;
}

void pg_int(struct pg_args *p, int64_t v)
{
	uint64_t net = htobe64((uint64_t)v);

	memcpy(p->numbers[p->n], &net, 8);
	pg_args_add(p, OID_INT8, p->numbers[p->n], 8, 1);
}

void pg_int_or_null(struct pg_args *p, int64_t v, bool is_null)
{
	if (is_null)
		pg_args_add(p, OID_INT8, NULL, 0, 1);
	else
		pg_int(p, v);
}

void pg_bytes(struct pg_args *p, struct str v)
{
	pg_args_add(p, OID_BYTEA, str_p(v), v.n, 1);
}

void pg_bytes_or_null(struct pg_args *p, struct str v)
{
	pg_args_add(p, OID_BYTEA, v.n ? v.p : NULL, v.n, 1);
}

void pg_text(struct pg_args *p, const char *v)
{
	pg_args_add(p, OID_TEXT, v, v ? strlen(v) : 0, 0);
}

static char *pg_args_put32(char *at, uint32_t v)
{
	v = htonl(v);
	memcpy(at, &v, 4);
	return at + 4;
}

/* The header of an array with one dimension, then each item with its length. */
void pg_list(struct pg_args *p, struct strs list)
{
	size_t n = 20;
	char *bytes, *at;

	if (!list.n) {
		pg_args_add(p, OID_BYTEA_LIST, NULL, 0, 1);
		return;
	}
	for (size_t i = 0; i < list.n; i++)
		n += 4 + list.v[i].n;
	bytes = at = arena_alloc(p->a, n);
	at = pg_args_put32(pg_args_put32(pg_args_put32(at, 1), 0), OID_BYTEA);
	at = pg_args_put32(pg_args_put32(at, (uint32_t)list.n), 1);
	for (size_t i = 0; i < list.n; i++) {
		at = pg_args_put32(at, (uint32_t)list.v[i].n);
		if (list.v[i].n)
			memcpy(at, list.v[i].p, list.v[i].n);
		at += list.v[i].n;
	}
	pg_args_add(p, OID_BYTEA_LIST, bytes, n, 1);
}

static void add_column(struct pg_args *out, struct pg_args *const *rows, size_t n, int col)
{
	Oid type = rows[0]->types[col];
	size_t size = 20;
	bool nulls = false;
	char *bytes, *at;

	for (size_t i = 0; i < n; i++) {
		size += 4 + (size_t)rows[i]->lengths[col];
		nulls |= !rows[i]->values[col];
	}
	bytes = at = arena_alloc(out->a, size);
	at = pg_args_put32(pg_args_put32(pg_args_put32(at, 1), nulls), type);
	at = pg_args_put32(pg_args_put32(at, (uint32_t)n), 1);
	for (size_t i = 0; i < n; i++) {
		const char *v = rows[i]->values[col];
		size_t len = (size_t)rows[i]->lengths[col];

		at = pg_args_put32(at, v ? (uint32_t)len : UINT32_MAX);
		if (len)
			memcpy(at, v, len);
		at += len;
	}
	pg_args_add(out, type == OID_INT8 ? OID_INT8_LIST : OID_BYTEA_LIST, bytes, size, 1);
}

void pg_row(struct pg_args *out, const struct pg_args *row)
{
	for (int col = 0; col < row->n; col++)
		pg_args_add(out, row->types[col], row->values[col], (size_t)row->lengths[col],
			    row->formats[col]);
}

void pg_columns(struct pg_args *out, struct pg_args *const *rows, size_t n)
{
	for (int col = 0; col < rows[0]->n; col++)
		add_column(out, rows, n, col);
}

/* A server that is not PostgreSQL may send fewer columns than we requested. For these libpq returns NULL and no length. */
const char *pg_text_at(const PGresult *r, int row, int col)
{
	const char *p = PQgetvalue(r, row, col);

	return p ? p : "";
}

int64_t pg_int_at(const PGresult *r, int row, int col)
{
	const char *p = PQgetvalue(r, row, col);
	int n = PQgetlength(r, row, col);
	uint64_t v = n > 0 && (p[0] & 0x80) ? UINT64_MAX : 0;

	for (int i = 0; i < n && i < 8; i++)
		v = v << 8 | (unsigned char)p[i];
	return (int64_t)v;
}

struct str pg_bytes_at(const PGresult *r, int row, int col)
{
	return str_n(PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col));
}

static bool pg_args_take32(struct str *s, uint32_t *out)
{
	if (s->n < 4)
		return false;
	memcpy(out, s->p, 4);
	*out = ntohl(*out);
	*s = str_n(s->p + 4, s->n - 4);
	return true;
}

struct strs pg_list_at(const PGresult *r, int row, int col, struct arena *a)
{
	struct str in = pg_bytes_at(r, row, col);
	uint32_t dims, nulls, type, n, base, len;
	struct strs out = { 0 };

	if (!pg_args_take32(&in, &dims) || dims != 1 || !pg_args_take32(&in, &nulls) ||
	    !pg_args_take32(&in, &type) || !pg_args_take32(&in, &n) ||
	    !pg_args_take32(&in, &base) || n > in.n / 4)
		return out;
	out.v = arena_array(a, struct str, n);
	for (; out.n < n; out.n++) {
		if (!pg_args_take32(&in, &len) || len > in.n)
			return (struct strs){ 0 };
		out.v[out.n] = arena_str(a, str_n(in.p, len));
		in = str_n(in.p + len, in.n - len);
	}
	return out;
}
