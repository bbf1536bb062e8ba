/*
 * history: a record of all calls and answers, in a file that can be checked later (check/checker.h)
 * and attached to a bug report. The format is JSON Lines; doc/history.md describes it. The file
 * never contains a token, only the first 16 hex digits of its SHA-256.
 *
 * Each process appends to its own part, with one write(2) for each line. So kill -9 tears at most
 * the last line, and leaves a call without an answer. history_merge() makes one file from the
 * parts. Times are CLOCK_MONOTONIC in ns, which all processes of a machine share.
 */
#ifndef PROOF_HISTORY_HISTORY_H
#define PROOF_HISTORY_HISTORY_H

#include "base/arena.h"
#include "core/answer.h"
#include "core/request.h"

#define HISTORY_FORMAT 1

struct history_head {
	struct str pawl, store; /* version of pawl, scheme of the store */
	uint64_t seed;
	int64_t agents, tasks;
	struct policy policy;
	struct str driver; /* the command of another queue's driver; empty: a store of pawl */
};

struct history;

/* Creates a file; -EEXIST if it exists. head NULL: the file is one process's part of a history, without a head. Returns 0 or -errno. */
int history_open(struct history **out, const char *path, const struct history_head *head);
/* Call it before the request is sent. Returns the call's number, for history_answer(). */
uint64_t history_call(struct history *h, struct str agent, const struct request *rq);
void history_answer(struct history *h, uint64_t call, const struct answer *ans);
/* An action of the driver: "kill", "stop", "continue", "skew" (by ms) and so on. agent may be
 * empty; pid and ms may be 0. */
void history_event(struct history *h, const char *what, struct str agent, int64_t pid, int64_t ms);
/* A task at the end, at the store's time `now`; NULL: the task is gone. */
void history_final(struct history *h, struct str id, int64_t now, const struct task *t);
/* Returns 0, or the -errno of the first failed write; after such a failure nothing more is written. */
int history_error(const struct history *h);
/* Frees h and returns the value of history_error(). */
int history_close(struct history *h);

/* Merges parts into one file, in order of time, with calls numbered from 1. A part's torn last line
 * is left out. Returns 0, or -errno; then `why` names the file and the fault. */
int history_merge(const char *out, const struct history_head *head, const char *const *parts,
		  size_t n, struct arena *a, struct str *why);

/* --- reading ----- */

#define HISTORY_NEVER INT64_MAX

struct history_call {
	uint64_t number;
	struct str agent;
	int64_t pid, sent, answered; /* ns; answered: HISTORY_NEVER if there is no answer */
	struct request *rq;          /* tokens are replaced by their 16 digits */
	struct answer *ans;          /* NULL: no answer; the lock's token is 16 digits as well */
};

struct history_note {
	int64_t at;
	struct str what, agent;
	int64_t pid, ms;
};

struct history_end {
	struct str id;
	int64_t at, now;
	struct task *task; /* NULL: the task is gone */
};

struct history_log {
	struct history_head head;
	struct history_call *calls; /* in the order of the file */
	struct history_note *notes;
	struct history_end *ends;
	size_t n_calls, n_notes, n_ends;
	bool torn; /* the last line was cut off and ignored */
	struct arena arena;
};

/* Reads the whole file. On failure returns -EBADMSG or another -errno, and `why` (in the log's
 * arena) names the line and the fault. Call history_free() in either case. */
int history_load(struct history_log *out, const char *path, struct str *why);
int history_parse(struct history_log *out, struct str bytes, struct str *why);
void history_free(struct history_log *log);

/* --- tally ------------------------------------------------------------------------------------ */

/*
 * tally: numbers texts from 1, in the order in which they are added.
 */

struct tally {
	struct str *v; /* v[0] is unused */
	uint32_t *slots;
	uint32_t n, room;
	bool fold;           /* ignore the case of ASCII letters */
	struct arena *arena; /* owns the table; NULL: free it with tally_free() */
};

uint32_t tally_add(struct tally *t, struct str s);
uint32_t tally_find(const struct tally *t, struct str s); /* 0: not found */
void tally_free(struct tally *t);

#endif
