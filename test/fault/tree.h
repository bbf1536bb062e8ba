/*
 * tree: a folder and all that is in it, in memory: to be put somewhere as it was.
 */
#ifndef TEST_FAULT_TREE_H
#define TEST_FAULT_TREE_H

#include "base/arena.h"

struct tree_node {
	struct tree_node *next;
	struct str path; /* below the folder */
	bool folder;
	struct str bytes;
};

struct tree {
	struct tree_node *nodes, **last; /* a folder comes before what is in it */
	struct arena a;
};

/* A folder that is fast, in the machine's memory if it can be: a path with a NUL. */
const char *tree_place(char *out, size_t room);
void tree_add(struct tree *t, struct str path, bool folder, struct str bytes);
void tree_load(struct tree *t, const char *dir);
/* Instead of what is in `dir`. */
void tree_store(const struct tree *t, const char *dir);
void tree_clear(const char *dir);
void tree_free(struct tree *t);

#endif
