/*
 * The prompt as a person at a terminal sees it: keys go into a pseudo-terminal, and the screen's
 * text comes out. The test waits for expected text, never for a time. Some keys must not come too
 * early: until the editor has changed the terminal's mode, the terminal itself takes Ctrl-C and
 * Ctrl-D. They are typed after the editor has answered a key, or a command has printed something.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/os.h"
#include "kit/folder.h"
#include "kit/skip.h"

#define PATIENCE_MS 20000
#define TAB "\t"
#define UP "\x1b[A"
#define CTRL_C "\x03"
#define CTRL_D "\x04"
#define CTRL_U "\x15"

static struct arena arena;
static const char *program;
static int terminal;
static pid_t child;
static struct buf seen;
static size_t checked; /* how far see() has read */

/* --- a terminal ------------------------------------------------------------------------------- */

static void start(void)
{
	struct winsize size = { .ws_row = 40, .ws_col = 120 };

	seen = BUF_MAX(1 << 20);
	checked = 0;
	child = forkpty(&terminal, NULL, NULL, &size);
	if (child == 0) {
		signal(SIGINT, SIG_DFL); /* a test run in the background ignores it */
		execl(program, program, "interactive", (char *)NULL);
		_exit(127);
	}
	if (child < 0)
		skip_because("needs a pseudo-terminal");
}

/* false: the other end is closed. */
static bool read_more(int64_t ms)
{
	struct pollfd fd = { .fd = terminal, .events = POLLIN };
	char block[4096];
	ssize_t n;

	if (poll(&fd, 1, (int)ms) <= 0)
		return true;
	n = read(terminal, block, sizeof(block));
	if (n > 0)
		buf_add(&seen, block, (size_t)n);
	return n > 0;
}

/* Waits until `text` is on the screen, after the text seen before. */
static void see(const char *text)
{
	int64_t end = os_boot_ms() + PATIENCE_MS;

	for (;;) {
		const char *at = seen.n > checked ? memmem(seen.p + checked, seen.n - checked, text,
							   strlen(text))
						  : NULL;

		if (at) {
			checked = (size_t)(at - seen.p) + strlen(text);
			return;
		}
		if (os_boot_ms() > end || !read_more(1000))
			break;
	}
	fail_msg("not seen: %s\nbut: %.*s", text, (int)(seen.n - checked),
		 seen.n ? seen.p + checked : "");
}

static void type(const char *keys)
{
	assert_int_equal(fs_write_all(terminal, str_c(keys)), 0);
}

/* Returns its exit code. */
static int leave_prompt(const char *keys)
{
	int64_t end = os_boot_ms() + PATIENCE_MS;
	int status;
	pid_t ended;

	type(keys);
	do {
		(void)read_more(20);
		ended = waitpid(child, &status, WNOHANG);
	} while (!ended && os_boot_ms() < end);
	if (ended != child)
		fail_msg("it does not end; seen: %.*s", (int)seen.n, seen.p);
	child = 0;
	close(terminal);
	buf_free(&seen);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* --- a queue ---------------------------------------------------------------------------------- */

static void pawl(const char *words)
{
	struct str command = arena_printf(&arena, "'%s' %s >/dev/null", program, words);

	if (system(command.p) != 0)
		fail_msg("pawl %s", words);
}

static int enter(void **state)
{
	const char *dir = folder_enter(state);

	if (!dir)
		return -1;
	setenv("HOME", dir, 1);
	setenv("XDG_STATE_HOME", fs_join(&arena, str_c(dir), STR("state")), 1);
	setenv("XDG_CONFIG_HOME", fs_join(&arena, str_c(dir), STR("config")), 1);
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	setenv("PAWL_AGENT", "tester", 1);
	pawl("init");
	pawl("create 'the parser' --id alpha");
	pawl("create 'the printer' --id alp2");
	return 0;
}

static int leave(void **state)
{
	int r;

	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		child = 0;
		close(terminal);
		buf_free(&seen);
	}
	r = folder_leave(state);
	arena_free(&arena);
	arena = (struct arena){ 0 };
	return r;
}

/* --- the tests -------------------------------------------------------------------------------- */

