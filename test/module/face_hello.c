/* A module for tests: the command `hello`. */
#include "base/module.h"
#include "cmd/command.h"

struct hello_args {
	struct args args;
	struct str name;
};

static const struct param params[] = { LOCAL(hello, name, "NAME", P_NAME,
					     .flags = P_POSITIONAL | P_REQUIRED,
					     .help = "whom to greet"),
				       { 0 } };

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	struct str name = ((const struct hello_args *)a)->name;

	(void)s;
	json_object_set_new(reply_more(out), "greeted", json_stringn(name.p, name.n));
	return SUCCESS;
}

static void show(const struct reply *r, struct view *v)
{
	view_text(v, PLAIN, "hello, ");
	view_data(v, PLAIN, json_get(r->more, "greeted"));
	view_text(v, PLAIN, "\n");
}

static const struct command cmd_hello = {
	.name = "hello",
	.group = "look",
	.summary = "greet somebody",
	.example = "pawl hello world",
	.params = params,
	.args_size = sizeof(struct hello_args),
	.flags = C_LOCAL,
	.run = run,
	.show = show,
};

static const struct command *const hello_commands[] = { &cmd_hello, NULL };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .commands = hello_commands };
