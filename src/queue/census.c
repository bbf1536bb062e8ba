#include "queue/census.h"

#include "format/task_form.h"
#include "queue/queue.h"

/* Every count that a task stores. graph.c says which task adds to which of them. */
static const struct {
	const char *name;
	size_t offset;
} counts[RECORD_COUNTS] = {
	{ "open_depends", offsetof(struct task, open_deps) },
	{ "canceled_depends", offsetof(struct task, canceled_deps) },
	{ "open_subtasks", offsetof(struct task, open_subs) },
};

static int64_t *count_of(struct task *t, size_t i)
{
	return (int64_t *)((char *)t + counts[i].offset);
}

/* --- taking it --------------------------------------------------------------------------------------- */

/* The status is in the small part of the record, so that a census reads no texts. 0: unknown. */
static int64_t status_of(const struct record *r)
{
	struct arena a = { 0 };
	struct task t = { 0 };
	int64_t status = 0;

	if (r->hot.n && !task_unpack(r->hot, &t, &a) && t.status > 0 && t.status < STATUS_END)
		status = t.status;
	arena_free(&a);
	return status;
}

static int add_record(const struct record *r, void *ctx)
{
	if (str_starts(r->key, STR("task/")))
		recount_add(ctx, r->key, r->ix.parent, status_of(r));
	return 0;
}

int record_counts_take(struct recount *c, struct store *s, struct edit *e)
{
	struct query all = { .pick = PICK_ALL };

	*c = (struct recount){ .rules = &queue_rules };
	return e ? edit_scan(e, &all, add_record, c) : s->ops->scan(s, &all, add_record, c);
}

/* --- comparing ----------------------------------------------------------------------------------------- */

static struct strs missing_depends(const struct recount *c, struct strs keys, struct arena *a)
{
	struct strs out = { 0 };

	for (size_t i = 0; i < keys.n; i++) {
		struct str id = keys.v[i];

		if (recount_find(c, id))
			continue;
		if (!out.v)
			out.v = arena_array(a, struct str, keys.n);
		(void)str_cut_prefix(&id, STR("task/"));
		out.v[out.n++] = arena_str(a, id);
	}
	return out;
}

static void compare_counts(struct task *have, struct task *right, struct record_counts_fault *out,
			   struct arena *a)
{
	for (size_t i = 0; i < RECORD_COUNTS; i++) {
		int64_t is = *count_of(have, i), should = *count_of(right, i);

		out->right[i] = should;
		if (is == should)
			continue;
		out->counts = true;
		out->text = arena_printf(a, "%.*s%s%s is %lld and should be %lld", STRF(out->text),
					 out->text.n ? ", " : "", counts[i].name, (long long)is,
					 (long long)should);
	}
}

bool record_counts_compare(const struct recount *c, const struct record *r,
			   struct record_counts_fault *out, struct arena *a)
{
	const struct recount_entry *e = recount_find(c, r->key);
	struct task have = { 0 }, right = { 0 };

	*out = (struct record_counts_fault){ 0 };
	if (!e || !e->status || task_unpack(arena_str(a, r->hot), &have, a))
		return false;
	out->parent = r->ix.parent.n && !recount_find(c, r->ix.parent);
	out->depends = missing_depends(c, r->ix.depends, a);
	if (recount_task(c, r->key, r->ix.depends, &right))
		compare_counts(&have, &right, out, a);
	out->stuck = out->depends.n && have.open_deps > right.open_deps;
	return out->parent || out->depends.n || out->counts;
}

void record_counts_correct(struct task *t, const struct record_counts_fault *f)
{
	for (size_t i = 0; f->counts && i < RECORD_COUNTS; i++)
		*count_of(t, i) = f->right[i];
}
