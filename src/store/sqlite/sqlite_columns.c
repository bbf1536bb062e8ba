/* The columns that people read (store/columns.h), in SQLite: lists as JSON, copies of `hot`, SQL functions. */
#include "base/when.h"
#include "format/pack.h"
#include "store/sqlite/sqlite.h"

/* --- lists ---------------------------------------------------------------------------------------- */

static void write_item(struct buf *out, struct str item)
{
	buf_addc(out, '"');
	for (size_t i = 0; i < item.n; i++) {
		char c = item.p[i];

		if ((unsigned char)c < ' ')
			buf_addf(out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			buf_addf(out, "\\%c", c);
		else
			buf_addc(out, c);
	}
	buf_addc(out, '"');
}

void sq_list_write(struct buf *out, struct strs list)
{
	for (size_t i = 0; i < list.n; i++) {
		buf_addc(out, i ? ',' : '[');
		write_item(out, list.v[i]);
	}
	if (list.n)
		buf_addc(out, ']');
}

/* Accepts only the form \u00XX that write_item() writes. */
static bool read_code(struct str s, char *out)
{
	static const char hex[] = "0123456789abcdef";
	const char *digit = s.n >= 5 && memcmp(s.p, "u00", 3) == 0 ? strchr(hex, s.p[4]) : NULL;

	if (!digit || !*digit || (s.p[3] != '0' && s.p[3] != '1'))
		return false;
	*out = (char)((s.p[3] - '0') * 16 + (digit - hex));
	return true;
}

static bool sq_column_unescape(struct str raw, char **room, struct str *item)
{
	char *to = *room;

	for (size_t i = 0; i < raw.n; i++) {
		if (raw.p[i] != '\\')
			*to++ = raw.p[i];
		else if (++i < raw.n && raw.p[i] == 'u') {
			if (!read_code(str_n(raw.p + i, raw.n - i), to++))
				return false;
			i += 4;
		} else if (i < raw.n) {
			*to++ = raw.p[i];
		}
	}
	*item = str_n(*room, (size_t)(to - *room));
	*room = to;
	return true;
}

bool sq_list_next(struct str *json, char **room, struct str *item)
{
	bool escaped = false;
	size_t n = 2;

	if (json->n < 3 || (json->p[0] != '[' && json->p[0] != ',') || json->p[1] != '"')
		return false;
	for (; n < json->n && json->p[n] != '"'; n++)
		if (json->p[n] == '\\') {
			escaped = true;
			n++;
		}
	if (n >= json->n)
		return false;
	*item = str_n(json->p + 2, n - 2);
	*json = str_n(json->p + n + 1, json->n - n - 1);
	return !escaped || sq_column_unescape(*item, room, item);
}

/* --- copies --------------------------------------------------------------------------------------- */

/* The text lives in `a`, because a copy by SQLite could fail for lack of memory without an error. */
static void bind_copy(sqlite3_stmt *st, int i, enum field_kind kind, struct str value,
		      struct arena *a)
{
	int64_t n;

	if (kind == FIELD_STR)
		sq_bind(st, i, value);
	else if (unpack_int(value, &n))
		sqlite3_bind_null(st, i);
	else if (kind == FIELD_TIME)
		sq_bind(st, i, when_text(a, n));
	else
		sqlite3_bind_int64(st, i, n);
}

void sq_bind_copies(sqlite3_stmt *st, int i, const struct record *r, struct arena *a)
{
	struct str values[COLUMN_COPIES];
	bool there[COLUMN_COPIES];

	column_copies_of(r, values, there);
	for (int k = 0; k < COLUMN_COPIES; k++) {
		if (there[k])
			bind_copy(st, i + k, column_copies[k].kind, values[k], a);
		else
			sqlite3_bind_null(st, i + k);
	}
}

/* --- SQL functions, for doctor -------------------------------------------------------------------- */

static struct str blob_of(sqlite3_value *v)
{
	const char *p = sqlite3_value_blob(v);

	return str_n(p, p ? (size_t)sqlite3_value_bytes(v) : 0);
}

static void sql_id_key(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	char key[ID_KEY_MAX];
	struct str out = index_id_key(blob_of(v[0]), key);

	(void)n;
	if (out.n)
		sqlite3_result_text(ctx, out.p, (int)out.n, SQLITE_TRANSIENT);
}

static bool find_field(struct str packed, int tag, struct str *value)
{
	struct unpack u = { packed };
	uint8_t have;

	while (unpack_next(&u, &have, value) > 0)
		if (have == tag)
			return true;
	return false;
}

static void result_time(sqlite3_context *ctx, int64_t ms)
{
	struct arena a = { 0 };
	struct str text = when_text(&a, ms);

	sqlite3_result_text(ctx, text.p, (int)text.n, SQLITE_TRANSIENT);
	arena_free(&a);
}

/* packed(bytes, name): the field of a task with this name (core/task.def). */
static void sql_field(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	const struct field *f = field_find(blob_of(v[1]));
	struct str value;
	int64_t number;

	(void)n;
	if (!f || !find_field(blob_of(v[0]), f->tag, &value))
		return;
	if (f->kind == FIELD_STR)
		sqlite3_result_text64(ctx, value.p, value.n, SQLITE_TRANSIENT, SQLITE_UTF8);
	else if (unpack_int(value, &number))
		return;
	else if (f->kind == FIELD_TIME)
		result_time(ctx, number);
	else
		sqlite3_result_int64(ctx, number);
}

static const struct {
	const char *name;
	void (*fn)(sqlite3_context *, int, sqlite3_value **);
	int args;
} functions[] = {
	{ "id_key", sql_id_key, 1 },
	{ "packed", sql_field, 2 },
};

void sq_functions(struct sq *s, bool on)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		sqlite3_create_function(s->db, functions[i].name, functions[i].args,
					SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
					NULL, on ? functions[i].fn : NULL, NULL, NULL);
}
