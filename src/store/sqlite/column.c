/*
 * The columns that people read through the views. The texts of a task and of a log entry have columns of their own and
 * are stored nowhere else. `rest` holds the other packed fields, and sq_join() restores the original bytes from both.
 * Some columns copy fields of `hot`, which a claim reads and writes. pawl writes these copies and never reads them;
 * only doctor compares them.
 */
#include "base/when.h"
#include "format/pack.h"
#include "store/sqlite/sqlite.h"

/* The tags of core/task.def and format/event.c, ascending: packed fields have this order. */
const uint8_t sq_text_tags[SQ_TEXTS] = { 2, 3, 4, 20, 21, 23 };
const uint8_t sq_entry_tags[SQ_WORDS] = { 1, 2, 3, 4, 5 };
const struct sq_copy sq_copies[SQ_COPIES] = {
	{ 18, SQ_STRING },  /* assignee */
	{ 19, SQ_STRING },  /* run */
	{ 24, SQ_INTEGER }, /* attempts */
	{ 26, SQ_INTEGER }, /* fence */
	{ 34, SQ_TIME },    /* archived */
	{ 40, SQ_STRING },  /* queue_holder: of a lock of the whole queue; its index has none */
	{ 41, SQ_STRING },  /* host */
	{ 43, SQ_TIME },    /* acquired */
	{ 44, SQ_TIME },    /* expires */
};
#define HOLDER 40

/* --- split ---------------------------------------------------------------------------------------- */

static size_t packed_size(size_t n)
{
	size_t size = 2 + n;

	for (; n >= 0x80; n >>= 7)
		size++;
	return size;
}

/* The column with this tag; n: there is none. */
static size_t column_of(const uint8_t *tags, size_t n, uint8_t tag)
{
	size_t i = 0;

	while (i < n && tags[i] != tag)
		i++;
	return i;
}

/* Would sq_join() restore these bytes exactly? */
static bool separable(const uint8_t *tags, size_t n, struct str packed)
{
	struct unpack u = { packed };
	size_t size = 0;
	struct str value;
	uint8_t tag, last = 0;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		bool is_column = column_of(tags, n, tag) < n;

		if (tag < last || (is_column && (tag == last || !value.n)))
			return false;
		last = tag;
		size += packed_size(value.n);
	}
	return r == 0 && size == packed.n;
}

void sq_split(const uint8_t *tags, size_t n, struct str packed, struct str *columns,
	      struct buf *rest)
{
	struct unpack u = { packed };
	struct str value;
	uint8_t tag;

	memset(columns, 0, n * sizeof(*columns));
	*rest = BUF_MAX(packed.n);
	if (!separable(tags, n, packed)) {
		buf_adds(rest, packed);
		return;
	}
	while (unpack_next(&u, &tag, &value) > 0) {
		size_t i = column_of(tags, n, tag);

		if (i < n)
			columns[i] = value;
		else
			pack_str(rest, tag, value);
	}
}

/* --- join ----------------------------------------------------------------------------------------- */

/* Adds the columns with a tag below `end`. An empty column means that the field is absent. */
static size_t add_columns(struct buf *out, const uint8_t *tags, const struct str *columns, size_t i,
			  size_t n, unsigned end)
{
	for (; i < n && tags[i] < end; i++)
		if (columns[i].n)
			pack_str(out, tags[i], columns[i]);
	return i;
}

void sq_join(const uint8_t *tags, size_t n, const struct str *columns, struct str rest,
	     struct buf *out)
{
	struct unpack u = { rest };
	struct str value, left = rest;
	uint8_t tag;
	size_t i = 0;

	while (unpack_next(&u, &tag, &value) > 0) {
		i = add_columns(out, tags, columns, i, n, tag);
		buf_add(out, left.p, (size_t)(u.rest.p - left.p));
		left = u.rest;
	}
	buf_adds(out, left); /* not packed fields: the queue reports them as damaged */
	add_columns(out, tags, columns, i, n, 256);
}

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

static bool unescape(struct str raw, char **room, struct str *item)
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
	return !escaped || unescape(*item, room, item);
}

/* --- copies --------------------------------------------------------------------------------------- */

/* The text lives in `a`: if SQLite made its own copy and ran out of memory, no one would notice. */
static void bind_copy(sqlite3_stmt *st, int i, enum sq_kind kind, struct str value, struct arena *a)
{
	int64_t n;

	if (kind == SQ_STRING)
		sq_bind(st, i, value);
	else if (unpack_int(value, &n))
		sqlite3_bind_null(st, i);
	else if (kind == SQ_INTEGER)
		sqlite3_bind_int64(st, i, n);
	else
		sq_bind(st, i, when_text(a, n));
}

