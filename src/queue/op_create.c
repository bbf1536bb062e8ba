/* Creates tasks and makes their ids. The id counter never goes back, so pawl never makes the
 * same id twice. A task that is created under a removed task's id continues from that task's
 * last fence, so its fences do not repeat. */
#include "base/secret.h"
#include "core/counts.h"
#include "core/rules.h"
#include "core/validate.h"
#include "queue/queue_private.h"

#define UNUSABLE_MAX 1000 /* give up: more than single ids are foreign */

bool id_is_taken(int r, int *unusable)
{
	return !r || (r == STORE_FOREIGN && ++*unusable < UNUSABLE_MAX);
}

int fresh_id(struct act *w, struct str *out)
{
	struct record *rec;
	int unusable = 0;
	int64_t n;
	int r = number_get(w, COUNTER_KEY, &n);

	if (r == BAD)
		return act_refuse(w, MISCONFIGURED,
				  STR("the id counter is damaged, so pawl cannot make a new id"),
				  STR("pawl id init sets it again from the existing ids"));
	if (r)
		return r;
	while (id_is_taken(r, &unusable)) {
		*out = arena_printf(w->call.arena, "t%lld", (long long)++n);
		r = edit_get(w->e, task_key(w->call.arena, *out), &rec);
	}
	if (r < 0)
		return r;
	number_put(w, COUNTER_KEY, n);
	return 0;
}

int do_id(struct act *w)
{
	int r = fresh_id(w, &w->ans->text);

	w->ans->kind = ANSWER_ID;
	return r;
}

static int op_create_greatest(const struct record *r, void *ctx)
{
	int64_t *most = ctx, n = id_number(r->ix.id);

	if (n > *most)
		*most = n;
	return 0;
}

static int greatest_gone(const struct record *r, void *ctx)
{
	int64_t *most = ctx, n;
	struct str id = r->key;

	if (!str_cut_prefix(&id, STR("gone/")))
		return 0;
	n = id_number(id);
	if (n > *most)
		*most = n;
	return 0;
}

/* The counter never goes back, and never stays below an existing id. */
int do_id_init(struct act *w)
{
	struct query all = { .pick = PICK_ALL }, others = { .pick = PICK_OTHERS };
	int64_t was, n = HAS(w->call.rq, from) ? w->call.rq->from - 1 : 0;
	int r = number_get(w, COUNTER_KEY, &was);
	bool damaged = r == BAD;

	if (damaged)
		was = r = 0;
	if (!r)
		r = edit_scan(w->e, &all, op_create_greatest, &n);
	if (!r && damaged) /* do not reuse the id of a removed task */
		r = edit_scan(w->e, &others, greatest_gone, &n);
	if (r)
		return r;
	if (n > was || damaged)
		number_put(w, COUNTER_KEY, n);
	w->ans->kind = ANSWER_ID;
	w->ans->text = arena_printf(w->call.arena, "t%lld", (long long)(n > was ? n : was) + 1);
	return 0;
}

/* Answers a create whose id already exists. */
static int op_create_taken(struct act *w, struct loaded *l)
{
	act_answer(w, l);
	if (w->call.rq->if_absent) {
		w->ans->existed = 1;
		return 0;
	}
	return act_refuse(
		w, CONFLICT,
		arena_printf(w->call.arena, "task %.*s exists already", STRF(l->task.id)),
		STR("--if-absent returns the existing task; without --id, pawl makes a new id"));
}

int old_fence(struct act *w, struct loaded *l, int64_t *fence)
{
	struct str key = gone_key(w, l);
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	*fence = 0;
	l->task.chain = STR("");
	if (r)
		return r < 0 ? r : 0;
	if (!number_valid(rec->hot, fence))
		*fence = FENCE_UNKNOWN;
	if (rec->body.n == SHORT_HASH_LEN)
		l->task.chain = rec->body;
	edit_drop(w->e, key);
	return 0;
}

int new_task(struct act *w, struct str id, struct loaded **out)
{
	struct loaded *l = act_new(w, id);
	struct task *t = &l->task;

	t->status = READY;
	t->class_rank = STANDARD;
	t->priority = PRIORITY_DEFAULT;
	t->created_at = t->updated_at = w->e->now;
	t->version = 1;
	update_fields(t, w->call.rq, w->e->now, w->call.arena);
	if (!t->title.n)
		t->title = title_from(t->description, id);
	if (HAS(w->call.rq, status))
		t->status = w->call.rq->status;
	*out = l;
	return old_fence(w, l, &l->task.fence);
}

int do_create(struct act *w)
{
	struct str id = w->call.rq->id;
	struct loaded *l;
	int r;

	if (HAS(w->call.rq, status) && w->call.rq->status != READY && w->call.rq->status != BACKLOG)
		return act_refuse(w, USAGE, STR("a new task is Ready or Backlog"),
				  STR("create it, then change its status: pawl status ID STATUS"));
	if (HAS(w->call.rq, id)) {
		r = act_load(w, id, &l);
		if (r <= 0 || r == BAD) /* a new task in its place would repeat fences */
			return r ? r : op_create_taken(w, l);
		*w->ans = (struct answer){ .now = w->e->now };
	} else {
		r = fresh_id(w, &id);
		if (r)
			return r;
	}
	r = new_task(w, id, &l);
	if (r)
		return r;
	act_log(w, l, "created", l->task.title); /* before the events that its dependencies cause */
	if (w->call.rq->parent.n)
		r = set_parent(w, l, w->call.rq->parent);
	if (!r)
		r = add_depends(w, l);
	if (r)
		return r;
	r = act_flush(w);
	if (!r)
		act_answer(w, l);
	return r;
}
