#include "store/task_index.h"

#include "core/filecodec.h"

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
