/*
 * setup_entry: the JSON values that setup puts into the settings of clients. Each exists with an agent's name and
 * without one, and for a server on this machine or behind a URL. setup recognises all of them as its own. An entry never has
 * a token: it names the variable that has one.
 */
#ifndef CMD_SETUP_ENTRY_H
#define CMD_SETUP_ENTRY_H

#include <jansson.h>

#include "base/arena.h"

enum setup_shape {
	SHAPE_SERVER,       /* {"command": "pawl", "args": ["mcp"]} */
	SHAPE_STDIO,        /* the same, with "type": "stdio" */
	SHAPE_ENV,          /* the same, with "env": {} */
	SHAPE_COMMAND_LIST, /* {"type": "local", "command": ["pawl", "mcp"], "enabled": true} */
	SHAPE_HOOK,         /* {"hooks": [{"type": "command", "command": "pawl hook EVENT"}]} */
	SHAPE_TOOL_HOOK,    /* the same, for every tool */
	SHAPE_CURSOR_HOOK,  /* {"command": "pawl hook EVENT"} */
	SHAPE_FIXED         /* any JSON, without an agent */
};

/* How a client writes a server behind a URL. */
enum setup_http {
	HTTP_NONE, /* setup does not know */
	HTTP_TYPE, /* {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${VARIABLE}"}} */
	HTTP_URL,     /* the same without a type, and ${env:VARIABLE} */
	HTTP_HTTPURL, /* the same with "httpUrl", and $VARIABLE */
	HTTP_REMOTE   /* the same with "type": "remote", "enabled", and {env:VARIABLE} */
};

#define SETUP_TOKEN "PAWL_SERVER_TOKEN"

/* For whom an entry is made, and where its server is. */
struct setup_as {
	struct str agent; /* empty: not named */
	struct str url;   /* of the server's /mcp; empty: the client starts `pawl mcp` */
};

struct setup_entry {
	enum setup_shape shape;
	enum setup_http http;
	const char *text;   /* the event of a hook, or the JSON of SHAPE_FIXED */
	const char *client; /* this hook says that this client calls; NULL: the client says it */
};

/* The arguments of pawl: ["mcp", "--agent", AGENT]. */
json_t *setup_entry_args(struct str agent);
json_t *setup_entry_make(const struct setup_entry *e, struct setup_as as, struct arena *a);
/* Is `v` this entry, for anybody and anywhere? */
bool setup_entry_is(const struct setup_entry *e, const json_t *v, struct setup_as *as,
		    struct arena *a);
/* The URL of /mcp of the server that the user named. NULL, or the reason for a refusal. */
const char *setup_url(struct str said, struct str *out, struct arena *a);
/* The URL with this agent's name in its query; an empty name changes nothing. */
struct str setup_url_as(struct str url, struct str agent, struct arena *a);

#endif
