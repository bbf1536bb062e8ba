/*
 * scene: a small queue that allows every operation, and the operations that are tried on it. All of
 * them go through src/queue on a store URI. The clocks stand still, so the same operation on the
 * same queue always gives the same bytes of JSON.
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
	void (*fill)(struct request *rq); /* for DO_CALL */
	bool from_nothing;                /* the queue does not exist yet */
	bool long_log;                    /* the store must clean up first */
};

extern const struct operation operations[];
extern const size_t n_operations;

/* Uses PAWL_TEST_STORE, or SQLite; "{dir}" in it is `dir`. */
void scene_begin(const char *dir);
/* Makes the initial state of the operation; restores it. */
void scene_make(const struct operation *op, struct tree *out);
void scene_restore(const struct operation *op, const struct tree *t);
enum result scene_open(struct queue **q, enum store_mode mode, struct answer *ans, struct arena *a);
/* *q is the handle that it opens or closes. */
void scene_do(const struct operation *op, struct queue **q, struct answer *ans, struct arena *a);
/* The answer without the mark of a repeat. */
struct str scene_json(const struct answer *ans, struct arena *a);
/* Everything that can be read from the queue; empty if something cannot be read. */
struct str scene_dump(struct queue *q, struct arena *a);
/* The first fault of the store; empty: it is sound. */
struct str scene_check(struct queue *q, struct arena *a);
void scene_clock(int64_t ms);
/* Simulates a reboot of the machine. */
void scene_boot(const char *name);

#endif
