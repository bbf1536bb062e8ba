/*
 * crowd WHO fill PLACE READY [HELD]: makes a queue; the held tasks rank above the ready ones.
 *
 * crowd WHO one PLACE PROCESSES ROUNDS: in each round all processes claim one task at once.
 *
 * crowd WHO drain PLACE PROCESSES: take and finish until no task is left.
 *
 * crowd WHO chain PLACE PROCESSES: the same, with calls that finish a task and take the next one.
 *
 * crowd WHO paced PLACE PROCESSES RATE: the same, at RATE calls a second in total.
 *
 * WHO is a contender (bench.h), PLACE its file, port or URL. The last four print "calls a second,
 * granted, p50, p99 and longest wait in microseconds, granted a second".
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define READY_PRIORITY 2
#define HELD_PRIORITY 5
#define CALLS_MAX 100000 /* of one process */

/* In memory that all processes share. */
struct tape {
	atomic_int ready;
	pthread_barrier_t all;
	atomic_llong granted, broken;
	struct {
		int64_t n, began, ended;
		int64_t wait[CALLS_MAX];
	} process[];
};

static const struct contender *queue;
static struct tape *tape;
static pid_t *children;
static size_t n_children, n_processes;

/* If one process dies, the others would wait for it forever. */
static void end_children(void)
{
	for (size_t i = 0; i < n_children; i++)
		if (children[i] > 0)
			kill(children[i], SIGKILL);
}

/* A reaped child must not be killed: its pid may be reused by now. */
static void forget_child(pid_t pid)
{
	for (size_t i = 0; i < n_children; i++)
		if (children[i] == pid)
			children[i] = 0;
}

static void follow_parent(pid_t parent)
{
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != parent)
		_exit(1);
}

static const struct contender *contender_find(const char *name)
{
	static const struct contender *const all[] = {
		&contender_pawl,  &contender_alone, &contender_bare, &contender_beanstalkd,
#ifdef HAVE_HIREDIS
		&contender_redis,
#endif
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i]->name))
			return all[i];
	bench_die("there is no contender %s here", name);
}

static void note(size_t me, int64_t began)
{
	if (tape->process[me].n == CALLS_MAX)
		bench_die("more than %d calls", CALLS_MAX);
	tape->process[me].wait[tape->process[me].n++] = bench_now() - began;
}

static int timed(size_t me, int (*call)(void))
{
	int64_t began = bench_now();
	int got = call();

	note(me, began);
	return got;
}

/* In each round all start at once; the winner releases the task when all have an answer. */
static void one(size_t me, int64_t rounds)
{
	while (rounds-- > 0) {
		int64_t began;
		int got;

		pthread_barrier_wait(&tape->all);
		began = bench_now();
		got = queue->claim("b1");
		note(me, began);
		if (got)
			atomic_fetch_add(&tape->granted, 1);
		pthread_barrier_wait(&tape->all);
		if (got && !queue->release())
			atomic_fetch_add(&tape->broken, 1);
	}
}

static void drain(size_t me, int64_t unused)
{
	(void)unused;
	while (timed(me, queue->take)) {
		atomic_fetch_add(&tape->granted, 1);
		if (!timed(me, queue->done))
			atomic_fetch_add(&tape->broken, 1);
	}
}

static void chain(size_t me, int64_t unused)
{
	int more = timed(me, queue->take), done;
	int64_t began;

	(void)unused;
	while (more) {
		atomic_fetch_add(&tape->granted, 1);
		began = bench_now();
		more = queue->done_next(&done);
		note(me, began);
		if (!done)
			atomic_fetch_add(&tape->broken, 1);
	}
}

static void sleep_until(int64_t at)
{
	int64_t left = at - bench_now();

	if (left > 0)
		nanosleep(&(struct timespec){ left / 1000000000, left % 1000000000 }, NULL);
}

/* Each process has its own turns, spread evenly over its interval. */
static void paced(size_t me, int64_t rate)
{
	int64_t step = (int64_t)n_processes * 1000000000 / rate;
	int64_t at = bench_now() + step * (int64_t)me / (int64_t)n_processes;

	for (;; at += 2 * step) {
		sleep_until(at);
		if (!timed(me, queue->take))
			return;
		atomic_fetch_add(&tape->granted, 1);
		sleep_until(at + step);
		if (!timed(me, queue->done))
			atomic_fetch_add(&tape->broken, 1);
	}
}

/* One call outside the measurement: bare prepares its statements when it opens, pawl at their first
 * use. */
static void warm_up(void)
{
	if (queue->claim && queue->claim("b1") && !queue->release())
		atomic_fetch_add(&tape->broken, 1);
}

