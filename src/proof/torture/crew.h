/*
 * crew: the processes of a torture or a load test. The driver starts them and waits for them. Only
 * the driver receives the terminal's signals, so it can let the others finish.
 */
#ifndef PROOF_TORTURE_CREW_H
#define PROOF_TORTURE_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CREW_PROGRESS_MS 200 /* between two reports */

/* Starts a process that runs `live` and exits with its result; it dies with the driver. Returns its
 * pid, or -errno. */
pid_t crew_start(int (*live)(void *ctx, int who), void *ctx, int who);
/* Has it ended by itself? Then sets *pid to 0. */
bool crew_ended(pid_t *pid, int *status);
/* Until crew_release(), a signal that would end the driver only sets crew_interrupted(). */
void crew_catch(void);
void crew_release(void);
bool crew_interrupted(void);
/* Sleeps until the driver's next look. */
void crew_pause(void);

#endif
