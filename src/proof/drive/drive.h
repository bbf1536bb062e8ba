/*
 * drive: a torture of any queue, through a command that speaks five verbs on its standard input and output
 * (doc/proof/drivers.md). The run records the same history as a torture of a store, and the same checker decides.
 *
 * One process runs all agents: each has a child process of the command, and at most one call that waits for its answer.
 * So a call's recorded times enclose the real ones: it is recorded before its line is written, and its answer after its
 * line was read.
 */
#ifndef PROOF_DRIVE_DRIVE_H
#define PROOF_DRIVE_DRIVE_H

#include "proof/proof.h"

/* Results as for torture_run(). There is no scratch queue: the command keeps its tasks in a folder of this run. */
enum result drive_run(const struct torture_plan *plan, struct torture_report *out,
		      struct answer *ans, struct arena *a);

/* --- lines ------------------------------------------------------------------------------------ */

/*
 * drive_line: the lines of the protocol. A line comes from another program, so it is checked to its last byte.
 */

#define DRIVE_LINE_MAX 4096 /* bytes of an answer, with its newline */
#define DRIVE_ID_MAX 200    /* bytes of a task's id */

enum drive_verb { DRIVE_CREATE, DRIVE_NEXT, DRIVE_HEARTBEAT, DRIVE_DONE, DRIVE_SHOW };
enum drive_word { DRIVE_OK, DRIVE_NONE, DRIVE_REPEATED, DRIVE_REFUSED, DRIVE_GONE, DRIVE_ERROR };
enum drive_state { DRIVE_OPEN, DRIVE_HELD, DRIVE_ENDED };

struct drive_answer {
	enum drive_word word;
	struct str id, why;
	int64_t fence;          /* 0: the queue has none */
	int64_t lease;          /* in ms; 0: the lock has no time limit */
	bool renews;            /* the driver renews the lease by itself */
	enum drive_state state; /* of a task that `show` shows */
};

const char *drive_verb_name(enum drive_verb verb);
/* The answers that the verb may have, for messages. */
const char *drive_expected(enum drive_verb verb);
/* Reads one line without its newline; false: it is not an answer to this verb. *out borrows the line. */
bool drive_parse(enum drive_verb verb, struct str line, struct drive_answer *out);
/* Splits a command into words as a shell does, but expands nothing. NULL: `why` says what is wrong. */
char *const *drive_split(struct str command, struct arena *a, const char **why);

#endif
