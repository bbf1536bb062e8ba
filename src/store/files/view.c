/* The records in memory, sorted by key. */
#include <stdlib.h>

#include "base/str.h"
#include "store/files/files.h"

struct ent *files_at(struct view *v, size_t i)
{
	struct slot *slot = &v->v[i];

	if (!slot->e) {
		slot->e = arena_new(&v->arena, struct ent);
		files_decode(v, slot->raw, slot->e);
	}
	return slot->e;
}

const struct ent *files_peek(struct view *v, size_t i, struct ent *scratch)
{
	const struct slot *slot = &v->v[i];

	if (slot->e || files_raw_has_lists(slot->raw))
		return files_at(v, i);
	files_decode(v, slot->raw, scratch);
	return scratch;
}

static struct str key_at(const void *list, size_t i)
{
	const struct view *v = list;

	return v->v[i].e ? v->v[i].e->key : files_raw_key(v->v[i].raw);
}

struct ent *files_find(struct view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

	return found ? files_at(v, i) : NULL;
}

struct ent *files_set(struct view *v, struct ent *e)
{
	bool found;
	size_t i = search_key(v, v->n, e->key, key_at, &found);
	struct ent *old = found ? files_at(v, i) : NULL;

	if (!found) {
		if (v->n == v->room)
			v->v = mem_grow(v->v, (v->room = v->room * 2 + 64) * sizeof(*v->v));
		memmove(v->v + i + 1, v->v + i, (v->n++ - i) * sizeof(*v->v));
	}
	v->v[i] = (struct slot){ .e = e };
	return old;
}

void files_unset(struct view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

	if (found)
		memmove(v->v + i, v->v + i + 1, (--v->n - i) * sizeof(*v->v));
}

static struct str files_view_keep(struct view *v, struct str s)
{
	return s.n ? arena_str(&v->arena, s) : (struct str){ 0 };
}

struct ent *files_ent_copy(struct view *v, const struct ent *e)
{
	struct ent *c = arena_new(&v->arena, struct ent);

	*c = *e;
	c->key = files_view_keep(v, e->key);
	c->ix.id = files_view_keep(v, e->ix.id);
	c->ix.holder = files_view_keep(v, e->ix.holder);
	c->ix.token = files_view_keep(v, e->ix.token);
	c->ix.parent = files_view_keep(v, e->ix.parent);
	c->ix.type = files_view_keep(v, e->ix.type);
	c->ix.labels = arena_strs(&v->arena, e->ix.labels);
	c->ix.depends = arena_strs(&v->arena, e->ix.depends);
	c->hot = files_view_keep(v, e->hot);
	c->body = files_view_keep(v, e->body);
	return c;
}
