/*
 * setup_entry: the JSON values that setup puts into the settings of clients. Each exists with an agent's name and
 * without one, and setup recognises both as its own.
 */
#ifndef CMD_SETUP_ENTRY_H
#define CMD_SETUP_ENTRY_H

#include <jansson.h>

#include "base/arena.h"

enum setup_shape {
	SHAPE_SERVER,      /* {"command": "pawl", "args": ["mcp"]} */
	SHAPE_STDIO,       /* the same, with "type": "stdio" */
	SHAPE_ENV,         /* the same, with "env": {} */
	SHAPE_LIST,        /* {"type": "local", "command": ["pawl", "mcp"], "enabled": true} */
	SHAPE_HOOK,        /* {"hooks": [{"type": "command", "command": "pawl hook EVENT"}]} */
	SHAPE_TOOL_HOOK,   /* the same, for every tool */
	SHAPE_CURSOR_HOOK, /* {"command": "pawl hook EVENT"} */
	SHAPE_FIXED        /* any JSON, without an agent */
};

struct setup_entry {
	enum setup_shape shape;
	const char *text;   /* the event of a hook, or the JSON of SHAPE_FIXED */
	const char *client; /* this hook says that this client calls; NULL: the client says it */
};

/* The arguments of pawl: ["mcp", "--agent", AGENT]. */
json_t *setup_entry_args(struct str agent);
/* agent: empty, or the name that the server or the hook uses. */
json_t *setup_entry_make(const struct setup_entry *e, struct str agent);
/* Is `v` this entry, with any agent or none? */
bool setup_entry_is(const struct setup_entry *e, const json_t *v, struct str *agent,
		    struct arena *a);

#endif
