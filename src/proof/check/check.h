/*
 * check: judges a recorded history. Each kind of violation is decided on its own and counted apart; what the
 * checker says is never a guess: a history of a right store is always clean, whatever was killed, stopped or
 * left unanswered in it. doc/proof/checker.md says how each is decided, and what is not.
 *
 * A history begins with an empty queue.
 */
#ifndef HISTORY_CHECK_H
#define HISTORY_CHECK_H

#include "proof/history/history.h"

enum check_kind {
	CHECK_FENCE,    /* a fence given twice, or not growing */
	CHECK_HOLDERS,  /* two live holders of a task */
	CHECK_STALE,    /* an accepted write with a stale token */
	CHECK_DONE,     /* two accepted completions for a fence */
	CHECK_LOST,     /* an acknowledged write that is not there at the end */
	CHECK_STUCK,    /* a task that is neither claimable, held, waiting nor ended */
	CHECK_TWICE,    /* a repeated call that was made again */
	CHECK_LINEAR,   /* no order of the calls explains the answers */
	CHECK_CLOCK,    /* the store's time went back */
	CHECK_CLOSED,   /* a change past another's lock of the whole queue, or an emergency */
	CHECK_SELECTED, /* NO_TASKS, or a worse task, while one was surely eligible */
	CHECK_KINDS
};

struct check_finding {
	enum check_kind kind;
	struct str task, text;             /* text: one line */
	const struct history_call **calls; /* that conflict, in order of time */
	size_t n_calls;
	struct str state; /* what led up to the calls, if they are not all; may be empty */
};

#define CHECK_SHOWN 5 /* findings kept of each kind; all are counted */

struct check_report {
	size_t counts[CHECK_KINDS];
	size_t calls, unanswered, tasks, families;
	size_t endless;   /* tasks that no line about the end tells of: then lost is not decided for
			     * them, and stuck for none */
	size_t undecided; /* families whose search was given up; neither clean nor a violation */
	struct check_finding *findings;
	size_t n_findings;
};

const char *check_kind_name(enum check_kind kind); /* "fence" */
/* The report is in `a` and points into the log. */
void history_check(const struct history_log *log, struct check_report *out, struct arena *a);
/* Sum of the counts. */
size_t check_violations(const struct check_report *r);
/* For people: counts, findings with their calls, the seed. */
void check_print(const struct check_report *r, const struct history_log *log, struct buf *out);

#endif
