/*
 * The parts of an import that transfer_in.c and import_existing.c share.
 */
#ifndef QUEUE_IMPORT_PRIVATE_H
#define QUEUE_IMPORT_PRIVATE_H

#include "queue/queue_private.h"
#include "queue/transfer.h"

struct waiter;

struct importing {
	struct bulk bulk;
	struct import *im;
	struct arena own; /* memory of one attempt */
	struct waiter **waiters, *first, *last;
	size_t n_waiting;
	int64_t counter;
	size_t done;
	struct strs refusals; /* a check's refusals after the first */
	size_t n_refusals;
	struct str where; /* where the current parcel came from */
};

/* The tasks that wait for the imported task. They are checked for cycles after all links are set. */
struct sources {
	struct str *v;
	size_t n;
	bool waits; /* the task itself waits for others */
};

int import_refuse(struct importing *x, struct act *w, enum result code, struct str text,
		  struct str hint);
/* Reports the refusal by a shared function, such as act_load(). */
int import_passed_on(struct importing *x, struct act *w, int r);
void import_add_source(struct act *w, struct sources *s, struct str key);
void import_add_comments(struct act *w, struct loaded *l, const struct parcel *p);
void import_complete(struct task *t, int64_t now);
int import_settle(struct importing *x, struct act *w, struct loaded *l, struct sources *sources);
/* Treats a task that exists already as x->im->clash says. */
int import_existing(struct importing *x, struct act *w, struct loaded *l, struct parcel *p);

#endif
