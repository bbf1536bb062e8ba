#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/os.h"
#include "kit/skip.h"
#include "kit/timens.h"
#include "kit/tmp.h"

#define CONTENDERS 24

#define NOBODY 65534

static char dir[200];

static int enter(void **state)
{
	(void)state;
	alarm(120);
	return tmp_make(dir, sizeof(dir), "os") && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	char command[sizeof(dir) + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return chdir("/") || system(command);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static int gate(void)
{
	int fd = open("gate", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* A process that holds the lock for `ms`; returns once it has it. */
static pid_t holder(int64_t ms)
{
	int p[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open("gate", O_RDWR | O_CREAT, 0600);

		if (os_lock(fd, 10000) || write(p[1], "x", 1) != 1)
			_exit(1);
		usleep((useconds_t)ms * 1000);
		os_unlock(fd);
		_exit(0);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 1);
	close(p[0]);
	return pid;
}

static void finish(pid_t pid, bool kill_it)
{
	int status;

	if (kill_it)
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!kill_it)
		assert_int_equal(status, 0);
}

/* Never early. In at least one of a few tries not late either: the machine may be busy. */
static void check_timeout(int fd, int64_t timeout)
{
	for (int i = 0; i < 5; i++) {
		int64_t before = now_ms(), took;

		assert_int_equal(os_lock(fd, timeout), -ETIMEDOUT);
		took = now_ms() - before;
		assert_true(took >= timeout - 1); /* two clock readings, each rounded down to ms */
		if (took < timeout + 200)
			return;
	}
	fail_msg("waits much longer than %d ms", (int)timeout);
}

static void lock_times_out(void **state)
{
	pid_t pid = holder(60000);
	int fd = gate();
	int64_t before = now_ms();

	(void)state;
	assert_int_equal(os_lock(fd, 0), -ETIMEDOUT);
	assert_int_equal(os_lock(fd, -5), -ETIMEDOUT);
	assert_int_equal(os_lock(fd, INT64_MIN), -ETIMEDOUT);
	assert_true(now_ms() - before < 1000);
	check_timeout(fd, 1);
	check_timeout(fd, 20);
	check_timeout(fd, 150);
	close(fd);
	finish(pid, true);
}

static void lock_hands_over(void **state)
{
	int fd = gate();
	int64_t before = now_ms(), took;
	pid_t pid = holder(100);

	(void)state;
	assert_int_equal(os_lock(fd, 20000), 0);
	took = now_ms() - before;
	assert_true(took >= 99 && took < 5000);
	finish(pid, false);
	assert_int_equal(os_lock(fd, 0), 0); /* again, by the same process */
	os_unlock(fd);
	pid = holder(50);
	assert_int_equal(os_lock(fd, INT64_MAX), 0);
	os_unlock(fd);
	finish(pid, false);
	close(fd);
}

/* The kernel releases the lock of a killed process. */
static void lock_survives_kill(void **state)
{
	pid_t pid = holder(60000);
	int fd = gate();

	(void)state;
	assert_int_equal(os_lock(fd, 0), -ETIMEDOUT);
	finish(pid, true);
	assert_int_equal(os_lock(fd, 5000), 0);
	close(fd);
}

static void lock_errors(void **state)
{
	(void)state;
	assert_int_equal(os_lock(-1, 0), -EBADF);
	assert_int_equal(os_lock(-1, 100), -EBADF);
	errno = 7;
	os_unlock(-1);
	assert_int_equal(errno, 7);
}

/* One of many processes: adds one to the number in a file, which is safe only under the lock. */
static void contend(void)
{
	int fd = open("gate", O_RDWR | O_CREAT, 0600), file = open("count", O_RDWR);
	int n = 0;

	if (os_lock(fd, 60000) || pread(file, &n, sizeof(n), 0) != sizeof(n))
		_exit(1);
	usleep(1000);
	n++;
	if (pwrite(file, &n, sizeof(n), 0) != sizeof(n))
		_exit(2);
	os_unlock(fd);
	_exit(0);
}

static void lock_many(void **state)
{
	int fd = gate(), n = 0, file = open("count", O_RDWR | O_CREAT | O_TRUNC, 0600);
	pid_t pids[CONTENDERS];

	(void)state;
	assert_int_equal(write(file, &n, sizeof(n)), sizeof(n));
	assert_int_equal(os_lock(fd, 0), 0);
	for (int i = 0; i < CONTENDERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(fd); /* otherwise all would share this one lock */
			contend();
		}
	}
	usleep(100000);
	os_unlock(fd);
	for (int i = 0; i < CONTENDERS; i++)
		finish(pids[i], false);
	assert_int_equal(pread(file, &n, sizeof(n), 0), sizeof(n));
	assert_int_equal(n, CONTENDERS);
	close(file);
	close(fd);
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	ticks++;
}

/* Signals for the surrounding program neither end the wait nor get lost. */
static void lock_among_signals(void **state)
{
	struct sigaction sa = { .sa_handler = tick }, before;
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, never = { 0 };
	pid_t pid = holder(60000);
	int fd = gate();

	(void)state;
	sigaction(SIGALRM, &sa, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	check_timeout(fd, 150);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	assert_true(ticks >= 5);
	alarm(120);
	close(fd);
	finish(pid, true);
}

/* A caller that blocks all signals still gets its timeout, and gets its mask back. */
static void lock_with_signals_blocked(void **state)
{
	sigset_t all, before, after, pending;
	pid_t pid = holder(60000);
	int fd = gate();

	(void)state;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	check_timeout(fd, 50);
	pthread_sigmask(SIG_SETMASK, &before, &after);
	for (int i = 0; i < 20; i++)
		assert_int_equal(os_lock(fd, 1), -ETIMEDOUT);
	assert_int_equal(sigismember(&after, SIGRTMIN + 7), 1);
	assert_int_equal(sigismember(&after, SIGTERM), 1);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGRTMIN + 7), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGRTMIN + 7), 0);
	close(fd);
	finish(pid, true);
}

