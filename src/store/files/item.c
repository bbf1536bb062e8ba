/*
 * A record as bytes, as the state stores it: a struct of fixed size, then its strings. A record of a snapshot
 * stays raw until a caller needs it.
 */
#include <stddef.h>

#include "store/files/files.h"

enum { DROPPED = 1, ARCHIVED = 2, WITH_BODY = 4, STRANGER = 8, OLD_ARCHIVED = 16, WITH_DUE = 32 };

#define DUE_BYTES 7

/* A record; its bytes follow: key, id, holder, token, parent, type, lists, hot, body. */
struct item {
	int64_t eligible_at, updated_at, created_at, rev;
	uint64_t commit;
	struct stamp stamp, old;
	int32_t class_rank, priority;
	uint32_t lists, hot, body;
	uint16_t key, id, holder, token, parent, type, labels, depends;
	uint8_t lane, status, kind, flags;
	uint8_t old_kind, due[DUE_BYTES];
};

const size_t files_item_head = sizeof(struct item);

static struct str files_item_cut(struct str *rest, size_t n)
{
	struct str s = str_n(rest->p, n);

	*rest = str_n(rest->p + n, rest->n - n);
	return s;
}

static int decode_list(struct view *v, struct str *rest, size_t n, struct strs *out)
{
	*out = (struct strs){ n ? arena_array(&v->arena, struct str, n) : NULL, n };
	for (size_t i = 0; i < n; i++) {
		uint32_t len;

		if (rest->n < sizeof(len))
			return -1;
		memcpy(&len, files_item_cut(rest, sizeof(len)).p, sizeof(len));
		if (rest->n < len)
			return -1;
		out->v[i] = files_item_cut(rest, len);
	}
	return 0;
}

static int64_t decode_due(const struct item *it)
{
	uint64_t n = 0;

	for (int i = 0; i < DUE_BYTES; i++)
		n |= (uint64_t)it->due[i] << (8 * (i + 1));
	return (int64_t)n >> 8; /* extends the sign */
}

static void decode_plain(const struct item *it, struct ent *e)
{
	e->ix = (struct index){ .lane = it->lane,
				.status = it->status,
				.class_rank = it->class_rank,
				.priority = it->priority,
				.eligible_at = it->eligible_at,
				.updated_at = it->updated_at,
				.created_at = it->created_at,
				.due = decode_due(it) };
	e->rev = it->rev;
	e->commit = it->commit;
	e->stamp = it->stamp;
	e->old = (struct replaced){ it->old, it->old_kind, it->flags & OLD_ARCHIVED };
	e->kind = it->kind < FILE_KINDS ? it->kind : FILE_NONE;
	e->dropped = it->flags & DROPPED;
	e->archived = it->flags & ARCHIVED;
	e->has_body = it->flags & WITH_BODY;
	e->stranger = it->flags & STRANGER;
}

int files_decode_next(struct view *v, struct str *rest, struct ent *e)
{
	struct item it;
	struct str lists;
	uint64_t need;

	if (rest->n < sizeof(it))
		return -1;
	memcpy(&it, files_item_cut(rest, sizeof(it)).p, sizeof(it));
	need = (uint64_t)it.key + it.id + it.holder + it.token + it.parent + it.type + it.lists +
	       it.hot + it.body;
	if (rest->n < need)
		return -1;
	decode_plain(&it, e);
	e->key = files_item_cut(rest, it.key);
	e->ix.id = files_item_cut(rest, it.id);
	e->ix.holder = files_item_cut(rest, it.holder);
	e->ix.token = files_item_cut(rest, it.token);
	e->ix.parent = files_item_cut(rest, it.parent);
	e->ix.type = files_item_cut(rest, it.type);
	lists = files_item_cut(rest, it.lists);
	e->hot = files_item_cut(rest, it.hot);
	e->body = files_item_cut(rest, it.body);
	if (!it.lists)
		return it.labels || it.depends ? -1 : 0;
	return decode_list(v, &lists, it.labels, &e->ix.labels) ||
			       decode_list(v, &lists, it.depends, &e->ix.depends)
		       ? -1
		       : 0;
}

