/* A module for tests: the command `hello`. */
#include "base/module.h"
#include "cmd/command.h"

static const struct param params[] = {
	LOCAL(key, "NAME", P_NAME, .flags = P_POSITIONAL | P_REQUIRED, .help = "whom to greet"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, json_t **out)
{
	(void)s;
	*out = run_success();
	json_object_set_new(*out, "greeted", json_stringn(a->key.p, a->key.n));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	view_text(v, PLAIN, "hello, ");
	view_data(v, PLAIN, view_get(o, "greeted"));
	view_text(v, PLAIN, "\n");
}

static const struct command cmd_hello = {
	.name = "hello",
	.group = "look",
	.summary = "greet somebody",
	.example = "pawl hello world",
	.params = params,
	.flags = C_LOCAL,
	.run = run,
	.show = show,
};

static const struct command *const hello_commands[] = { &cmd_hello, NULL };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .commands = hello_commands };
