/*
 * kit: what the race programs share. Real processes on one store, that of PAWL_TEST_STORE (default: SQLite,
 * in a fresh folder); every process opens its own handle after it was forked, and what they tell each other goes through shared
 * memory.
 * A program prints one line with its figures and ends with 0 if all of it adds up.
 */
#ifndef TEST_RACE_KIT_H
#define TEST_RACE_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "queue/queue.h"

/* The sanitizers make everything several times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define SCALE(normal, sanitized) (sanitized)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCALE(normal, sanitized) (sanitized)
#endif
#endif
#ifndef SCALE
#define SCALE(normal, sanitized) (normal)
#endif

#define CHECK(cond, ...)                                                               \
	do {                                                                           \
		if (!(cond)) {                                                         \
			fprintf(stderr, "%s:%d: not %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                                  \
			fputc('\n', stderr);                                           \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

/* Zeroed, seen by all processes forked later. */
void *shared_alloc(size_t n);
/* The folder, with an empty queue in it. Removed when the process that made it ends with 0. */
void kit_begin(void);
void kit_end(void);
const char *kit_uri(void);
/* The folder itself. */
const char *kit_folder(void);
/* A handle for this process. */
struct queue *kit_open(enum store_mode mode, int64_t timeout_ms);
/* The same, with what a test changes about it. */
struct queue_config kit_config(int64_t timeout_ms);
struct queue *kit_open_as(const struct queue_config *config, enum store_mode mode);
/* Runs work(arg) in a new process, which may not live longer than two minutes. */
pid_t kit_spawn(int (*work)(int), int arg);
/* Its exit code, or 1000 and the signal that ended it. */
int kit_reap(pid_t pid);
int64_t kit_ms(void);
void kit_sleep(int64_t ms);
/* false: *flag did not become `least` in time */
bool kit_await(_Atomic int *flag, int least, int64_t ms);
/* Whatever the store can find out about itself must be well. */
void kit_check_store(struct queue *q);

/* t1 to tN, of all classes and priorities. */
void kit_create(struct queue *q, int n);
/* 1 for "t1" */
int kit_number(struct str id);

/* A call whose answer must be one of those that a caller has to expect. */
void kit_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a);
struct request kit_request(enum op op, struct str id, struct str agent);

#endif
