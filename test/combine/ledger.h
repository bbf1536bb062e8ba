/*
 * ledger: many processes make calls that must not take effect twice; the ledger checks each of
 * them. A call's number is in the thing that it creates: a task without an id of its own, or a
 * comment. At the end these always hold:
 *
 * 1. No number is there twice. 2. Every acknowledged call is there; no call that was answered with
 * applied 'n' is there. 3. No two claims got the same task under the same fence; tasks are Done
 * once, under that fence. 4. No call took longer than its timeout plus some leeway for a busy
 * machine.
 */
#ifndef TEST_COMBINE_LEDGER_H
#define TEST_COMBINE_LEDGER_H

#include "race/kit.h"
#include "store/local/gate.h"

#define QUEUES 2

/* The i-th argument of the program, a number. */
int ledger_option(int argc, char **argv, int i, int otherwise);
/* Call it after kit_begin(). Creates QUEUES queues, with tasks to comment on. */
void ledger_begin(void);
/* The configuration of a handle on one of the queues. */
struct queue_config ledger_config(int where, int64_t timeout_ms);
/* Makes one call, or a claim and a `done`. false: it ended with API_ERROR. */
bool ledger_call(struct queue *q, int where, int64_t timeout_ms);
/* Makes a comment that fits into a slot. */
bool ledger_comment(struct queue *q, int where, int64_t timeout_ms);
/* Reads everything back; ends the process if the ledger does not agree. */
void ledger_judge(void);

/* The gate or the slots of the first queue; END is "gate" or "slots". With a server, they are in $XDG_RUNTIME_DIR. */
void ledger_file(char *out, size_t room, const char *end);
/* Holds the gate of the first queue: its callers wait until ledger_leave_gate(). */
void ledger_hold_gate(struct gate *g);
void ledger_leave_gate(struct gate *g);
/* Is the data on a server, and not beside the gate? */
bool ledger_far(void);

struct ledger_counts {
	_Atomic int asked, acked, not_applied, unsure, claims;
};
const struct ledger_counts *ledger_counts(void);

/* --- signals at a step of the protocol ------------------------------------------------------------ */

/* Sends the signal to the process that comes to this step after `skip` others. */
void step_arm(const char *step, int skip, int sig);
void step_disarm(void);
/* The pid of the process that got the signal; 0: none yet. */
pid_t step_hit(void);
/* How often processes came to the steps; counted only while a test watches. */
void step_watch(const char *step);
int step_seen(void);

#endif