static size_t timers(void)
{
	struct arena a = { 0 };
	struct str s;
	size_t n = 0;

	if (fs_read(&a, "/proc/self/timers", 1 << 20, &s))
		skip_because("needs /proc/self/timers");
	while (s.n)
		n += str_starts(str_cut(&s, '\n'), STR("ID:"));
	arena_free(&a);
	return n;
}

static void lock_leaves_no_timer(void **state)
{
	pid_t pid;
	int fd = gate();

	(void)state;
	assert_int_equal(timers(), 0);
	pid = holder(60000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(os_lock(fd, 1), -ETIMEDOUT);
	assert_int_equal(timers(), 0);
	finish(pid, true);
	pid = holder(20);
	assert_int_equal(os_lock(fd, 10000), 0);
	assert_int_equal(timers(), 0);
	finish(pid, false);
	close(fd);
}

struct waiter {
	int64_t timeout, took;
	int result;
};

static void *wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	int fd = open("gate", O_RDWR | O_CLOEXEC);
	int64_t before = now_ms();

	w->result = os_lock(fd, w->timeout);
	w->took = now_ms() - before;
	close(fd);
	return NULL;
}

/* Each thread wakes at its own time. */
static void lock_in_threads(void **state)
{
	struct waiter w[] = {
		{ .timeout = 30 }, { .timeout = 120 }, { .timeout = 240 }, { .timeout = 60 }
	};
	pthread_t t[4];
	pid_t pid = holder(60000);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, wait_in_thread, &w[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(w[i].result, -ETIMEDOUT);
		assert_true(w[i].took >= w[i].timeout - 1);
		assert_true(w[i].took < w[i].timeout + 2000);
	}
	finish(pid, true);
}

/* Without a timer it polls. */
static void lock_without_timers(void **state)
{
	pid_t pid = holder(300), child = fork();

	(void)state;
	if (child == 0) {
		struct rlimit none = { 0, 0 };
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
		int fd = open("gate", O_RDWR);
		int64_t before = now_ms();
		timer_t timer;

		setrlimit(RLIMIT_SIGPENDING, &none);
		if (geteuid() == 0 &&
		    setresuid(NOBODY, NOBODY, NOBODY)) /* the limit does not apply to root */
			_exit(2);
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
			_exit(3);
		if (os_lock(fd, 40) != -ETIMEDOUT || now_ms() - before < 39)
			_exit(1);
		_exit(os_lock(fd, 20000) != 0);
	}
	finish(child, false);
	finish(pid, false);
}

