#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/caller.h"
#include "core/task.h"

static struct arena arena;

static int enter(void **state)
{
	const char *format = getenv("CMOCKA_MESSAGE_OUTPUT");

	(void)state;
	clearenv();
	if (format) /* cmocka reads it before each line that it prints */
		setenv("CMOCKA_MESSAGE_OUTPUT", format, 1);
	setenv("USER", "ann", 1);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	arena_free(&arena);
	arena = (struct arena){ 0 };
	return 0;
}

static void assert_str(struct str s, const char *want)
{
	assert_string_equal(arena_cstr(&arena, s), want);
}

static void assert_named(const char *client, const char *worktree, const char *want)
{
	assert_str(caller_find(str_c(client), STR("vm"), worktree, &arena).name, want);
}

static void test_user(void **state)
{
	struct caller c = caller_find(STR(""), STR("vm"), NULL, &arena);

	(void)state;
	assert_str(c.name, "ann@vm");
	assert_str(c.why, "no coding agent was recognised, so it is the user");
	setenv("LOGNAME", "bo", 1);
	assert_named("", NULL, "bo@vm");
	unsetenv("LOGNAME");
	unsetenv("USER"); /* the system knows a name */
	assert_true(caller_find(STR(""), STR("vm"), NULL, &arena).name.n > 3);
}

static void test_environment(void **state)
{
	static const struct {
		const char *variable, *value, *want;
	} cases[] = {
		{ "CLAUDECODE", "1", "claude@vm" },
		{ "CLAUDE_CODE_SESSION_ID", "0b4c", "claude@vm" },
		{ "CODEX_THREAD_ID", "019a", "codex@vm" },
		{ "CODEX_SANDBOX", "seatbelt", "codex@vm" },
		{ "GEMINI_CLI", "1", "gemini@vm" },
		{ "GEMINI_CLI_SESSION_ID", "x", "gemini@vm" },
		{ "CURSOR_AGENT", "1", "cursor@vm" },
		{ "OPENCODE", "1", "opencode@vm" },
		{ "AI_AGENT", "claude-code/2.1", "claude@vm" },
		/* not a sign of an agent: empty, switched off, unknown, or set by people */
		{ "CLAUDECODE", "", "ann@vm" },
		{ "CLAUDECODE", "0", "ann@vm" },
		{ "AI_AGENT", "zedd", "ann@vm" },
		{ "CODEX_HOME", "/home/ann/codex", "ann@vm" },
		{ "GEMINI_API_KEY", "x", "ann@vm" },
		{ "CURSOR_TRACE_ID", "x", "ann@vm" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv(cases[i].variable, cases[i].value, 1);
		assert_named("", NULL, cases[i].want);
		unsetenv(cases[i].variable);
	}
	setenv("CODEX_THREAD_ID", "019a", 1);
	assert_str(caller_find(STR(""), STR("vm"), NULL, &arena).why, "CODEX_THREAD_ID is set");
	setenv("QWEN_CODE", "1", 1); /* a fork of Gemini CLI can have both */
	setenv("GEMINI_CLI", "1", 1);
	unsetenv("CODEX_THREAD_ID");
	assert_named("", NULL, "qwen@vm");
}

static void assert_run(const char *told, const char *want, const char *why)
{
	struct caller_run run = caller_run_find(str_c(told), &arena);

	assert_str(run.name, want);
	assert_str(run.why, why);
	assert_int_equal(run.made, *want != '\0');
}

static void test_run(void **state)
{
	static const char *const variables[] = { "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID",
						 "GEMINI_CLI_SESSION_ID", "GEMINI_SESSION_ID" };
	char id[NAME_MAX_BYTES + 2];

	(void)state;
	assert_run("", "",
		   "neither --run nor PAWL_RUN names one, and no session of a coding agent "
		   "was recognised");
	for (size_t i = 0; i < 4; i++) {
		setenv(variables[i], "0b4c", 1);
		assert_run("", "0b4c", arena_printf(&arena, "%s names it", variables[i]).p);
		assert_run("0b4c", "0b4c", arena_printf(&arena, "%s names it", variables[i]).p);
		assert_run("told", "told", "the client named its session in this call");
		setenv(variables[i], "", 1);
	}
	setenv("CLAUDE_CODE_SESSION_ID", "a", 1);
	setenv("GEMINI_CLI_SESSION_ID", "b", 1);
	setenv("GEMINI_SESSION_ID", "b", 1);
	assert_run("", "a+b", "CLAUDE_CODE_SESSION_ID and GEMINI_CLI_SESSION_ID name it");
	assert_run("b", "a+b", "CLAUDE_CODE_SESSION_ID and GEMINI_CLI_SESSION_ID name it");
	memset(id, 'x', sizeof(id));
	assert_int_equal(caller_run_find(str_n(id, NAME_MAX_BYTES), &arena).name.n, NAME_MAX_BYTES);
	assert_int_equal(caller_run_find(str_n(id, sizeof(id)), &arena).name.n, 64);
	assert_int_equal(caller_run_find(STR("a\nb"), &arena).name.n, 64);
	assert_int_equal(caller_run_find(STR("\xff"), &arena).name.n, 64);
}

static void test_client_info(void **state)
{
	static const char *const cases[][2] = {
		{ "claude-code", "claude@vm" },
		{ "claude-ai", "claude@vm" },
		{ "codex-mcp-client", "codex@vm" },
		{ "gemini-cli-mcp-client", "gemini@vm" },
		{ "cursor-vscode", "cursor@vm" },
		{ "Visual Studio Code", "vscode@vm" },
		{ "Zed", "zed@vm" },
		{ "Roo Code", "roo@vm" },
		{ "zedd", "ann@vm" },
		{ "amplifier", "ann@vm" },
		{ "my own client", "ann@vm" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_named(cases[i][0], NULL, cases[i][1]);
	/* the client knows better than what it inherited */
	setenv("CLAUDECODE", "1", 1);
	assert_named("codex-mcp-client", NULL, "codex@vm");
	assert_named("my own client", NULL, "claude@vm");
	assert_str(caller_find(STR("codex\x1b[2J"), STR("vm"), NULL, &arena).why,
		   "the MCP client calls itself codex\\x1b[2J");
}

static void test_worktree(void **state)
{
	char name[NAME_MAX_BYTES + 1];

	(void)state;
	setenv("CLAUDECODE", "1", 1);
	assert_named("", "parser", "claude@vm/parser");
	assert_named("", "a b@c\n", "claude@vm/a-b-c-");
	assert_named("", "\xc3\xbc", "claude@vm/\xc3\xbc");
	assert_named("", "\xff", "claude@vm"); /* not text */
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_named("", name, "claude@vm"); /* too long for a name */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_user, enter, leave),
		cmocka_unit_test_setup_teardown(test_environment, enter, leave),
		cmocka_unit_test_setup_teardown(test_run, enter, leave),
		cmocka_unit_test_setup_teardown(test_client_info, enter, leave),
		cmocka_unit_test_setup_teardown(test_worktree, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
