/*
 * pawl.h: a task queue with locks, for C and for languages that can call C.
 *
 *	struct pawl *queue;
 *	struct pawl_lock *lock;
 *
 *	if (pawl_open(&queue, NULL, NULL) == PAWL_SUCCESS) {
 *		while (pawl_next(queue, NULL, &lock) == PAWL_SUCCESS) {
 *			work(pawl_lock_task(lock));
 *			pawl_done(queue, lock, "what was done");
 *			pawl_lock_free(lock);
 *		}
 *		pawl_close(queue);
 *	}
 *
 * Codes. Every call that can fail returns one of enum pawl_code. The numbers are the exit codes of the program;
 * PAWL_SUCCESS is 0. doc/contract.md defines them. Later versions may add codes.
 *
 * Text is UTF-8 and ends with a NUL. NULL for text means "not given".
 *
 * Memory. You own each object that a function returns through a pointer (answer, error, lock): free it with
 * pawl_free() or pawl_lock_free(). A returned `const char *` belongs to the object that was passed, and is valid until
 * that object is freed or passed to another call. If memory runs out, the process exits with code 30; for the store
 * this is like kill -9, which every store survives.
 *
 * Threads. Threads share nothing but the process: each opens its own struct pawl, on the same queue or on another, and at
 * any time. Only one thread at a time may use a struct pawl and the locks that were taken through it. You may pass both on
 * to another thread with a mutex or a join in between; a lock goes with its struct pawl. Functions without a struct pawl or
 * a lock (pawl_version, pawl_code_name, pawl_free) are free for all threads. Do not change the environment (setenv) or
 * the current folder (chdir) while a call runs.
 *
 * Processes. A child of fork() must not use the struct pawl of its parent: it opens its own.
 *
 * Signals. A call that waits for other writers uses the real-time signal SIGRTMIN+7, sent only to the waiting thread.
 * The library does not change the handling of other signals.
 *
 * Versions. Libraries with the same soname are compatible: a new version may add functions, codes and members of
 * struct pawl_options, but changes and removes none.
 */
#ifndef PAWL_H
#define PAWL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#else
#define PAWL_API
#endif

enum pawl_code {
	PAWL_SUCCESS = 0,
	PAWL_LOCK_FREE = 1,      /* only from "lock check": the task is not locked */
	PAWL_USAGE = 2,          /* the call itself is wrong */
	PAWL_NO_TASKS = 10,      /* nothing is eligible now */
	PAWL_CONFLICT = 20,      /* another agent holds the lock, or the task exists already */
	PAWL_LOST_LOCK = 21,     /* you do not hold the lock: stop working on the task */
	PAWL_API_ERROR = 30,     /* the store cannot be reached, is busy, full or read-only */
	PAWL_MISCONFIGURED = 40, /* wrong status, bad config, or there is no queue here */
	PAWL_INCOMPLETE_SUBTASKS = 41, /* sub-tasks are still open */
	PAWL_NOT_FOUND = 44,           /* the task does not exist */
	PAWL_VIOLATION = 45            /* only from "audit": the event log shows a broken promise */
};

/* The name of a code, such as "LOST_LOCK"; "" if the code is unknown. */
PAWL_API const char *pawl_code_name(int code);
/* "0.2.0" */
PAWL_API const char *pawl_version(void);

/* --- a queue --------------------------------------------------------------------------------- */

struct pawl;

/* For members that are NULL or 0, the library looks where the program looks: in the environment, the config and the
 * current folder. Initialize it with PAWL_OPTIONS, so that `size` is right. */
struct pawl_options {
	size_t size;        /* sizeof(struct pawl_options) */
	const char *store;  /* URI, e.g. "sqlite:/path/queue.db" */
	const char *queue;  /* name of the queue in the store */
	const char *agent;  /* name of the calling agent */
	const char *run;    /* session of the agent */
	const char *dir;    /* act as if started in this folder */
	int64_t timeout_ms; /* how long a change waits for other writers */
};

#define PAWL_OPTIONS                                          \
	{                                                     \
		sizeof(struct pawl_options), 0, 0, 0, 0, 0, 0 \
	}

