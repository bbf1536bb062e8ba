/*
 * order: which tasks are eligible, and which comes first. index_cmp() (core/index.h) defines the
 * order, and all stores sort by it.
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "core/index.h"
#include "core/request.h"

enum offer {
	OFFER_NONE, /* not eligible: its status, or a foreign lock without an expiry */
	OFFER_NOW,
	OFFER_LATER,   /* eligible from `at` on */
	OFFER_WAITING, /* waiting for dependencies, and at least until `at` */
	OFFER_PARENT,  /* waiting for sub-tasks, and at least until `at` */
	OFFER_BOTH     /* waiting for both, and at least until `at` */
};

/* Computes a task's index. Its strings point into the task, except the keys, which are in `a`. */
void order_index(const struct task *t, struct index *out, struct arena *a);
enum offer order_offer(const struct task *t, int64_t *at);
/* A text whose bytes sort as index_cmp() does. A program that shows many tasks can place a
 * changed one by it. */
struct str order_key(const struct task *t, struct arena *a);
/* The lanes of waiting tasks that these settings offer anyway: a set of LANE_BIT(). */
unsigned order_waiting(const struct policy *p);
/* Does the task wait for dependencies, or for sub-tasks, under this policy? */
bool order_waits_deps(const struct task *t, const struct policy *p);
bool order_waits_subs(const struct task *t, const struct policy *p);
/* Is the task not eligible now because it is waiting for dependencies or sub-tasks? */
bool order_waits(const struct task *t, const struct policy *p, int64_t now);
/* The reason for `next --explain`; *eligible: may an agent claim it under this policy? */
struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible);

#endif
