/*
 * proof: store tests that users can run: `pawl torture` and `pawl loadtest`. They live in the
 * module pawl-proof.so, in neither the program nor the library. Commands see only this header.
 */
#ifndef PROOF_PROOF_H
#define PROOF_PROOF_H

#include "core/answer.h"
#include "core/request.h"
#include "queue/queue.h"

/* --- violations that the checker finds ---------------------------------------------------------- */

enum check_kind {
	CHECK_FENCE,   /* a fence that was given twice, or did not grow */
	CHECK_HOLDERS, /* two live holders of a task */
	CHECK_STALE,   /* an accepted write with a stale token */
	CHECK_DONE,    /* two accepted completions for a fence */
	CHECK_LOST,    /* an acknowledged write that is missing at the end */
	CHECK_STUCK,   /* a task that is not claimable, held, waiting or ended */
	CHECK_TWICE,   /* a repeated call that took effect again */
	CHECK_LINEAR,  /* no order of the calls explains the answers */
	CHECK_CLOCK,   /* the store's time went backwards */
	CHECK_CLOSED, /* a change made past another agent's lock of the whole queue, or in an emergency */
	/* NO_TASKS, or a lower-ranked task, while a better one was surely eligible */
	CHECK_SELECTED,
	CHECK_KINDS
};

/* --- torture ------------------------------------------------------------------------------------ */

#define TORTURE_CODES 64 /* room for every enum result */
#define TORTURE_AGENTS_MAX 512
#define TORTURE_TASKS_MAX 100000
#define TORTURE_ROUNDS_MAX 100000

enum torture_mode {
	TORTURE_MIX,   /* every operation, at random */
	TORTURE_DRAIN, /* take and done until nothing is left */
	TORTURE_CLAIMS /* all agents claim one task at once, round by round */
};

struct torture_figures {
	int64_t ms, left_ms; /* left_ms < 0: no time limit */
	int64_t calls, accepted, codes[TORTURE_CODES];
	int64_t claims;    /* locks granted */
	int64_t takeovers; /* claims of tasks whose lease had expired */
	int64_t done;      /* completions in the event log */
	int64_t lost;      /* changes whose answer was lost */
	int64_t repeats;   /* repeated calls that the store recognised */
	int64_t kills, stops, skews;
	int64_t longest_us; /* longest wait for an answer, without the driver's own stops */
	int64_t seen;       /* violations noticed before the check */
};

struct torture_plan {
	struct str uri;
	struct str pawl; /* version of pawl, for the history */
	enum torture_mode mode;
	int64_t agents, tasks, rounds;
	int64_t ms, calls; /* the mix ends after this time or number of calls (0 = no limit) */
	int64_t kills, stops, skews; /* totals */
	int64_t lost;                /* one answer in `lost` is lost; 0: none */
	int64_t outage_ms;           /* the run gives up if the store fails for longer */
	struct str driver;           /* the command of another queue's driver; empty: test `uri` */
	int64_t lease_ms;            /* with a driver: the lease that agents ask for */
	uint64_t seed;
	int64_t timeout_ms;
	bool relaxed;
	/* For a store behind a server: its token and certificate. NULL: the store is not behind a server. */
	const struct queue_config *access;
	struct policy served; /* the server's policy, which torture() reads; lease 0: unknown */
	/* where to keep the history; NULL: in a temporary folder, and only after a violation */
	const char *history;
	/* Called a few times a second. May be NULL. */
	void (*progress)(void *ctx, const struct torture_figures *f, const char *doing);
	void *ctx;
};

/* The checker's result. */
struct torture_verdict {
	int64_t calls, unanswered, violations, undecided;
	int64_t endless; /* as in struct check_report */
	int64_t counts[CHECK_KINDS];
	uint64_t seed;
	struct str text; /* the report for people */
};

struct torture_report {
	struct torture_figures figures;
	struct str queue;   /* the scratch queue */
	bool removed;       /* the queue is gone */
	struct str stayed;  /* why it was not removed */
	bool interrupted;   /* by a signal; the calls recorded until then were checked */
	struct str history; /* path; empty: not kept */
	/* faults noticed without the checker, such as a store that is not sound */
	struct strs faults;
	struct torture_verdict verdict;
};

