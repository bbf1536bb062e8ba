/* pawl interactive: runs the face's prompt. Faces without session.prompt refuse the command. */
#include "cmd/command.h"

static enum result interactive_run(struct session *s, struct args *a, struct reply *out);

const struct command cmd_interactive = {
	.name = "interactive",
	.group = "setup",
	.summary = "open a prompt for commands, with history and completion",
	.detail =
		"Each line is a command as on the command line, without `pawl`. Quotes work as in a shell; pawl expands "
		"nothing. TAB completes commands, options, their values and ids. Arrows and Ctrl-R find earlier lines; "
		"pawl keeps them in $XDG_STATE_HOME/pawl/history, except lines with a token or a password. Ctrl-C drops "
		"the line or ends the running command; `clear` alone clears the screen; exit, quit or Ctrl-D leave. Options given here apply to every "
		"command. If the input is not a terminal, pawl runs all its lines, and the exit code is that of the first "
		"line that failed.",
	.example = "pawl interactive\n"
		   "pawl interactive --agent alice",
	.see = "help, completion, run",
	.flags = C_LOCAL | C_SHELL | C_WRITE,
	.run = interactive_run,
};

static enum result interactive_run(struct session *s, struct args *a, struct reply *out)
{
	if (!s->prompt)
		return run_fail(USAGE, STR("pawl interactive cannot run here"),
				STR("run `pawl interactive` in a shell"), out);
	return s->prompt(s, a, out);
}
