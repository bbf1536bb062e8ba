/*
 * pawl help: prints the help that the face makes from the table of commands. For an unknown word it
 * suggests the nearest command.
 */
#include "base/text.h"
#include "cmd/command.h"

struct help_args {
	struct args args;
	struct strs words;
};

static const struct param params[] = {
	LOCAL(help, words, "COMMAND", P_WORDS, .flags = P_POSITIONAL, .value = "COMMAND",
	      .help = "command or topic; without one: list all commands"),
	{ 0 }
};

static enum result help_run(struct session *s, struct args *args, struct reply *out);
static void help_show(const struct reply *r, struct view *v);

const struct command cmd_help = {
	.name = "help",
	.group = "setup",
	.summary = "list all commands, or explain one",
	.detail =
		"The same as --help after a command. `pawl help options` explains the options of every command, `pawl help "
		"codes` the exit codes, and `pawl help CONFLICT` (or 20, busy, …) what to do after a refusal.",
	.example = "pawl help claim\n"
		   "pawl lock acquire --help",
	.see = "version",
	.params = params,
	.args_size = sizeof(struct help_args),
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = help_run,
	.show = help_show,
};

/* The suggested command without its arguments: "update" of "update ID --assignee NAME". */
static const char *nearest_topic(const char *word, struct arena *a)
{
	const char *near = command_nearest(NULL, word, a);
	size_t n = 0;

	while (near && near[n] && strncmp(near + n, " ID", 3) != 0 &&
	       strncmp(near + n, " -", 2) != 0)
		n++;
	return near ? arena_cstr(a, str_n(near, n)) : NULL;
}

static enum result help_unknown(struct session *s, const struct help_args *a, struct reply *out)
{
	const char *first = a->words.v[0].p, *near = NULL;
	struct str said = STR("");

	for (size_t i = 0; i < a->words.n; i++)
		said = arena_printf(s->arena, "%.*s%s%.*s", STRF(said), i ? " " : "",
				    STRF(a->words.v[i]));
	if (command_prefix(first) && a->words.n > 1)
		near = command_nearest(first, a->words.v[1].p, s->arena);
	else
		first = NULL, near = nearest_topic(a->words.v[0].p, s->arena);
	return run_fail(USAGE,
			arena_printf(s->arena, "there is no command '%s'",
				     arena_cstr(s->arena, text_line(s->arena, said))),
			near ? arena_printf(s->arena, "did you mean `pawl help %s%s%s`?",
					    first ? first : "", first ? " " : "", near)
			     : STR("`pawl help` shows all commands"),
			out);
}

static enum result help_run(struct session *s, struct args *args, struct reply *out)
{
	const struct help_args *a = (const struct help_args *)args;
	struct buf b = BUF_MAX(1u << 20);

	if (!s->help || !s->help(&b, a->words)) {
		buf_free(&b);
		if (a->words.n)
			return help_unknown(s, a, out);
		return run_fail(USAGE, STR("help is not available here"), STR(""), out);
	}
	json_object_set_new(reply_more(out), "text", json_str(buf_str(&b)));
	buf_free(&b);
	return SUCCESS;
}

static void help_show(const struct reply *r, struct view *v)
{
	buf_adds(v->out, json_get(r->more, "text"));
}
