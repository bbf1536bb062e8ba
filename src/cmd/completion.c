#include "cmd/command.h"

static const struct param params[] = {
	LOCAL(shell, "SHELL", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "bash zsh fish", .value = "SHELL", .help = "bash, zsh or fish"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, json_t **out)
{
	struct buf b = BUF_MAX(1u << 20);

	if (!s->completion || !s->completion(&b, a->shell)) {
		buf_free(&b);
		return run_fail(s, USAGE, STR("there are no completions to be had here"), STR(""),
				out);
	}
	*out = run_success();
	json_object_set_new(*out, "shell", json_str(a->shell));
	json_object_set_new(*out, "script", json_str(buf_str(&b)));
	buf_free(&b);
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	buf_adds(v->out, str_c(view_get(o, "script")));
}

const struct command cmd_completion = {
	.name = "completion",
	.group = "setup",
	.summary = "a script that lets the shell complete commands and ids",
	.example = "source <(pawl completion bash)\n"
		   "pawl completion fish > ~/.config/fish/completions/pawl.fish",
	.see = "help",
	.params = params,
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = run,
	.show = show,
};
