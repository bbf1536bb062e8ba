#include "store/task_record.h"

#include "base/text.h"
#include "format/task_form.h"

bool task_of_record(const struct store_rules *rules, const struct record *r, struct task *out,
		    struct arena *a)
{
	struct index ix;

	*out = (struct task){ 0 };
	if (!str_starts(r->key, STR("task/")) || task_unpack(r->hot, out, a) ||
	    task_unpack(r->body, out, a) || id_fault(out->id) ||
	    !str_eq(task_key(a, out->id), r->key) || !text_valid(out->description))
		return false;
	rules->index(out, &ix, a);
	return index_eq(&ix, &r->ix) && str_eq(task_part(out, HOT, a), r->hot) &&
	       str_eq(task_part(out, BODY, a), r->body);
}
