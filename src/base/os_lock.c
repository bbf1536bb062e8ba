/* Locks between processes: flock with a timeout, locks on single bytes, and words to sleep on. The
 * kernel releases the locks when a process ends, so a crash never leaves a queue locked. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#ifndef __APPLE__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "base/os.h"

#define NANO INT64_C(1000000000)

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NANO, .tv_nsec = ns % NANO };
}

/* flock, restarted after interruptions: 0, -EWOULDBLOCK, another -errno. */
static int try_lock(int fd)
{
	int r;

	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

/* Polls on systems that have no timer to interrupt a blocking flock(). */
static int lock_polling(int fd, int64_t deadline)
{
	const int64_t longest = 5000000;
	int64_t pause = 100000;

	for (;;) {
		int64_t left = deadline - os_monotonic_ns();
		int r = try_lock(fd);
		struct timespec ts;

		if (r != -EWOULDBLOCK)
			return r;
		if (left <= 0)
			return -ETIMEDOUT;
		ts = to_timespec(pause < left ? pause : left);
		nanosleep(&ts, NULL);
		pause = pause * 2 < longest ? pause * 2 : longest;
	}
}

#ifdef __APPLE__
static int lock_waiting(int fd, int64_t deadline)
{
	return lock_polling(fd, deadline);
}
#else
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* SIGALRM and its one timer belong to the surrounding program. No known program uses this
 * signal. */
#define LOCK_SIGNAL (SIGRTMIN + 7)

static void do_nothing(int number)
{
	(void)number;
}

/* Does not set SA_RESTART, because the signal must interrupt flock(). */
static void install_handler(void)
{
	struct sigaction sa = { .sa_handler = do_nothing };

	sigemptyset(&sa.sa_mask);
	sigaction(LOCK_SIGNAL, &sa, NULL);
}

/* Signals this thread at the deadline and every few ms after it. The first signal may come just
 * before flock starts to sleep, and would be lost. */
static int start_timer(timer_t *timer, int64_t deadline)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = LOCK_SIGNAL };
	struct itimerspec times = {
		.it_value = to_timespec(deadline),
		.it_interval = to_timespec(5000000),
	};

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, timer))
		return -errno;
	if (timer_settime(*timer, TIMER_ABSTIME, &times, NULL)) {
		int err = errno;

		timer_delete(*timer);
		return -err;
	}
	return 0;
}

static int lock_until(int fd, int64_t deadline)
{
	for (;;) {
		if (flock(fd, LOCK_EX) == 0)
			return 0;
		if (errno != EINTR)
			return -errno;
		if (os_monotonic_ns() >= deadline)
			return -ETIMEDOUT;
	}
}

static int lock_waiting(int fd, int64_t deadline)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t ours, before;
	timer_t timer;
	int r;

	pthread_once(&once, install_handler);
	if (start_timer(&timer, deadline))
		return lock_polling(fd, deadline);
	sigemptyset(&ours);
	sigaddset(&ours, LOCK_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &ours, &before);
	r = lock_until(fd, deadline);
	/* Delete the timer first, so that no signal is pending when the mask is restored. */
	timer_delete(timer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
#endif

int os_lock(int fd, int64_t timeout_ms)
{
	const int64_t longest = INT64_C(1) << 40; /* ms; the sum below cannot overflow */
	int r = try_lock(fd);

	if (r != -EWOULDBLOCK)
		return r;
	if (timeout_ms <= 0)
		return -ETIMEDOUT;
	if (timeout_ms > longest)
		timeout_ms = longest;
	return lock_waiting(fd, os_monotonic_ns() + timeout_ms * 1000000);
}

void os_unlock(int fd)
{
	int err = errno;

	while (flock(fd, LOCK_UN) && errno == EINTR)
		;
	errno = err;
}

#ifdef __APPLE__
int os_own_byte(int fd, int64_t at)
{
	(void)fd, (void)at;
	return -ENOSYS;
}

int os_share_byte(int fd, int64_t at)
{
	return os_own_byte(fd, at);
}

void os_leave_byte(int fd, int64_t at)
{
	(void)fd, (void)at;
}

bool os_byte_shared(int fd, int64_t at)
{
	(void)fd, (void)at;
	return false;
}

void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
	(void)word, (void)seen, (void)ms;
	usleep(1000);
}

void os_word_wake(_Atomic uint32_t *word)
{
	(void)word;
}

void os_word_wake_all(_Atomic uint32_t *word)
{
	(void)word;
}
#else
static int byte_lock(int fd, int64_t at, short type)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &range) ? -errno : 0;
}

int os_own_byte(int fd, int64_t at)
{
	return byte_lock(fd, at, F_WRLCK);
}

int os_share_byte(int fd, int64_t at)
{
	return byte_lock(fd, at, F_RDLCK);
}

void os_leave_byte(int fd, int64_t at)
{
	(void)byte_lock(fd, at, F_UNLCK);
}

bool os_byte_shared(int fd, int64_t at)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
	struct timespec timeout = to_timespec(ms * 1000000);

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

void os_word_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void os_word_wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
#endif
