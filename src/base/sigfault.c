/* Keeps two signals from killing the process. SIGBUS: another process truncated a mapped file; the
 * reader gets zeros, and the range is marked as torn. SIGXFSZ: a write beyond the file size limit
 * fails with EFBIG. A SIGBUS outside the guarded ranges goes to the handler that the program had
 * before. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sigfault.h"

#define ROOM 256

/* The signal handler may read these at any time, so `at` is set last and cleared first. */
struct bus {
	_Atomic uintptr_t at; /* 0: free */
	_Atomic size_t n;
	_Atomic int torn;
	int guards;
};

static struct bus table[ROOM];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page;

static struct bus *sigbus_find(uintptr_t at)
{
	for (struct bus *b = table; b < table + ROOM; b++) {
		uintptr_t start = b->at;

		if (start && at >= start && at - start < b->n)
			return b;
	}
	return NULL;
}

static bool sigbus_repair(struct bus *b, uintptr_t at)
{
	void *from = (void *)(at & ~(page - 1)); /* NOLINT: an address from the kernel */

	if (mmap(from, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return false;
	b->torn = 1;
	return true;
}

/* Hands the signal to the previous handler. Without one, a fault ends the process when its
 * instruction runs again. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else if (info->si_code > 0 || before.sa_handler == SIG_DFL) {
		signal(number, SIG_DFL);
		if (info->si_code <= 0)
			raise(number);
	}
}

static void on_bus(int number, siginfo_t *info, void *context)
{
	int err = errno;
	struct bus *b = info->si_code > 0 ? sigbus_find((uintptr_t)info->si_addr) : NULL;

	if (!b || !sigbus_repair(b, (uintptr_t)info->si_addr))
		pass_on(number, info, context);
	errno = err;
}

static void sigbus_install(void)
{
	struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, &before);
}

/* If the library is unloaded, its handler must not stay installed. */
__attribute__((destructor)) static void sigbus_restore(void)
{
	struct sigaction now;

	if (page && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == on_bus)
		sigaction(SIGBUS, &before, NULL);
}

static struct bus *place_for(uintptr_t at)
{
	for (struct bus *b = table; b < table + ROOM; b++)
		if (b->at == at)
			return b;
	return NULL;
}

struct bus *bus_guard(void *at, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct bus *b;

	pthread_once(&once, sigbus_install);
	pthread_mutex_lock(&changing);
	b = place_for((uintptr_t)at);
	if (!b)
		b = place_for(0);
	if (b && !b->guards++) {
		b->n = n;
		b->torn = 0;
		b->at = (uintptr_t)at;
	}
	pthread_mutex_unlock(&changing);
	return b;
}

void bus_release(struct bus *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&changing);
	if (!--b->guards)
		b->at = 0;
	pthread_mutex_unlock(&changing);
}

bool bus_torn(const struct bus *b)
{
	return b && b->torn;
}

/* --- SIGXFSZ ---------------------------------------------------------------------------------- */

static sigset_t only_xfsz(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	return set;
}

void xfsz_hold(struct xfsz *x)
{
	struct rlimit limit;
	sigset_t set;

	x->held = false;
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	set = only_xfsz();
	x->held = pthread_sigmask(SIG_BLOCK, &set, &x->before) == 0;
}

void xfsz_release(struct xfsz *x)
{
	sigset_t set = only_xfsz(), pending;
	int err = errno, number;

	if (!x->held)
		return;
	x->held = false;
	if (!sigismember(&x->before, SIGXFSZ)) {
		while (sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ))
			(void)sigwait(&set, &number);
		pthread_sigmask(SIG_SETMASK, &x->before, NULL);
	}
	errno = err;
}
