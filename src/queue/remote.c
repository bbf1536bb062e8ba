#include "queue/remote_queue.h"

#include "base/module.h"
#include "queue/queue_private.h"

bool remote_is(struct str uri)
{
	return str_starts(uri, STR("http://")) || str_starts(uri, STR("https://")) ||
	       str_starts(uri, STR("unix:"));
}

const struct remote_ops *remote_load(struct answer *ans, struct arena *a)
{
	const struct module *m;
	char why[300];
	int r = module_load("remote", STR(""), &m, why, sizeof(why));

	if (!r && m->remote)
		return m->remote;
	answer_fail(ans, MISCONFIGURED,
		    arena_printf(a, "a server as a store needs the module pawl-remote.so: %s%s",
				 r < 0 ? why : "it is not installed in ",
				 r < 0 ? "" : module_dir()),
		    STR("install the modules of version " PAWL_VERSION
			" (`make install`), or set PAWL_MODULE_DIR to the folder that holds them"));
	return NULL;
}

enum result remote_refuse(const char *what, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, MISCONFIGURED,
			   arena_printf(a, "%s does not work through a server", what),
			   STR("run it on the server's machine, with the server's own --store"));
}

enum result queue_facts(struct queue *q, struct frame_facts *out, struct answer *ans,
			struct arena *a)
{
	if (!q->remote)
		return answer_fail(ans, MISCONFIGURED, STR("the store is not a server"), STR(""));
	return q->far->facts(q->remote, out, ans, a);
}