static void child(size_t me, const char *path, int start, void (*work)(size_t, int64_t), int64_t n)
{
	char c;

	queue->open(path);
	warm_up();
	atomic_fetch_add(&tape->ready, 1);
	(void)!read(start, &c, 1); /* until the parent closes its end */
	tape->process[me].began = bench_now();
	work(me, n);
	tape->process[me].ended = bench_now();
	queue->close();
	_exit(0);
}

static void report(size_t processes)
{
	int64_t began = INT64_MAX, ended = 0;
	size_t n = 0;

	for (size_t i = 0; i < processes; i++) {
		if (tape->process[i].began < began)
			began = tape->process[i].began;
		if (tape->process[i].ended > ended)
			ended = tape->process[i].ended;
		/* moves all waits into one array, which begins at the first process's and extends
		 * beyond it */
		memmove(&tape->process[0].wait[n], tape->process[i].wait,
			(size_t)tape->process[i].n * sizeof(int64_t));
		n += (size_t)tape->process[i].n;
	}
	bench_sort(tape->process[0].wait, n);
	if (atomic_load(&tape->broken))
		bench_die("%s broke its promise %lld times", queue->name,
			  (long long)atomic_load(&tape->broken));
	printf("%.1f %lld %.0f %.0f %.0f %.1f\n", (double)n * 1e9 / (double)(ended - began),
	       (long long)atomic_load(&tape->granted), bench_at(tape->process[0].wait, n, 0.5),
	       bench_at(tape->process[0].wait, n, 0.99), bench_at(tape->process[0].wait, n, 1),
	       (double)atomic_load(&tape->granted) * 1e9 / (double)(ended - began));
}

static long long crowd(const char *path, size_t processes, void (*work)(size_t, int64_t), int64_t n)
{
	size_t size = sizeof(*tape) + processes * sizeof(tape->process[0]);
	pthread_barrierattr_t shared;
	pid_t self = getpid();
	int start[2], status;

	n_processes = processes;
	tape = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tape == MAP_FAILED || pipe(start))
		bench_die("no memory or no pipe");
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&tape->all, &shared, (unsigned)processes);
	children = calloc(processes, sizeof(*children));
	if (!children || atexit(end_children))
		bench_die("no memory");
	for (size_t i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_die("cannot fork");
		if (pid == 0) {
			n_children = 0; /* the parent's children, not its own */
			follow_parent(self);
			close(start[1]);
			child(i, path, start[0], work, n);
		}
		children[n_children++] = pid;
	}
	while (atomic_load(&tape->ready) < (int)processes) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			forget_child(pid);
			bench_die("a process ended before the start");
		}
		usleep(1000);
	}
	close(start[1]);
	for (pid_t pid; (pid = wait(&status)) > 0;) {
		forget_child(pid);
		if (status)
			bench_die("a process failed");
	}
	report(processes);
	return (long long)atomic_load(&tape->granted);
}

static void fill(const char *path, int64_t ready, int64_t held)
{
	queue->create(path);
	if (held) {
		queue->fill(0, held, HELD_PRIORITY);
		queue->hold(held);
	}
	queue->fill(held, ready, READY_PRIORITY);
	queue->close();
}

static void one_winner_each(const char *path, int64_t processes, int64_t rounds)
{
	long long granted = crowd(path, (size_t)processes, one, rounds);

	if (granted != rounds)
		bench_die("%s: %lld winners in %lld rounds", queue->name, granted,
			  (long long)rounds);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		bench_die("usage: crowd WHO fill|one|drain|chain|paced PLACE N [N]");
	queue = contender_find(argv[1]);
	if (!strcmp(argv[2], "fill"))
		fill(argv[3], bench_number(argv[4]), argc > 5 ? bench_number(argv[5]) : 0);
	else if (!strcmp(argv[2], "one"))
		one_winner_each(argv[3], bench_number(argv[4]),
				argc > 5 ? bench_number(argv[5]) : 1);
	else if (!strcmp(argv[2], "drain"))
		crowd(argv[3], (size_t)bench_number(argv[4]), drain, 0);
	else if (!strcmp(argv[2], "chain") && queue->done_next)
		crowd(argv[3], (size_t)bench_number(argv[4]), chain, 0);
	else if (!strcmp(argv[2], "paced") && argc > 5)
		crowd(argv[3], (size_t)bench_number(argv[4]), paced, bench_number(argv[5]));
	else
		bench_die("neither fill, one, drain, chain nor paced: %s", argv[2]);
	return 0;
}
