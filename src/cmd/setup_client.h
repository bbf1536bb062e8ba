/*
 * setup_client: the coding agents that setup configures, where they keep their files, and whether they are installed.
 */
#ifndef CMD_SETUP_CLIENT_H
#define CMD_SETUP_CLIENT_H

#include "cmd/setup_entry.h"

struct setup_client {
	const char *name;  /* "claude" */
	const char *title; /* "Claude Code" */
	const char
		*programs;  /* its commands, with blanks between them; NULL: it is not one client */
	const char *folder; /* a folder in the home folder that a client makes when it is used */
	const char *variable,
		*moved; /* the variable that replaces the folder `moved` of the home folder; or NULL */
};

/* A client that setup does not write for: it prints the entry. */
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
/* The folder that has its files for --user; NULL: there is no home folder. */
const char *setup_client_home(const struct setup_client *c, struct arena *a);
/* The path of a file from that folder. */
const char *setup_client_file(const struct setup_client *c, const char *user_file);
/* Its program, or its folder; NULL: it is not installed. */
const char *setup_client_installed(const struct setup_client *c, struct arena *a);
/* The text of the entry for a file that has nothing else. */
struct str other_client_entry(const struct other_client *c, struct str agent, struct arena *a);

#endif
