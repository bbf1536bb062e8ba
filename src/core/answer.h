/*
 * answer: the reply to a request, as plain data. `code` alone gives the result; the other members are set
 * only when they apply. format/answer.h encodes an answer.
 */
#ifndef CORE_ANSWER_H
#define CORE_ANSWER_H

#include "core/event.h"
#include "core/result.h"
#include "core/task.h"

/* The lock that the answer grants. */
struct grant {
	struct str token; /* only in the answer to an acquisition */
	int64_t fence, expires_at, ttl;
};

struct candidate {
	struct str id, title, why;
	int64_t eligible, place; /* place: 1 is next */
};

/* Stored answers contain these numbers, so a number never changes. */
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
	char applied;     /* API_ERROR: was the change applied? 'n': no, '?': unknown */
	struct str fault; /* name of the store's fault; not passed to other processes */
	int64_t repeated; /* the answer of an earlier, identical call */
	int64_t existed;  /* create --if-absent: the task existed */
	struct strs warnings;
	struct task *task, *next;
	int64_t has_next; /* the caller asked for `next`; NULL then means that there is none */
	struct grant *lock, *next_lock;
	struct task *tasks;
	size_t n_tasks;
	int64_t total;
	struct event *events; /* also: the last comments of a shown task, or of `next` */
	size_t n_events;
	struct candidate *candidates;
	size_t n_candidates;
	int64_t counts[STATUS_END];
	int64_t held;    /* ANSWER_OVERVIEW: number of locked tasks; tasks[] may have fewer */
	struct str text; /* ANSWER_ID: the id; if `barred`: the holder of that lock */
	int64_t wait_ms; /* NO_TASKS: time until a task may become eligible; 0: none is expected. A log
			  * with expired_after: time until the next lease expires */
	struct str queue_id; /* the id of the queue, if the request had a queue_id */
	int64_t barred; /* enum typed: a lock of this kind refuses the call, for at most wait_ms */
};

/* Fills in a refusal. Returns code. */
enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint);

#endif
