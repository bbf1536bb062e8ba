/* A process of the driver's command, behind two pipes. The command may be any program: it may close its pipes, print without
 * end, never end, or start others. So every read is bounded, and its whole process group is killed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "proof/drive/drive_private.h"

#define TICK_NS 2000000

static void child_become(char *const *words, const int *in, const int *out, const char *folder,
			 const char *agent, pid_t parent)
{
	static const int restored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };

	setpgid(0, 0);
	os_end_with(parent);
	for (size_t i = 0; i < sizeof(restored) / sizeof(restored[0]); i++)
		signal(restored[i], SIG_DFL);
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
		return;
	setenv("PAWL_DRIVER_DIR", folder, 1);
	setenv("PAWL_DRIVER_AGENT", agent, 1);
	execvp(words[0], words);
}

/* The child writes why it could not start the program to a pipe that exec closes. */
static int child_failure(int fd)
{
	int why = 0;
	ssize_t n;

	do
		n = read(fd, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(why) ? why : 0;
}

static int child_fork(struct child *c, char *const *words, const char *folder, const char *agent,
		      int pipes[3][2])
{
	pid_t parent = getpid();
	int r;

	c->pid = fork();
	if (c->pid < 0) {
		r = errno;
		c->pid = 0;
		return r;
	}
	if (!c->pid) {
		child_become(words, pipes[0], pipes[1], folder, agent, parent);
		r = errno;
		(void)!write(pipes[2][1], &r, sizeof(r));
		_exit(127);
	}
	setpgid(c->pid, c->pid);
	close(pipes[2][1]);
	pipes[2][1] = -1;
	r = child_failure(pipes[2][0]);
	if (r)
		child_kill(c);
	return r;
}

int child_start(struct child *c, char *const *words, const char *folder, const char *agent)
{
	int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } }, r = 0;

	*c = (struct child){ .in = -1, .out = -1 };
	for (int i = 0; i < 3 && !r; i++)
		r = -os_pipe(pipes[i]);
	if (!r)
		r = child_fork(c, words, folder, agent, pipes);
	if (!r) {
		c->in = pipes[0][1];
		c->out = pipes[1][0];
		pipes[0][1] = pipes[1][0] = -1;
		fcntl(c->out, F_SETFL, O_NONBLOCK);
		fcntl(c->in, F_SETFL, O_NONBLOCK);
	}
	for (int i = 0; i < 6; i++)
		if (pipes[i / 2][i % 2] >= 0)
			close(pipes[i / 2][i % 2]);
	return -r;
}

/* A line fits into a pipe's buffer, and only one line is on its way. */
bool child_send(struct child *c, struct str line)
{
	ssize_t n;

	do
		n = write(c->in, line.p, line.n);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)line.n;
}

enum child_read child_read(struct child *c, struct str *line)
{
	ssize_t n;
	char *end;

	do
		n = read(c->out, c->line + c->n, sizeof(c->line) - c->n);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? CHILD_NOTHING : CHILD_END;
	if (!n)
		return CHILD_END;
	c->n += (size_t)n;
	end = memchr(c->line, '\n', c->n);
	*line = str_n(c->line, end ? (size_t)(end - c->line) : c->n);
	if (end ? end != c->line + c->n - 1 : c->n == sizeof(c->line))
		return CHILD_LONG;
	if (!end)
		return CHILD_NOTHING;
	c->n = 0;
	return CHILD_LINE;
}

void child_signal(const struct child *c, int sig)
{
	if (c->pid)
		kill(-c->pid, sig);
}

void child_close(struct child *c)
{
	if (c->in >= 0)
		close(c->in);
	if (c->out >= 0)
		close(c->out);
	c->in = c->out = -1;
}

int child_kill(struct child *c)
{
	int status = 0;

	if (!c->pid)
		return 0;
	child_signal(c, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	child_close(c);
	return status;
}

void child_end(struct child *c, int64_t end)
{
	const struct timespec tick = { 0, TICK_NS };
	siginfo_t ended = { 0 };

	while (c->pid && os_boot_ms() < end &&
	       !waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT) && !ended.si_pid)
		nanosleep(&tick, NULL);
	child_kill(c);
}