/* --- the load test ------------------------------------------------------------------------------ */

#define LOAD_CALLS_MAX 100000
#define LOAD_ALL_MAX 10000000 /* processes × operations */

struct load_report {
	int64_t ms, calls, succeeded, codes[TORTURE_CODES];
	int64_t mean_us, p50_us, p95_us, p99_us, longest_us; /* from the call to its answer */
	struct str failure; /* message of the first call that failed */
	/* acknowledged changes that are missing in the queue, or changes that nobody made */
	struct strs faults;
	struct str queue;
	bool removed;
	struct str stayed; /* why it was not removed */
	bool interrupted;
};

/* --- the audit of a queue's own log --------------------------------------------------------------- */

struct item; /* queue/transfer.h */

enum audit_kind {
	AUDIT_CHAIN,   /* a line was removed, changed, moved or inserted */
	AUDIT_FENCE,   /* a fence that did not grow, or that no line granted */
	AUDIT_HOLDERS, /* a lock was granted while another one was live */
	AUDIT_LOCK,    /* a holder's call without its lock */
	AUDIT_STATUS,  /* a change of status that no operation makes */
	AUDIT_RECORD,  /* the task's record disagrees with its newest line */
	AUDIT_LINE,    /* a line that pawl did not write */
	AUDIT_KINDS
};

#define AUDIT_SHOWN 1000 /* findings kept; all are counted */

struct audit_finding {
	enum audit_kind kind;
	struct str task, text, cursor; /* cursor: of the line; empty: it is about the record */
	int64_t line, at;              /* number of the line, from 1, and its time */
};

struct audit_plan {
	struct queue *queue;
	int64_t since; /* leave out what happened before; 0: nothing */
	/* Other programs write to the store, too: their changes are not in the log. */
	bool shared;
	/* Gets every record and line, too; may be NULL. > 0 stops the audit. */
	int (*each)(void *ctx, const struct item *it);
	/* Called after some lines; may be NULL. */
	void (*progress)(void *ctx, size_t lines);
	void *ctx;
};

struct audit_report {
	int64_t lines, tasks, acquisitions; /* since plan->since */
	int64_t from;                       /* time of the first of these lines; 0: there is none */
	int64_t restarts;                   /* chains that began again: import, repair, restore */
	int64_t violations, counts[AUDIT_KINDS];
	struct audit_finding *findings; /* in the caller's arena */
	size_t n_findings;
	int stopped; /* by plan->each() */
};

/* --- the module --------------------------------------------------------------------------------- */

struct proof_ops {
	/* SUCCESS: it ran and was checked; the report has the result. Otherwise *ans says why it
	 * could not run; the report's `queue` and `removed` are valid all the same. */
	enum result (*torture)(const struct torture_plan *plan, struct torture_report *out,
			       struct answer *ans, struct arena *a);
	/* Checks a history without touching a store. USAGE if the file is not a history. */
	enum result (*check)(const char *path, struct torture_verdict *out, struct answer *ans,
			     struct arena *a);
	const char *(*kind_name)(enum check_kind kind);
	/* Was this queue left behind by a run that has ended? Looks only in the plan's store. */
	bool (*left)(const struct torture_plan *plan, struct str queue, struct arena *a);
	/* Removes a scratch queue that was left behind. */
	enum result (*remove)(const struct torture_plan *plan, struct str queue, struct answer *ans,
			      struct arena *a);
	/* Checks the event log of a queue and its records, in one snapshot. Memory grows with the number of tasks, not
	 * with that of the lines. */
	enum result (*audit)(const struct audit_plan *plan, struct audit_report *out,
			     struct answer *ans, struct arena *a);
	const char *(*audit_kind_name)(enum audit_kind kind);
	/* Runs many processes, each with its operations, on a scratch queue of the store. Uses the
	 * plan's agents (number of processes), calls (for each process), uri, timeout and progress.
	 * Results as for torture(). */
	enum result (*load)(const struct torture_plan *plan, struct load_report *out,
			    struct answer *ans, struct arena *a);
};

#endif
