/*
 * history: what was asked and what was answered, as a file that can be checked later (check.h) and attached
 * to a bug report. JSON Lines; doc/history.md has the format. No token is ever in it, only the first 16 hex
 * digits of its SHA-256.
 *
 * Every process appends to a part of its own, one write(2) for each line, so that kill -9 tears at most the
 * last line: a call without an answer. history_merge() makes one file of the parts. Times are CLOCK_MONOTONIC
 * in ns: the same for all processes of a machine.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include "core/answer.h"
#include "core/request.h"

#define HISTORY_FORMAT 1

struct history_head {
	struct str pawl, store; /* version of pawl, scheme of the store */
	uint64_t seed;
	int64_t agents, tasks;
	struct policy policy;
};

struct history;

/* A new file; -EEXIST if it is there. head NULL: one process's part. 0 or -errno. */
int history_open(struct history **out, const char *path, const struct history_head *head);
/* Before the request is sent. Its number, for history_answer(). */
uint64_t history_call(struct history *h, struct str agent, const struct request *rq);
void history_answer(struct history *h, uint64_t call, const struct answer *ans);
/* What the driver did: "kill", "stop", "continue", "skew" (by ms) and so on. agent may be empty, pid and ms 0. */
void history_event(struct history *h, const char *what, struct str agent, int64_t pid, int64_t ms);
/* A task as it is at the end, at the store's `now`; NULL: it is gone. */
void history_final(struct history *h, struct str id, int64_t now, const struct task *t);
/* 0, or the -errno of the first line that could not be written; nothing is written after it. */
int history_error(const struct history *h);
/* The same, once more; h is gone after it. */
int history_close(struct history *h);

/* Parts to one file, in order of time, calls numbered from 1. A torn last line of a part is left out. 0, or
 * -errno with the file that it is about and what is wrong with it in `why`. */
int history_merge(const char *out, const struct history_head *head, const char *const *parts,
		  size_t n, struct arena *a, struct str *why);

/* --- read back --- */

#define HISTORY_NEVER INT64_MAX

struct history_call {
	uint64_t number;
	struct str agent;
	int64_t pid, sent, answered; /* ns; answered: HISTORY_NEVER if no answer came */
	struct request *rq;          /* tokens are the 16 digits */
	struct answer *ans;          /* NULL: none; a lock's token is 16 digits as well */
};

struct history_note {
	int64_t at;
	struct str what, agent;
	int64_t pid, ms;
};

struct history_end {
	struct str id;
	int64_t at, now;
	struct task *task; /* NULL: gone */
};

struct history_log {
	struct history_head head;
	struct history_call *calls; /* in the order of the file */
	struct history_note *notes;
	struct history_end *ends;
	size_t n_calls, n_notes, n_ends;
	bool torn; /* the last line was cut off, and is left out */
	struct arena arena;
};

/* The whole file, or -EBADMSG or another -errno with the line and what is wrong with it in `why` (in the
 * log's arena). history_free() either way. */
int history_load(struct history_log *out, const char *path, struct str *why);
int history_parse(struct history_log *out, struct str bytes, struct str *why);
void history_free(struct history_log *log);

#endif
