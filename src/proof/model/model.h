/*
 * model: the contract (doc/contract.md) implemented a second time, as a small state machine that
 * shares no policy with core. It is the oracle for the simulator and for the checker of recorded
 * histories. It decides on its own which calls are allowed, and ignores speed and storage: it
 * computes every count afresh and selects by linear search.
 *
 * A world knows the names. A state is one block of numbers that can be copied, compared and hashed.
 * A world holds the whole queue, or only some of its tasks (all that are linked by parent, depends
 * or one call). In a partial world the model cannot predict which task a selection takes, or which
 * id is created. The caller passes these as a choice, and the model says whether it was possible.
 *
 *	struct model_world *w = model_world_new(&arena, &policy, whole);
 *	struct model_call c = model_call_of(w, &rq);     (once for each call; adds names)
 *	struct model *m = model_new(w, &arena, 0, 0);    (after all names are known, or with room)
 *	model_step(w, m, &c, now, choice, &want);        (changes m: copy it first to go back)
 *	if (!model_agrees(w, m, &c, &want, &ans, &why)) (the answer that came is wrong)
 *
 * A call without an answer is a step whose `want` is not compared. Its time is unknown too:
 * model_times() lists the moments that make a difference.
 */
#ifndef PROOF_MODEL_MODEL_H
#define PROOF_MODEL_MODEL_H

#include "core/answer.h"
#include "core/request.h"

/* --- names --------------------------------------------------------------------------------------- */

/* Each kind has its own numbers, from 1; 0 means none. Task ids ignore case. A token is identified
 * by its text, or by the mark that a history has in its place. */
enum model_kind {
	MODEL_TASK,
	MODEL_TOKEN,
	MODEL_AGENT,
	MODEL_REQUEST, /* request ids */
	MODEL_TEXT,    /* spellings, titles, kept answers, ... */
	MODEL_KINDS
};

struct model_world;

struct model_world *model_world_new(struct arena *a, const struct policy *policy, bool whole);
uint32_t model_name(struct model_world *w, enum model_kind kind, struct str text);
/* 0: the name is unknown. */
uint32_t model_find(const struct model_world *w, enum model_kind kind, struct str text);
struct str model_text(const struct model_world *w, enum model_kind kind, uint32_t name);
uint32_t model_count(const struct model_world *w, enum model_kind kind);

/* --- state --------------------------------------------------------------------------------------- */

/* model_step aborts if a call exceeds this: the driver must not make such calls */
#define MODEL_DEPENDS 12
#define MODEL_LABELS 4

struct model_lock {
	int64_t acquired_at, expires_at, ttl;
	uint32_t token, holder; /* holder 0: no lock */
	uint32_t manual, pad;
};

struct model_task {
	int64_t status; /* 0: it does not exist or was removed; then only the fence counts */
	int64_t class_rank, priority;
	int64_t fence, version, attempts, abandoned;
	int64_t due, not_before, free_at, last_ttl;
	int64_t created_at, updated_at, started_at, first_started_at, done_at, archived_at;
	struct model_lock lock;
	/* the last call of the last holder, until the next acquisition */
	uint32_t last_op, last_token, last_next;
	uint32_t spelled; /* the id as written: MODEL_TEXT */
	uint32_t assignee, last_holder, run, parent;
	/* the operator who overrode a lock to change the task, and that lock's token */
	uint32_t over_by, over_token;
	uint32_t undo; /* the last change that can be undone: MODEL_TEXT (model_undo.c) */
	uint32_t title, type, summary, reason, unblock_action;
	uint32_t labels[MODEL_LABELS];
	uint32_t depends[MODEL_DEPENDS];
};

#define MODEL_KEPT (24 * 3600 * INT64_C(1000)) /* how long a store remembers a request id, in ms */

/* The answer kept for a request id. */
struct model_kept {
	int64_t until; /* 0: none */
	uint32_t call; /* identifies the call: a repeat has the same number */
	uint32_t answer;
};

/* One block of model_size() bytes: tasks, then kept answers, each indexed by the number of its
 * name. */
struct model {
	int64_t counter; /* of created ids; only in a whole world */
	uint32_t n_tasks, n_kept;
};

/* An empty queue with room for all names so far, and for `tasks` and `requests` more names. */
struct model *model_new(const struct model_world *w, struct arena *a, uint32_t tasks,
			uint32_t requests);
size_t model_size(const struct model *m);
struct model *model_copy(const struct model *m, struct arena *a);
/* Equal bytes are equal states: memcmp() over model_size() is enough. */
uint64_t model_hash(const struct model *m);

static inline struct model_task *model_task(const struct model *m, uint32_t name)
{
	return (struct model_task *)(m + 1) + name;
}

static inline struct model_kept *model_kept(const struct model *m, uint32_t name)
{
	return (struct model_kept *)((struct model_task *)(m + 1) + m->n_tasks) + name;
}

/* --- calls --------------------------------------------------------------------------------------- */

