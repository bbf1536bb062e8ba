/*
 * kit: functions that the race programs share. Real processes work on one store, that of
 * PAWL_TEST_STORE (default: SQLite, in a new folder). Each process opens its own handle after the
 * fork; they communicate through shared memory. A program prints one line of figures and ends with
 * 0 if they add up.
 */
#ifndef TEST_RACE_KIT_H
#define TEST_RACE_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "kit/scale.h"
#include "queue/queue.h"

#define CHECK(cond, ...)                                                               \
	do {                                                                           \
		if (!(cond)) {                                                         \
			fprintf(stderr, "%s:%d: not %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                                  \
			fputc('\n', stderr);                                           \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

/* Zeroed memory that all processes forked later share. */
void *shared_alloc(size_t n);
/* Makes a folder with an empty queue. It is removed when the process that made it ends with 0. */
void kit_begin(void);
void kit_end(void);
const char *kit_uri(void);
const char *kit_folder(void);
/* A handle for this process. */
struct queue *kit_open(enum store_mode mode, int64_t timeout_ms);
/* The same handle's configuration, for tests that change it. */
struct queue_config kit_config(int64_t timeout_ms);
struct queue *kit_open_as(const struct queue_config *config, enum store_mode mode);
/* Runs work(arg) in a new process, which may live for at most two minutes. */
pid_t kit_spawn(int (*work)(int), int arg);
/* Has it ended? kit_reap() is still needed. */
bool kit_ended(pid_t pid);
/* Returns its exit code, or 1000 plus the signal that ended it. */
int kit_reap(pid_t pid);
/* Waits for all of them; ends the process, with this text, if one failed. */
void kit_reap_all(const char *what, const pid_t *pids, int n);
int64_t kit_ms(void);
void kit_sleep(int64_t ms);
/* false: *flag did not reach `least` within `ms` */
bool kit_await(_Atomic int *flag, int least, int64_t ms);
/* Runs the store's own check; it must find nothing. */
void kit_check_store(struct queue *q);

/* Creates t1 to tN, of all classes and priorities. */
void kit_create(struct queue *q, int n);
/* 1 for "t1" */
int kit_number(struct str id);

/* Makes a call; its answer must be one that a caller must expect. */
void kit_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a);
struct request kit_request(enum op op, struct str id, struct str agent);

#endif
