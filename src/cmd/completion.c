#include "cmd/command.h"

struct completion_args {
	struct args args;
	struct str shell;
};

static const struct param params[] = {
	LOCAL(completion, shell, "SHELL", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "bash zsh fish", .value = "SHELL", .help = "bash, zsh or fish"),
	{ 0 }
};

static enum result completion_run(struct session *s, struct args *args, struct reply *out)
{
	const struct completion_args *a = (const struct completion_args *)args;
	struct buf b = BUF_MAX(1u << 20);

	if (!s->completion || !s->completion(&b, a->shell)) {
		buf_free(&b);
		return run_fail(USAGE, STR("completions are not available here"), STR(""), out);
	}
	json_object_set_new(reply_more(out), "shell", json_str(a->shell));
	json_object_set_new(reply_more(out), "script", json_str(buf_str(&b)));
	buf_free(&b);
	return SUCCESS;
}

static void completion_show(const struct reply *r, struct view *v)
{
	buf_adds(v->out, json_get(r->more, "script"));
}

const struct command cmd_completion = {
	.name = "completion",
	.group = "setup",
	.summary = "print a script for the completion in a shell",
	.detail =
		"The shell completes commands, options and words such as priorities. It asks the queue for ids, labels, "
		"holders and the names of queues.",
	.example = "source <(pawl completion bash)\n"
		   "pawl completion fish > ~/.config/fish/completions/pawl.fish",
	.see = "help",
	.params = params,
	.args_size = sizeof(struct completion_args),
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = completion_run,
	.show = completion_show,
};
