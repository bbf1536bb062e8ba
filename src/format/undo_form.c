/* The record of an undoable change as bytes. The bytes come from a store, so callers check the struct (undo_fault()) before
 * they use it. */
#include "format/undo_form.h"

#include "base/secret.h"
#include "format/pack.h"
#include "format/task_form.h"

#define HEAD 1u
#define REST 2u
/* More than a task and the texts of a few others. */
#define PACKED_MAX (8u << 20)

#define ROW(tag, kind, when, type, member, ...)                                           \
	{                                                                                 \
		tag, SHAPE_##kind, SHAPE_##when, .offset = offsetof(struct type, member), \
						 ##__VA_ARGS__                            \
	}
#define O(tag, kind, member) ROW(tag, kind, ALWAYS, undo_other, member)

static const struct shape_member other_members[] = {
	O(1, STR, id),     O(2, STR, digest),     O(3, STR, blocker_reason),
	O(4, INT, status), O(5, INT, updated_at), O(6, INT, link),
};
static const struct shape other_shape = SHAPE_OF(other_members, undo_other);

#define H(tag, kind, member) ROW(tag, kind, ALWAYS, undo, member, .part = HEAD)

static const struct shape_member members[] = {
	H(1, INT, op),
	H(2, INT, role),
	H(3, INT, at),
	H(4, STR, agent),
	H(5, STR, digest),
	ROW(6, ONE, SOME, undo, was, .part = REST, .of = &task_shape),
	ROW(7, ARRAY, SOME, undo, others, .part = REST, .count = offsetof(struct undo, n_others),
	    .of = &other_shape),
};
static const struct shape shape = SHAPE_OF(members, undo);

static struct str undo_form_pack(const struct undo *u, unsigned part, struct arena *a)
{
	struct buf b = BUF_MAX(PACKED_MAX);
	struct str out;

	shape_pack(&shape, part, u, &b);
	out = b.full ? STR("") : arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

struct str undo_pack_head(const struct undo *u, struct arena *a)
{
	return undo_form_pack(u, HEAD, a);
}

struct str undo_pack_rest(const struct undo *u, struct arena *a)
{
	return undo_form_pack(u, REST, a);
}

int undo_unpack_head(struct str bytes, struct undo *out, struct arena *a)
{
	return shape_unpack(&shape, HEAD, bytes, out, a);
}

int undo_unpack_rest(struct str bytes, struct undo *out, struct arena *a)
{
	return shape_unpack(&shape, REST, bytes, out, a);
}

struct str undo_digest(const struct task *t, struct arena *a)
{
	struct task compared = undo_compared(t);
	struct buf b = BUF_MAX(PACKED_MAX);
	struct str out;

	task_pack(&compared, HOT | BODY, &b);
	out = hash_hex(a, buf_str(&b));
	buf_free(&b);
	return out;
}
