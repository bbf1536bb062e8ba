/* Counts open dependencies and sub-tasks through the queue's own rules (store_rules), so that a recount and the
 * stored counts never disagree about which tasks count. */
#include "store/store_tools.h"

#include "core/task.h"

/* --- the table ------------------------------------------------------------------------------------- */

static struct recount_entry *recount_slot(const struct recount *c, struct str key)
{
	size_t i = str_hash(key) & (c->size - 1);

	while (c->slots[i].key.n && !str_eq(c->slots[i].key, key))
		i = (i + 1) & (c->size - 1);
	return &c->slots[i];
}

static void recount_grow(struct recount *c)
{
	struct recount old = *c;

	c->size = c->size ? c->size * 2 : 256;
	c->slots = arena_array(&c->arena, struct recount_entry, c->size);
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i].key.n)
			*recount_slot(c, old.slots[i].key) = old.slots[i];
}

static struct recount_entry *recount_entry_of(struct recount *c, struct str key)
{
	struct recount_entry *e;

	if (c->n * 2 >= c->size)
		recount_grow(c);
	e = recount_slot(c, key);
	if (!e->key.n) {
		e->key = arena_str(&c->arena, key);
		c->n++;
	}
	return e;
}

const struct recount_entry *recount_find(const struct recount *c, struct str key)
{
	const struct recount_entry *e = c->size ? recount_slot(c, key) : NULL;

	return e && e->key.n && e->present ? e : NULL;
}

/* --- counting -------------------------------------------------------------------------------------- */

void recount_add(struct recount *c, struct str key, struct str parent, int64_t status)
{
	struct recount_entry *e = recount_entry_of(c, key);
	struct task t;

	e->present = true;
	e->status = (uint8_t)status;
	if (!parent.n)
		return;
	e = recount_entry_of(c, parent);
	t = (struct task){ .open_subs = e->open_subs };
	c->rules->sub_moved(&t, 0, status);
	e->open_subs = (int32_t)t.open_subs;
	e->unsure |= !status;
}

bool recount_task(const struct recount *c, struct str key, struct strs depends, struct task *t)
{
	const struct recount_entry *e = recount_find(c, key);
	bool sure = e && !e->unsure;

	t->open_deps = t->canceled_deps = 0;
	t->open_subs = e ? e->open_subs : 0;
	for (size_t i = 0; i < depends.n; i++) {
		e = recount_find(c, depends.v[i]);
		if (e)
			c->rules->dep_moved(t, 0, e->status);
		sure &= !e || e->status;
	}
	return sure;
}

void recount_free(struct recount *c)
{
	arena_free(&c->arena);
	*c = (struct recount){ .rules = c->rules };
}
