/*
 * The new process registers its group with the reaper before it runs the program, so a runner that
 * is killed leaves no program behind.
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
static int run_group_become(const struct program *p, const sigset_t *mask)
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
		int why = run_group_become(p, &old);

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

void group_signal(pid_t group, int sig)
{
	(void)kill(-group, sig);
}

void group_end(pid_t group)
{
	group_signal(group, SIGTERM);
	group_signal(group, SIGCONT);
}

bool group_there(pid_t group)
{
	return kill(-group, 0) == 0 || errno != ESRCH;
}

/* --- reaper ----------------------------------------------------------------------------------- */

/*
 * The reaper ignores the signals that end its runner, and of the runner's descriptors it keeps only
 * the pipe. Otherwise it could die first, or hold a file or a terminal open.
 */

#define GROUPS_MAX 1024

/* Sends `group` to register, -group to deregister. The write is atomic, because it is smaller than
 * PIPE_BUF. */
static void run_reaper_tell(int fd, int32_t what)
{
	while (write(fd, &what, sizeof(what)) < 0 && errno == EINTR)
		;
}

void reaper_add(int fd, pid_t group)
{
	run_reaper_tell(fd, group);
}

void reaper_drop(int fd, pid_t group)
{
	run_reaper_tell(fd, -group);
}

/* --- in the reaper -------------------------------------------------------------------------- */

struct groups {
	pid_t v[GROUPS_MAX];
	size_t n;
};

static void run_reaper_note(struct groups *g, int32_t what)
{
	if (what > 0 && g->n < GROUPS_MAX)
		g->v[g->n++] = what;
	for (size_t i = g->n; what < 0 && i-- > 0;)
		if (g->v[i] == -what)
			g->v[i] = g->v[--g->n];
}

static void listen_to_end(struct groups *g)
{
	int32_t what;
	ssize_t n;

	while ((n = read(STDIN_FILENO, &what, sizeof(what))) != 0) {
		if (n == (ssize_t)sizeof(what))
			run_reaper_note(g, what);
		else if (errno != EINTR)
			return;
	}
}

static bool any_left(struct groups *g)
{
	for (size_t i = g->n; i-- > 0;)
		if (!group_there(g->v[i]))
			g->v[i] = g->v[--g->n];
	return g->n;
}

static void end_all(struct groups *g, int64_t grace_ms)
{
	int64_t end = os_boot_ms() + grace_ms;

	for (size_t i = 0; i < g->n; i++)
		group_end(g->v[i]);
	while (any_left(g) && os_boot_ms() < end)
		usleep(20000);
	for (size_t i = 0; i < g->n; i++)
		group_signal(g->v[i], SIGKILL);
}

/* The reaper must survive a signal that ends the others, because it ends after them. */
static void be_deaf(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	(void)setsid();
}

static void run_reaper_reap(int from, int64_t grace_ms)
{
	struct groups g = { .n = 0 };
	int null;

	be_deaf();
	if (dup2(from, STDIN_FILENO) < 0)
		_exit(1);
	null = open("/dev/null", O_RDWR);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	os_close_from(STDERR_FILENO + 1);
	listen_to_end(&g);
	end_all(&g, grace_ms);
	_exit(0);
}

/* --- in the runner -------------------------------------------------------------------------- */

int reaper_start(struct reaper *p, int64_t grace_ms)
{
	int ends[2], r = os_pipe(ends);

	if (r)
		return r;
	p->pid = fork();
	if (p->pid == 0)
		run_reaper_reap(ends[0], grace_ms);
	r = p->pid < 0 ? -errno : 0;
	close(ends[0]);
	p->fd = ends[1];
	if (r)
		close(ends[1]);
	return r;
}

void reaper_stop(struct reaper *p)
{
	close(p->fd);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* --- signals ---------------------------------------------------------------------------------- */

/*
 * The handler writes the signal's number to a pipe, which is safe in a handler. The pipe does not
 * block, so a full pipe cannot stop the process.
 */

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
