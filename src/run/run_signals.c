/*
 * The signals that a runner passes on. The handler writes the signal's number to a pipe, which is
 * safe in a handler. The pipe does not block, so a full pipe cannot stop the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/os.h"
#include "run/run_private.h"

static const int caught[] = { SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
			      SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH };

#define CAUGHT (sizeof(caught) / sizeof(*caught))

static int ends[2] = { -1, -1 };
static struct sigaction before[CAUGHT];

static void run_signals_take(int sig)
{
	unsigned char byte = (unsigned char)sig;
	int err = errno;

	(void)!write(ends[1], &byte, 1); /* if the pipe is full, the reader wakes up anyway */
	errno = err;
}

bool signals_ends(int sig)
{
	return sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
}

int signals_open(void)
{
	struct sigaction act = { .sa_handler = run_signals_take, .sa_flags = SA_RESTART };
	int r = os_pipe(ends);

	if (r)
		return r;
	for (int i = 0; i < 2; i++)
		(void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
	sigfillset(&act.sa_mask);
	for (size_t i = 0; i < CAUGHT; i++) {
		sigaction(caught[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN || caught[i] == SIGCHLD)
			sigaction(caught[i], &act, NULL);
	}
	return ends[0];
}

int signals_next(int fd)
{
	unsigned char byte;

	return read(fd, &byte, 1) == 1 ? byte : 0;
}

void signals_close(void)
{
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
	close(ends[0]);
	close(ends[1]);
}
