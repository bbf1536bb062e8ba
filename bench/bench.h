/*
 * bench: functions that the measuring programs share. Times are nanoseconds of the monotonic clock.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

int64_t bench_now(void);
void bench_sort(int64_t *v, size_t n);
/* The percentile p (0 to 1) of sorted values, in microseconds. */
double bench_at(const int64_t *v, size_t n, double p);
/* A whole number above 0; otherwise ends the program. */
int64_t bench_number(const char *text);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * A queue to measure: pawl's own library, a minimal program on SQLite, or a server. A call returns
 * 1 if it succeeded, 0 if it was refused; a fault ends the program. A process has one of them open.
 * Operations that it does not support are NULL.
 */
struct contender {
	const char *name;
	void (*create)(const char *path);
	void (*open)(const char *path);
	void (*close)(void);
	/* Creates Ready tasks b<from+1> to b<from+n> with this priority. */
	void (*fill)(int64_t from, int64_t n, int priority);
	/* Claims `n` tasks in order, for a day, in large commits. */
	void (*hold)(int64_t n);
	int (*claim)(const char *id);
	int (*release)(void);
	int (*take)(void);
	int (*done)(void);
	/* Completes the task and claims the next one in one call. 0: there is none; *done: it was completed. */
	int (*done_next)(int *done);
};

extern const struct contender contender_pawl, contender_alone /* combine = off */, contender_bare,
	contender_redis, contender_beanstalkd;

/* For a process that makes one change and ends. Each such process reads the whole WAL at its start.
 * So this checkpoints a long WAL first, and the change begins it again. */
void bare_short_wal(const char *path);

#endif
