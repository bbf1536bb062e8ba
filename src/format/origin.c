/* Merges a task that is imported again with the task in the queue. A sum of each field shows which
 * fields the other program has changed since the last import. Only those are taken, so that a
 * change made here survives unless the other program changed the same field. */
#include "format/origin.h"

#include <stdlib.h>

#include "core/field.h"
#include "format/json.h"
#include "format/task_form.h"

#define DIGITS 6 /* of one sum */

/* extra.imported has its sums in this order, so new fields go at the end. */
static const char *const merged[] = { "status",  "title",    "description", "acceptance",
				      "class",   "priority", "type",        "effort",
				      "labels",  "due",      "parent",      "not_before",
				      "depends", "assignee" };
/* An import takes these fields together with the status. */
static const char *const with_status[] = { "status",     "blocker_reason", "unblock_action",
					   "next_check", "summary",        "started_at",
					   "done_at" };

#define COUNT(x) (sizeof(x) / sizeof(*(x)))

static uint64_t value_sum(const struct field *f, const struct task *t)
{
	const struct strs *list = field_of(f, t);
	const struct str *s = field_of(f, t);
	uint64_t sum = f->tag;

	switch (f->kind) {
	case FIELD_LIST:
		for (size_t i = 0; i < list->n; i++)
			sum = str_sum(sum + i, list->v[i].p, list->v[i].n);
		return sum;
	case FIELD_STR:
	case FIELD_JSON:
		return str_sum(sum, s->p, s->n);
	default:
		return str_sum(sum, s, sizeof(int64_t));
	}
}

static void put_sum(const char *name, const struct task *t, char *out)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t sum = value_sum(field_find(str_c(name)), t);

	sum ^= sum >> 4 * DIGITS;
	for (size_t i = 0; i < DIGITS; i++, sum >>= 4)
		out[i] = digits[sum & 15];
}

struct str origin_sums(const struct task *t, struct arena *a)
{
	char *p = arena_alloc(a, DIGITS * COUNT(merged));

	for (size_t i = 0; i < COUNT(merged); i++)
		put_sum(merged[i], t, p + DIGITS * i);
	return str_n(p, DIGITS * COUNT(merged));
}

/* The i-th sum; empty: there is none. */
static struct str sum_at(struct str sums, size_t i)
{
	return sums.n < DIGITS * (i + 1) ? STR("") : str_n(sums.p + DIGITS * i, DIGITS);
}

static void copy_field(struct task *to, const struct task *from, const char *name)
{
	const struct field *f = field_find(str_c(name));
	size_t size = f->kind == FIELD_LIST                           ? sizeof(struct strs)
		      : f->kind == FIELD_STR || f->kind == FIELD_JSON ? sizeof(struct str)
								      : sizeof(int64_t);

	memcpy(field_at(f, to), field_of(f, from), size);
}

static void take_changes(struct task *out, const struct task *theirs, struct str before,
			 struct str after)
{
	char here[DIGITS];
	bool moved_there = !str_eq(sum_at(before, 0), sum_at(after, 0)), moved_here;

	put_sum(merged[0], out, here);
	moved_here = before.n && !str_eq(sum_at(before, 0), str_n(here, DIGITS));
	for (size_t i = 0; moved_there && !moved_here && i < COUNT(with_status); i++)
		copy_field(out, theirs, with_status[i]);
	for (size_t i = 1; i < COUNT(merged); i++)
		if (!sum_at(before, i).n || !str_eq(sum_at(before, i), sum_at(after, i)))
			copy_field(out, theirs, merged[i]);
}

/* Keeps our keys. Where both have a key, the other program's value replaces ours. */
static struct str both_extras(json_t *ours, json_t *theirs, struct arena *a)
{
	struct str out;
	char *text;

	json_object_update(ours, theirs);
	text = json_dumps(ours, JSON_COMPACT);
	out = arena_str(a, str_c(text));
	free(text);
	return out;
}

enum origin origin_merge(const struct task *ours, struct task *theirs, struct arena *a)
{
	json_t *here = json_loadb(str_p(ours->extra), ours->extra.n, 0, NULL),
	       *there = json_loadb(str_p(theirs->extra), theirs->extra.n, 0, NULL);
	struct str before = json_get(here, "imported"), after = json_get(there, "imported");
	struct task out = *ours;
	enum origin found = ORIGIN_OTHER;

	if (json_is_object(here) && json_is_object(there) &&
	    json_equal(json_object_get(here, "source"), json_object_get(there, "source"))) {
		found = before.n && str_eq(before, after) ? ORIGIN_SAME : ORIGIN_CHANGED;
		take_changes(&out, theirs, before, after);
		if (theirs->created_at)
			out.created_at = theirs->created_at;
		if (theirs->updated_at > out.updated_at)
			out.updated_at = theirs->updated_at;
		out.extra = both_extras(here, there, a);
		*theirs = out;
	}
	json_decref(here);
	json_decref(there);
	return found;
}
