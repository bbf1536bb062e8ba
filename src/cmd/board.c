/*
 * pawl board: loads the module that shows the board in a terminal, or serves or exports the web
 * board. board_ops.board_cmd_run() expects an open queue.
 */
#include "cmd/cmd_modules.h"

#include <unistd.h>

#include "base/module.h"

static const struct param params[] = {
	LOCAL(board_command, web, "web", P_FLAG,
	      .help = "show it in a browser: start a server on this machine until Ctrl-C"),
	LOCAL(board_command, export, "export", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "write the board as it is now to one HTML file; - is standard output"),
	{ 0 }
};

static enum result board_cmd_run(struct session *s, struct args *a, struct reply *out);

const struct command cmd_board = {
	.name = "board",
	.group = "look",
	.summary = "show the queue as a board in a terminal or browser, and steer it",
	.detail =
		"Each status is a column of cards. The board follows the queue: it shows a change of any agent at once. Arrows or "
		"hjkl move, Enter shows a task, / searches, ? lists all keys, q leaves. Each change asks first, shows the "
		"`pawl` command that does the same, and is refused if the task changed since the board showed it. The board "
		"reads one page of each column, so it starts fast on a large queue. doc/board.md describes it. "
		"--web serves the web board of `pawl serve` on a free port of this machine, prints its address with a token "
		"that is valid until Ctrl-C, and opens the browser if there is one. "
		"--export writes a page with all tasks that needs no server and changes nothing.",
	.example = "pawl board\n"
		   "pawl board --no-color\n"
		   "pawl board --web\n"
		   "pawl board --export board.html",
	.see = "status, list, show, next, serve",
	.params = params,
	.args_size = sizeof(struct board_command_args),
	.flags = C_WRITE | C_SHELL,
	.run = board_cmd_run,
};

static const struct board_ops *board_cmd_load(struct answer *ans, struct arena *a)
{
	const struct module *m;
	char why[300];
	int r = module_load("board", STR(""), &m, why, sizeof(why));

	if (!r && m->board)
		return m->board;
	answer_fail(
		ans, MISCONFIGURED,
		arena_printf(a, "this command needs the module pawl-board.so: %s%s",
			     r < 0 ? why : "it is not installed in ", r < 0 ? "" : module_dir()),
		STR("to install it: make install (it needs libncurses-dev); `pawl list` needs no module"));
	return NULL;
}

/* Serves the web board to one person, on a free port. */
static enum result show_web(struct session *s, struct reply *out)
{
	struct str where = STR("127.0.0.1:0");
	struct serve_args a = { .listen = { &where, 1 }, .log = STR("none"), .board = true };

	return serve_with(s, &a, out);
}

static enum result board_cmd_export(struct session *s, struct str file, struct reply *out)
{
	const struct serve_ops *ops = serve_load(s, out);

	return ops ? ops->board_export(s, file, out) : out->ans.code;
}

static enum result board_cmd_run(struct session *s, struct args *a, struct reply *out)
{
	struct answer ans = { 0 };
	const struct board_command_args *args = (const struct board_command_args *)a;
	const struct board_ops *board;

	if (args->web && args->export.n)
		return run_fail(USAGE, STR("board takes either --web or --export"),
				STR("run `pawl help board`"), out);
	if (args->web)
		return show_web(s, out);
	if (args->export.n)
		return board_cmd_export(s, args->export, out);
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	if (!s->people || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return run_fail(
			USAGE, STR("the board needs a terminal"),
			STR("run `pawl board` in a terminal; `pawl list --json` is for programs"),
			out);
	board = board_cmd_load(&ans, s->arena);
	if (!board)
		return run_answer(&ans, out);
	return board->run(s, out);
}
