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
	struct str token; /* only the answer to an acquisition has it */
	int64_t fence, expires_at, ttl;
};

struct candidate {
	struct str id, title, why;
	int64_t eligible, place; /* place: 1 is next */
};

/* One for each of tasks[], in the answer to a list for people. */
struct standing {
	bool waits;     /* the task is Ready but not eligible now */
	struct strs on; /* some of the tasks that it is waiting for */
	bool more;      /* there are more of them */
};

/* One for each of tasks[], or one for `task` (VIEW_CAN). It says what this caller may do, so user
 * interfaces need no rules of their own. */
struct allowed {
	int64_t can;        /* the caller's open actions: a set of ACTION_BIT (core/role.h) */
	int64_t holder_can; /* the actions that are open with the lock's token */
	int64_t position;   /* place in the order of `next`; 0: not among the first ones */
	struct str why;     /* for `show`: the reason why it is next or is not */
	int64_t live;       /* 1: its lock is live */
};

enum link_kind { LINK_SUB, LINK_DEPENDS, LINK_DEPENDENT, LINK_PARENT };

/* A task that is related to the answer's task. */
struct task_link {
	enum link_kind kind;
	struct str id, title, holder; /* holder: empty unless its lock is live */
	int64_t status;
};

/* One agent's time with the task's lock, reconstructed from the log. */
struct task_attempt {
	struct str agent, outcome,
		text; /* outcome: name of the event that ended it; empty: not over yet */
	int64_t at, ended_at, fence;
};

/* The facts that `show` and a claim's brief add to the task. In a brief, links[] includes the
 * parent and the open dependencies, and history[] is set if the task came back. */
struct related {
	struct task_link *links;
	size_t n_links;
	int64_t more[LINK_DEPENDENT + 1]; /* number of links of each kind that links[] omits */
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
	int64_t repeated; /* an earlier, identical call had this answer; REPEATED_MAYBE: perhaps */
	int64_t existed;  /* create --if-absent: the task existed */
	struct strs warnings;
	struct task *task, *next;
	int64_t has_next; /* the caller asked for `next`; if it is NULL, there is none */
	struct grant *lock, *next_lock;
	struct task *tasks;
	size_t n_tasks; /* with VIEW_BRIEF: the other tasks that the caller holds */
	int64_t total;
	struct event *events; /* also: the last comments on a shown task or on `next` */
	size_t n_events;
	struct candidate *candidates;
	size_t n_candidates;
	int64_t counts[STATUS_END];
	int64_t held; /* ANSWER_OVERVIEW: number of locked tasks; tasks[] may have fewer */
	/* Members that only a list for people and an overview have: */
	struct standing *standing;    /* one for each of tasks[]; NULL: nobody asked */
	struct allowed *allowed;      /* one for each of tasks[], else one for task */
	size_t n_allowed;             /* 0: nobody asked */
	struct related *related;      /* NULL: nobody asked */
	int64_t waiting;              /* number of Ready tasks that are not eligible now */
	bool waiting_more;            /* the count stopped early: more are waiting */
	int64_t ended;                /* Done and Canceled tasks that the list leaves out */
	int64_t archived[STATUS_END]; /* the archived tasks among counts[] */
	struct str text;              /* ANSWER_ID: the id; if `barred`: that lock's holder */
	int64_t wait_ms; /* NO_TASKS: time until a task may become eligible; 0: none is expected. A log
			  * with expired_after: time until the next lease expires */
	struct str queue_id;    /* the queue's id, if the request had a queue_id */
	struct notice *changed; /* an operator changed the task over the caller's lock; or NULL */
	struct notice *paused;  /* the queue is paused, which concerns this call; or NULL */
	struct notice
		*came_back; /* why the task (or `next`) is work again; or NULL. fields: the event;
				   * reason: a sentence */
	struct notice
		*undone; /* undo: the change that was taken back (reason: its operation); or NULL */
	int64_t barred;  /* enum typed: a lock of this kind refuses the call, for at most wait_ms */
	bool more;       /* more follow this page (LOG_PAGE, list with `after`). Never sent */
	/* This answer was not made, because earlier answers have filled the arena (arena_over). The
	 * caller makes it again with another arena. Never sent. */
	bool put_off;
};

/* Removes a task's texts, except the title, and its lists. */
void task_drop_texts(struct task *t);
/* The number of tasks in the answer: n_tasks, else 1 if `task` is set. */
size_t answer_tasks(const struct answer *ans);
/* Fills in a refusal. Returns code. */
enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint);
/* Refuses a read whose answer would be longer than its reader allows. */
enum result answer_too_long(struct answer *ans);
/* A change's result, lock and version, without texts and lists. The change was made, so its
 * caller must get these few KiB even if the whole answer is too long. */
struct answer answer_brief(const struct answer *ans, struct arena *a);

#endif
