/*
 * ledger: calls that must not be made twice, from many processes, and whether each has been made. A call's
 * number is in what it makes: a task without an id of its own, or a comment. What always holds at the end:
 *
 *  1. No number is there twice.
 *  2. What was acknowledged is there. What was answered with applied 'n' is not.
 *  3. No two claims got the same task under the same fence; tasks are Done once, under that fence.
 *  4. No call took longer than its timeout, and a little for a busy machine.
 */
#ifndef TEST_COMBINE_LEDGER_H
#define TEST_COMBINE_LEDGER_H

#include "race/kit.h"

#define QUEUES 2

/* The number that a program was given as its i-th argument. */
int ledger_option(int argc, char **argv, int i, int otherwise);
/* After kit_begin(). Makes QUEUES queues, with tasks to comment on. */
void ledger_begin(void);
/* A handle on one of the queues. */
struct queue_config ledger_config(int where, int64_t timeout_ms);
/* One call, or a claim and a `done`. false: it ended with API_ERROR. */
bool ledger_call(struct queue *q, int where, int64_t timeout_ms);
/* One that fits into a slot. */
bool ledger_comment(struct queue *q, int where, int64_t timeout_ms);
/* Reads everything back; ends the process if something does not add up. */
void ledger_judge(void);

struct ledger_counts {
	_Atomic int asked, acked, not_applied, unsure, claims;
};
const struct ledger_counts *ledger_counts(void);

/* --- at a step of the protocol -------------------------------------------------------------------- */

/* One process that comes to this step, after `skip` others have, gets the signal. */
void step_arm(const char *step, int skip, int sig);
void step_disarm(void);
/* The pid of the one that got it; 0: none yet. */
pid_t step_hit(void);
/* How often any process came to any of the steps; only counted where somebody watches. */
void step_watch(const char *step);
int step_seen(void);

#endif
