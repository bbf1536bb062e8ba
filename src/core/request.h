/*
 * request: one call, as plain data. An argument that is not in `has` was not given; an empty one was
 * given as empty (update clears the field). format/request.h has its packed form.
 */
#ifndef CORE_REQUEST_H
#define CORE_REQUEST_H

#include "base/buf.h"
#include "core/result.h"
#include "core/task.h"

#define OP_READS 1u
#define OP_TAKES 2u
#define OP_HELD 4u
#define OP_ENDS 8u
#define OP_TASK 16u
#define OP_QUICK 32u
#define OP_BATCH 64u
#define OP_HEAVY 128u
#define OP_OWN 256u

enum op {
	OP_NONE = 0,
#define OP(number, name, flags) OP_##name = (number),
#include "core/op.def"
#undef OP
	OP_END
};

const char *op_name(enum op op); /* "lock_acquire" */
unsigned op_flags(enum op op);

enum arg {
#define ARG(tag, kind, name) ARG_##name,
#include "core/request.def"
#undef ARG
	ARG_END
};

#define ARG_TYPE_STR struct str
#define ARG_TYPE_INT int64_t
#define ARG_TYPE_LIST struct strs

struct request {
	enum op op;
	uint64_t has; /* 1 << enum arg */
#define ARG(tag, kind, name) ARG_TYPE_##kind name;
#include "core/request.def"
#undef ARG
};

enum arg_kind { ARG_STR, ARG_INT, ARG_LIST };
enum arg_kind arg_kind(enum arg a);
uint8_t arg_tag(enum arg a); /* of its packed form */
const char *arg_name(enum arg a);
void *arg_at(struct request *r, enum arg a);
const void *arg_of(const struct request *r, enum arg a);

#define HAS(r, name) (((r)->has >> ARG_##name) & 1)
#define GIVE(r, name, value) ((r)->name = (value), (r)->has |= UINT64_C(1) << ARG_##name)

/* The limits that a queue's settings put on calls. */
struct policy {
	int64_t lease, lease_min, lease_max, lock_ttl;
	int64_t max_abandoned; /* 0: no limit */
	bool keep_abandoned;   /* only Ready is offered */
	bool ignore_depends;
	bool claim_creates; /* claiming an id that has no task makes one */
	bool untyped;       /* any lock of the whole queue keeps out every change */
	bool locks_only; /* the store keeps locks, also of ids that have no task, and not the tasks */
	int64_t warn_after; /* cleanup names locks that are older; 0: none */
};

extern const struct policy policy_default; /* core/lease.c */

/* What is wrong with the call itself, whatever the queue holds: NULL, or the text of a USAGE answer. */
const char *request_fault(const struct request *r, const struct policy *p, struct arena *a);

#endif
