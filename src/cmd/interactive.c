#include "cmd/command.h"

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	if (!s->prompt)
		return run_fail(USAGE, STR("there is no prompt to be had here"),
				STR("run `pawl interactive` in a shell"), out);
	return s->prompt(s, a, out);
}

const struct command cmd_interactive = {
	.name = "interactive",
	.group = "setup",
	.summary = "a prompt for commands, with history and completion",
	.detail =
		"Each line is a command as on the command line, without `pawl`; quotes work as in a shell, and "
		"nothing is expanded. TAB completes commands, options, their values and ids; arrows and Ctrl-R find "
		"earlier lines (kept in $XDG_STATE_HOME/pawl/history, but for those with a token or a password); "
		"Ctrl-C drops the line or ends the command that runs; exit, quit or Ctrl-D leave. Options given "
		"here count for every command. Where the input is no terminal, its lines are run one after the "
		"other, whatever becomes of them, and the exit code is that of the first that failed.",
	.example = "pawl interactive\n"
		   "pawl interactive --agent alice",
	.see = "help, completion, run",
	.flags = C_LOCAL | C_SHELL | C_WRITE,
	.run = run,
};
