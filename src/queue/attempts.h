/*
 * attempts: when a call that found no task makes its next attempt. A waiting call holds nothing: each attempt is a call of
 * its own. The store wakes the caller after each change. Besides, an attempt is due when the lease or the delay ends that the
 * last answer named, and after ATTEMPTS_MAX_MS in any case, because a store may not notice a change from another machine.
 *
 * The command line waits by sleeping (cmd/wait.c). The server, the MCP server and `pawl run` keep a waiting call beside their
 * other work. All of them take the times from here.
 */
#ifndef QUEUE_ATTEMPTS_H
#define QUEUE_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#define ATTEMPTS_MAX_MS 30000

/* Both times are by os_boot_ms(). */
struct attempts {
	int64_t end;  /* the caller stops waiting; 0: it does not wait */
	int64_t next; /* never after `end` */
};

/* Waits for `ms`; INT64_MAX: for ever. */
void attempts_begin(struct attempts *t, int64_t ms);
/* After an attempt that found no task. wait_ms: the answer's; 0: it named no time. */
void attempts_after(struct attempts *t, int64_t wait_ms);
bool attempts_over(const struct attempts *t);
/* The time until the next attempt. */
int64_t attempts_left(const struct attempts *t);

#endif
