/*
 * bus: guards mapped memory of a file that others may truncate. Touching a page beyond the end of
 * the file raises SIGBUS; so does a page that the device cannot read. In a guarded range the
 * process gets a private page of zeros instead. bus_torn() then returns true; the owner must
 * check it and stop using the range.
 *
 * A SIGBUS outside all guarded ranges goes to the handler that the program had before.
 */
#ifndef BASE_SIGFAULT_H
#define BASE_SIGFAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct bus;

/* The same range may be guarded several times. NULL: there is no room for one more, and the range
 * is unguarded. */
struct bus *bus_guard(void *at, size_t n);
/* Call it before the range is unmapped. */
void bus_release(struct bus *b);
bool bus_torn(const struct bus *b);

/* --- SIGXFSZ ---------------------------------------------------------------------------------- */

/*
 * xfsz: makes a write beyond this process's size limit (RLIMIT_FSIZE) fail with EFBIG instead of
 * killing it. The library cannot ignore SIGXFSZ for the program around it, so it blocks the signal
 * around its writes.
 */

struct xfsz {
	bool held;
	sigset_t before;
};

/* Costs one cheap system call if there is no limit. Call both on the same thread. */
void xfsz_hold(struct xfsz *x);
/* Discards the signal that our writes caused. */
void xfsz_release(struct xfsz *x);

#endif
