#include "cmd/reply.h"

#include "format/answer_form.h"

bool reply_ok(const struct reply *r)
{
	return r->ans.code == SUCCESS || r->ans.code == NO_TASKS || r->ans.code == LOCK_FREE;
}

void reply_warn(struct reply *r, struct str text, struct arena *a)
{
	r->warnings = arena_append(a, r->warnings, text);
}

json_t *reply_more(struct reply *r)
{
	if (!r->more)
		r->more = json_object();
	return r->more;
}

json_t *reply_json(const struct reply *r, struct arena *a)
{
	json_t *o = answer_json(&r->ans, a), *list;

	json_object_update(o, r->more);
	if (!r->warnings.n)
		return o;
	list = json_object_get(o, "warnings");
	if (!list) {
		list = json_array();
		json_object_set_new(o, "warnings", list);
	}
	for (size_t i = 0; i < r->warnings.n; i++)
		json_array_append_new(list, json_str(r->warnings.v[i]));
	return o;
}

void reply_free(struct reply *r)
{
	json_decref(r->more);
	r->more = NULL;
}