static size_t list_size(struct strs list)
{
	size_t n = list.n * sizeof(uint32_t);

	for (size_t i = 0; i < list.n; i++)
		n += list.v[i].n;
	return n;
}

static void encode_list(struct buf *b, struct strs list)
{
	for (size_t i = 0; i < list.n; i++) {
		uint32_t len = (uint32_t)list.v[i].n;

		buf_add(b, &len, sizeof(len));
		buf_adds(b, list.v[i]);
	}
}

void files_encode(struct buf *b, const struct ent *e)
{
	const struct index *ix = &e->ix;
	struct item it = { .eligible_at = ix->eligible_at,
			   .updated_at = ix->updated_at,
			   .created_at = ix->created_at,
			   .rev = e->rev,
			   .commit = e->commit,
			   .stamp = e->stamp,
			   .old = e->old.stamp,
			   .old_kind = e->old.kind,
			   .class_rank = ix->class_rank,
			   .priority = ix->priority,
			   .lists = (uint32_t)(list_size(ix->labels) + list_size(ix->depends)),
			   .hot = (uint32_t)e->hot.n,
			   .body = e->has_body ? (uint32_t)e->body.n : 0,
			   .key = (uint16_t)e->key.n,
			   .id = (uint16_t)ix->id.n,
			   .holder = (uint16_t)ix->holder.n,
			   .token = (uint16_t)ix->token.n,
			   .parent = (uint16_t)ix->parent.n,
			   .type = (uint16_t)ix->type.n,
			   .labels = (uint16_t)ix->labels.n,
			   .depends = (uint16_t)ix->depends.n,
			   .lane = (uint8_t)ix->lane,
			   .status = (uint8_t)ix->status,
			   .kind = e->kind };

	it.flags = (uint8_t)((e->dropped ? DROPPED : 0) | (e->archived ? ARCHIVED : 0) |
			     (e->has_body ? WITH_BODY : 0) | (e->stranger ? STRANGER : 0) |
			     (e->old.archived ? OLD_ARCHIVED : 0) | WITH_DUE);
	for (int i = 0; i < DUE_BYTES; i++)
		it.due[i] = (uint8_t)((uint64_t)ix->due >> (8 * i));
	buf_add(b, &it, sizeof(it));
	buf_adds(b, e->key);
	buf_adds(b, ix->id);
	buf_adds(b, ix->holder);
	buf_adds(b, ix->token);
	buf_adds(b, ix->parent);
	buf_adds(b, ix->type);
	encode_list(b, ix->labels);
	encode_list(b, ix->depends);
	buf_adds(b, e->hot);
	if (e->has_body)
		buf_adds(b, e->body);
}

static size_t item_size(const struct item *it)
{
	return sizeof(*it) + it->key + it->id + it->holder + it->token + it->parent + it->type +
	       (size_t)it->lists + it->hot + it->body;
}

size_t files_raw_size(struct str bytes)
{
	struct item it;

	if (bytes.n < sizeof(it))
		return 0;
	memcpy(&it, bytes.p, sizeof(it));
	return bytes.n < item_size(&it) ? 0 : item_size(&it);
}

struct str files_raw_key(const char *raw)
{
	uint16_t n;

	memcpy(&n, raw + offsetof(struct item, key), sizeof(n));
	return str_n(raw + sizeof(struct item), n);
}

bool files_raw_has_lists(const char *raw)
{
	uint32_t n;

	memcpy(&n, raw + offsetof(struct item, lists), sizeof(n));
	return n != 0;
}

/* Pawl 0.1 wrote tasks without their due dates. */
bool files_raw_older(const char *raw)
{
	return raw[offsetof(struct item, status)] &&
	       !(raw[offsetof(struct item, flags)] & (WITH_DUE | DROPPED));
}

enum file_kind files_raw_kind(const char *raw)
{
	return (enum file_kind)raw[offsetof(struct item, kind)];
}

void files_decode(struct view *v, const char *raw, struct ent *out)
{
	struct item it;
	struct str rest;

	memcpy(&it, raw, sizeof(it));
	rest = str_n(raw, item_size(&it));
	*out = (struct ent){ 0 };
	if (files_decode_next(v, &rest, out))
		out->bad = "its record in .pawl/state is damaged";
}
