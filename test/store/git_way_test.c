/* Programs behind a connection: one that does not answer in time is killed with all its
 * children. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "store/git/transport/transport.h"

#define PATIENCE_MS 30000

struct bench {
	char dir[64], ssh[80];
};

/* A program that prints its child's pid and then nothing more. */
static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	FILE *f;

	snprintf(b->dir, sizeof(b->dir), "/tmp/pawl-way-XXXXXX");
	if (!mkdtemp(b->dir))
		return -1;
	snprintf(b->ssh, sizeof(b->ssh), "%s/ssh", b->dir);
	f = fopen(b->ssh, "w");
	if (!f)
		return -1;
	fputs("#!/bin/sh\nsleep 1000 &\nprintf '%04x%010d' 14 $!\nwait\n", f);
	*state = b;
	return fclose(f) || chmod(b->ssh, 0700);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	unlink(b->ssh);
	rmdir(b->dir);
	free(b);
	return 0;
}

/* Connects and waits until its time is over; returns the pid of the program's child. */
static pid_t fall_silent(struct bench *b, struct git_conn *c)
{
	const struct git_endpoint w = {
		.kind = CONN_SSH, .host = STR("h"), .path = STR("/p"), .ssh = str_c(b->ssh)
	};
	int64_t child = 0;
	struct str line;

	assert_int_equal(git_endpoint_connect(&w, "upload-pack", PATIENCE_MS, c), 0);
	assert_int_equal(git_pkt_read(c, &line), PKT_LINE);
	while (line.n && line.p[0] == '0')
		line = str_n(line.p + 1, line.n - 1);
	assert_true(str_to_i64(line, &child) && child > 1);
	c->end = os_boot_ms() + 20;
	assert_int_equal(git_pkt_read(c, &line), -ETIMEDOUT);
	return (pid_t)child;
}

static void pause_a_little(void)
{
	usleep(5000);
}

/* Is it gone, or a zombie that nobody has reaped? */
static bool is_over(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return true;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	return strstr(text, ") Z") || strstr(text, ") X");
}

static void silent_is_ended(void **state)
{
	struct git_conn c;
	pid_t child = fall_silent(*state, &c), pid = git_conn_close(&c);
	int64_t end = os_boot_ms() + PATIENCE_MS;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0 && os_boot_ms() < end)
		pause_a_little();
	if (!WIFSIGNALED(status))
		kill(-pid, SIGKILL);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (!is_over(child) && os_boot_ms() < end)
		pause_a_little();
	assert_true(is_over(child));
}

/* A program that is in the middle of a change of this machine's repository is not killed. */
static void busy_goes_on(void **state)
{
	struct git_conn c;
	pid_t child = fall_silent(*state, &c), pid;

	c.busy = true;
	pid = git_conn_close(&c);
	usleep(50000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_false(is_over(child));
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(silent_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(busy_goes_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
