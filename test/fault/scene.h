/*
 * scene: a small queue in which everything there is to do can be done, and the operations that are tried on
 * it. All of it goes through src/queue on a store URI; the clocks stand still, so that the same operation on
 * the same queue always leads to the same bytes of JSON.
 */
#ifndef TEST_FAULT_SCENE_H
#define TEST_FAULT_SCENE_H

#include "../race/kit.h"
#include "tree.h"

enum what { DO_CALL, DO_OPEN, DO_CLOSE, DO_CHECK };

struct operation {
	const char *name;
	enum what what;
	enum store_mode mode;
	void (*fill)(struct request *rq); /* DO_CALL */
	bool from_nothing;                /* there is no queue yet */
	bool long_log;                    /* the store has something to clear up first */
	bool newer;                       /* the layout has to be migrated */
};

extern const struct operation operations[];
extern const size_t n_operations;

/* PAWL_TEST_STORE, or SQLite; "{dir}" in it is `dir`. */
void scene_begin(const char *dir);
/* Does that store have such an operation? */
bool scene_has(const struct operation *op);
/* What the operation starts from; and the same again. */
void scene_make(const struct operation *op, struct tree *out);
void scene_restore(const struct operation *op, const struct tree *t);
/* For this process: the layout that the operation is about. */
void scene_layout(const struct operation *op);
enum result scene_open(struct queue **q, enum store_mode mode, struct answer *ans, struct arena *a);
/* *q is what it opens or closes. */
void scene_do(const struct operation *op, struct queue **q, struct answer *ans, struct arena *a);
/* Without what only tells that it is a repeat. */
struct str scene_json(const struct answer *ans, struct arena *a);
/* Everything there is to see in the queue; empty if something cannot be read. */
struct str scene_dump(struct queue *q, struct arena *a);
/* The first thing that is bad about the store; empty: all is well. */
struct str scene_check(struct queue *q, struct arena *a);
void scene_clock(int64_t ms);
/* The machine has booted since. */
void scene_boot(const char *name);

#endif
