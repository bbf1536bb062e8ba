/*
 * request: one call, as plain data. `has` tells an empty argument from a missing one: update clears
 * a field whose argument is empty. format/request_form.h encodes a request.
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
#define OP_REASON 512u
#define OP_FORCE 1024u
#define OP_UNDOABLE 2048u

enum op {
	OP_NONE = 0,
#define OP(number, name, flags, role, timeout) OP_##name = (number),
#include "core/op.def"
	OP_END
};

const char *op_name(enum op op); /* "LOCK_ACQUIRE" */
/* The operation's name in words: "lock acquire". */
const char *op_words(enum op op, struct arena *a);
unsigned op_flags(enum op op);

enum arg {
#define ARG(tag, kind, name) ARG_##name,
#include "core/request.def"
#undef ARG
	ARG_END
};

#define ARG_TYPE_NAME struct str
#define ARG_TYPE_TITLE struct str
#define ARG_TYPE_TEXT struct str
#define ARG_TYPE_INT int64_t
#define ARG_TYPE_LIST struct strs

/* A network caller's rights (core/role.h). */
enum role { ROLE_NONE = 0, ROLE_READER, ROLE_AGENT, ROLE_REVIEWER, ROLE_ADMIN };

struct request {
	enum op op;
	enum role
		role; /* ROLE_NONE: not limited. Never packed, so a caller cannot choose its role. */
	/* The tokens of the queue locks that the caller holds, by enum typed; NULL: ask
	 * queue_config.pass. Never packed, because they are not part of the call. */
	const struct str *pass;
	uint64_t has; /* 1 << enum arg */
#define ARG(tag, kind, name) ARG_TYPE_##kind name;
#include "core/request.def"
#undef ARG
};

enum arg_kind { ARG_STR, ARG_INT, ARG_LIST };
enum arg_kind arg_kind(enum arg a);
const char *arg_name(enum arg a);
size_t arg_limit(enum arg a); /* of a text, in bytes */
void *arg_at(struct request *r, enum arg a);
const void *arg_of(const struct request *r, enum arg a);

#define HAS(r, name) (((r)->has >> ARG_##name) & 1)
#define GIVE(r, name, value) ((r)->name = (value), (r)->has |= UINT64_C(1) << ARG_##name)

/* The purpose of a list or of `show`. Without a flag, a list has every task, in order of
 * creation. */
#define VIEW_GROUPS 1u   /* grouped by status; within a group, in the order of selection */
#define VIEW_ARCHIVED 2u /* includes archived tasks */
#define VIEW_READY 4u    /* Ready tasks that are eligible */
#define VIEW_WAITING 8u  /* Ready tasks that are not eligible */
#define VIEW_MINE 16u    /* tasks that the caller holds or that are assigned to it */
#define VIEW_PEOPLE 128u /* one plain list for people, without archived tasks */
#define VIEW_RELATED 32u /* show: sub-tasks, dependencies, attempts */
#define VIEW_CAN \
	(1u << 20)    /* without VIEW_BRIEF: adds the caller's open actions (struct allowed) */
#define VIEW_TREE 64u /* the sub-tasks and dependencies of `id`, or of all open tasks */
#define VIEW_BRIEF \
	65536u /* claim, next, show: adds the facts that a new holder needs (struct related) */

/* The order of a list for people. */
enum sort {
	SORT_OFFER = 0, /* the order of selection; ended tasks: the latest first */
	SORT_ID = 1,
	SORT_CREATED = 2,
	SORT_UPDATED = 3, /* the latest first */
	SORT_DUE = 4,     /* tasks without a due date last */
	SORT_PRIORITY = 5,
	SORT_TITLE = 6,
	SORT_STATUS = 7,
	SORT_END
};

#define VIEW_SORT(sort) ((int64_t)(sort) << 8)
#define VIEW_SORT_OF(view) ((view) >> 8 & 0xff)
/* log_view: the parts that a log's answer omits or adds. `holder` and `type` filter by agent and
 * by event kind. */
#define LOG_OF_TASKS 1u   /* omits the events of queue locks (core/typed.h) */
#define LOG_WITH_TASKS 2u /* adds tasks[]: the events' tasks, in their present state */
#define LOG_PAGE \
	4u /* a page: the oldest events, at most `limit`; `more` in the answer: others follow */

/* The rules that a queue's settings select. */
struct policy {
	int64_t lease, lease_min, lease_max, lock_ttl;
	int64_t max_abandoned; /* 0: no limit */
	bool keep_abandoned;   /* `next` offers only Ready tasks */
	bool ignore_depends;
	bool claim_creates; /* claiming an unknown id creates its task */
	bool untyped;       /* every queue lock except @sync refuses all other callers' changes */
	bool locks_only; /* the store keeps locks but no tasks; an id without a task can be locked */
	bool offer_parents; /* a task does not wait for its sub-tasks */
	int64_t warn_after; /* cleanup warns of locks older than this; 0: never */
	int64_t handback;   /* time that a returned task stays reserved for its last agent */
};

extern const struct policy policy_default; /* core/lease.c */

/* Checks the call without reading the queue. Returns NULL or the message for a USAGE answer. */
const char *request_fault(const struct request *r, const struct policy *p, struct arena *a);

#endif
