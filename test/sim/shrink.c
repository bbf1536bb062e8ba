#include <stdlib.h>

#include "sim.h"

/* --- output for people --------------------------------------------------------------------------- */

static void arg_print(FILE *f, const struct request *rq, enum arg a)
{
	const void *p = arg_of(rq, a);
	struct strs list;

	fprintf(f, " %s=", arg_name(a));
	if (arg_kind(a) == ARG_STR) {
		fprintf(f, "%.*s", STRF(*(const struct str *)p));
	} else if (arg_kind(a) == ARG_LIST) {
		list = *(const struct strs *)p;
		for (size_t i = 0; i < list.n; i++)
			fprintf(f, "%s%.*s", i ? "," : "", STRF(list.v[i]));
	} else if (a == ARG_status) {
		fprintf(f, "%s", status_name(rq->status));
	} else {
		fprintf(f, "%lld", (long long)*(const int64_t *)p);
	}
}

void entry_print(FILE *f, const struct sim_entry *e)
{
	if (e->kind == ENTRY_PASS) {
		fprintf(f, "%lld ms pass", (long long)e->ms);
	} else if (e->kind == ENTRY_JUMP) {
		fprintf(f, "the wall clock is set by %+lld ms", (long long)e->ms);
	} else {
		fprintf(f, "%s", op_name(e->rq->op));
		for (int i = 0; i < ARG_END; i++)
			if (e->rq->has >> i & 1)
				arg_print(f, e->rq, (enum arg)i);
		if (e->pass.n)
			fprintf(f, " pass=%.*s", STRF(e->pass));
	}
	if (e->note)
		fprintf(f, "   (%s)", e->note);
}

/* --- shrinking ----------------------------------------------------------------------------------- */

static bool fails(const struct script *s)
{
	size_t done;

	return !sim_run(s, NULL, NULL, &done);
}

/* Leaves out `n` entries from `at` on, if the script still fails without them. */
static bool leave_out(struct script *s, size_t at, size_t n)
{
	struct script less = *s;
	struct sim_entry *v = malloc(s->n * sizeof(*v));
	bool still;

	if (!v)
		abort();
	memcpy(v, s->v, at * sizeof(*v));
	memcpy(v + at, s->v + at + n, (s->n - at - n) * sizeof(*v));
	less.v = v;
	less.n = s->n - n;
	still = fails(&less);
	if (still) {
		s->n = less.n;
		memcpy(s->v, v, s->n * sizeof(*v));
	}
	free(v);
	return still;
}

void script_shrink(struct script *s)
{
	size_t done, before;

	if (sim_run(s, NULL, NULL, &done))
		return; /* it does not fail again: there is nothing to shrink */
	if (done < s->n)
		s->n = done;
	do {
		before = s->n;
		for (size_t n = s->n / 2; n; n /= 2)
			for (size_t at = 0; at + n <= s->n;)
				if (!leave_out(s, at, n))
					at += n;
	} while (s->n < before);
}
