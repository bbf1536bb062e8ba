/*
 * model: the contract (doc/contract.md) once more, as a small state machine that shares no policy with
 * core: the oracle of the simulator and of the checker of recorded histories. It has its own idea of who
 * may do what and no care for speed or storage: counts are counted, the first in order is looked for.
 *
 * A world knows the names; a state is one block of numbers that can be copied, compared and hashed. A
 * world may hold the whole queue, or only some of its tasks (all that are linked by parent, depends or
 * one call): then what is taken by selection, and ids that are made, cannot be foretold and come in as a
 * choice, of which the model says whether it was possible.
 *
 *	struct model_world *w = model_world_new(&arena, &policy, whole);
 *	struct model_call c = model_call_of(w, &rq);     (each call once; makes names)
 *	struct model *m = model_new(w, &arena, 0, 0);    (after all names are known, or with room)
 *	model_step(w, m, &c, now, choice, &want);        (m is changed in place: copy it first to go back)
 *	if (!model_agrees(w, m, &c, &want, &ans, &why)) (the answer that came is not the right one)
 *
 * A call whose answer is not known is a step whose `want` nobody compares. Its time is not known either:
 * model_times() lists the moments that make a difference.
 */
#ifndef HISTORY_MODEL_H
#define HISTORY_MODEL_H

#include "core/answer.h"
#include "core/request.h"

/* --- names --------------------------------------------------------------------------------------- */

/* Each kind has its own numbers, from 1 on; 0 is none. Tasks go by their id in any case. A token is whatever
 * requests and grants show of it: its text, or what a history has in its place. */
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
/* 0: nobody has named it yet. */
uint32_t model_find(const struct model_world *w, enum model_kind kind, struct str text);
struct str model_text(const struct model_world *w, enum model_kind kind, uint32_t name);
uint32_t model_count(const struct model_world *w, enum model_kind kind);

/* --- state --------------------------------------------------------------------------------------- */

#define MODEL_DEPENDS \
	12 /* a call that would make more is the driver's mistake: model_step aborts */
#define MODEL_LABELS 4

struct model_lock {
	int64_t acquired_at, expires_at, ttl;
	uint32_t token, holder; /* holder 0: no lock */
	uint32_t manual, pad;
};

struct model_task {
	int64_t status; /* 0: not there, or removed; then only the fence counts */
	int64_t class_rank, priority;
	int64_t fence, version, attempts, abandoned;
	int64_t not_before, free_at, last_ttl;
	int64_t created_at, updated_at, started_at, first_started_at, done_at, archived_at;
	struct model_lock lock;
	/* what the last holder did, until the next acquisition */
	uint32_t last_op, last_token, last_next;
	uint32_t spelled; /* the id as it was written: MODEL_TEXT */
	uint32_t assignee, run, parent;
	uint32_t title, type, summary, reason, unblock_action;
	uint32_t labels[MODEL_LABELS];
	uint32_t depends[MODEL_DEPENDS];
};

/* The kept answer of a request id. */
struct model_kept {
	int64_t until; /* 0: none */
	uint32_t call; /* what makes it the same call */
	uint32_t answer;
};

/* One block of model_size() bytes: tasks, then kept answers, by their names' numbers. */
struct model {
	int64_t counter; /* of made ids; only in a whole world */
	uint32_t n_tasks, n_kept;
};

/* Room for all names so far; `tasks` and `requests` more for names to come. Empty queue. */
struct model *model_new(const struct model_world *w, struct arena *a, uint32_t tasks,
			uint32_t requests);
size_t model_size(const struct model *m);
struct model *model_copy(const struct model *m, struct arena *a);
/* Equal bytes are equal states: memcmp() over model_size() will do. */
bool model_eq(const struct model *a, const struct model *b);
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

/* A request with its names. `rq` is kept and must live as long. Reads are calls, too. */
struct model_call {
	const struct request *rq;
	uint32_t id, agent, run, token, new_token, request;
	uint32_t
		pass; /* the token of a lock of the whole queue that the caller holds; the caller fills it in */
	uint32_t parent, label, type;
	uint32_t depends[MODEL_DEPENDS];
	uint32_t same; /* equal: the same call again (for request ids) */
};

