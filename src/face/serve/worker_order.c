/*
 * The order of the jobs of a turn: the first one of each caller, the second one of each, and so on. So a caller with many
 * jobs does not keep the others waiting.
 */
#include "face/serve/serve.h"

#include <stdlib.h>

/* A caller's place in the turn. */
struct share {
	const struct meter *caller;
	size_t jobs;
};

struct batch_place {
	struct job *job;
	size_t round, n;
};

static int by_round(const void *a, const void *b)
{
	const struct batch_place *x = a, *y = b;

	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	return x->n < y->n ? -1 : 1;
}

static struct share *share_of(struct share *shares, size_t *n, const struct meter *caller)
{
	size_t i = 0;

	while (i < *n && shares[i].caller != caller)
		i++;
	if (i == *n)
		shares[(*n)++] = (struct share){ .caller = caller };
	return &shares[i];
}

struct job *fair_order(const struct worker *d, struct job *list)
{
	struct arena a = { 0 };
	struct share *shares;
	struct batch_place *places;
	struct job *first = NULL, **last = &first;
	size_t n = 0, callers = 0;

	for (struct job *j = list; j; j = j->next)
		n++;
	shares = arena_array(&a, struct share, n + 1);
	places = arena_array(&a, struct batch_place, n + 1);
	n = 0;
	for (struct job *j = list; j; j = j->next, n++) {
		struct share *s = share_of(shares, &callers, j->payer);

		places[n] = (struct batch_place){ j, s->jobs++ + (j->payer == d->slow), n };
	}
	if (callers > 1)
		qsort(places, n, sizeof(*places), by_round);
	for (size_t i = 0; i < n; i++) {
		*last = places[i].job;
		last = &places[i].job->next;
	}
	*last = NULL;
	arena_free(&a);
	return first;
}
