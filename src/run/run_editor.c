/*
 * Runs the user's editor on a file and waits for it. pawl ignores ^C and ^\ while the editor runs.
 * If pawl died first, the text would be lost.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/run_jobs.h"

const char *editor_name(void)
{
	const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");

	if (visual && *visual)
		return visual;
	if (editor && *editor)
		return editor;
	return editor_terminal() ? "vi" : NULL;
}

bool editor_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static void run_editor_become(const char *command, const char *editor, const char *path,
			      bool out_to_err)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (out_to_err && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(127);
	execl("/bin/sh", "sh", "-c", command, editor, path, (char *)NULL);
	_exit(127);
}

/* The keys ^C and ^\ are for the editor, so pawl ignores them. */
int editor_run(const char *editor, const char *path, bool out_to_err, int *status)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
	char *command;
	pid_t pid;
	int r = 0;

	if (asprintf(&command, "%s \"$@\"", editor) < 0)
		return -ENOMEM;
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	pid = fork();
	if (pid == 0)
		run_editor_become(command, editor, path, out_to_err);
	if (pid < 0)
		r = -errno;
	while (!r && waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			r = -errno;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	free(command);
	return r;
}