static void clocks(void **state)
{
	int64_t wall = os_wall_ms(), boot = os_boot_ms();

	(void)state;
	assert_true(wall > INT64_C(1700000000000));
	assert_true(llabs(wall - time(NULL) * INT64_C(1000)) < 2000);
	assert_true(boot > 0);
	usleep(20000);
	assert_in_range(os_boot_ms() - boot, 19, 5000);
}

static void names(void **state)
{
	struct arena a = { 0 };
	struct str id = os_boot_id(&a);

	(void)state;
	assert_true(id.n > 0);
	assert_true(str_eq(id, str_trim(id)));
	assert_true(str_eq(id, os_boot_id(&a)));
	assert_true(os_hostname(&a).n > 0);
	arena_free(&a);
}

static void network(void **state)
{
	(void)state;
	assert_null(os_network_fs("/proc"));
	assert_null(os_network_fs("/proc/self/stat"));
	assert_null(os_network_fs("/proc/no/such/file"));
	assert_null(os_network_fs("/dev/shm"));
	/* for a path that does not exist yet, its folder decides */
	assert_ptr_equal(os_network_fs("new/file"), os_network_fs("."));
	assert_ptr_equal(os_network_fs(""), os_network_fs("."));
}

static void process_start(void **state)
{
	int64_t mine = os_process_start(getpid());
	int status;
	pid_t child;

	(void)state;
	assert_true(mine > 0);
	assert_int_equal(os_process_start(0), 0);
	assert_int_equal(os_process_start(-1), 0);
	assert_int_equal(os_process_start(INT64_MAX), 0);
	assert_int_equal(os_process_start(0x7fffffff), 0);
	assert_true(os_process_start(1) != 0);
	child = fork();
	if (child == 0) {
		int64_t before = os_process_start(getpid());

		prctl(PR_SET_NAME, ") R 1 ((x) 2", 0, 0, 0);
		_exit(before <= 0 || os_process_start(getpid()) != before);
	}
	/* a zombie: it has ended and holds nothing any more */
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(os_process_start(child), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(os_process_start(child), 0);
}

static void life(void **state)
{
	struct arena a = { 0 };
	struct str host = os_hostname(&a), boot = proc_here(&a), only_boot = os_boot_id(&a);
	int64_t pid = getpid(), start = os_process_start(pid);
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(proc_start(pid), start);
	assert_int_equal(proc_start(child), 0);
	assert_int_equal(proc_life(host, boot, pid, start), PROC_ALIVE);
	/* rounded differently elsewhere */
	assert_int_equal(proc_life(host, boot, pid, start + 1), PROC_ALIVE);
	assert_int_equal(proc_life(host, boot, pid, start + 2), PROC_DEAD);
	assert_int_equal(proc_life(host, boot, pid, start - 2), PROC_DEAD);
	assert_int_equal(proc_life(host, boot, pid, INT64_MAX), PROC_DEAD);
	assert_int_equal(proc_life(host, boot, pid, 0), PROC_UNKNOWN);
	assert_int_equal(proc_life(host, boot, child, start), PROC_DEAD);
	assert_int_equal(proc_life(host, STR("other-boot"), pid, start), PROC_DEAD);
	assert_int_equal(proc_life(host, STR("btime-1770000000"), pid, start), PROC_UNKNOWN);
	assert_int_equal(proc_life(host, STR(""), pid, start), PROC_UNKNOWN);
	/* the same boot in another pid namespace: unknown */
	assert_int_equal(proc_life(host, only_boot, child, start), PROC_UNKNOWN);
	assert_int_equal(
		proc_life(host, arena_printf(&a, "%.*s/pid:[1]", STRF(only_boot)), child, start),
		PROC_UNKNOWN);
	assert_true(proc_died_here(host, boot, child, start));
	assert_true(proc_died_here(host, boot, pid, start + 2));
	assert_false(proc_died_here(host, boot, pid, start));
	assert_false(proc_died_here(host, boot, pid, 0));
	assert_false(proc_died_here(host, STR("other-boot"), pid, start));
	assert_false(proc_died_here(host, STR("unknown/"), child, start));
	assert_false(proc_died_here(host, only_boot, child, start));
	assert_false(proc_died_here(STR("other.host"), boot, child, start));
	assert_int_equal(proc_life(STR("other.host"), boot, pid, start), PROC_UNKNOWN);
	assert_int_equal(proc_life(STR(""), boot, pid, start), PROC_UNKNOWN);
	assert_int_equal(proc_life(host, boot, 0, start), PROC_UNKNOWN);
	assert_int_equal(proc_life(host, boot, -1, start), PROC_UNKNOWN);
	arena_free(&a);
}

/* In a time namespace: is the parent alive, and is the time the same? 77: not possible here. */
static int look_from_elsewhere(int64_t boot, int64_t parent, int64_t start)
{
	struct arena a = { 0 };
	int code = 0;

	if (os_boot_ms() < boot || os_boot_ms() > boot + 60000)
		code = 1;
	if (proc_life(os_hostname(&a), proc_here(&a), parent, start) != PROC_ALIVE)
		code |= 2;
	if (!timespace_known() || timespace_offset() != 99999 * INT64_C(1000000000) + 3500000)
		code |= 4;
	arena_free(&a);
	return code;
}

static int enter_time_space(void)
{
	int64_t boot = os_boot_ms(), parent = getpid(), start = os_process_start(parent);
	int status;
	pid_t pid;

	if (!timens_for_children(99999, 3500000))
		return 77;
	if (os_boot_ms() > boot + 60000)
		return 8;
	pid = fork();
	if (pid == 0)
		_exit(look_from_elsewhere(boot, parent, start));
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void time_spaces(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(enter_time_space());
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_because("needs the right to make a time namespace");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The pids in /proc are those of another pid namespace, so they say nothing about this one. */
static int look_in_foreign_proc(int64_t outer_start)
{
	struct arena a = { 0 };
	int code = 0;

	if (os_process_start(getpid()) >= 0 || os_process_start(1) >= 0 || proc_start(getpid()))
		code = 1;
	if (proc_died_here(os_hostname(&a), proc_here(&a), getpid(), outer_start + 10))
		code |= 2;
	arena_free(&a);
	return code;
}

static int enter_pid_space(void)
{
	int64_t start = os_process_start(1);
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return 77;
	pid = fork();
	if (pid == 0)
		_exit(look_in_foreign_proc(start));
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void pid_spaces(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(enter_pid_space());
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_because("needs the right to make a pid namespace");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void watches(void **state)
{
	int fd, file;

	(void)state;
	assert_int_equal(fs_make_dirs("watched", 0700), 0);
	fd = os_watch("watched");
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable(fd, 0));
	os_watch_drain(fd); /* does not block */
	file = open("watched/f", O_WRONLY | O_CREAT, 0600);
	assert_true(readable(fd, 1000));
	os_watch_drain(fd);
	assert_false(readable(fd, 0));
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(write(file, "x", 1), 1);
		assert_int_equal(ftruncate(file, 0), 0);
	}
	assert_true(readable(fd, 1000));
	os_watch_drain(fd);
	assert_false(readable(fd, 0));
	assert_int_equal(fs_write_atomic("watched/g", STR("x"), 0600), 0);
	assert_true(readable(fd, 1000));
	close(file);
	close(fd);
	assert_int_equal(os_watch("nowhere"), -1);
	assert_int_equal(os_watch("gate"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_leaves_no_timer),
		cmocka_unit_test(lock_times_out),
		cmocka_unit_test(lock_hands_over),
		cmocka_unit_test(lock_survives_kill),
		cmocka_unit_test(lock_errors),
		cmocka_unit_test(lock_many),
		cmocka_unit_test(lock_among_signals),
		cmocka_unit_test(lock_with_signals_blocked),
		cmocka_unit_test(lock_in_threads),
		cmocka_unit_test(lock_without_timers),
		cmocka_unit_test(clocks),
		cmocka_unit_test(names),
		cmocka_unit_test(network),
		cmocka_unit_test(process_start),
		cmocka_unit_test(life),
		cmocka_unit_test(time_spaces),
		cmocka_unit_test(pid_spaces),
		cmocka_unit_test(watches),
	};

	return cmocka_run_group_tests_name("base/os", tests, enter, leave);
}
