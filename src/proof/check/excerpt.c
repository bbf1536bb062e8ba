/* Finds the smallest part of a family's calls that no order explains. */
#include <stdlib.h>

#include "proof/check/split.h"

#define DROP_MAX 150 /* larger families are not reduced call by call */
#define EXCERPT 24   /* calls shown at most */

/* The family as known at time t: the calls sent by then, with the answers that came by then. */
static void cut_at(const struct family *f, int64_t t, struct family *out)
{
	out->n_parts = 0;
	for (size_t i = 0; i < f->n_parts; i++) {
		struct part p = f->parts[i];

		if (p.sent > t)
			continue;
		if (p.ans && p.answered > t) {
			if (op_flags(p.rq->op) & OP_READS || p.spare)
				continue;
			p.ans = NULL;
			p.answered = HISTORY_NEVER;
		}
		out->parts[out->n_parts++] = p;
	}
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Every prefix of an explicable history is explicable, so a binary search finds the first prefix
 * that is not. */
static int64_t first_failing(const struct family *f, struct family *out, struct arena *a)
{
	int64_t *times = arena_array(a, int64_t, f->n_parts);
	size_t n = 0, low = 0, high;

	for (size_t i = 0; i < f->n_parts; i++)
		if (f->parts[i].ans && !f->parts[i].spare)
			times[n++] = f->parts[i].answered;
	qsort(times, n, sizeof(*times), by_time);
	high = n - 1;
	while (low < high) {
		size_t mid = (low + high) / 2;

		cut_at(f, times[mid], out);
		if (linear_check(out, NULL, NULL) == LINEAR_NO)
			high = mid;
		else
			low = mid + 1;
	}
	cut_at(f, times[low], out);
	return times[low];
}

/* Accepted changes explain the state: they stay. */
static bool may_drop(const struct part *p, int64_t last)
{
	return !p->ans || p->spare ||
	       (p->answered != last &&
		!(p->call && call_accepted(p->call) && !(op_flags(p->rq->op) & OP_READS)));
}

static void drop_others(struct family *f, int64_t last, struct arena *a)
{
	struct family less = *f;

	if (f->n_parts > DROP_MAX)
		return;
	less.parts = arena_array(a, struct part, f->n_parts);
	for (size_t i = f->n_parts; i-- > 0;) {
		if (!may_drop(&f->parts[i], last))
			continue;
		memcpy(less.parts, f->parts, i * sizeof(*f->parts));
		memcpy(less.parts + i, f->parts + i + 1, (f->n_parts - i - 1) * sizeof(*f->parts));
		less.n_parts = f->n_parts - 1;
		if (linear_check(&less, NULL, NULL) != LINEAR_NO)
			continue;
		memcpy(f->parts, less.parts, less.n_parts * sizeof(*f->parts));
		f->n_parts = less.n_parts;
	}
}

static size_t add_calls(const struct history_call **calls, size_t n,
			const struct part *const *parts, size_t more)
{
	for (size_t i = 0; i < more; i++) {
		size_t k = 0;

		while (k < n && calls[k] != parts[i]->call)
			k++;
		if (k == n && parts[i]->call)
			calls[n++] = parts[i]->call;
	}
	return n;
}

void report_family(struct checking *x, const struct family *f, struct arena *a)
{
	struct family less = *f;
	struct dead_end end = { 0 };
	const struct part **all;
	const struct history_call **calls;
	size_t n = 0, so_far = x->out->n_findings;
	int64_t last;

	if (x->out->counts[CHECK_LINEAR] >= CHECK_SHOWN) {
		x->out->counts[CHECK_LINEAR]++;
		return;
	}
	less.parts = arena_array(a, struct part, f->n_parts);
	last = first_failing(f, &less, a);
	drop_others(&less, last, a);
	(void)linear_check(&less, &end, a);
	all = arena_array(a, const struct part *, less.n_parts);
	for (size_t i = 0; i < less.n_parts; i++)
		all[i] = &less.parts[i];
	calls = arena_array(a, const struct history_call *, less.n_parts + EXCERPT);
	if (less.n_parts <= EXCERPT) {
		n = add_calls(calls, n, all, less.n_parts);
	} else {
		n = add_calls(calls, n, end.done, end.n_done);
		n = add_calls(calls, n, end.stuck, end.n_stuck);
	}
	check_add(x, CHECK_LINEAR, f->tasks[0], calls, n,
		  "%.*s: no order of these calls%s explains: %.*s", STRF(f->tasks[0]),
		  last == HISTORY_NEVER - 1 ? " and the read at the end" : "", STRF(end.why));
	if (x->out->n_findings > so_far)
		x->out->findings[so_far].state = arena_str(x->arena, end.state);
}
