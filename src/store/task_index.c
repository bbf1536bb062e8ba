#include "store/task_index.h"

#include "base/text.h"
#include "format/record.h"

#define PART_MAX (32u << 20)

void task_index(const struct task *t, struct index *out, struct arena *a)
{
	static const int lanes[] = { [OFFER_NONE] = LANE_NONE,
				     [OFFER_NOW] = LANE_READY,
				     [OFFER_LATER] = LANE_LATER,
				     [OFFER_WAITING] = LANE_WAITING };
	struct strs depends = { arena_array(a, struct str, t->depends.n), t->depends.n };

	for (size_t i = 0; i < depends.n; i++)
		depends.v[i] = task_key(a, t->depends.v[i]);
	*out = (struct index){
		.status = (int)t->status,
		.class_rank = (int)t->class_rank,
		.priority = (int)t->priority,
		.updated_at = t->updated_at,
		.created_at = t->created_at,
		.id = t->id,
		.holder = t->lock.holder,
		.token = t->lock.token,
		.parent = t->parent.n ? task_key(a, t->parent) : STR(""),
		.type = t->type,
		.labels = t->labels,
		.depends = depends,
	};
	out->lane = lanes[order_offer(t, &out->eligible_at)];
}

struct str task_part(const struct task *t, unsigned part, struct arena *a)
{
	struct buf b = BUF_MAX(PART_MAX);
	struct str out;

	task_pack(t, part, &b);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static bool index_eq(const struct index *a, const struct index *b)
{
	return a->lane == b->lane && a->status == b->status && a->class_rank == b->class_rank &&
	       a->priority == b->priority && a->eligible_at == b->eligible_at &&
	       a->updated_at == b->updated_at && a->created_at == b->created_at &&
	       str_eq(a->id, b->id) && str_eq(a->holder, b->holder) && str_eq(a->token, b->token) &&
	       str_eq(a->parent, b->parent) && str_eq(a->type, b->type) &&
	       strs_eq(a->labels, b->labels) && strs_eq(a->depends, b->depends);
}

bool task_of_record(const struct record *r, struct task *out, struct arena *a)
{
	struct index ix;

	*out = (struct task){ 0 };
	if (!str_starts(r->key, STR("task/")) || task_unpack(r->hot, out, a) ||
	    task_unpack(r->body, out, a) || id_fault(out->id) ||
	    !str_eq(task_key(a, out->id), r->key) || !text_valid(out->description))
		return false;
	task_index(out, &ix, a);
	return index_eq(&ix, &r->ix) && str_eq(task_part(out, HOT, a), r->hot) &&
	       str_eq(task_part(out, BODY, a), r->body);
}
