/* Selection: which tasks are eligible, and in which order. */
#include "proof/model/model_private.h"

bool model_live(const struct model_task *t, int64_t now)
{
	return t->lock.holder && t->lock.token && now < t->lock.expires_at;
}

void model_count_links(const struct model *m, uint32_t task, int64_t counts[4])
{
	const struct model_task *t = model_task(m, task);

	memset(counts, 0, 4 * sizeof(*counts));
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++) {
		int64_t status = model_task(m, t->depends[i])->status;

		counts[0] += status != DONE;
		counts[1] += status == CANCELED;
	}
	for (uint32_t i = 1; i < m->n_tasks; i++) {
		const struct model_task *sub = model_task(m, i);

		counts[2] += sub->status && sub->parent == task && sub->status != DONE &&
			     sub->status != CANCELED;
	}
}

static bool waits_for_deps(const struct model *m, const struct model_task *t)
{
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (model_task(m, t->depends[i])->status != DONE)
			return true;
	return false;
}

static bool waits_for_subs(const struct model *m, const struct model_task *t)
{
	int64_t counts[4];

	model_count_links(m, (uint32_t)(t - model_task(m, 0)), counts);
	return counts[2] > 0;
}

static bool has_label(const struct model_task *t, uint32_t label)
{
	for (int i = 0; i < MODEL_LABELS; i++)
		if (t->labels[i] == label)
			return true;
	return false;
}

static bool passed_over(const struct model_world *w, const struct model_task *t,
			const struct model_call *c)
{
	for (size_t i = 0; !c->rq->explain && i < c->rq->except.n; i++)
		if (str_eq_nocase(c->rq->except.v[i], model_text(w, MODEL_TEXT, t->spelled)))
			return true;
	return false;
}

static bool asked_for(const struct model_task *t, const struct model_call *c)
{
	return (!c->rq->class_rank || t->class_rank == c->rq->class_rank) &&
	       (!c->type || t->type == c->type) && (!c->label || has_label(t, c->label)) &&
	       (!c->assignee || t->assignee == c->assignee);
}

/* The time from which the task is eligible without a change to it; -1: time alone is not enough. */
static int64_t offered_from(const struct model_world *w, const struct model *m,
			    const struct model_call *c, const struct model_task *t)
{
	int64_t lock_ends = t->lock.holder ? t->lock.expires_at : 0;

	if (!asked_for(t, c) || passed_over(w, t, c))
		return -1;
	if (!w->policy.offer_parents && waits_for_subs(m, t))
		return -1;
	if (t->status == IN_PROGRESS && !w->policy.keep_abandoned)
		return t->lock.holder ? lock_ends : t->free_at;
	if (t->status != READY || (!w->policy.ignore_depends && waits_for_deps(m, t)))
		return -1;
	return lock_ends > t->not_before ? lock_ends : t->not_before;
}

bool model_offered(const struct model_world *w, const struct model *m, const struct model_call *c,
		   uint32_t task, int64_t now)
{
	int64_t from = offered_from(w, m, c, model_task(m, task));

	return from >= 0 && from <= now;
}

static bool model_select_digit(struct str s)
{
	return s.n && s.p[0] >= '0' && s.p[0] <= '9';
}

/* Cuts the number at the start of *s: its digits without leading zeros. */
static struct str cut_number(struct str *s, bool *zeros)
{
	struct str n = { s->p, 0 };
	size_t length;

	for (; model_select_digit(*s); *s = str_n(s->p + 1, s->n - 1), n.n++)
		;
	for (length = n.n; n.n && n.p[0] == '0'; n = str_n(n.p + 1, n.n - 1))
		;
	*zeros |= n.n ? n.n < length : length > 1;
	return n;
}

static char model_select_small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int compare_small(struct str a, struct str b)
{
	size_t i = 0;

	while (i < a.n && i < b.n && model_select_small(a.p[i]) == model_select_small(b.p[i]))
		i++;
	if (i == a.n || i == b.n)
		return (a.n > b.n) - (a.n < b.n);
	return (unsigned char)model_select_small(a.p[i]) -
	       (unsigned char)model_select_small(b.p[i]);
}

/* Runs of digits as numbers, all else as bytes in lower case. Of equal ones, that without superfluous zeros. */
int model_id_cmp(struct str a, struct str b)
{
	const struct str id[2] = { a, b };
	bool zeros[2] = { false, false };

	while (a.n && b.n) {
		struct str x, y;

		if (!model_select_digit(a) || !model_select_digit(b)) {
			if (model_select_small(a.p[0]) != model_select_small(b.p[0]))
				return (unsigned char)model_select_small(a.p[0]) -
				       (unsigned char)model_select_small(b.p[0]);
			a = str_n(a.p + 1, a.n - 1);
			b = str_n(b.p + 1, b.n - 1);
			continue;
		}
		x = cut_number(&a, &zeros[0]);
		y = cut_number(&b, &zeros[1]);
		if (x.n != y.n)
			return x.n < y.n ? -1 : 1;
		if (str_cmp(x, y))
			return str_cmp(x, y);
	}
	if (a.n || b.n)
		return a.n ? 1 : -1;
	return zeros[0] != zeros[1] ? zeros[0] - zeros[1] : compare_small(id[0], id[1]);
}

bool model_before(const struct model_world *w, const struct model_task *a,
		  const struct model_task *b)
{
	if (a->class_rank != b->class_rank)
		return a->class_rank < b->class_rank;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->due != b->due)
		return a->due && (!b->due || a->due < b->due);
	if (a->updated_at != b->updated_at)
		return a->updated_at < b->updated_at;
	return model_id_cmp(model_text(w, MODEL_TEXT, a->spelled),
			    model_text(w, MODEL_TEXT, b->spelled)) < 0;
}

uint32_t model_first(const struct model_world *w, const struct model *m, const struct model_call *c,
		     int64_t now)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < m->n_tasks; i++)
		if (model_offered(w, m, c, i, now) &&
		    (!best || model_before(w, model_task(m, i), model_task(m, best))))
			best = i;
	return best;
}

int64_t model_wait(const struct model_world *w, const struct model *m, const struct model_call *c,
		   int64_t now)
{
	int64_t first = 0;

	for (uint32_t i = 1; i < m->n_tasks; i++) {
		int64_t from = offered_from(w, m, c, model_task(m, i));

		if (from > now && (!first || from < first))
			first = from;
	}
	return first ? first - now : 0;
}

struct str model_next_id(const struct model_world *w, const struct model *m, int64_t *counter,
			 struct arena *a)
{
	for (int64_t n = m->counter + 1;; n++) {
		struct str id = arena_printf(a, "t%lld", (long long)n);
		uint32_t name = model_find(w, MODEL_TASK, id);

		if (name && model_task(m, name)->status)
			continue;
		*counter = n;
		return id;
	}
}

bool model_makes(struct str id)
{
	int64_t n;

	return (str_cut_prefix(&id, STR("t")) || str_cut_prefix(&id, STR("T"))) &&
	       str_to_i64(id, &n) && id.p[0] >= '1' && id.p[0] <= '9';
}
