/*
 * order: which tasks are eligible, and which comes first. index_cmp() (core/index.h) defines the order. Every
 * store calls it, so all stores sort alike.
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "core/index.h"
#include "core/request.h"

enum offer {
	OFFER_NONE, /* its status or a foreign lock without an expiry prevents it */
	OFFER_NOW,
	OFFER_LATER,  /* from `at` on */
	OFFER_WAITING /* for dependencies, and at least until `at` */
};

/* Computes the index of a task. Strings point into the task; keys are in `a`. */
void order_index(const struct task *t, struct index *out, struct arena *a);
enum offer order_offer(const struct task *t, int64_t *at);
/* The reason for `next --explain`; *eligible: may an agent claim it under this policy? */
struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible);

#endif
