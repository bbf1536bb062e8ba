/* Parameters and results in PostgreSQL's binary format. */
#include <arpa/inet.h>
#include <endian.h>

#include "store/postgres/postgres.h"

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

/* A server that is not PostgreSQL may send fewer columns than were asked for. libpq has NULL for them, and no length. */
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
