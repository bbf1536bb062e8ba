/*
 * salvage: a file of records that `doctor --fix` takes out of a queue because nothing can use them. JSON Lines: one
 * object for each record, with its name, the reason and its parts. doc/data.md describes the format.
 */
#ifndef TRANSFER_SALVAGE_H
#define TRANSFER_SALVAGE_H

#include <stdio.h>

#include "store/store.h"

struct salvage {
	char *path; /* of the file; with the first record it gets a name that no other file has */
	FILE *file; /* NULL: nothing was saved yet */
	size_t n;
	struct arena *arena;
};

/* `path`: the wanted name. The file is made with the first record. */
void salvage_init(struct salvage *s, struct str path, struct arena *a);
struct repair_sink salvage_sink(struct salvage *s);
void salvage_close(struct salvage *s);

#endif
