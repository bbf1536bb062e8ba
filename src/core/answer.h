/*
 * answer: what a request comes back as, plain data like it. `code` alone says how it ended; everything
 * else is there when it applies. format/answer.h has the forms in which it travels.
 */
#ifndef CORE_ANSWER_H
#define CORE_ANSWER_H

#include "core/event.h"
#include "core/result.h"
#include "core/task.h"

/* What a holder is told: how it is known, and for how long. */
struct grant {
	struct str token; /* only in the answer to an acquisition */
	int64_t fence, expires_at, ttl;
};

struct candidate {
	struct str id, title, why;
	int64_t eligible, place; /* place: 1 is next */
};

/* Kept answers have it by its number. */
enum answer_kind {
	ANSWER_TASK = 0,       /* one task, or none */
	ANSWER_TASKS = 1,      /* tasks[], total */
	ANSWER_EVENTS = 2,     /* events[] */
	ANSWER_LOCKS = 3,      /* tasks[] that have a lock */
	ANSWER_LOCK = 4,       /* the task's lock */
	ANSWER_CANDIDATES = 5, /* candidates[] */
	ANSWER_OVERVIEW = 6,   /* counts[], tasks[] that are held */
	ANSWER_ID = 7,         /* text */
	ANSWER_TYPED = 8       /* tasks[]: the locks of the whole queue */
};

struct answer {
	enum result code;
	enum answer_kind kind;
	int64_t now; /* the store's time */
	struct str message, hint;
	char applied;     /* API_ERROR: 'n' or '?' */
	struct str fault; /* the store's, by its name; only in the process that met it */
	int64_t repeated; /* an earlier call's answer */
	int64_t existed;  /* create --if-absent found it */
	struct strs warnings;
	struct task *task, *next;
	int64_t has_next; /* next is meant, even if NULL */
	struct grant *lock, *next_lock;
	struct task *tasks;
	size_t n_tasks;
	int64_t total;
	struct event *events; /* also: the last comments of a shown task, or of `next` */
	size_t n_events;
	struct candidate *candidates;
	size_t n_candidates;
	int64_t counts[STATUS_END];
	int64_t held;    /* of ANSWER_OVERVIEW: how many have a lock, however many are in tasks[] */
	struct str text; /* of ANSWER_ID: the id; where `barred`: the holder of that lock */
	int64_t wait_ms; /* NO_TASKS: something comes due in so long; 0: nothing in sight. Of a log with
			  * expired_after: the next lease expires then */
	struct str queue_id; /* of the queue, for a request that had one */
	int64_t barred; /* enum typed: another's lock of this kind is in the way, for wait_ms at most */
};

/* Fills in a refusal. Returns code. */
enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint);

#endif
