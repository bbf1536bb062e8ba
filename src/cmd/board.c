#include "cmd/board.h"

#include <unistd.h>

#include "base/module.h"

static const struct board_ops *load(struct answer *ans, struct arena *a)
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

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	struct answer ans = { 0 };
	const struct board_ops *board;

	(void)a;
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	if (!s->people || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return run_fail(
			USAGE, STR("the board needs a terminal"),
			STR("run `pawl board` in a terminal; `pawl list --json` is for programs"),
			out);
	board = load(&ans, s->arena);
	if (!board)
		return run_answer(&ans, out);
	return board->run(s, out);
}

const struct command cmd_board = {
	.name = "board",
	.group = "look",
	.summary = "show the queue as a board in the terminal, and steer it",
	.detail =
		"Each status is a column of cards. The board follows the queue: it shows a change of any agent at once. Arrows or "
		"hjkl move, Enter shows a task, / searches, ? lists all keys, q leaves. Each change asks first, shows the "
		"`pawl` command that does the same, and is refused if the task changed since the board showed it. The board "
		"reads one page of each column, so it starts fast on a large queue. doc/board.md describes it.",
	.example = "pawl board\n"
		   "pawl board --no-color",
	.see = "status, list, show, next",
	.flags = C_WRITE | C_SHELL,
	.run = run,
};
