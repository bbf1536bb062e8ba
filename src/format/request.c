#include "format/request.h"

#include <errno.h>

#include "format/pack.h"

#define TAG_OP 255
#define TAG_EMPTY 254 /* the tag of a list that is given, but empty */

void request_pack(const struct request *r, struct buf *out)
{
	pack_int(out, TAG_OP, r->op);
	for (int i = 0; i < ARG_END; i++) {
		const void *p = arg_of(r, (enum arg)i);
		const struct strs *list = p;

		if (!((r->has >> i) & 1))
			continue;
		if (arg_kind((enum arg)i) == ARG_STR)
			pack_str(out, arg_tag((enum arg)i), *(const struct str *)p);
		else if (arg_kind((enum arg)i) == ARG_INT)
			pack_int(out, arg_tag((enum arg)i), *(const int64_t *)p);
		else if (!list->n)
			pack_int(out, TAG_EMPTY, arg_tag((enum arg)i));
		else
			for (size_t k = 0; k < list->n; k++)
				pack_str(out, arg_tag((enum arg)i), list->v[k]);
	}
}

/* No other list shares the memory, so it may grow in place. */
static void list_add(struct strs *list, struct str value, struct arena *a)
{
	list->v = arena_grow(a, list->v, list->n, sizeof(*list->v));
	list->v[list->n++] = value;
}

static int unpack_arg(struct request *r, int i, struct str value, struct arena *a)
{
	void *p;

	if (i < 0)
		return 0; /* an argument of a newer pawl */
	p = arg_at(r, (enum arg)i);
	r->has |= UINT64_C(1) << i;
	if (arg_kind((enum arg)i) == ARG_INT)
		return unpack_int(value, p);
	if (arg_kind((enum arg)i) == ARG_STR)
		*(struct str *)p = value;
	else
		list_add(p, value, a);
	return 0;
}

static int unpack_empty(struct request *r, struct str value)
{
	int64_t tag;
	int i;

	if (unpack_int(value, &tag))
		return -EBADMSG;
	i = arg_by_tag(tag);
	if (i >= 0)
		r->has |= UINT64_C(1) << i;
	return 0;
}

static int unpack_op(struct request *r, struct str value)
{
	int64_t op;

	if (unpack_int(value, &op) || op <= OP_NONE || op >= OP_END)
		return -EBADMSG;
	r->op = (enum op)op;
	return 0;
}

int request_unpack(struct str bytes, struct request *out, struct arena *a)
{
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	*out = (struct request){ 0 };
	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == TAG_OP)
			r = unpack_op(out, value);
		else if (tag == TAG_EMPTY)
			r = unpack_empty(out, value);
		else
			r = unpack_arg(out, arg_by_tag(tag), value, a);
		if (r < 0)
			return r;
	}
	return r < 0 || !out->op ? -EBADMSG : 0;
}

/* --- the rules of a queue ------------------------------------------------------------------------- */

#define P(tag, kind, member)                                                                  \
	{                                                                                     \
		tag, SHAPE_##kind, SHAPE_SOME, 0, 0, offsetof(struct policy, member), 0, NULL \
	}

static const struct shape_member policy_members[] = {
	P(1, INT, lease),           P(2, INT, lease_min),       P(3, INT, lease_max),
	P(4, INT, lock_ttl),        P(5, INT, max_abandoned),   P(6, BOOL, keep_abandoned),
	P(7, BOOL, ignore_depends), P(8, BOOL, claim_creates),  P(9, BOOL, untyped),
	P(10, BOOL, locks_only),    P(11, BOOL, offer_parents), P(12, INT, warn_after),
	P(13, INT, handback),
};

const struct shape policy_shape = SHAPE_OF(policy_members, policy);

bool policy_sane(const struct policy *p)
{
	for (size_t i = 0; i < policy_shape.n; i++) {
		const struct shape_member *m = &policy_members[i];
		const void *at = (const char *)p + m->offset;

		if (m->kind == SHAPE_INT &&
		    (*(const int64_t *)at < 0 || *(const int64_t *)at > EXACT_MAX))
			return false;
	}
	return true;
}

/* --- JSON ------------------------------------------------------------------------------------------ */

static json_t *arg_json(const struct request *r, enum arg a)
{
	const void *p = arg_of(r, a);
	const struct str *s = p;
	const struct strs *list = p;
	json_t *o;

	if (arg_kind(a) == ARG_INT)
		return json_integer(*(const int64_t *)p);
	if (arg_kind(a) == ARG_STR)
		return json_stringn(s->n ? s->p : "", s->n);
	o = json_array();
	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(o, json_stringn(list->v[i].p, list->v[i].n));
	return o;
}

json_t *request_json(const struct request *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "op", json_string(op_name(r->op)));
	for (int i = 0; i < ARG_END; i++)
		if ((r->has >> i & 1) && i != ARG_token && i != ARG_new_token)
			json_object_set_new(o, arg_name((enum arg)i), arg_json(r, (enum arg)i));
	return o;
}
