/* Packs structs as tagged fields and unpacks them, by a table of their members. Unpacking trusts
 * nothing: it checks every length and number, and refuses bytes that would need far more memory
 * than pawl's own. Readers skip unknown tags, so older versions can read data of newer ones. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/text.h"
#include "format/pack.h"

/* --- out ------------------------------------------------------------------------------------------- */

/* memcpy() may read pointers and enums of any type. An lvalue of another type would break the
 * aliasing rules. */
static void *pointer_at(const void *p)
{
	void *v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int enum_at(const void *p)
{
	int v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void pack_number(const struct shape_member *m, int64_t n, struct buf *out)
{
	if (n || m->when)
		pack_int(out, m->tag, n);
}

static void pack_row(const struct shape_member *m, const int64_t *row, struct buf *out)
{
	bool any = m->when;

	for (uint32_t i = 0; i < m->end; i++)
		any |= row[i] != 0;
	for (uint32_t i = 0; any && i < m->end; i++)
		pack_int(out, m->tag, row[i]);
}

static void pack_structs(const struct shape_member *m, const char *first, size_t n, struct buf *out)
{
	for (size_t i = 0; first && i < n; i++) {
		size_t at = out->n;

		shape_pack(m->of, SHAPE_ALL, first + i * m->of->size, out);
		pack_wrap(out, m->tag, at);
	}
}

static void pack_member(const struct shape_member *m, const char *from, struct buf *out)
{
	const void *p = from + m->offset;
	const struct str *s = p;
	const struct strs *list = p;

	switch (m->kind) {
	case SHAPE_STR:
		if (s->n || m->when)
			pack_str(out, m->tag, *s);
		break;
	case SHAPE_ENUM:
		pack_number(m, enum_at(p), out);
		break;
	case SHAPE_CHAR:
		pack_number(m, *(const char *)p, out);
		break;
	case SHAPE_BOOL:
		pack_number(m, *(const bool *)p, out);
		break;
	case SHAPE_LIST:
		if (!list->n && m->when == SHAPE_GIVEN)
			pack_int(out, SHAPE_EMPTY, m->tag);
		for (size_t i = 0; i < list->n; i++)
			pack_str(out, m->tag, list->v[i]);
		break;
	case SHAPE_ROW:
		pack_row(m, p, out);
		break;
	case SHAPE_IN:
		pack_structs(m, p, 1, out);
		break;
	case SHAPE_ONE:
		pack_structs(m, pointer_at(p), 1, out);
		break;
	case SHAPE_ARRAY:
	case SHAPE_BESIDE:
		pack_structs(m, pointer_at(p), *(const size_t *)(from + m->count), out);
		break;
	default:
		pack_number(m, *(const int64_t *)p, out);
	}
}

static bool is_in(const struct shape_member *m, unsigned parts)
{
	return !m->part || m->part & parts;
}

void shape_pack(const struct shape *s, unsigned parts, const void *from, struct buf *out)
{
	uint64_t given = s->given ? *(const uint64_t *)((const char *)from + s->given) : 0;

	for (size_t i = 0; i < s->plain; i++)
		if (is_in(&s->members[i], parts))
			pack_member(&s->members[i], from, out);
	for (; given; given &= given - 1)
		pack_member(&s->members[s->plain + (size_t)__builtin_ctzll(given)], from, out);
}

/* --- in -------------------------------------------------------------------------------------------- */

/* A small task takes about 40 times as much memory as its bytes. pawl never packs an empty struct
 * in two bytes, so bytes that would grow more than this are refused. */
#define GROWTH_MAX 48
#define GROWTH_FREE (64u << 10)
#define MEMORY_MAX (1u << 30)

struct reading {
	const struct shape *shape;
	struct unpack rest;
	struct arena *arena;
	size_t room; /* for the structs that the members point to */
	size_t at;   /* the member of the last field: the next one is likely to follow it */
	uint32_t seen[SHAPE_MEMBERS_MAX]; /* how many fields of each member */
};

/* NULL: a field of a newer pawl, or of another part. */
static const struct shape_member *shape_search(const struct shape *s, uint8_t tag, unsigned parts,
					       size_t *at)
{
	const struct shape_member *m = s->members + *at + 1, *end = s->members + s->n;

	for (int lap = 0; lap < 2; lap++, end = s->members + *at + 1, m = s->members)
		for (; m < end; m++)
			if (m->tag == tag && is_in(m, parts)) {
				*at = (size_t)(m - s->members);
				return m;
			}
	return NULL;
}

static inline const struct shape_member *shape_find(const struct shape *s, uint8_t tag,
						    unsigned parts, size_t *at)
{
	if (!s->by_tag)
		return tag < s->least ? NULL : shape_search(s, tag, parts, at);
	*at = (size_t)s->by_tag[tag] - 1;
	return s->by_tag[tag] ? &s->members[*at] : NULL;
}

/* Counts this field and the fields with the same tag that follow. */
static size_t count_tag(struct unpack u, uint8_t tag)
{
	struct str value;
	uint8_t other;
	size_t n = 1;

	while (unpack_next(&u, &other, &value) > 0)
		n += other == tag;
	return n;
}

static inline int read_number(const struct shape_member *m, struct str value, int64_t *out)
{
	int64_t n;

	if (unpack_int(value, &n) || (m->kind == SHAPE_RANK && n < 1) ||
	    (m->end && (n < 0 || n >= m->end)))
		return -EBADMSG;
	*out = n;
	return 0;
}

static int read_enum(const struct shape_member *m, struct str value, void *p)
{
	int64_t n;
	int v;

	if (read_number(m, value, &n) || n < 0 || n > INT_MAX)
		return -EBADMSG;
	v = (int)n;
	memcpy(p, &v, sizeof(v));
	return 0;
}

/* The first field of a list makes room for all of its fields, after the items that the list has. */
static int read_item(struct reading *r, const struct shape_member *m, struct str value,
		     struct strs *list)
{
	if (!r->seen[r->at]) {
		size_t more = count_tag(r->rest, m->tag);
		struct str *v;

		if (m->end && list->n + more > m->end)
			return -EBADMSG;
		v = arena_array(r->arena, struct str, list->n + more);
		for (size_t i = 0; i < list->n; i++)
			v[i] = list->v[i];
		list->v = v;
	}
	list->v[list->n++] = value;
	return 0;
}

static int read_row(struct reading *r, const struct shape_member *m, struct str value, int64_t *row)
{
	uint32_t i = r->seen[r->at];

	return i < m->end ? unpack_int(value, &row[i]) : -EBADMSG;
}

/* Reads one struct. The first struct of an array makes room for all. */
static int read_struct(struct reading *r, const struct shape_member *m, struct str value, void *p)
{
	uint32_t i = r->seen[r->at];
	char *first = i ? pointer_at(p) : NULL;

	if (!i) {
		size_t n = m->kind >= SHAPE_ARRAY ? count_tag(r->rest, m->tag) : 1;

		if (n > r->room / m->of->size)
			return -EBADMSG;
		r->room -= n * m->of->size;
		first = arena_alloc_array(r->arena, m->of->size, n);
		memcpy(p, &first, sizeof(first));
	}
	return shape_unpack(m->of, SHAPE_ALL, value, first + i * m->of->size, r->arena);
}

static int read_member(struct reading *r, const struct shape_member *m, struct str value, char *to)
{
	void *p = to + m->offset;
	int64_t n = 0;
	int rc;

	switch (m->kind) {
	case SHAPE_STR:
		*(struct str *)p = value;
		return 0;
	case SHAPE_ENUM:
		return read_enum(m, value, p);
	case SHAPE_CHAR:
		rc = read_number(m, value, &n);
		*(char *)p = (char)(n > 0 && n < 128 ? n : 0);
		return rc;
	case SHAPE_BOOL:
		rc = read_number(m, value, &n);
		*(bool *)p = n;
		return rc;
	case SHAPE_LIST:
		return read_item(r, m, value, p);
	case SHAPE_ROW:
		return read_row(r, m, value, p);
	case SHAPE_IN:
		return shape_unpack(m->of, SHAPE_ALL, value, p, r->arena);
	case SHAPE_ARRAY:
		*(size_t *)(to + m->count) = r->seen[r->at] + (size_t)1;
		return read_struct(r, m, value, p);
	case SHAPE_ONE:
	case SHAPE_BESIDE:
		return read_struct(r, m, value, p);
	default:
		return read_number(m, value, p);
	}
}

static void shape_give(const struct shape *s, size_t at, char *to)
{
	if (at >= s->plain)
		*(uint64_t *)(to + s->given) |= UINT64_C(1) << (at - s->plain);
}

/* Marks the list with the tag `value` as given, although it has no items. */
static int read_empty(const struct shape *s, struct str value, char *to)
{
	size_t at = 0;
	int64_t list;

	if (unpack_int(value, &list))
		return -EBADMSG;
	if (list >= 0 && list <= UINT8_MAX && shape_find(s, (uint8_t)list, SHAPE_ALL, &at))
		shape_give(s, at, to);
	return 0;
}

static bool shape_repeats(const struct shape_member *m)
{
	return m->kind == SHAPE_LIST || m->kind == SHAPE_ROW || m->kind >= SHAPE_ARRAY;
}

/* Checks that every needed member is present. A SHAPE_BESIDE array must be empty or as long as the
 * array beside it. */
static int read_end(const struct reading *r, const char *to)
{
	for (size_t i = 0; i < r->shape->plain; i++) {
		const struct shape_member *m = &r->shape->members[i];

		if ((m->when == SHAPE_NEEDED && !r->seen[i]) ||
		    (m->kind == SHAPE_BESIDE && r->seen[i] &&
		     r->seen[i] != *(const size_t *)(to + m->count)))
			return -EBADMSG;
	}
	return 0;
}

int shape_unpack(const struct shape *s, unsigned parts, struct str bytes, void *to, struct arena *a)
{
	struct reading r;
	struct str value;
	uint8_t tag;
	int rc;

	r.shape = s;
	r.rest = (struct unpack){ bytes };
	r.arena = a;
	r.at = s->n - 1;
	memset(r.seen, 0, s->n * sizeof(*r.seen));
	r.room = bytes.n < (MEMORY_MAX - GROWTH_FREE) / GROWTH_MAX
			 ? GROWTH_FREE + GROWTH_MAX * bytes.n
			 : MEMORY_MAX;
	while ((rc = unpack_next(&r.rest, &tag, &value)) > 0) {
		const struct shape_member *m = shape_find(s, tag, parts, &r.at);

		if (!m) {
			if (s->given && tag == SHAPE_EMPTY && read_empty(s, value, to))
				return -EBADMSG;
			continue;
		}
		shape_give(s, r.at, to);
		if ((r.seen[r.at] && !shape_repeats(m)) || read_member(&r, m, value, to))
			return -EBADMSG;
		r.seen[r.at]++;
	}
	return rc < 0 ? rc : read_end(&r, to);
}

/* --- pack ------------------------------------------------------------------------------------- */

static size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (uint8_t)v;
	return n;
}

static int get_varint(struct str *s, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t c;

		if (!s->n)
			return -EBADMSG;
		c = (uint8_t)*s->p++;
		s->n--;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return -EBADMSG;
}

void pack_str(struct buf *b, uint8_t tag, struct str s)
{
	uint8_t head[11] = { tag };

	buf_add(b, head, 1 + put_varint(head + 1, s.n));
	buf_adds(b, s);
}

void pack_int(struct buf *b, uint8_t tag, int64_t v)
{
	uint8_t bytes[12] = { tag };
	uint64_t zigzag = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
	size_t n = put_varint(bytes + 2, zigzag);

	bytes[1] = (uint8_t)n; /* below 0x80, so it is its own varint */
	buf_add(b, bytes, n + 2);
}

void pack_wrap(struct buf *b, uint8_t tag, size_t at)
{
	uint8_t head[11] = { tag };
	size_t size = b->n - at, n = 1 + put_varint(head + 1, size);

	buf_add(b, head, n); /* makes room */
	if (b->full)
		return;
	memmove(b->p + at + n, b->p + at, size);
	memcpy(b->p + at, head, n);
}

int unpack_next(struct unpack *u, uint8_t *tag, struct str *value)
{
	struct str rest = u->rest; /* a local, since *tag could be a byte of *u to the compiler */
	uint64_t n;

	if (!rest.n)
		return 0;
	*tag = (uint8_t)*rest.p++;
	rest.n--;
	if (get_varint(&rest, &n) || n > rest.n)
		return -EBADMSG;
	*value = str_n(rest.p, (size_t)n);
	u->rest = str_n(rest.p + n, rest.n - (size_t)n);
	return 1;
}

int unpack_int(struct str value, int64_t *out)
{
	uint64_t v;

	if (get_varint(&value, &v) || value.n)
		return -EBADMSG;
	*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return 0;
}

/* --- bytes ------------------------------------------------------------------------------------ */

json_t *bytes_json(struct str s)
{
	static const char digits[] = "0123456789abcdef";
	json_t *o;
	char *hex;

	if (text_valid(s))
		return json_stringn(str_p(s), s.n);
	hex = mem_alloc(2 * s.n + 1);
	for (size_t i = 0; i < s.n; i++) {
		hex[2 * i] = digits[(unsigned char)s.p[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s.p[i] & 15];
	}
	o = json_pack("{s:o}", "hex", json_stringn(hex, 2 * s.n));
	free(hex);
	return o;
}

bool bytes_parse(const json_t *v, struct str *out, struct arena *a)
{
	if (!json_is_string(v)) {
		v = json_object_get(v, "hex");
		return json_is_string(v) &&
		       hex_bytes(str_n(json_string_value(v), json_string_length(v)), out, a);
	}
	*out = arena_str(a, str_n(json_string_value(v), json_string_length(v)));
	return true;
}
