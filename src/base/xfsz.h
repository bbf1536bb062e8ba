/*
 * xfsz: makes a write beyond this process's size limit (RLIMIT_FSIZE) fail with EFBIG instead of
 * killing it. The library cannot ignore SIGXFSZ for the program around it, so it blocks the signal
 * around its writes.
 */
#ifndef BASE_XFSZ_H
#define BASE_XFSZ_H

#include <signal.h>
#include <stdbool.h>

struct xfsz {
	bool held;
	sigset_t before;
};

/* Costs one cheap system call if there is no limit. Call both on the same thread. */
void xfsz_hold(struct xfsz *x);
/* Discards the signal that our writes caused. */
void xfsz_release(struct xfsz *x);

#endif
