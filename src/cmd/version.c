/* pawl version: the versions of pawl and SQLite, the built-in stores and the folder of modules. */
#include <sqlite3.h>

#include "base/module.h"
#include "cmd/command.h"

static enum result version_run(struct session *s, struct args *a, struct reply *out);
static void version_show(const struct reply *r, struct view *v);

const struct command cmd_version = {
	.name = "version",
	.group = "setup",
	.summary = "show the version of pawl and its parts",
	.example = "pawl version --json",
	.see = "doctor, help",
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = version_run,
	.show = version_show,
};

#ifndef PAWL_VERSION
#define PAWL_VERSION "0.2.0-dev"
#endif

static enum result version_run(struct session *s, struct args *a, struct reply *out)
{
	json_t *stores = json_array();

	(void)s;
	(void)a;
	for (size_t i = 0; store_built_in[i]; i++)
		json_array_append_new(stores, json_string(store_built_in[i]->scheme));
	json_object_set_new(reply_more(out), "version", json_string(PAWL_VERSION));
	json_object_set_new(reply_more(out), "sqlite", json_string(sqlite3_libversion()));
	json_object_set_new(reply_more(out), "stores", stores);
	json_object_set_new(reply_more(out), "modules", json_string(module_dir()));
	return SUCCESS;
}

static void version_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	struct strs stores = { 0 };

	view_text(v, BOLD, "pawl %s\n", arena_cstr(v->arena, json_get(o, "version")));
	if (v->quiet)
		return;
	for (size_t i = 0; store_built_in[i]; i++)
		stores = arena_append(v->arena, stores, str_c(store_built_in[i]->scheme));
	view_text(v, PLAIN, "SQLite %s\n", arena_cstr(v->arena, json_get(o, "sqlite")));
	view_text(v, PLAIN, "stores built in: %s; others from %s\n",
		  arena_cstr(v->arena, view_strs(v, stores)),
		  arena_cstr(v->arena, json_get(o, "modules")));
}
