/* Judges each family of tasks alone: does an order of its calls explain all answers? */
#include "proof/check/split.h"

static void check_family(struct split *s, const struct family *f)
{
	struct arena a = { 0 };
	struct family more[2];
	enum linear r = linear_check(f, NULL, NULL);

	/* calls that may have reached any family are many: add them only if the family's own do not
	 * suffice */
	for (int i = 0; i < 2 && r == LINEAR_NO; i++) {
		if (!split_rovers(s, f, i, &more[i], &a))
			continue;
		r = linear_check(&more[i], NULL, NULL);
		if (i)
			f = &more[i];
	}
	s->x->out->undecided += r == LINEAR_UNDECIDED;
	if (r == LINEAR_NO)
		report_family(s->x, f, &a);
	arena_free(&a);
}

void check_linear(struct checking *x)
{
	struct split s = { .x = x };

	for (size_t i = 0; i < x->log->n_calls; i++) {
		const struct history_call *c = x->calls[i];
		int64_t t = c->answered != HISTORY_NEVER ? c->answered : c->sent;

		s.end = t >= s.end ? t + 1 : s.end;
	}
	split_families(&s);
	split_calls(&s);
	x->out->families = s.n_families;
	for (size_t i = 0; i < s.n_families; i++)
		check_family(&s, &s.families[i]);
	tally_free(&s.ids);
	tally_free(&s.tokens);
}
