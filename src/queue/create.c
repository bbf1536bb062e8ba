#include "core/graph.h"
#include "core/update.h"
#include "queue/act.h"

#define UNUSABLE_MAX 1000 /* from here on it is not the id's fault */

bool id_is_taken(int r, int *unusable)
{
	return !r || (r == STORE_FOREIGN && ++*unusable < UNUSABLE_MAX);
}

int fresh_id(struct work *w, struct str *out)
{
	struct record *rec;
	int unusable = 0;
	int64_t n;
	int r = number_get(w, COUNTER_KEY, &n);

	while (id_is_taken(r, &unusable)) {
		*out = arena_printf(w->arena, "t%lld", (long long)++n);
		r = edit_get(w->e, task_key(w->arena, *out), &rec);
	}
	if (r < 0)
		return r;
	number_put(w, COUNTER_KEY, n);
	return 0;
}

int do_id(struct work *w)
{
	int r = fresh_id(w, &w->ans->text);

	w->ans->kind = ANSWER_ID;
	return r;
}

static int greatest(const struct record *r, void *ctx)
{
	int64_t *most = ctx, n = id_number(r->ix.id);

	if (n > *most)
		*most = n;
	return 0;
}

/* The counter never goes back, nor behind an id that is there. */
int do_id_init(struct work *w)
{
	struct query all = { .pick = PICK_ALL };
	int64_t was, n = HAS(w->rq, from) ? w->rq->from - 1 : 0;
	int r = number_get(w, COUNTER_KEY, &was);

	if (!r)
		r = edit_scan(w->e, &all, greatest, &n);
	if (r)
		return r;
	if (n > was)
		number_put(w, COUNTER_KEY, n);
	w->ans->kind = ANSWER_ID;
	w->ans->text = arena_printf(w->arena, "t%lld", (long long)(n > was ? n : was) + 1);
	return 0;
}

/* A given id that is there already. */
static int taken(struct work *w, struct loaded *l)
{
	work_answer(w, l);
	if (w->rq->if_absent) {
		w->ans->existed = 1;
		return 0;
	}
	return work_refuse(
		w, CONFLICT,
		arena_printf(w->arena, "there is a task %.*s already", STRF(l->task.id)),
		STR("--if-absent takes the one that is there; without --id a free id is made"));
}

int old_fence(struct work *w, struct loaded *l, int64_t *fence)
{
	struct str key = gone_key(w, l);
	int r = number_get(w, key, fence);

	if (!r && *fence)
		edit_drop(w->e, key);
	return r;
}

int new_task(struct work *w, struct str id, struct loaded **out)
{
	struct loaded *l = work_new(w, id);
	struct task *t = &l->task;

	t->status = READY;
	t->class_rank = STANDARD;
	t->priority = PRIORITY_DEFAULT;
	t->created_at = t->updated_at = w->e->now;
	t->version = 1;
	update_fields(t, w->rq, w->e->now, w->arena);
	if (!t->title.n)
		t->title = title_from(t->description, id);
	if (HAS(w->rq, status))
		t->status = w->rq->status;
	*out = l;
	return old_fence(w, l, &l->task.fence);
}

int do_create(struct work *w)
{
	struct str id = w->rq->id;
	struct loaded *l;
	int r;

	if (HAS(w->rq, status) && w->rq->status != READY && w->rq->status != BACKLOG)
		return work_refuse(w, USAGE, STR("a task begins as Ready or Backlog"),
				   STR("create it, then move it on"));
	if (HAS(w->rq, id)) {
		r = work_load(w, id, &l);
		if (r <= 0)
			return r ? r : taken(w, l);
		*w->ans = (struct answer){ .now = w->e->now };
	} else {
		r = fresh_id(w, &id);
		if (r)
			return r;
	}
	r = new_task(w, id, &l);
	if (r)
		return r;
	work_log(w, l, "created",
		 l->task.title); /* before what becomes of it through its depends */
	if (w->rq->parent.n)
		r = set_parent(w, l);
	if (!r)
		r = add_depends(w, l);
	if (r)
		return r;
	r = work_flush(w);
	work_answer(w, l);
	return r;
}
