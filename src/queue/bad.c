/*
 * Records that cannot be used: they fail the checks of core/validate.h, so pawl did not write them. Other programs can
 * write to a store. pawl omits these records from lists and never offers or changes them. `doctor` lists them, and
 * `remove --force` removes them.
 */
#include "base/secret.h"
#include "base/text.h"
#include "core/validate.h"
#include "format/task_form.h"
#include "queue/queue_private.h"
#include "format/record_form.h"
#include "format/answer_form.h"

#define SHOWN_COLUMNS 60
#define LARGE (64u << 10)

/* The strings of the task point into the record. */
static const char *decode_in_place(const struct record *r, struct task *out, struct arena *a)
{
	*out = (struct task){ 0 };
	if (r->ix.status && !str_starts(r->key, STR("task/")))
		return "its index is that of a task";
	if (!r->body.n && !r->hot.n)
		return "it is empty or foreign";
	if (!r->body.n && str_starts(r->key, STR("task/")))
		return "its texts are missing, or larger than the limit";
	if (task_unpack(r->hot, out, a) || task_unpack(r->body, out, a))
		return "its bytes are damaged";
	return task_fault(out, r->key, a);
}

static const char *bad_decode(const struct record *r, struct task *out, struct arena *a)
{
	struct record own = *r;

	own.hot = arena_str(a, r->hot);
	own.body = arena_str(a, r->body);
	return decode_in_place(&own, out, a);
}

/* Checks a large record without a copy: many bad records would fill the caller's arena. */
static bool bad_and_large(const struct record *r)
{
	struct arena scratch = { 0 };
	struct task t;
	bool bad;

	if (r->hot.n + r->body.n < LARGE)
		return false;
	bad = decode_in_place(r, &t, &scratch) != NULL;
	arena_free(&scratch);
	return bad;
}

int task_of(const struct record *r, struct task *out, struct arena *a)
{
	return bad_and_large(r) || bad_decode(r, out, a) ? BAD : 0;
}

static const char *kept_fault(const struct record *r, struct arena *a)
{
	struct answer ans = { 0 };

	if (answer_unpack(arena_str(a, r->body), &ans, a))
		return "the answer that it keeps is damaged";
	return answer_fault(&ans, a);
}

const char *record_fault(const struct record *r, struct arena *a)
{
	const char *fault = key_fault(r->key);
	struct task t;
	int64_t n;

	if (fault)
		return fault;
	if (str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/")))
		return bad_decode(r, &t, a);
	if (str_eq(r->key, IDENTITY_KEY))
		return token_valid(r->hot) ? NULL : "the identity in it is damaged";
	if (str_starts(r->key, STR("gone/")) || str_starts(r->key, STR("meta/")))
		return number_valid(r->hot, &n) ? NULL : "its number is damaged";
	return str_starts(r->key, STR("request/")) ? kept_fault(r, a) : NULL;
}

struct str bad_name(struct str key, struct arena *a)
{
	struct str id = key;

	if (key_fault(key) || !str_cut_prefix(&id, STR("task/")) || id.p[0] == '@' ||
	    !str_eq(key, task_key(a, id)))
		return bad_handle(a, key); /* no id leads to it */
	return arena_str(a, id);
}

struct str bad_shown(struct str key, struct arena *a)
{
	return text_cut(a, text_line(a, key), SHOWN_COLUMNS);
}

int bad_refuse(struct answer *ans, const struct record *r, struct arena *a)
{
	const char *fault = record_fault(r, a);

	answer_fail(ans, MISCONFIGURED,
		    arena_printf(a, "the record %s cannot be used: %s",
				 arena_cstr(a, bad_shown(r->key, a)),
				 fault ? fault : "it is damaged"),
		    arena_printf(a,
				 "pawl remove %s --force removes it; pawl doctor lists all such "
				 "records",
				 arena_cstr(a, bad_name(r->key, a))));
	return REFUSED;
}

struct str bad_warning(size_t n, struct arena *a)
{
	return arena_printf(a, "%zu record%s cannot be used and %s left out: pawl doctor", n,
			    n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

/* --- by handle ------------------------------------------------------------------------------------ */

struct search {
	struct str handle;
	struct arena *arena;
	struct str key;
};

static int same_handle(const struct record *r, void *ctx)
{
	struct search *x = ctx;
	struct arena scratch = { 0 };
	bool same = str_eq(bad_handle(&scratch, r->key), x->handle);

	arena_free(&scratch);
	if (same)
		x->key = arena_str(x->arena, r->key);
	return same;
}

int bad_find(struct store *s, struct edit *e, struct str handle, struct str *key, struct arena *a)
{
	struct query tasks = { .pick = PICK_ALL }, others = { .pick = PICK_OTHERS };
	const struct query *const all[] = { &tasks, &others };
	struct search x = { .handle = handle, .arena = a };
	int r = 0;

	for (size_t i = 0; !r && !x.key.p && i < 2; i++)
		r = e ? edit_scan(e, all[i], same_handle, &x)
		      : s->ops->scan(s, all[i], same_handle, &x);
	*key = x.key;
	return r < 0 ? r : x.key.p ? 0 : 1;
}

/* --- the log ---------------------------------------------------------------------------------------- */

int event_of(const struct entry *en, struct event *out)
{
	if (event_unpack(en->data, out))
		return BAD;
	out->cursor = en->cursor;
	out->at = en->at;
	return event_fault(out) ? BAD : 0;
}

int event_keep(const struct entry *en, struct event *out, struct arena *a)
{
	struct entry own = *en;

	own.data = arena_str(a, en->data);
	own.cursor = arena_str(a, en->cursor);
	return event_of(&own, out);
}