static void test_completion(void **state)
{
	(void)state;
	start();
	see("pawl> ");
	type("cla" TAB "al" TAB TAB);
	see("alpha  alp2");
	see("pawl> claim alp");
	type("h" TAB "--tt" TAB "5m\n");
	see("claimed alpha");
	see("expires     in 5m");
	see("pawl> ");
	type("lock st" TAB "ALPH" TAB "\n");
	see("alpha");
	see("tester");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

static void test_history(void **state)
{
	struct stat st;
	struct str text;
	const char *file = fs_join(&arena, str_c(getenv("XDG_STATE_HOME")), STR("pawl/history"));

	(void)state;
	start();
	see("pawl> ");
	type("show alpha\n");
	see("the parser");
	see("pawl> ");
	type("heartbeat alpha --token 11111111-1111-4111-8111-111111111111\n");
	see("pawl: ");
	see("pawl> ");
	type(UP);
	see("show alpha");
	type("\n");
	see("the parser");
	see("pawl> ");
	type("list -q\n");
	see("alp2");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fs_read(&arena, file, 1 << 20, &text), 0);
	assert_string_equal(text.p, "show alpha\nshow alpha\nlist -q\nexit\n");
	start();
	see("pawl> ");
	type(UP UP);
	see("list -q");
	type("\n");
	see("alpha");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

static void test_errors(void **state)
{
	(void)state;
	start();
	see("pawl> ");
	type("clam alpha\n");
	see("did you mean `pawl claim`");
	see("pawl> ");
	type("show nobody\n");
	see("nobody");
	see("pawl> ");
	type("create 'half a title\n");
	see("a quote is not closed");
	see("pawl> ");
	type("interactive\n");
	see("pawl interactive cannot run here");
	see("pawl> ");
	type("pawl show alp2\n");
	see("the printer");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

static void test_interrupt(void **state)
{
	(void)state;
	start();
	see("pawl> ");
	type("remo" TAB "al" TAB TAB);
	see("alpha  alp2");
	type("ha" CTRL_C);
	see("^C");
	see("pawl> ");
	type("log --follow --limit 9\n");
	see("alp2");  /* a past event: the command has begun */
	type(CTRL_C); /* the terminal may discard a prompt that comes at once */
	type("show alpha\n");
	see("the parser");
	see("pawl> ");
	type("status" CTRL_U "show alp2\n");
	see("the printer");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

static void test_end_of_input(void **state)
{
	(void)state;
	start();
	type(TAB);
	see("claim");
	assert_int_equal(leave_prompt(CTRL_D), 0);
}

/* Another alphabet; and the command does not inherit the editor's terminal mode. */
static void test_text(void **state)
{
	(void)state;
	start();
	see("pawl> ");
	type("create 'grün → blå' --id uni\n");
	see("created uni  grün → blå");
	see("pawl> ");
	type("show uni --json\n");
	see("\"id\":\"uni\"");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

/* As in a shell; the tasks stay. */
static void test_clear(void **state)
{
	(void)state;
	start();
	see("pawl> ");
	type("clear\n");
	see("\x1b[H\x1b[2J");
	see("pawl> ");
	type("show alpha\n");
	see("the parser");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
}

static void test_without_the_module(void **state)
{
	const char *dir = getenv("PAWL_MODULE_DIR");
	struct str kept = arena_str(&arena, str_c(dir));

	(void)state;
	setenv("PAWL_MODULE_DIR", "/nowhere", 1);
	start();
	see("history and completion are off");
	see("pawl> ");
	type("show alpha\n");
	see("the parser");
	see("pawl> ");
	type("show nobody\n");
	see("nobody");
	see("pawl> ");
	assert_int_equal(leave_prompt("exit\n"), 0);
	setenv("PAWL_MODULE_DIR", kept.p, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_completion, enter, leave),
		cmocka_unit_test_setup_teardown(test_history, enter, leave),
		cmocka_unit_test_setup_teardown(test_errors, enter, leave),
		cmocka_unit_test_setup_teardown(test_interrupt, enter, leave),
		cmocka_unit_test_setup_teardown(test_end_of_input, enter, leave),
		cmocka_unit_test_setup_teardown(test_text, enter, leave),
		cmocka_unit_test_setup_teardown(test_clear, enter, leave),
		cmocka_unit_test_setup_teardown(test_without_the_module, enter, leave),
	};

	program = getenv("PAWL");
	if (!program)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