/* A request with its names. It points to `rq`, which must live as long. Reads are calls, too. */
struct model_call {
	const struct request *rq;
	uint32_t id, agent, run, token, new_token, request;
	/* the token of a lock of the whole queue that the caller holds; set by the caller */
	uint32_t pass;
	uint32_t parent, label, type, assignee;
	uint32_t depends[MODEL_DEPENDS];
	uint32_t same; /* equal numbers: the same call (for request ids) */
};

struct model_call model_call_of(struct model_world *w, const struct request *rq);
/* The id that the request is about: its own, or the emergency's. */
struct str model_about(const struct request *rq);

/* --- locks of the whole queue -------------------------------------------------------------------- */

/* Locks of the whole queue, the emergency and the pause are tasks without a status. A world knows all or none of
 * model_guard(1) to model_guard(MODEL_GUARDS - 1). In a world that knows none, no call is refused
 * because of them. */
#define MODEL_GUARDS 7
#define MODEL_EMERGENCY 5
#define MODEL_PAUSE 6
struct str model_guard(int i);

static inline bool model_is_guard(struct str id)
{
	return str_starts(id, STR("@"));
}

/* Does an emergency refuse the request? */
bool model_guarded(const struct request *rq);
/* Does another agent's lock of that name refuse the request? */
bool model_bars(const struct policy *p, struct str lock, const struct request *rq);

/* The outcomes that a partial world cannot predict. {0} in a whole world. */
struct model_choice {
	/* TAKE, DONE with claim_next, NEXT: the task of this world that was taken (or
	 * shown). CREATE without id: the task that was created. 0: none, or one of another
	 * world. */
	uint32_t took;
	/* If took == 0: how many tasks the call moved to Needs Help because they were abandoned too
	 * often; they are the first in order. model_worn() needs 0 here. */
	uint32_t swept;
	/* In a world without queue-wide locks: the answer says that the queue was paused. */
	uint32_t paused;
};

/* Could the queue have made this id? */
bool model_makes(struct str id);
/* How many tasks this call can send to Needs Help before it takes a task of another world. */
uint32_t model_worn(const struct model_world *w, const struct model *m, const struct model_call *c,
		    int64_t now);

struct model_grant {
	int64_t fence, expires_at, ttl;
	uint32_t token; /* 0: not shown */
	uint32_t given; /* 0: no lock was granted */
};

/* The right answer. Fields that the answer does not have are 0. */
struct model_answer {
	int64_t code; /* enum result; -1: this choice was impossible, discard the state */
	int64_t now, repeated, existed, has_next, wait_ms;
	int64_t paused;   /* the answer says that the queue is paused */
	int64_t loose;    /* a refusal of undo: CONFLICT or MISCONFIGURED, as its log decides */
	int64_t overrode; /* the call changed the task over another agent's lock */
	int64_t touched;  /* LOCK_CLEANUP, ARCHIVE: number of changed tasks of this world */
	/* Partial world, nothing taken here: a task of another world is right as well. So is an
	 * answer without a task, if `code` is NO_TASKS, or for the `next` of a claim_next
	 * if none_left. */
	int64_t elsewhere;
	int64_t none_left; /* no task of this world is eligible after the step */
	uint32_t id, next_id;
	uint32_t made_id; /* ID_PEEK, ID_CLAIM, in a whole world: MODEL_TEXT */
	uint32_t changed; /* the agent whose change overrode the caller's lock */
	struct model_task task, next;
	int64_t counts[4]; /* of the task: open_deps, canceled_deps, open_subs; 4th unused */
	int64_t next_counts[4];
	struct model_grant lock, next_lock;
};

/* Applies the call at the store's time `now`. A refused call changes nothing, except for tasks that
 * were abandoned too often. */
void model_step(struct model_world *w, struct model *m, const struct model_call *c, int64_t now,
		struct model_choice choice, struct model_answer *want);

/* Is `got` the right answer? If not, `why` (may be NULL) names the first difference. `m` is the
 * state after the step; lists are compared with it. API_ERROR never agrees: the caller tries both,
 * applied or not. Values that a history may lack (the lock's token, counts, labels) are compared if
 * present. */
bool model_agrees(const struct model_world *w, const struct model *m, const struct model_call *c,
		  const struct model_answer *want, const struct answer *got, struct buf *why);

/* The moments in [from, to] that change the outcome of a step, ascending: `from`, and each lease
 * expiry, not_before, free_at and end of a kept answer in between. (A change also records `now`
 * itself: updated_at, acquired_at, expires_at - ttl. A caller that needs the time of an
 * unanswered call adds the times that later answers show for the task.) At most `room`; returns their
 * number. */
size_t model_times(const struct model *m, int64_t from, int64_t to, int64_t *out, size_t room);

/* One line for people: "t1 In Progress fence 3 version 9 held by a2 (#17) until +900". */
void model_print(const struct model_world *w, const struct model *m, uint32_t task, int64_t now,
		 struct buf *out);

#endif
