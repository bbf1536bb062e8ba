/* The fields of a task and its links to other tasks. */
#include <stdlib.h>

#include "proof/model/model_private.h"

/* --- fields -------------------------------------------------------------------------------------- */

static void label_off(struct model_task *t, uint32_t label)
{
	int n = 0;

	for (int i = 0; i < MODEL_LABELS; i++)
		if (t->labels[i] != label)
			t->labels[n++] = t->labels[i];
	while (n < MODEL_LABELS)
		t->labels[n++] = 0;
}

static void labels_on(const struct step *s, struct model_task *t, struct strs list)
{
	for (size_t k = 0; k < list.n; k++) {
		uint32_t label = model_name(s->w, MODEL_TEXT, list.v[k]);
		int i = 0;

		while (i < MODEL_LABELS && t->labels[i] && t->labels[i] != label)
			i++;
		if (i == MODEL_LABELS)
			abort(); /* beyond the model's limit */
		t->labels[i] = label;
	}
}

static void set_labels(const struct step *s, struct model_task *t)
{
	if (HAS(s->rq, labels))
		memset(t->labels, 0, sizeof(t->labels));
	labels_on(s, t, s->rq->labels);
	labels_on(s, t, s->rq->add_labels);
	for (size_t i = 0; i < s->rq->remove_labels.n; i++)
		label_off(t, model_name(s->w, MODEL_TEXT, s->rq->remove_labels.v[i]));
}

void step_fields(const struct step *s, struct model_task *t)
{
	const struct request *rq = s->rq;

	if (HAS(rq, title))
		t->title = model_name(s->w, MODEL_TEXT, rq->title);
	if (HAS(rq, type))
		t->type = s->c->type;
	if (HAS(rq, assignee))
		t->assignee = s->c->assignee;
	if (HAS(rq, class_rank))
		t->class_rank = rq->class_rank;
	if (HAS(rq, priority))
		t->priority = rq->priority;
	if (HAS(rq, due))
		t->due = rq->due;
	if (HAS(rq, not_before))
		t->not_before = rq->not_before;
	if (HAS(rq, delay))
		t->not_before = rq->delay ? s->now + rq->delay : 0;
	set_labels(s, t);
}

/* Would following depends and sub-tasks from `at` lead to `goal`? */
static bool model_link_leads(const struct step *s, uint32_t at, uint32_t goal, char *seen)
{
	const struct model_task *t = model_task(s->m, at);

	seen[at] = 1;
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (t->depends[i] == goal ||
		    (!seen[t->depends[i]] && model_link_leads(s, t->depends[i], goal, seen)))
			return true;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *sub = model_task(s->m, i);

		if (sub->status && sub->parent == at &&
		    (i == goal || (!seen[i] && model_link_leads(s, i, goal, seen))))
			return true;
	}
	return false;
}

static bool waits_for_itself(const struct step *s, uint32_t task)
{
	char *seen = calloc(s->m->n_tasks, 1);
	bool cycle;

	if (!seen)
		abort();
	cycle = model_link_leads(s, task, task, seen);
	free(seen);
	return cycle;
}

enum result step_parent(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);

	t->parent = 0;
	if (!s->c->parent)
		return SUCCESS;
	if (!step_there(s, s->c->parent))
		return NOT_FOUND;
	if (step_ended(step_task(s, s->c->parent)))
		return MISCONFIGURED;
	t->parent = s->c->parent;
	return waits_for_itself(s, task) ? MISCONFIGURED : SUCCESS;
}

int step_depends_at(const struct model_task *t, uint32_t on)
{
	int i = 0;

	while (i < MODEL_DEPENDS && t->depends[i] != on)
		i++;
	return i;
}

enum result step_add_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = step_task(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (step_depends_at(t, on) < MODEL_DEPENDS)
			continue;
		if (!step_there(s, on))
			return NOT_FOUND;
		if (step_depends_at(t, 0) == MODEL_DEPENDS)
			abort(); /* beyond the model's limit */
		t->depends[step_depends_at(t, 0)] = on;
		if (waits_for_itself(s, task))
			return MISCONFIGURED;
		*more = true;
	}
	return SUCCESS;
}

void step_depend_off(struct model_task *t, uint32_t on)
{
	int i = step_depends_at(t, on);

	for (; i < MODEL_DEPENDS - 1; i++)
		t->depends[i] = t->depends[i + 1];
	if (i < MODEL_DEPENDS)
		t->depends[i] = 0;
}

enum result step_remove_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = step_task(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (!step_there(s, on) || step_depends_at(t, on) == MODEL_DEPENDS)
			return NOT_FOUND;
		step_depend_off(t, on);
		*more = true;
	}
	return SUCCESS;
}
