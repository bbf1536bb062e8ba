#include "queue/census.h"

#include "core/graph.h"
#include "format/task.h"

/* Every count that a task stores. graph.c says which task adds to which of them. */
static const struct {
	const char *name;
	size_t offset;
} counts[CENSUS_COUNTS] = {
	{ "open_depends", offsetof(struct task, open_deps) },
	{ "canceled_depends", offsetof(struct task, canceled_deps) },
	{ "open_subtasks", offsetof(struct task, open_subs) },
};

static int64_t *count_of(struct task *t, size_t i)
{
	return (int64_t *)((char *)t + counts[i].offset);
}

/* --- the table ------------------------------------------------------------------------------------- */

static struct census_entry *slot_of(const struct census *c, struct str key)
{
	size_t i = str_hash(key) & (c->size - 1);

	while (c->slots[i].key.n && !str_eq(c->slots[i].key, key))
		i = (i + 1) & (c->size - 1);
	return &c->slots[i];
}

static void grow(struct census *c)
{
	struct census old = *c;

	c->size = c->size ? c->size * 2 : 256;
	c->slots = arena_array(&c->arena, struct census_entry, c->size);
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i].key.n)
			*slot_of(c, old.slots[i].key) = old.slots[i];
}

static struct census_entry *entry_of(struct census *c, struct str key)
{
	struct census_entry *e;

	if (c->n * 2 >= c->size)
		grow(c);
	e = slot_of(c, key);
	if (!e->key.n) {
		e->key = arena_str(&c->arena, key);
		c->n++;
	}
	return e;
}

static const struct census_entry *find(const struct census *c, struct str key)
{
	const struct census_entry *e = c->size ? slot_of(c, key) : NULL;

	return e && e->key.n && e->present ? e : NULL;
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

static void add_sub(struct census_entry *parent, int64_t status)
{
	struct task t = { 0 };

	for (size_t i = 0; i < CENSUS_COUNTS; i++)
		*count_of(&t, i) = parent->subs[i];
	graph_sub_moved(&t, 0, status);
	for (size_t i = 0; i < CENSUS_COUNTS; i++)
		parent->subs[i] = (int32_t)*count_of(&t, i);
	parent->unsure |= !status;
}

static int add_record(const struct record *r, void *ctx)
{
	struct census *c = ctx;
	struct census_entry *e;
	int64_t status;

	if (!r->key.n || !str_starts(r->key, STR("task/")))
		return 0;
	status = status_of(r);
	e = entry_of(c, r->key);
	e->present = true;
	e->status = (uint8_t)status;
	if (r->ix.parent.n)
		add_sub(entry_of(c, r->ix.parent), status);
	return 0;
}

int census_take(struct census *c, struct store *s, struct edit *e)
{
	struct query all = { .pick = PICK_ALL };

	*c = (struct census){ 0 };
	return e ? edit_scan(e, &all, add_record, c) : s->ops->scan(s, &all, add_record, c);
}

void census_free(struct census *c)
{
	arena_free(&c->arena);
	*c = (struct census){ 0 };
}

/* --- comparing ----------------------------------------------------------------------------------------- */

/* Counts the dependencies into *t. false: one of them cannot be used, so its status is unknown. */
static bool count_depends(const struct census *c, const struct record *r, struct task *t,
			  struct strs *missing, struct arena *a)
{
	for (size_t i = 0; i < r->ix.depends.n; i++) {
		struct str id = r->ix.depends.v[i];
		const struct census_entry *e = find(c, id);

		if (e && !e->status)
			return false;
		if (e) {
			graph_dep_moved(t, 0, e->status);
			continue;
		}
		if (!missing->v)
			missing->v = arena_array(a, struct str, r->ix.depends.n);
		(void)str_cut_prefix(&id, STR("task/"));
		missing->v[missing->n++] = arena_str(a, id);
	}
	return true;
}

static void compare_counts(struct task *have, struct task *right, struct census_fault *out,
			   struct arena *a)
{
	for (size_t i = 0; i < CENSUS_COUNTS; i++) {
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

bool census_compare(const struct census *c, const struct record *r, struct census_fault *out,
		    struct arena *a)
{
	const struct census_entry *e = find(c, r->key);
	struct task have = { 0 }, right = { 0 };

	*out = (struct census_fault){ 0 };
	if (!e || !e->status || task_unpack(arena_str(a, r->hot), &have, a))
		return false;
	for (size_t i = 0; i < CENSUS_COUNTS; i++)
		*count_of(&right, i) = e->subs[i];
	out->parent = r->ix.parent.n && !find(c, r->ix.parent);
	if (count_depends(c, r, &right, &out->depends, a) && !e->unsure)
		compare_counts(&have, &right, out, a);
	out->stuck = out->depends.n && have.open_deps > right.open_deps;
	return out->parent || out->depends.n || out->counts;
}

void census_correct(struct task *t, const struct census_fault *f)
{
	for (size_t i = 0; f->counts && i < CENSUS_COUNTS; i++)
		*count_of(t, i) = f->right[i];
}
