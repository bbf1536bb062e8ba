/*
 * Shows that every system call on files goes through the table. Each operation runs under ptrace:
 * each of its system calls comes from calls.c, or is one that does not touch a file.
 */
#include "scene.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#ifdef __x86_64__
static const long harmless[] = {
	SYS_brk,
	SYS_mprotect,
	SYS_madvise,
	SYS_futex,
	SYS_getpid,
	SYS_gettid,
	SYS_geteuid,
	SYS_getrandom,
	SYS_uname,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_timer_create,
	SYS_timer_settime,
	SYS_timer_delete,
	SYS_exit_group,
	SYS_kill,
	SYS_sched_yield,
	SYS_prlimit64,
};

static char folder[64];

static bool is_harmless(long number, const struct user_regs_struct *r)
{
	if (number == SYS_mmap) /* for memory only */
		return (int)r->r8 == -1;
	if (number == SYS_munmap)
		return true; /* libc's own, for memory; calls.c has the others */
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (number == harmless[i])
			return true;
	return false;
}

static long peek(pid_t pid, const volatile void *at)
{
	errno = 0;
	return ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

static _Noreturn void play(const struct operation *op)
{
	static const struct call_fault none;
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q = NULL;

	if (op->what != DO_OPEN && scene_open(&q, op->mode, &ans, &a) != SUCCESS)
		_exit(1);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	calls_arm(&none);
	scene_do(op, &q, &ans, &a);
	calls_disarm();
	_exit(ans.code == SUCCESS ? 0 : 1);
}

/* Returns the number of system calls that went through the table; prints the others, except harmless ones. */
static int follow(const struct operation *op, pid_t pid, int *escaped)
{
	int status, counted = 0;
	bool entry = true;

	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		struct user_regs_struct r;

		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		entry = !entry;
		if (entry || ptrace(PTRACE_GETREGS, pid, NULL, &r) ||
		    !(peek(pid, &calls.armed) & 0xff))
			continue;
		if ((int)peek(pid, &calls.inside)) {
			counted++;
		} else if (!is_harmless((long)r.orig_rax, &r)) {
			printf("# %s: system call %d is not in the table\n", op->name,
			       (int)r.orig_rax);
			++*escaped;
		}
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s failed", op->name);
	return counted;
}

static bool try_operation(const struct operation *op, int number)
{
	struct tree scene = { 0 };
	int status, counted, escaped = 0;
	pid_t pid;

	scene_make(op, &scene);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "cannot fork");
	if (pid == 0)
		play(op);
	CHECK(waitpid(pid, &status, 0) == pid, "no such child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("ok %d - %s # SKIP needs ptrace\n", number, op->name);
		return true;
	}
	counted = follow(op, pid, &escaped);
	printf("%sok %d - %s: %d system calls, all of them in the table\n",
	       escaped || !counted ? "not " : "", number, op->name, counted);
	tree_free(&scene);
	return !escaped && counted;
}

int main(void)
{
	int failed = 0;

	scene_begin(tree_place(folder, sizeof(folder)));
	for (size_t i = 0; i < n_operations; i++)
		failed += !try_operation(&operations[i], (int)i + 1);
	printf("1..%d\n", (int)n_operations);
	tree_clear(folder);
	rmdir(folder);
	return failed != 0;
}
#else
int main(void)
{
	printf("1..0 # SKIP needs an x86-64 processor\n");
	return 77;
}
#endif
