/*
 * order: which tasks are eligible, and which comes first. index_cmp() (core/index.h) defines the
 * order, and all stores sort by it.
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "core/index.h"
#include "core/request.h"

enum offer {
	OFFER_NONE, /* its status or a foreign lock without an expiry prevents it */
	OFFER_NOW,
	OFFER_LATER,   /* from `at` on */
	OFFER_WAITING, /* for dependencies, and at least until `at` */
	OFFER_PARENT,  /* for sub-tasks, and at least until `at` */
	OFFER_BOTH     /* for both */
};

/* Computes the index of a task. Strings point into the task; keys are in `a`. */
void order_index(const struct task *t, struct index *out, struct arena *a);
enum offer order_offer(const struct task *t, int64_t *at);
/* A text whose bytes sort as index_cmp() does, for programs that show many tasks and get changes of single ones. */
struct str order_key(const struct task *t, struct arena *a);
/* The lanes of waiting tasks that these settings offer all the same: a set of LANE_BIT(). */
unsigned order_waiting(const struct policy *p);
/* Does the task wait for dependencies, or for sub-tasks, under this policy? */
bool order_waits_deps(const struct task *t, const struct policy *p);
bool order_waits_subs(const struct task *t, const struct policy *p);
/* Is that the reason why the task is not eligible now? */
bool order_waits(const struct task *t, const struct policy *p, int64_t now);
/* The reason for `next --explain`; *eligible: may an agent claim it under this policy? */
struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible);

#endif
