/* Decides which repair a record needs. */
#include "core/validate.h"
#include "core/order.h"
#include "format/task_form.h"
#include "queue/mend.h"

#define GUARD_KEY STR("meta/guard")

/* A due task may have been promoted. On a branch of lock files, the store does not offer tasks that others work on. */
static bool lane_fits(int want, int have, bool locks_only)
{
	return want == have || (want == LANE_LATER && have == LANE_READY) ||
	       (locks_only && have == LANE_NONE);
}

/* Stores filter and sort by the index, so it must agree with the task. */
static bool index_differs(const struct record *r, bool locks_only, struct arena *a)
{
	struct index ix;
	struct task t;

	if (!str_starts(r->key, STR("task/")) || task_of(r, &t, a))
		return false;
	order_index(&t, &ix, a);
	if (lane_fits(ix.lane, r->ix.lane, locks_only))
		ix.lane = r->ix.lane;
	ix.eligible_at = r->ix.eligible_at;
	return !index_eq(&ix, &r->ix);
}

/* --- tasks ------------------------------------------------------------------------------------------ */

static bool id_in_key(struct str key, struct str *id, struct arena *a)
{
	struct str rest = key;

	if (key_fault(key) || !str_cut_prefix(&rest, STR("task/")) || id_fault(rest) ||
	    !str_eq(key, task_key(a, rest)))
		return false;
	*id = arena_str(a, rest);
	return true;
}

static struct str id_of_key(struct str key, struct arena *a)
{
	(void)str_cut_prefix(&key, STR("task/"));
	return arena_str(a, key);
}

/* The index holds some fields of a task whose texts are lost. */
static void fields_from_index(struct task *t, const struct index *ix, struct arena *a)
{
	t->labels = arena_strs(a, ix->labels);
	t->depends = arena_strs(a, ix->depends);
	for (size_t i = 0; i < t->depends.n; i++)
		(void)str_cut_prefix(&t->depends.v[i], STR("task/"));
	if (ix->parent.n)
		t->parent = id_of_key(ix->parent, a);
	t->type = arena_str(a, ix->type);
	t->due = ix->due;
}

/* Could pawl use the task, under its id or a new one? */
static bool decide_usable(const struct task *t, struct arena *a)
{
	struct task probe = *t;

	if (!probe.id.n)
		probe.id = STR("t1");
	return !task_fault(&probe, task_key(a, probe.id), a);
}

/* Can the task be saved by another id, or by the fields of its index? */
static bool decide_task(const struct record *r, struct judgment *out, struct arena *a)
{
	struct task *t = &out->task;
	struct str id;
	bool keyed = id_in_key(r->key, &id, a);

	if (!r->hot.n || task_unpack(arena_str(a, r->hot), t, a) ||
	    task_unpack(arena_str(a, r->body), t, a))
		return false;
	if (!r->body.n)
		fields_from_index(t, &r->ix, a);
	if (keyed && !str_eq_nocase(t->id, id))
		t->id = id;
	else if (!keyed && id_fault(t->id))
		t->id = STR("");
	if (!r->body.n)
		t->title = title_from(STR(""), t->id.n ? t->id : STR("without texts"));
	out->repair = REPAIR_TASK;
	out->does =
		!r->body.n ? "keep its state and take its fields from the index; its texts are lost"
		: keyed    ? "give it the id in its key"
		: t->id.n  ? "store it under its id, or under a new one if that is taken"
			   : "give it a new id";
	return decide_usable(t, a);
}

/* --- all records ------------------------------------------------------------------------------------- */

static bool decide_number(const struct record *r, struct judgment *out)
{
	if (key_fault(r->key))
		return false;
	out->repair = REPAIR_NUMBER;
	if (str_starts(r->key, STR("gone/"))) {
		out->number = FENCE_UNKNOWN;
		out->does = "set it above every fence that pawl has granted";
	} else if (str_eq(r->key, GUARD_KEY)) {
		out->number = GUARD_ALL;
		out->does = "make the next change look at every lock of the whole queue";
	} else if (str_eq(r->key, COUNTER_KEY)) {
		out->repair = REPAIR_COUNTER;
		out->does = "set it again from the ids in use, as pawl id init does";
	} else {
		return false;
	}
	return true;
}

static bool is_like_task(const struct record *r)
{
	return r->ix.status || str_starts(r->key, STR("task/"));
}

void repair_decide(const struct record *r, bool locks_only, struct judgment *out, struct arena *a)
{
	*out = (struct judgment){ .fault = record_fault(r, a) };
	if (!out->fault && index_differs(r, locks_only, a)) {
		out->fault = "its index differs from the task";
		out->does = "write its index again";
		out->repair = REPAIR_INDEX;
	}
	if (!out->fault || out->repair)
		return;
	if (!r->hot.n && !r->body.n) {
		out->repair = REPAIR_LEAVE;
		return;
	}
	if (decide_number(r, out) || (is_like_task(r) && decide_task(r, out, a)))
		return;
	out->repair = REPAIR_AWAY;
	out->does = "move it to a file";
}
