/*
 * setup_entry: the JSON values that setup puts into clients' settings. Each exists with and without
 * an agent's name, and for a server on this machine or behind a URL. setup recognises all of them
 * as its own. An entry never contains a token: it names the variable that has one.
 */
#ifndef CMD_SETUP_H
#define CMD_SETUP_H

#include <jansson.h>

#include "base/arena.h"
#include "client/file_change.h"
#include "cmd/command.h"
#include "format/json.h"
#include "format/section.h"

enum setup_shape {
	SHAPE_SERVER,       /* {"command": "pawl", "args": ["mcp"]} */
	SHAPE_STDIO,        /* SHAPE_SERVER with "type": "stdio" */
	SHAPE_ENV,          /* SHAPE_SERVER with "env": {} */
	SHAPE_COMMAND_LIST, /* {"type": "local", "command": ["pawl", "mcp"], "enabled": true} */
	SHAPE_HOOK,         /* {"hooks": [{"type": "command", "command": "pawl hook EVENT"}]} */
	SHAPE_TOOL_HOOK,    /* SHAPE_HOOK with "matcher": "*": after every tool */
	SHAPE_CURSOR_HOOK,  /* {"command": "pawl hook EVENT"} */
	SHAPE_FIXED         /* any JSON, without an agent */
};

/* The form in which a client writes a server behind a URL. */
enum setup_http {
	HTTP_NONE, /* setup does not know */
	HTTP_TYPE, /* {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${VARIABLE}"}} */
	HTTP_URL,     /* HTTP_TYPE without "type", and with ${env:VARIABLE} */
	HTTP_HTTPURL, /* HTTP_URL with "httpUrl", and with $VARIABLE */
	HTTP_REMOTE   /* HTTP_TYPE with "type": "remote", "enabled", and {env:VARIABLE} */
};

#define SETUP_TOKEN "PAWL_SERVER_TOKEN"

/* The agent that an entry is for, and the place of its server. */
struct setup_as {
	struct str agent; /* empty: not named */
	struct str url;   /* URL of the server's /mcp; empty: the client starts `pawl mcp` */
};

struct setup_entry {
	enum setup_shape shape;
	enum setup_http http;
	const char *text;   /* the event of a hook, or the JSON of SHAPE_FIXED */
	const char *client; /* client that the hook names to pawl; NULL: the client names itself */
};

/* The arguments of pawl: ["mcp", "--agent", AGENT]. */
json_t *setup_entry_args(struct str agent);
json_t *setup_entry_make(const struct setup_entry *e, struct setup_as as, struct arena *a);
/* Is `v` this entry, for any agent and any server? */
bool setup_entry_is(const struct setup_entry *e, const json_t *v, struct setup_as *as,
		    struct arena *a);
/* Makes the URL of /mcp from the server that the user named. NULL, or the reason for a refusal. */
const char *setup_url(struct str said, struct str *out, struct arena *a);
/* The URL with this agent's name in its query; an empty name changes nothing. */
struct str setup_url_as(struct str url, struct str agent, struct arena *a);

/* --- setup client ----------------------------------------------------------------------------- */

/*
 * setup_client: the coding agents that setup configures, the places of their files, and whether
 * they are installed.
 */

struct setup_client {
	const char *name;     /* "claude" */
	const char *title;    /* "Claude Code" */
	const char *programs; /* its commands, separated by blanks; NULL: several clients */
	const char *folder;   /* a folder in the home folder that a client makes when it is used */
	const char *variable,
		*moved; /* the variable that moves the folder `moved` of the home folder; NULL: there is none */
};

/* A client whose files setup does not write: it prints the entry. */
struct other_client {
	const char *title;
	const char *file, *user_file; /* one of them may be NULL */
	const char *key;              /* NULL: the file is YAML */
	struct setup_entry entry;
};

#define SETUP_CLIENTS "claude codex cursor gemini copilot vscode opencode qwen amp generic"

extern const struct setup_client setup_clients[]; /* ends with a NULL name */
extern const struct other_client other_clients[]; /* ends with a NULL title */

const struct setup_client *setup_client_find(struct str name);
/* The folder of the client's files for --user; NULL: there is no home folder. */
const char *setup_client_home(const struct setup_client *c, struct arena *a);
/* The file's path relative to that folder. */
const char *setup_client_file(const struct setup_client *c, const char *user_file);
/* The path of the client's program or folder; NULL: it is not installed. */
const char *setup_client_installed(const struct setup_client *c, struct arena *a);
/* The entry as the text of a file that contains nothing else. */
struct str other_client_entry(const struct other_client *c, struct str agent, struct arena *a);

/* --- setup piece ------------------------------------------------------------------------------ */

/*
 * setup_piece: the parts of files that each coding agent needs, and their places. doc/setup.md
 * names the documentation that they follow.
 */

enum piece_kind {
	PIECE_JSON,    /* a value in a JSON file */
	PIECE_SECTION, /* a part of a text between two marks */
	PIECE_FILE     /* a file of our own: a head and a section */
};

struct piece {
	const char *client; /* "claude" */
	enum piece_kind kind;
	const char *file,
		*user_file; /* its path in the project and in the home folder; NULL: it has no file there */
	bool server; /* it names the MCP server: a client that has it is configured */
	bool hook;   /* only with --hooks */
	bool fresh;  /* only in a file that setup makes */
	struct json_place place;
	struct setup_entry entry; /* of PIECE_JSON */
	const struct section *section;
	const char *head; /* of PIECE_FILE: the text before the section */
};

extern const struct piece setup_pieces[]; /* ends with a NULL client */

/* The piece's file below root, which is the project or, for `user`, the client's home folder. NULL:
 * there is none. */
const char *piece_file(const struct piece *p, bool user, const char *root, struct arena *a);
/* Can the client's server be behind a URL? */
bool piece_takes_url(const struct piece *p);
/* Adds or removes the piece in f->after. TEXT_OTHER: somebody else's entry is there and stays. as:
 * the name and the URL for the entry; if one is empty, the entry keeps its present one. */
enum text_change piece_add(const struct piece *p, struct file_change *f, struct setup_as as,
			   struct arena *a);
enum text_change piece_remove(const struct piece *p, struct file_change *f, struct arena *a);
/* Is the entry of a PIECE_JSON in this text, with any agent? */
bool piece_is_in(const struct piece *p, struct str text, struct arena *a);
/* The agent and the URL that the piece names in this text. */
struct setup_as piece_as(const struct piece *p, struct str text, struct arena *a);

/* --- setup list ------------------------------------------------------------------------------- */

/*
 * setup_list: `pawl setup --list` shows which clients are installed, and which are configured.
 */

/* An array with an object for each client. Reads the files, and changes nothing. */
json_t *setup_list(struct session *s);
void setup_list_show(const json_t *clients, struct view *v);

#endif
