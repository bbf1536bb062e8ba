/*
 * Ends the programs of a runner that died. The reaper ignores the signals that end its runner, and
 * of the runner's descriptors it keeps only the pipe. Otherwise it could die first, or hold a file
 * or a terminal open.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "run/run_private.h"

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
	groups_stop(&g, grace_ms);
	_exit(0);
}

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
