/*
 * Starts a program in its own process group. The new process registers its group with the reaper
 * before it runs the program, so a runner that is killed leaves no program behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "run/run_private.h"

bool terminal_ours(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Blocks SIGTTOU, which tcsetpgrp() sends to a caller in the background. */
void terminal_give(pid_t group)
{
	sigset_t ttou, old;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	(void)tcsetpgrp(STDIN_FILENO, group);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void terminal_take(pid_t group)
{
	if (tcgetpgrp(STDIN_FILENO) == group)
		terminal_give(getpgrp());
}

/* Resets the signals that pawl set up. A signal that pawl's caller ignored stays ignored. */
static void default_signals(void)
{
	struct sigaction act;

	for (int sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &act) == 0 && act.sa_handler != SIG_IGN)
			signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

static int set_files(const struct program *p)
{
	int null;

	if (p->no_input) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -1;
	}
	if (p->output >= 0 && dup2(p->output, STDERR_FILENO) < 0)
		return -1;
	return p->out_to_err ? dup2(STDERR_FILENO, STDOUT_FILENO) : 0;
}

/* Runs in the new process; returns only after an error. */
static int run_process_become(const struct program *p, const sigset_t *mask)
{
	setpgid(0, 0);
	reaper_add(p->reaper, getpid());
	if (p->terminal)
		terminal_give(getpid());
	default_signals();
	if (set_files(p) < 0 || chdir(p->dir))
		return errno;
	sigprocmask(SIG_SETMASK, mask, NULL);
	execve(p->path, p->argv, p->envp);
	return errno;
}

/* exec closes the pipe, so an empty read means that the program is running. */
static int await_exec(int fd)
{
	int why = 0;
	ssize_t n;

	do
		n = read(fd, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(why) ? -why : 0;
}

int group_start(const struct program *p, pid_t *group)
{
	sigset_t all, old;
	int ends[2], r = os_pipe(ends);
	pid_t pid;

	if (r)
		return r;
	/* block all signals, or the new process could run our handlers */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		int why = run_process_become(p, &old);

		(void)!write(ends[1], &why, sizeof(why));
		_exit(127);
	}
	r = pid < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[1]);
	if (!r) {
		(void)setpgid(pid, pid); /* parent and child both call it: either may be first */
		r = await_exec(ends[0]);
		if (r) {
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
			reaper_drop(p->reaper, pid);
		}
	}
	close(ends[0]);
	*group = r ? 0 : pid;
	return r;
}
