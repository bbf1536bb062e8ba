/*
 * answer: what a request comes back as, plain data like it. `code` alone says how it ended; everything
 * else is there when it applies. answer_json() is the one form that every face shows.
 */
#ifndef CORE_ANSWER_H
#define CORE_ANSWER_H

#include <jansson.h>

#include "base/buf.h"
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

enum answer_kind {
	ANSWER_TASK,       /* one task, or none */
	ANSWER_TASKS,      /* tasks[], total */
	ANSWER_EVENTS,     /* events[] */
	ANSWER_LOCKS,      /* tasks[] that have a lock */
	ANSWER_LOCK,       /* the task's lock */
	ANSWER_CANDIDATES, /* candidates[] */
	ANSWER_OVERVIEW,   /* counts[], tasks[] that are held */
	ANSWER_ID,         /* text */
	ANSWER_TYPED       /* tasks[]: the locks of the whole queue */
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
	int64_t held; /* of ANSWER_OVERVIEW: how many have a lock, however many are in tasks[] */
	struct str text;
	int64_t wait_ms; /* NO_TASKS: something comes due in so long; 0: nothing in sight */
	int64_t barred; /* enum typed: another's lock of this kind is in the way, for wait_ms at most */
};

/* Fills in a refusal. Returns code. */
enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint);

void answer_pack(const struct answer *ans, struct buf *out);
int answer_unpack(struct str bytes, struct answer *out, struct arena *a); /* -EBADMSG */
json_t *answer_json(const struct answer *ans, struct arena *a);

#endif