/*
 * Opens the queue, which must exist (`pawl init`). options may be NULL. On success, close *out with pawl_close(). On
 * failure *out is NULL, and *error has the message, unless `error` is NULL; free it with pawl_free().
 */
PAWL_API int pawl_open(struct pawl **out, const struct pawl_options *options, char **error);
/*
 * Makes the queue if it does not exist, as `pawl init` does, and opens it like pawl_open(). The queue is in options->dir
 * (NULL: the current folder), in a folder .pawl. options->store and options->queue choose the place of the tasks, and
 * .pawl/config records them. A queue that exists stays as it is. PAWL_MISCONFIGURED: a folder above has a queue, or this
 * folder uses another store. Since 0.2.
 */
PAWL_API int pawl_init(struct pawl **out, const struct pawl_options *options, char **error);
/* NULL is allowed. Locks that you still hold stay until they expire. */
PAWL_API void pawl_close(struct pawl *queue);

/* The error message of the last call on this queue, and a hint what to do; "" if there is none. */
PAWL_API const char *pawl_message(const struct pawl *queue);
PAWL_API const char *pawl_hint(const struct pawl *queue);

/*
 * Runs any command of the program, except those for the shell and the setup. command: its name ("create", "list",
 * "lock acquire"). arguments: a JSON object with its parameters by name ({"title": "x", "label": ["a", "b"], "ttl":
 * "10m"}; also "token", "request_id" and "if_version"), or NULL for none. A duration is text with a unit, or a number of
 * seconds. `pawl help COMMAND` shows the parameters.
 *
 * Unless `answer` is NULL, *answer becomes the object that the program prints with --json, in one line, for every
 * code. Free it with pawl_free().
 *
 * Saved tokens work as in the program: a call for a task that this agent, run and worktree claimed needs no token.
 */
PAWL_API int pawl_call(struct pawl *queue, const char *command, const char *arguments,
		       char **answer);
PAWL_API void pawl_free(char *text);

/* --- a lock: a task that you hold --------------------------------------------------------------- */

struct pawl_lock;

/*
 * pawl_next() claims the first eligible task, pawl_claim() the task `id`. arguments: other parameters of `next` or
 * `claim`, such as {"ttl": "5m", "label": "docs"}, or NULL. On success, free *out with pawl_lock_free(); otherwise it
 * is NULL. PAWL_NO_TASKS: no task is eligible now. You may repeat a call whose answer was lost.
 */
PAWL_API int pawl_next(struct pawl *queue, const char *arguments, struct pawl_lock **out);
PAWL_API int pawl_claim(struct pawl *queue, const char *id, const char *arguments,
			struct pawl_lock **out);

PAWL_API const char *pawl_lock_id(const struct pawl_lock *lock);
PAWL_API const char *pawl_lock_token(
	const struct pawl_lock *lock); /* the secret that proves that you hold the lock */
PAWL_API int64_t pawl_lock_fence(const struct pawl_lock *lock);
/* The task at the time of the claim, as a JSON object. */
PAWL_API const char *pawl_lock_task(const struct pawl_lock *lock);
/* Seconds until the lease expires, by this machine's clock; never an overestimate. 0: another agent may hold the task.
 * Send a heartbeat when a third of the lease is over. */
PAWL_API double pawl_lock_left(const struct pawl_lock *lock);

/*
 * The calls of a holder. PAWL_LOST_LOCK: you do not hold the task any more, and nothing was changed. On success, all
 * except the heartbeat end the lock; you must still free the object. Text may be NULL if the program does not require
 * it (summary of done, reason of release).
 */
PAWL_API int pawl_heartbeat(struct pawl *queue, struct pawl_lock *lock);
PAWL_API int pawl_done(struct pawl *queue, struct pawl_lock *lock, const char *summary);
PAWL_API int pawl_review(struct pawl *queue, struct pawl_lock *lock, const char *summary);
PAWL_API int pawl_fail(struct pawl *queue, struct pawl_lock *lock, const char *reason);
PAWL_API int pawl_release(struct pawl *queue, struct pawl_lock *lock, const char *reason);
/* Frees the object only; NULL is allowed. The task stays held until its lease expires. */
PAWL_API void pawl_lock_free(struct pawl_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
