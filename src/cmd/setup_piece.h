/*
 * setup_piece: the files that each coding agent's client needs, and their places. doc/setup.md names the
 * documentation that this follows.
 */
#ifndef CMD_SETUP_PIECE_H
#define CMD_SETUP_PIECE_H

#include "client/file_change.h"
#include "format/json_text.h"
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
	bool hook;          /* only with --hooks */
	bool fresh;         /* only in a file that setup makes */
	struct json_place place;
	const char *value; /* of PIECE_JSON, as JSON */
	const struct section *section;
	const char *head; /* of PIECE_FILE: the text before the section */
};

extern const struct piece setup_pieces[]; /* ends with a NULL client */

/* Applies or removes the piece in f->after. TEXT_OTHER: somebody else's entry is there and stays. */
enum text_change piece_add(const struct piece *p, struct file_change *f, struct arena *a);
enum text_change piece_remove(const struct piece *p, struct file_change *f, struct arena *a);

#endif
