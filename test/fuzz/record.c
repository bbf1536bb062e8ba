#include "record.h"

#include "kit.h"

static bool same_str(const void *a, const void *b)
{
	return str_eq(*(const struct str *)a, *(const struct str *)b);
}

static bool same_list(const void *a, const void *b)
{
	return strs_eq(*(const struct strs *)a, *(const struct strs *)b);
}

static bool same_int(const void *a, const void *b)
{
	return *(const int64_t *)a == *(const int64_t *)b;
}

bool same_request(const struct request *a, const struct request *b)
{
	static bool (*const same[])(const void *, const void *) = {
		[ARG_STR] = same_str,
		[ARG_INT] = same_int,
		[ARG_LIST] = same_list,
	};

	if (a->op != b->op || a->has != b->has)
		return false;
	for (int i = 0; i < ARG_END; i++)
		if (!same[arg_kind((enum arg)i)](arg_of(a, (enum arg)i), arg_of(b, (enum arg)i)))
			return false;
	return true;
}

#define SAME_STR same_str
#define SAME_JSON same_str
#define SAME_LIST same_list
#define SAME_INT same_int
#define SAME_STATUS same_int
#define SAME_CLASS same_int
#define SAME_TIME same_int
#define SAME_DATE same_int

bool same_task(const struct task *a, const struct task *b)
{
#define FIELD(tag, part, kind, member, name, shown, limit, uses) \
	if (!SAME_##kind(&a->member, &b->member))                \
		return false;
#include "core/task.def"
	return true;
}

bool same_event(const struct event *a, const struct event *b)
{
	return str_eq(a->name, b->name) && str_eq(a->task, b->task) && str_eq(a->agent, b->agent) &&
	       str_eq(a->run, b->run) && str_eq(a->text, b->text) && a->fence == b->fence &&
	       a->from == b->from && a->to == b->to;
}

struct str json_checked(json_t *o, struct arena *a)
{
	char *text = json_dumps(o, JSON_COMPACT);
	json_error_t e;
	json_t *back;
	struct str out;

	CHECK(o && text);
	back = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	/* `extra` may be as deep as jansson reads; inside another value it is too deep */
	CHECK(back || json_error_code(&e) == json_error_stack_overflow);
	CHECK(!back || json_equal(back, o));
	json_decref(back);
	json_decref(o);
	out = arena_str(a, str_c(text));
	free(text);
	return out;
}
