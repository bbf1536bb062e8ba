/*
 * task: one piece of work, as data. Times are ms since 1970 on the store's clock, durations are ms;
 * 0: not set. A task has a lock if and only if lock.holder is not empty.
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include "base/arena.h"

/* Records contain these numbers, so a number never changes. test/unit/core_numbers.c pins all
 * stored numbers. */
enum status {
	BACKLOG = 1,
	READY = 2,
	IN_PROGRESS = 3,
	BLOCKED = 4,
	NEEDS_HELP = 5,
	REVIEW = 6,
	DONE = 7,
	FAILED = 8,
	CANCELED = 9,
	STATUS_END
};

#define STATUS_BIT(s) (1u << (s))
/* Statuses that still need attention. A Failed task is open, because a person must decide about
 * it. */
#define STATUS_OPEN (STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)))
#define STATUS_ENDED (STATUS_BIT(DONE) | STATUS_BIT(FAILED) | STATUS_BIT(CANCELED))
#define STATUS_ALL (STATUS_BIT(STATUS_END) - STATUS_BIT(BACKLOG))

/* Records contain these numbers, too. */
enum class_rank { EXPEDITE = 1, FIXED_DATE = 2, STANDARD = 3, INTANGIBLE = 4, CLASS_END };

#define PRIORITY_MAX 1000
#define PRIORITY_DEFAULT 2
#define ID_MAX 128
#define ID_NUMBER_MAX INT64_C(1000000000000000)
#define TITLE_MAX 500
#define TEXT_MAX (256 * 1024)
/* limit of names: agent, run, label, type */
#define NAME_MAX_BYTES 200
#define LABELS_MAX 256
#define DEPENDS_MAX 1000
/* Limit of values in `extra`: parsed JSON can need a hundred times the memory of its text. */
#define EXTRA_VALUES_MAX 10000
/* Limit of nested lists and objects in `extra`, itself included, because JSON parsers limit the
 * depth, too. */
#define EXTRA_LEVELS_MAX 64
/* Every JSON parser represents integers up to this limit exactly. */
#define EXACT_MAX (INT64_C(1) << 53)
/* The counters of an imported task must stay this far below EXACT_MAX, so that they can grow. */
#define EXACT_ROOM (INT64_C(1) << 20)
/* The decoder rejects a record with more entries before it allocates memory for them. */
#define LIST_UNPACK_MAX 20000

/* Is the holder's process still running? A reader on the same host can find out. */
enum lock_life { LIFE_NOT_CHECKED = 0, LIFE_UNKNOWN = 1, LIFE_ALIVE = 2, LIFE_DEAD = 3 };

struct lock {
	struct str holder, host;
	struct str token; /* SHA-256, raw; empty: a foreign lock */
	int64_t acquired_at, expires_at, ttl;
	int64_t manual;  /* taken by `lock acquire` */
	int64_t foreign; /* written by another program: live without a token */
	int64_t pid, pid_start;
	struct str boot_id;
	struct str user, operation; /* only for a queue lock */
	struct str mode; /* how it was taken: cli, interactive or server; empty: unknown */
	int64_t life;    /* enum lock_life; readers set it; never stored */
};

struct last {
	int64_t op; /* enum op; 0: none */
	struct str token, next;
};

/* An operator's action and its reason: a change over a holder's lock, or a pause of the queue. */
struct notice {
	struct str by, reason;
	struct strs fields; /* for a change: the fields changed since the lock was taken */
	struct str token;   /* for a change: SHA-256 of that lock's token */
	int64_t at;
};

struct task {
	struct str id, title, description, acceptance, parent, extra;
#define PLAIN(tag, part, name, limit, argument, help) struct str name;
#include "core/task.def"
	struct strs labels, depends;
	int64_t status, class_rank, priority;
	int64_t due, not_before, next_check;
	int64_t open_deps, canceled_deps,
		open_subs;      /* stored, so that a claim need not count them */
	struct str assignee;    /* the agent that is planned to do it */
	struct str last_holder; /* the latest lock's holder, even after that lock was cleared */
	struct str run, blocker_reason, unblock_action, summary;
	int64_t attempts, abandoned, fence, version;
	int64_t created_at, updated_at, started_at, first_started_at, done_at, archived_at;
	struct lock lock;
	struct last last;
	int64_t last_ttl;        /* ttl of the latest lock */
	int64_t last_expires_at; /* expiry of the latest lock, after it was cleared */
	int64_t free_at; /* In Progress without a lock: other agents may claim it from this time on */
	struct notice over;
	struct str
		chain; /* the hash of the newest event about it; empty: the next one starts a chain */
};

const char *status_name(int64_t s);
/* Ignores case; words may be joined, or separated by ' ', '-' or '_'. Knows the names of other
 * programs, such as TODO. 0: not a status. */
enum status status_parse(struct str text);
const char *class_name(int64_t rank);
enum class_rank class_parse(struct str text);       /* 0: not a class */
bool priority_parse(struct str text, int64_t *out); /* 0 to 1000, high, medium, low */

/* NULL if the text is a valid id, else the fault. */
const char *id_fault(struct str id);
/* For queues with numbered tasks: turns 109 and 10_2 into t109 and t10_2, and keeps other ids. */
struct str id_numbered(struct arena *a, struct str id);
/* The number in t109 or t109_2; -1: the id has none. */
int64_t id_number(struct str id);
/* A title for a task that has none: the first line of its description, else its id. */
struct str title_from(struct str description, struct str id);
/* "task/" and the id in lower case: one key for all spellings of an id. */
struct str task_key(struct arena *a, struct str id);

static inline bool status_ended(int64_t s)
{
	return s == DONE || s == CANCELED;
}

#endif
