/*
 * answer: the reply to a request, as plain data. `code` alone gives the result; the other members
 * are set only when they apply. format/answer_form.h encodes an answer.
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

/* Beside each of tasks[] in an answer to a list for people. */
struct standing {
	bool waits;     /* Ready, and not eligible now */
	struct strs on; /* some of the tasks that it waits for */
	bool more;      /* there are more of them */
};

/* Beside each of tasks[], or beside `task`: what pawl decided for this caller, so that no face has to (VIEW_CAN). */
struct allowed {
	int64_t can; /* the ways that are open to the caller: a set of WAY_BIT (core/can.h) */
	int64_t holder_can; /* the ways that are open with the token of the lock */
	int64_t position;   /* in the order of `next`, among the first ones; 0: not among them */
	struct str why;     /* of `show`: why it is next, or is not */
	int64_t live;       /* is its lock live? */
};

enum link_kind { LINK_SUB, LINK_DEPENDS, LINK_DEPENDENT, LINK_PARENT };

/* A task that another one has to do with. */
struct task_link {
	enum link_kind kind;
	struct str id, title, holder; /* holder: of a live lock */
	int64_t status;
};

/* One lock of a task, from the log. */
struct task_attempt {
	struct str agent, outcome,
		text; /* outcome: the name of the event that ended it; empty: it goes on */
	int64_t at, ended_at, fence;
};

/* The facts that `show` and the brief of a claim tell besides the task. A brief has the parent and the open dependencies
 * among links[], and history[] if the task came back. */
struct related {
	struct task_link *links;
	size_t n_links;
	int64_t more[LINK_DEPENDENT + 1]; /* how many of each kind are not in links[] */
	struct task_attempt *attempts;    /* the last ones, oldest first */
	size_t n_attempts;
	struct event *history; /* the last events before the claim, oldest first; no comments */
	size_t n_history;
};

/* Stored answers contain these numbers, so a number never changes. */
#define REPEATED_MAYBE 2 /* see queue_config.tells_resent */

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
	struct str fault; /* name of the store's fault, or why a server refused the caller */
	int64_t repeated; /* the answer of an earlier, identical call; REPEATED_MAYBE: perhaps */
	int64_t existed;  /* create --if-absent: the task existed */
	struct strs warnings;
	struct task *task, *next;
	int64_t has_next; /* the caller asked for `next`; NULL then means that there is none */
	struct grant *lock, *next_lock;
	struct task *tasks;
	size_t n_tasks; /* with VIEW_BRIEF: the other tasks that the caller holds */
	int64_t total;
	struct event *events; /* also: the last comments of a shown task, or of `next` */
	size_t n_events;
	struct candidate *candidates;
	size_t n_candidates;
	int64_t counts[STATUS_END];
	int64_t held; /* ANSWER_OVERVIEW: number of locked tasks; tasks[] may have fewer */
	/* Of a list for people and of an overview: */
	struct standing *standing;    /* one for each of tasks[]; NULL: nobody asked */
	struct allowed *allowed;      /* one for each of tasks[], else one for task */
	size_t n_allowed;             /* 0: nobody asked */
	struct related *related;      /* NULL: nobody asked */
	int64_t waiting;              /* how many of counts[READY] are not eligible now */
	bool waiting_more;            /* there are more of them than were counted */
	int64_t ended;                /* Done and Canceled tasks that the list leaves out */
	int64_t archived[STATUS_END]; /* how many of counts[] are archived */
	struct str text;              /* ANSWER_ID: the id; if `barred`: the holder of that lock */
	int64_t wait_ms; /* NO_TASKS: time until a task may become eligible; 0: none is expected. A log
			  * with expired_after: time until the next lease expires */
	struct str queue_id; /* the id of the queue, if the request had a queue_id */
	struct notice
		*changed; /* an operator changed the task over the lock of the caller; or NULL */
	struct notice *paused; /* the queue is paused, and that matters here; or NULL */
	struct notice
		*came_back; /* why the task (or `next`) is work again; or NULL. fields: the event;
				   * reason: a sentence */
	int64_t barred; /* enum typed: a lock of this kind refuses the call, for at most wait_ms */
	bool more;      /* of a page (LOG_PAGE, list with `after`): others follow. Never sent */
	/* Not made yet: the answers before it have filled the arena (arena_over). The caller makes it again with another one.
	 * Never sent. */
	bool put_off;
};

/* Removes the texts of a task, except the title, and its lists. */
void task_drop_texts(struct task *t);
/* The number of tasks[], else of `task`. */
size_t answer_tasks(const struct answer *ans);
/* Fills in a refusal. Returns code. */
enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint);
/* The refusal of a read whose answer would take more room than its reader allows. */
enum result answer_too_long(struct answer *ans);
/* The outcome of a change, the lock and the version, without texts and lists: an answer of a few KiB that its caller must
 * get, however long the whole one is. */
struct answer answer_brief(const struct answer *ans, struct arena *a);

#endif
