/*
 * The tables of operations and arguments. Both come from .def files, so that every face and format
 * knows the same ones.
 */
#include "core/request.h"

#include <stddef.h>

enum {
	READS = OP_READS,
	TAKES = OP_TAKES,
	HELD = OP_HELD,
	ENDS = OP_ENDS,
	TASK = OP_TASK,
	OWN = OP_OWN,
	REASON = OP_REASON,
	FORCE = OP_FORCE,
	UNDOABLE = OP_UNDOABLE,
	NORMAL = 0,
	QUICK = OP_QUICK
};

static const struct {
	const char *name;
	unsigned flags;
} ops[] = {
	[OP_NONE] = { "NONE", 0 },
#define OP(number, name, flags, role, timeout) [OP_##name] = { #name, (flags) | (timeout) },
#include "core/op.def"
};

#define KIND_NAME ARG_STR, NAME_MAX_BYTES
#define KIND_TITLE ARG_STR, TITLE_MAX
#define KIND_TEXT ARG_STR, TEXT_MAX
#define KIND_INT ARG_INT, 0
#define KIND_LIST ARG_LIST, 0

static const struct {
	uint8_t kind;
	uint32_t limit; /* a text's maximum, in bytes */
	const char *name;
	size_t offset;
} args[] = {
#define ARG(tag, kind, name) [ARG_##name] = { KIND_##kind, #name, offsetof(struct request, name) },
#include "core/request.def"
#undef ARG
};

_Static_assert(ARG_END <= 64, "`has` is one bit for each argument");

const char *op_name(enum op op)
{
	return ops[op].name;
}

const char *op_words(enum op op, struct arena *a)
{
	char *words = arena_cstr(a, str_c(op_name(op)));

	for (char *p = words; *p; p++)
		*p = *p == '_' ? ' ' : (char)(*p - 'A' + 'a');
	return words;
}

unsigned op_flags(enum op op)
{
	return ops[op].flags;
}

enum arg_kind arg_kind(enum arg a)
{
	return (enum arg_kind)args[a].kind;
}

size_t arg_limit(enum arg a)
{
	return args[a].limit;
}

const char *arg_name(enum arg a)
{
	return args[a].name;
}

void *arg_at(struct request *r, enum arg a)
{
	return (char *)r + args[a].offset;
}

const void *arg_of(const struct request *r, enum arg a)
{
	return (const char *)r + args[a].offset;
}
