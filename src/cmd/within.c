#include "cmd/within.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/os.h"
#include "format/answer_form.h"

#define ANSWER_MAX (1u << 20)

/* A child that hangs on a disk must not keep the caller's pipes open as well. */
static void leave_pipes(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i <= 2; i++)
		(void)dup2(fd, i);
}

/* The length of the packed answer, the answer, and the name of the store's fault, which is not packed. */
static void within_answer(int fd, struct session *s, ask_fn *fn)
{
	struct answer ans = { 0 };
	struct buf b = BUF_MAX(ANSWER_MAX);
	uint32_t n;

	fn(s, &ans);
	answer_pack(&ans, &b);
	n = (uint32_t)b.n;
	if (!b.full && fs_write_all(fd, str_n((const char *)&n, sizeof(n))) == 0 &&
	    fs_write_all(fd, buf_str(&b)) == 0)
		(void)fs_write_all(fd, ans.fault);
	_exit(0);
}

static bool within_take(const struct buf *b, struct answer *ans, struct arena *a)
{
	struct str bytes = arena_str(a, buf_str(b));
	uint32_t n;

	if (b->full || bytes.n < sizeof(n))
		return false;
	memcpy(&n, bytes.p, sizeof(n));
	bytes = str_n(bytes.p + sizeof(n), bytes.n - sizeof(n));
	if (n > bytes.n || answer_unpack(str_n(bytes.p, n), ans, a))
		return false;
	ans->fault = str_n(bytes.p + n, bytes.n - n);
	return true;
}

/* A process that waits for a disk may not die before the disk answers, so do not wait for it. */
static void end_child(pid_t pid, bool done)
{
	if (!done)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, done ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
}

bool run_within(struct session *s, int64_t ms, ask_fn *fn, struct answer *ans)
{
	int64_t end = os_boot_ms() + ms;
	struct buf b = BUF_MAX(ANSWER_MAX);
	pid_t parent = getpid(), pid;
	int ends[2];
	bool done;

	if (os_pipe(ends))
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		os_end_with(parent);
		close(ends[0]);
		leave_pipes();
		within_answer(ends[1], s, fn);
	}
	close(ends[1]);
	done = pid > 0 && fs_read_until(ends[0], end, &b);
	close(ends[0]);
	if (pid > 0)
		end_child(pid, done);
	done = done && within_take(&b, ans, s->arena);
	buf_free(&b);
	return done;
}
