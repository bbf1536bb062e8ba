/*
 * pawl.h: a task queue with locks, from C and whatever can call C.
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
 * Codes. Every call that can fail returns one of enum pawl_code, the same numbers that are the exit codes of
 * the program. PAWL_SUCCESS is 0. What they mean is in doc/contract.md; new ones may be added.
 *
 * Text is UTF-8 and ends with a NUL. NULL for text means "not given".
 *
 * Memory. What a function gives to you through a pointer (answer, error, lock) is yours: pawl_free() or
 * pawl_lock_free(). A `const char *` that comes back belongs to the object it was asked of, and lives until
 * that is used in another call, or freed. Without memory the process ends with exit code 30, as after
 * kill -9; every store survives that.
 *
 * Threads. A struct pawl, and the locks that were taken through it, are used by one thread at a time. Any
 * number of threads may each have a struct pawl of their own, on the same queue or on others. The
 * environment may not be changed (setenv) while a call runs.
 *
 * Processes. A struct pawl does not cross fork(): the child opens its own, and leaves its parent's alone.
 *
 * Signals. Waiting for other writers uses the real-time signal SIGRTMIN+7, sent to the waiting thread only;
 * no other signal's handling is touched.
 *
 * Versions. The library is compatible as long as its soname is the same: functions, codes and members of
 * struct pawl_options are added, none is changed or taken away.
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
	PAWL_LOCK_FREE = 1,            /* only of "lock check": nobody has it */
	PAWL_USAGE = 2,                /* the call itself is wrong */
	PAWL_NO_TASKS = 10,            /* nothing is eligible now */
	PAWL_CONFLICT = 20,            /* somebody else has it, or it exists */
	PAWL_LOST_LOCK = 21,           /* the lock is not yours any more: stop working on it */
	PAWL_API_ERROR = 30,           /* the store cannot be reached, is busy, full or read-only */
	PAWL_MISCONFIGURED = 40,       /* wrong status, bad config, no queue here */
	PAWL_INCOMPLETE_SUBTASKS = 41, /* sub-tasks are still open */
	PAWL_NOT_FOUND = 44            /* no such task */
};

/* "LOST_LOCK"; "" for a number that is none of them. */
PAWL_API const char *pawl_code_name(int code);
/* "0.1.0" */
PAWL_API const char *pawl_version(void);

/* --- a queue --------------------------------------------------------------------------------- */

struct pawl;

/* Members that are NULL or 0 are found as the program finds them: from the environment, the config and the
 * folder that the process is in. Make it with PAWL_OPTIONS, so that `size` is right. */
struct pawl_options {
	size_t size;        /* sizeof(struct pawl_options) */
	const char *store;  /* URI, e.g. "sqlite:/path/queue.db" */
	const char *queue;  /* which queue of the store */
	const char *agent;  /* who is calling */
	const char *run;    /* which session of the agent */
	const char *dir;    /* as if started in that folder */
	int64_t timeout_ms; /* how long a change waits for other writers */
};

#define PAWL_OPTIONS                                          \
	{                                                     \
		sizeof(struct pawl_options), 0, 0, 0, 0, 0, 0 \
	}

/*
 * Opens the queue; it must exist (`pawl init`). options may be NULL. On success *out is to be closed; else
 * *out is NULL and, unless `error` is NULL, *error says what is wrong and is to be freed.
 */
PAWL_API int pawl_open(struct pawl **out, const struct pawl_options *options, char **error);
/* NULL is allowed. Locks that are still held stay so until they run out. */
PAWL_API void pawl_close(struct pawl *queue);

/* What was wrong with the last call on this queue, and what to do about it; "" if nothing. */
PAWL_API const char *pawl_message(const struct pawl *queue);
PAWL_API const char *pawl_hint(const struct pawl *queue);

/*
 * Any command of the program but those that are about the shell or the setup: command is its name ("create",
 * "list", "lock acquire"), arguments a JSON object with its parameters by name ({"title": "x", "label":
 * ["a", "b"], "ttl": "10m"}; also "token" and "request_id"), or NULL for none. Durations are text with a
 * unit, or a number of seconds. `pawl help COMMAND` shows the parameters.
 *
 * Unless `answer` is NULL, *answer becomes the object that the program prints with --json, in one line,
 * whatever the code; it is to be freed.
 *
 * Saved tokens work as for the program: what was claimed by this agent, run and work tree is finished
 * without naming a token.
 */
PAWL_API int pawl_call(struct pawl *queue, const char *command, const char *arguments,
		       char **answer);
PAWL_API void pawl_free(char *text);

/* --- a lock: a task that you hold --------------------------------------------------------------- */

struct pawl_lock;

/*
 * Takes the task that goes first, or a certain one. arguments: what else `next` or `claim` takes, e.g.
 * {"ttl": "5m", "label": "docs"}, or NULL. On success *out is to be freed; else it is NULL. PAWL_NO_TASKS:
 * there is nothing to do. A call whose answer was lost may be repeated.
 */
PAWL_API int pawl_next(struct pawl *queue, const char *arguments, struct pawl_lock **out);
PAWL_API int pawl_claim(struct pawl *queue, const char *id, const char *arguments,
			struct pawl_lock **out);

PAWL_API const char *pawl_lock_id(const struct pawl_lock *lock);
PAWL_API const char *pawl_lock_token(const struct pawl_lock *lock); /* the secret that proves it */
PAWL_API int64_t pawl_lock_fence(const struct pawl_lock *lock);
/* The task as it was when it was taken, as a JSON object. */
PAWL_API const char *pawl_lock_task(const struct pawl_lock *lock);
/* Seconds until it runs out, by this machine's clock and never too many; 0: it may be another's. Send a
 * heartbeat when a third of the lease is over. */
PAWL_API double pawl_lock_left(const struct pawl_lock *lock);

/*
 * What a holder does. PAWL_LOST_LOCK: it is not yours any more, and nothing was changed. All but the
 * heartbeat end the lock if they succeed; the object still has to be freed. Text may be NULL where the
 * program does not ask for it (summary of done, reason of release).
 */
PAWL_API int pawl_heartbeat(struct pawl *queue, struct pawl_lock *lock);
PAWL_API int pawl_done(struct pawl *queue, struct pawl_lock *lock, const char *summary);
PAWL_API int pawl_review(struct pawl *queue, struct pawl_lock *lock, const char *summary);
PAWL_API int pawl_fail(struct pawl *queue, struct pawl_lock *lock, const char *reason);
PAWL_API int pawl_release(struct pawl *queue, struct pawl_lock *lock, const char *reason);
/* Only forgets it; NULL is allowed. The task stays held until its lease runs out. */
PAWL_API void pawl_lock_free(struct pawl_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
