/*
 * check: decides whether a recorded history breaks a promise. It counts each kind of violation separately. It
 * never guesses: the history of a correct store is always clean, even if agents were killed or
 * stopped, or calls got no answer. doc/proof/checker.md says how each kind is decided, and what the
 * checker cannot decide.
 *
 * A history begins with an empty queue.
 */
#ifndef PROOF_CHECK_CHECKER_H
#define PROOF_CHECK_CHECKER_H

#include "proof/history/history.h"
#include "proof/proof.h"

struct check_finding {
	enum check_kind kind;
	struct str task, text;             /* text: one line */
	const struct history_call **calls; /* the calls that conflict, in order of time */
	size_t n_calls;
	/* the state before the calls, if they are not the whole story; may be empty */
	struct str state;
};

#define CHECK_SHOWN 5 /* findings kept of each kind; all are counted */

struct check_report {
	size_t counts[CHECK_KINDS];
	size_t calls, unanswered, tasks, families;
	/* tasks without a line about their end: `lost` is not decided for them, and `stuck` is not
	 * decided for any task */
	size_t endless;
	size_t undecided; /* families whose search gave up: neither clean nor a violation */
	struct check_finding *findings;
	size_t n_findings;
};

const char *check_kind_name(enum check_kind kind); /* "fence" */
/* The report is in `a` and points into the log. */
void history_check(const struct history_log *log, struct check_report *out, struct arena *a);
/* The sum of the counts. */
size_t check_violations(const struct check_report *r);
/* proof/proof.h says what they do. */
enum result audit_queue(const struct audit_plan *plan, struct audit_report *out, struct answer *ans,
			struct arena *a);
const char *audit_kind_name(enum audit_kind kind); /* "chain" */
/* Prints for people: the counts, the findings with their calls, the seed. */
void check_print(const struct check_report *r, const struct history_log *log, struct buf *out);

#endif
