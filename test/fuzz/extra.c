/* `extra`: JSON that a caller gives, a task keeps and every answer shows. */
#include "kit.h"
#include "record.h"
#include "format/task_form.h"

static json_t *shown(const struct task *t, struct arena *a)
{
	json_t *o = task_json(t, 0, a), *extra = json_incref(json_object_get(o, "extra"));

	json_checked(o, a);
	return extra;
}

static bool accepted(struct str text, struct arena *a)
{
	struct request r = { .op = OP_UPDATE };

	GIVE(&r, id, STR("t1"));
	GIVE(&r, agent, STR("ann"));
	GIVE(&r, extra, text);
	return !request_fault(&r, &policy_default, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size);
	struct task t = { .extra = text }, again = { 0 };
	struct buf b = BUF_MAX(1 << 20);
	json_t *given = size ? json_loadb(text.p, size, 0, NULL) : NULL, *extra, *later;

	task_pack(&t, BODY, &b);
	CHECK(task_unpack(buf_str(&b), &again, &a) == 0);
	extra = shown(&t, &a);
	later = shown(&again, &a);
	CHECK(!extra == !later && (!extra || json_equal(extra, later)));
	if (accepted(text, &a)) {
		/* shown as it was given; without one there is no object */
		CHECK(!size || json_is_object(extra));
		CHECK(!size || json_equal(extra, given));
	}
	json_decref(given);
	json_decref(extra);
	json_decref(later);
	buf_free(&b);
	arena_free(&a);
	return 0;
}
