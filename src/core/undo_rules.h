/*
 * undo: the rules by which an agent takes its last change of a task back.
 *
 * With each change that can be taken back (UNDOABLE in core/op.def) the queue keeps a struct undo: the task as it was
 * before, a digest of the task as the change left it, and the other tasks that the change touched. A later change of the
 * task replaces it. An undo restores what the change set and nothing else: it never brings a lock back, never lowers a
 * fence or a version, and leaves the counts to the queue.
 */
#ifndef CORE_UNDO_RULES_H
#define CORE_UNDO_RULES_H

#include "core/rules.h"

#define UNDO_KEPT_MS (30 * 24 * 3600 * INT64_C(1000))
/* A change that touched more other tasks cannot be taken back. */
#define UNDO_OTHERS_MAX 10000
#define UNDO_DIGEST_LEN 64

/* The link to the removed task that a removal cut. */
enum undo_link { UNDO_NO_LINK, UNDO_DEPENDS, UNDO_PARENT, UNDO_LINK_END };

/* Another task, before the change. */
struct undo_other {
	struct str id, blocker_reason;
	struct str digest; /* of the task after the change */
	int64_t status, updated_at, link;
};

struct undo {
	int64_t op;   /* the change; `status` counts as the operation that it was */
	int64_t role; /* the role that the change needed */
	int64_t at;
	struct str agent;
	struct str digest; /* of the task after the change; empty: it was removed */
	struct task *was;  /* the task before the change */
	struct undo_other *others;
	size_t n_others;
};

/* The operation that the request makes on a task with this status; OP_NONE: it cannot be undone. */
enum op undo_op(const struct request *rq, int64_t status);
/* The task without the parts that may differ although nobody changed it: counts, and what a heartbeat renews. The
 * digest is made of this. */
struct task undo_compared(const struct task *t);
/* Could pawl have written the record of this task (key: "task/t1")? NULL: it could. */
const char *undo_fault(const struct undo *u, struct str key, struct arena *a);
/* The lowest role that may take the change back over the network. */
enum role undo_role(const struct undo *u);

/* What the queue knows about a task besides its record. */
struct undo_facts {
	bool same;                /* the task is as the change left it */
	const struct event *last; /* its last event that is not a comment; NULL: unknown */
	struct strs fields;       /* the fields that the undo would change */
};

/* May the caller take the change back? u: NULL if none is kept. removed: the task does not exist now. false: c has the
 * refusal. */
bool undo_allowed(const struct task *t, const struct undo *u, const struct undo_facts *f,
		  bool removed, struct call *c);
/* Restores the fields and the status; parent, depends and counts are the queue's. */
void undo_apply(struct task *t, const struct undo *u, const struct undo_facts *f, struct call *c);
/* The removed task, without lock and links. fence: the last one that was granted for its id. */
void undo_restore(struct task *t, const struct undo *u, int64_t fence);
/* Gives another task its status back. */
void undo_other(struct task *t, const struct undo_other *o, struct call *c);
/* Would the undo end the work on a task that has open sub-tasks? */
bool undo_unfinished(const struct task *t, const struct undo *u);
/* Would the undo take an approval back? */
bool undo_unapproves(const struct task *t, const struct undo *u);
void undo_refuse_relied(struct call *c, const struct task *t, const struct task *waited);
/* Has an agent relied on the approval: was a task that waited for the approved one claimed or completed since? */
bool undo_relied_on(const struct task *waited, const struct undo *u);

#endif
