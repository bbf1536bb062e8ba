/*
 * torture: does a store keep the promise of exactly one? Agents as real processes work on a scratch queue
 * of the store, are killed, stopped, told a wrong time and cut off from answers, and everything they asked
 * and were told is recorded and checked (proof/check/check.h).
 *
 * Only the scratch queue is touched. It is removed at the end, whatever happens; if that cannot be done, the
 * report has its name.
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include "core/answer.h"
#include "core/request.h"
#include "proof/check/check.h"

#define TORTURE_QUEUE "torture-" /* how the name of a scratch queue begins */
#define TORTURE_CODES 64         /* room for every enum result */
#define TORTURE_AGENTS_MAX 512
#define TORTURE_TASKS_MAX 100000
#define TORTURE_ROUNDS_MAX 100000

enum torture_way {
	TORTURE_MIX,   /* every operation, at random */
	TORTURE_DRAIN, /* take and done until nothing is left */
	TORTURE_CLAIMS /* all claim one task at once, round by round */
};

struct torture_figures {
	int64_t ms, left_ms; /* left_ms < 0: until the work is done */
	int64_t calls, accepted, codes[TORTURE_CODES];
	int64_t claims;    /* locks given */
	int64_t takeovers; /* of those, over a lease that had run out */
	int64_t done;      /* completions, by the log */
	int64_t lost;      /* changes whose answer was lost */
	int64_t repeats;   /* repeated calls that were recognised */
	int64_t kills, stops, skews;
	int64_t longest_us; /* wait for an answer, own stops aside */
	int64_t seen;       /* violations that were plain to see before the check */
};

struct torture_plan {
	struct str uri;
	struct str pawl; /* its version, for the history */
	enum torture_way way;
	int64_t agents, tasks, rounds;
	int64_t ms, calls; /* the mix ends after so long, or so many calls (0: no limit) */
	int64_t kills, stops, skews; /* in all */
	int64_t lost;                /* one answer in so many; 0: none */
	uint64_t seed;
	int64_t timeout_ms;
	bool relaxed;
	const char *
		history; /* where it is kept; NULL: only after a violation, in a temporary folder */
	/* A few times a second. May be NULL. */
	void (*progress)(void *ctx, const struct torture_figures *f, const char *doing);
	void *ctx;
};

/* What the checker found. */
struct torture_verdict {
	int64_t calls, unanswered, violations, undecided;
	int64_t endless; /* as in struct check_report */
	int64_t counts[CHECK_KINDS];
	uint64_t seed;
	struct str text; /* for people */
};

struct torture_report {
	struct torture_figures figures;
	struct str queue;   /* the scratch queue */
	bool removed;       /* it is gone */
	struct str stayed;  /* else why not */
	bool interrupted;   /* by a signal: what was recorded until then was checked */
	struct str history; /* empty: not kept */
	struct strs faults; /* what was seen without the check, such as a store that is not sound */
	struct torture_verdict verdict;
};

/* SUCCESS: it ran and was checked, and the report says how it went. Else why it could not, in *ans; the
 * report's queue and `removed` count all the same. */
enum result torture_run(const struct torture_plan *plan, struct torture_report *out,
			struct answer *ans, struct arena *a);
/* Judges a history and touches no store. USAGE if the file is none. */
enum result torture_check(const char *path, struct torture_verdict *out, struct answer *ans,
			  struct arena *a);
/* Was this queue left behind by a run that has ended? Only the plan's store counts. */
bool torture_left(const struct torture_plan *plan, struct str queue, struct arena *a);
/* Removes a scratch queue that was left behind. */
enum result torture_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a);

#endif
