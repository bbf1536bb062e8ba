/*
 * tree: a copy of a folder and its content in memory, so that it can be restored.
 */
#ifndef TEST_FAULT_TREE_H
#define TEST_FAULT_TREE_H

#include "base/arena.h"

struct tree_node {
	struct tree_node *next;
	struct str path; /* relative to the folder */
	bool folder;
	struct str bytes;
};

struct tree {
	struct tree_node *nodes, **last; /* a folder comes before its content */
	struct arena a;
};

/* The path of a fast folder, in memory if possible. */
const char *tree_place(char *out, size_t room);
void tree_add(struct tree *t, struct str path, bool folder, struct str bytes);
void tree_load(struct tree *t, const char *dir);
/* Replaces the content of `dir`. */
void tree_store(const struct tree *t, const char *dir);
void tree_clear(const char *dir);
void tree_free(struct tree *t);

#endif