/* Binds NULL for the copies from k on whose tag is below `end`. Returns the next k. */
static int bind_absent(sqlite3_stmt *st, int i, int k, unsigned end)
{
	for (; k < SQ_COPIES && sq_copies[k].tag < end; k++)
		sqlite3_bind_null(st, i + k);
	return k;
}

void sq_bind_copies(sqlite3_stmt *st, int i, const struct record *r, struct arena *a)
{
	struct unpack u = { sq_is_packed(r) ? r->hot : STR("") }; /* others are not packed */
	struct str value;
	uint8_t tag;
	int k = 0;

	while (k < SQ_COPIES && unpack_next(&u, &tag, &value) > 0) {
		k = bind_absent(st, i, k, tag);
		if (k == SQ_COPIES || sq_copies[k].tag != tag || (tag == HOLDER && r->ix.holder.n))
			continue;
		bind_copy(st, i + k, sq_copies[k].kind, value, a);
		k++;
	}
	bind_absent(st, i, k, 256);
}

/* --- SQL functions, for the migration and for doctor ---------------------------------------------- */

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

/* packed(bytes, tag, kind): the field with this tag. */
static void sql_field(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	enum sq_kind kind = (enum sq_kind)sqlite3_value_int(v[2]);
	struct str value;
	int64_t number;

	(void)n;
	if (!find_field(blob_of(v[0]), sqlite3_value_int(v[1]), &value))
		return;
	if (kind == SQ_STRING)
		sqlite3_result_text64(ctx, value.p, value.n, SQLITE_TRANSIENT, SQLITE_UTF8);
	else if (unpack_int(value, &number))
		return;
	else if (kind == SQ_INTEGER)
		sqlite3_result_int64(ctx, number);
	else
		result_time(ctx, number);
}

/* split_text(bytes, i), split_entry(bytes, i): column i; with i = the number of columns, the rest. */
static void sql_split(sqlite3_context *ctx, int argc, sqlite3_value **v)
{
	bool entry = sqlite3_user_data(ctx) != NULL;
	size_t n = entry ? SQ_WORDS : SQ_TEXTS, i = (size_t)sqlite3_value_int(v[1]);
	struct str columns[SQ_TEXTS + SQ_WORDS], out;
	struct buf rest;

	(void)argc;
	if (sqlite3_value_type(v[0]) != SQLITE_BLOB && i == n) {
		sqlite3_result_value(ctx, v[0]); /* pawl did not write it */
		return;
	}
	sq_split(entry ? sq_entry_tags : sq_text_tags, n,
		 sqlite3_value_type(v[0]) == SQLITE_BLOB ? blob_of(v[0]) : STR(""), columns, &rest);
	out = i < n ? columns[i] : buf_str(&rest);
	if (out.n || !entry)
		sqlite3_result_blob64(ctx, str_p(out), out.n, SQLITE_TRANSIENT);
	buf_free(&rest);
}

/* list(bytes): a packed list as a JSON array. */
static void sql_list(sqlite3_context *ctx, int argc, sqlite3_value **v)
{
	struct unpack u = { blob_of(v[0]) };
	struct buf out = BUF_MAX(u.rest.n * 6 + 3);
	struct str item;
	uint8_t tag;

	(void)argc;
	for (int n = 0; unpack_next(&u, &tag, &item) > 0; n++) {
		buf_addc(&out, n ? ',' : '[');
		write_item(&out, item);
	}
	if (out.n)
		buf_addc(&out, ']');
	if (out.n)
		sqlite3_result_blob64(ctx, out.p, out.n, SQLITE_TRANSIENT);
	buf_free(&out);
}

static const struct {
	const char *name;
	void (*fn)(sqlite3_context *, int, sqlite3_value **);
	int args;
	bool flag;
} functions[] = {
	{ "id_key", sql_id_key, 1, false },    { "packed", sql_field, 3, false },
	{ "split_text", sql_split, 2, false }, { "split_entry", sql_split, 2, true },
	{ "list", sql_list, 1, false },
};

void sq_functions(struct sq *s, bool on)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		sqlite3_create_function(s->db, functions[i].name, functions[i].args,
					SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
					functions[i].flag ? s : NULL, on ? functions[i].fn : NULL,
					NULL, NULL);
}
