#include "base/xfsz.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

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
