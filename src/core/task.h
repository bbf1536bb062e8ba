/*
 * task: one piece of work, as data. Times are ms since 1970 on the store's clock, durations ms; 0 is none.
 * A task has a lock if and only if lock.holder is not empty.
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include "base/arena.h"

/* In records, by its number; test/unit/core_numbers.c pins this and every other number that is kept. */
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
#define STATUS_ALL (STATUS_BIT(STATUS_END) - STATUS_BIT(BACKLOG))

/* In records, too. */
enum class_rank { EXPEDITE = 1, FIXED_DATE = 2, STANDARD = 3, INTANGIBLE = 4, CLASS_END };

#define PRIORITY_MAX 1000
#define PRIORITY_DEFAULT 2
#define ID_MAX 128
#define ID_NUMBER_MAX INT64_C(1000000000000000)
#define TITLE_MAX 500
#define TEXT_MAX (256 * 1024)
/* for names: agent, run, label, type, effort */
#define NAME_MAX_BYTES 200
#define LABELS_MAX 256
#define DEPENDS_MAX 1000
/* Values in `extra`: a short text can be JSON that takes a hundred times its size in memory. */
#define EXTRA_VALUES_MAX 10000
/* Every reader of JSON knows numbers up to here exactly. */
#define EXACT_MAX (INT64_C(1) << 53)
/* The least that a counter of a task that comes in has left before it is there. */
#define EXACT_ROOM (INT64_C(1) << 20)
/* Older versions had no limit for the length of a list or for an `extra` that grows: up to here they are read. */
#define LIST_READ_MAX 2000
/* A record with more is damaged: nobody needs the memory to count them. */
#define LIST_UNPACK_MAX 20000
#define EXTRA_READ_MAX (1024 * 1024)

/* Does the process that a lock names still run? As far as one can tell from here, where somebody looked. */
enum lock_life { LIFE_NOT_LOOKED = 0, LIFE_UNKNOWN = 1, LIFE_ALIVE = 2, LIFE_DEAD = 3 };

struct lock {
	struct str holder, host;
	struct str token; /* SHA-256, raw; empty: another program's lock */
	int64_t acquired_at, expires_at, ttl;
	int64_t manual;  /* taken by `lock acquire` */
	int64_t foreign; /* written by another program: live without a token */
	int64_t pid, pid_start;
	struct str boot_id;
	struct str user, operation; /* of a lock of the whole queue */
	int64_t life;               /* enum lock_life; of those who only read, never stored */
};

struct last {
	int64_t op; /* enum op; 0: none */
	struct str token, next;
};

struct task {
	struct str id, title, description, acceptance, type, effort, parent, extra;
	struct strs labels, depends;
	int64_t status, class_rank, priority;
	int64_t due, not_before, next_check;
	int64_t open_deps, canceled_deps, open_subs; /* kept, so that nobody has to count */
	struct str assignee, run, blocker_reason, unblock_action, summary;
	int64_t attempts, abandoned, fence, version;
	int64_t created_at, updated_at, started_at, first_started_at, done_at, archived_at;
	struct lock lock;
	struct last last;
	int64_t last_ttl; /* of the latest lock */
	int64_t free_at;  /* In Progress without a lock: others may take it from here on */
};

const char *status_name(int64_t s);
/* In any case, with space, '-' or '_'; TODO, pending, Implementing, Postponed as well. 0: no status. */
enum status status_parse(struct str text);
const char *class_name(int64_t rank);
enum class_rank class_parse(struct str text);       /* 0: no class */
bool priority_parse(struct str text, int64_t *out); /* 0 to 1000, high, medium, low */

/* NULL if it may be an id, else what is wrong with it. */
const char *id_fault(struct str id);
/* Where tasks are numbered: 109 and 10_2 are t109 and t10_2. Others stay as they are. */
struct str id_numbered(struct arena *a, struct str id);
/* The number in t109 or t109_2; -1: it has none. */
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
