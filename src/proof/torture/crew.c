#include "proof/torture/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

#define TICK_MS 4

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

static struct sigaction before[CAUGHT];
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

void crew_catch(void)
{
	struct sigaction catch = { .sa_handler = on_signal };

	interrupted = 0;
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &catch, &before[i]);
}

void crew_release(void)
{
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
}

bool crew_interrupted(void)
{
	return interrupted;
}

pid_t crew_start(int (*live)(void *ctx, int who), void *ctx, int who)
{
	pid_t driver = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < CAUGHT; i++)
			signal(caught[i], SIG_IGN);
		os_end_with(driver);
		_exit(live(ctx, who));
	}
	return pid < 0 ? -errno : pid;
}

bool crew_ended(pid_t *pid, int *status)
{
	if (*pid <= 0 || waitpid(*pid, status, WNOHANG) != *pid)
		return false;
	*pid = 0;
	return true;
}

void crew_pause(void)
{
	const struct timespec tick = { 0, TICK_MS * 1000000 };

	nanosleep(&tick, NULL);
}
