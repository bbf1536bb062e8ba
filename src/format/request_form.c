/* A request and the rules of a queue as bytes, and a request as JSON. The bytes keep the difference
 * between an argument that is missing and one that is empty. The JSON never contains tokens. */
#include <errno.h>

#include "format/request_form.h"

/* --- bytes ----------------------------------------------------------------------------------------- */

#define KIND_NAME SHAPE_STR
#define KIND_TITLE SHAPE_STR
#define KIND_TEXT SHAPE_STR
#define KIND_INT SHAPE_INT
#define KIND_LIST SHAPE_LIST

#define TAG_OP 255

static const struct shape_member members[] = {
	{ TAG_OP, SHAPE_ENUM, SHAPE_NEEDED, 0, OP_END, offsetof(struct request, op), 0, NULL },
#define ARG(tag, kind, name) \
	{ tag, KIND_##kind, SHAPE_GIVEN, 0, 0, offsetof(struct request, name), 0, NULL },
#include "core/request.def"
#undef ARG
};

static const uint8_t by_tag[UINT8_MAX + 1] = {
	[TAG_OP] = 1,
#define ARG(tag, kind, name) [tag] = ARG_##name + 2,
#include "core/request.def"
#undef ARG
};

static const struct shape request_shape = { .members = members,
					    .n = SHAPE_COUNT(members),
					    .plain = 1,
					    .size = sizeof(struct request),
					    .given = offsetof(struct request, has),
					    .by_tag = by_tag };

void request_pack(const struct request *r, struct buf *out)
{
	shape_pack(&request_shape, SHAPE_ALL, r, out);
}

int request_unpack(struct str bytes, struct request *out, struct arena *a)
{
	*out = (struct request){ 0 };
	return shape_unpack(&request_shape, SHAPE_ALL, bytes, out, a) || !out->op ? -EBADMSG : 0;
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
