/*
 * order: who is eligible, and who goes first. The order itself is index_cmp() (core/index.h): every
 * store calls it, so that all of them sort alike.
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "core/index.h"
#include "core/request.h"

enum offer {
	OFFER_NONE, /* its status keeps it back */
	OFFER_NOW,
	OFFER_LATER,  /* from `at` on */
	OFFER_WAITING /* for its dependencies, and not before `at` */
};

/* What stores know of a task. Strings are those of the task; lists of keys are in `a`. */
void order_index(const struct task *t, struct index *out, struct arena *a);
enum offer order_offer(const struct task *t, int64_t *at);
/* In words, for `next --explain`; *eligible as the policy has it. */
struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible);

#endif
