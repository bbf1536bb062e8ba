/*
 * order: who is eligible, and who goes first. The order itself is index_cmp() of the store layer, over
 * what order_place() says of a task, so that every store sorts alike.
 */
#ifndef CORE_ORDER_H
#define CORE_ORDER_H

#include "core/request.h"

enum offer {
	OFFER_NONE, /* its status keeps it back */
	OFFER_NOW,
	OFFER_LATER,  /* from `at` on */
	OFFER_WAITING /* for its dependencies, and not before `at` */
};

enum offer order_offer(const struct task *t, int64_t *at);
/* In words, for `next --explain`; *eligible as the policy has it. */
struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible);

#endif
