/*
 * watch SECONDS LOG COMMAND...: runs COMMAND and appends a line to LOG for each program that it or a descendant starts:
 * the path as it was called, its real path and its arguments, with tabs between them. strace would take longer to start
 * than pawl runs. Ends when all processes have ended, with COMMAND's exit code. After SECONDS it kills all and ends
 * with 124. PEAK=FILE: writes the peak of COMMAND's memory in KiB to FILE.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN 4096 /* bytes of the arguments */

static void die(const char *what)
{
	fprintf(stderr, "watch: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void on_alarm(int sig)
{
	static const char text[] = "watch: it does not end\n";

	(void)sig;
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 125 : 124);
}

/* The start of a file of /proc/PID, or from `at` */
static size_t read_proc(pid_t pid, const char *name, off_t at, char *out, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, out, room - 1, at);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* The path that was given to execve: of a script its own, not its interpreter's */
static void called_as(pid_t pid, char *out, size_t room)
{
	Elf64_auxv_t aux[64];
	size_t n = read_proc(pid, "auxv", 0, (char *)aux, sizeof(aux)) / sizeof(*aux);

	snprintf(out, room, "?");
	for (size_t i = 0; i < n; i++)
		if (aux[i].a_type == AT_EXECFN)
			read_proc(pid, "mem", (off_t)aux[i].a_un.a_val, out, room);
}

static void note(FILE *log, pid_t pid)
{
	char path[PATH_MAX], real[PATH_MAX], args[SHOWN];
	size_t n = read_proc(pid, "cmdline", 0, args, sizeof(args));

	called_as(pid, path, sizeof(path));
	for (char *c = path; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = '?';
	for (size_t i = 0; i < n; i++)
		if (args[i] == 0)
			args[i] = i + 1 < n ? '\t' : 0;
		else if (args[i] == '\n' || args[i] == '\t')
			args[i] = '?';
	fprintf(log, "%s\t%s\t%s\n", path, realpath(path, real) ? real : path, args);
}

/* A process has stopped: lets it continue as it would by itself. */
static void go_on(pid_t pid, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	else
		ptrace(PTRACE_CONT, pid, 0, event ? 0 : sig);
}

static int follow(pid_t first, FILE *log)
{
	const char *peak = getenv("PEAK");
	struct rusage used = { 0 };
	int code = 125, status;
	pid_t pid;

	while ((pid = wait4(-1, &status, __WALL, &used)) > 0 || errno == EINTR) {
		if (pid > 0 && WIFSTOPPED(status)) {
			if (status >> 16 == PTRACE_EVENT_EXEC)
				note(log, pid);
			go_on(pid, status);
		} else if (pid == first) {
			FILE *f = peak ? fopen(peak, "w") : NULL;

			code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			if (f && (fprintf(f, "%ld\n", used.ru_maxrss) < 0 || fclose(f)))
				die(peak);
		}
	}
	return code;
}

int main(int argc, char **argv)
{
	long how = PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		   PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	FILE *log = argc > 3 ? fopen(argv[2], "ae") : NULL;
	int hold[2];
	char go;
	pid_t pid;

	if (!log || pipe2(hold, O_CLOEXEC))
		die("watch SECONDS LOG COMMAND...");
	setlinebuf(log);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		if (read(hold[0], &go, 1) == 1)
			execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, how))
		die("ptrace");
	signal(SIGALRM, on_alarm);
	alarm((unsigned)strtoul(argv[1], NULL, 10));
	if (write(hold[1], "!", 1) != 1)
		die("pipe");
	close(hold[0]);
	close(hold[1]);
	pid = follow(pid, log);
	return fclose(log) ? 125 : pid;
}