struct model_call model_call_of(struct model_world *w, const struct request *rq);
/* The id that it is about: the request's, or that of the emergency. */
struct str model_about(const struct request *rq);

/* --- the queue as a whole ------------------------------------------------------------------------ */

/* Its locks and the emergency are tasks without a status, which a world knows if they were named: all or none of
 * model_guard(1) to model_guard(MODEL_GUARDS - 1). In a world that knows none nobody is kept out. */
#define MODEL_GUARDS 6
struct str model_guard(int i);

static inline bool model_is_guard(struct str id)
{
	return str_starts(id, STR("@"));
}

/* Is it refused in an emergency? */
bool model_guarded(const struct request *rq);
/* Is it kept out by another's lock of that name? */
bool model_bars(const struct policy *p, struct str lock, const struct request *rq);

/* What a world that is not whole cannot foretell. {0} in a whole one. */
struct model_choice {
	uint32_t
		took; /* TAKE, DONE with claim_next, NEXT: the task of this world that was taken (or shown);
			 * CREATE without id: the one that was made. 0: none, or one elsewhere */
	uint32_t swept; /* took == 0: so many of the tasks that were abandoned too often, the first
			 * in order, went to Needs Help on the way: 0 to model_worn() */
};

/* Could the queue have made this id? */
bool model_makes(struct str id);
/* How many tasks this call can send to Needs Help before it comes to one elsewhere. */
uint32_t model_worn(const struct model_world *w, const struct model *m, const struct model_call *c,
		    int64_t now);

struct model_grant {
	int64_t fence, expires_at, ttl;
	uint32_t token; /* 0: not shown */
	uint32_t given; /* 0: there is no grant */
};

/* The right answer. Zeroed where nothing is said. */
struct model_answer {
	int64_t code; /* enum result; -1: this choice was not possible, throw the state away */
	int64_t now, repeated, existed, has_next, wait_ms;
	int64_t touched; /* LOCK_CLEANUP, ARCHIVE: so many tasks of this world */
	int64_t elsewhere; /* not whole, nothing taken here: a task of another world (or none, where `code`
			    * is NO_TASKS, or `next` of a claim_next if none_left) is as right */
	int64_t none_left; /* nothing here is on offer after the step */
	uint32_t id, next_id;
	uint32_t made_id; /* ID_PEEK, ID_CLAIM, in a whole world: MODEL_TEXT */
	uint32_t pad;
	struct model_task task, next;
	int64_t counts[4]; /* of the task: open_deps, canceled_deps, open_subs; 4th unused */
	int64_t next_counts[4];
	struct model_grant lock, next_lock;
};

/* Applies the call at the store's time `now`. A refusal leaves the state as it was, but for tasks that
 * were abandoned too often. */
void model_step(struct model_world *w, struct model *m, const struct model_call *c, int64_t now,
		struct model_choice choice, struct model_answer *want);

/* Is `got` the right answer? If not, `why` (may be NULL) says what differs first. `m` is the state after
 * the step: lists are compared with it. API_ERROR never agrees: whether it was applied is for the caller
 * to try. What a history may not carry (the lock's token, counts, labels) is compared where it is. */
bool model_agrees(const struct model_world *w, const struct model *m, const struct model_call *c,
		  const struct model_answer *want, const struct answer *got, struct buf *why);

/* The moments of [from, to] that decide what a step does, ascending: `from`, and each expiry, not_before,
 * free_at and end of a kept answer in between. (What a change writes down is `now` itself: updated_at,
 * acquired_at, expires_at - ttl. The caller that looks for the time of a call without an answer adds such
 * times from later answers about the task.) At most `room`; returns how many. */
size_t model_times(const struct model *m, int64_t from, int64_t to, int64_t *out, size_t room);

/* One line for people: "t1 In Progress fence 3 version 9 held by a2 (#17) until +900". */
void model_print(const struct model_world *w, const struct model *m, uint32_t task, int64_t now,
		 struct buf *out);

#endif
