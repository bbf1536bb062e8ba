/*
 * setup_piece: the files that each coding agent's client needs, and their places. doc/setup.md names the
 * documentation that this follows.
 */
#ifndef CMD_SETUP_PIECE_H
#define CMD_SETUP_PIECE_H

#include "client/file_change.h"
#include "cmd/setup_client.h"
#include "format/json.h"
#include "format/section.h"

enum piece_kind {
	PIECE_JSON,    /* a value in a JSON file */
	PIECE_SECTION, /* a part of a text between two marks */
	PIECE_FILE     /* a file of our own: a head and a section */
};

struct piece {
	const char *client; /* "claude" */
	enum piece_kind kind;
	const char *file,
		*user_file; /* its path in the project and in the home folder; NULL: it has none there */
	bool server;        /* it names the MCP server: with it the client is configured */
	bool hook;          /* only with --hooks */
	bool fresh;         /* only in a file that setup makes */
	struct json_place place;
	struct setup_entry entry; /* of PIECE_JSON */
	const struct section *section;
	const char *head; /* of PIECE_FILE: the text before the section */
};

extern const struct piece setup_pieces[]; /* ends with a NULL client */

/* The file of the piece below root, which is the project, or for `user` the client's home folder. NULL: it has none. */
const char *piece_file(const struct piece *p, bool user, const char *root, struct arena *a);
/* Can the server of the client be behind a URL? */
bool piece_takes_url(const struct piece *p);
/* Applies or removes the piece in f->after. TEXT_OTHER: somebody else's entry is there and stays. as: the name and the URL
 * that the entry gets; without one, the entry keeps what it has. */
enum text_change piece_add(const struct piece *p, struct file_change *f, struct setup_as as,
			   struct arena *a);
enum text_change piece_remove(const struct piece *p, struct file_change *f, struct arena *a);
/* Is the entry of a PIECE_JSON in this text, with any agent? */
bool piece_is_in(const struct piece *p, struct str text, struct arena *a);
/* The agent and the URL that the piece names in this text. */
struct setup_as piece_as(const struct piece *p, struct str text, struct arena *a);

#endif
