#include "format/changes.h"

#include <stdlib.h>

#include "format/task_form.h"

/* In the order of their display. */
static const char *const fields[] = { "title",  "class", "priority",
#define PLAIN(tag, part, name, limit, argument, help) #name,
#include "core/task.def"
				      "labels", "due",   "not_before", "parent", "assignee", NULL };
/* Too long for the log: only their names are kept. */
static const char *const texts[] = { "description", "acceptance", "extra", NULL };

/* --- making ------------------------------------------------------------------------------------- */

static bool changes_differs(const struct field *f, const struct task *old, const struct task *now)
{
	return !field_same(f, field_of(f, old), field_of(f, now));
}

static void set_value(json_t *o, const char *name, json_t *value)
{
	json_object_set_new(o, name, value ? value : json_null());
}

static void add_fields(json_t *o, const char *const *names, bool values, const struct task *old,
		       const struct task *now, struct arena *a)
{
	for (; *names; names++) {
		const struct field *f = field_find(str_c(*names));
		json_t *change;

		if (!changes_differs(f, old, now))
			continue;
		change = json_object();
		if (values) {
			set_value(change, "from", value_json(f, field_of(f, old), a));
			set_value(change, "to", value_json(f, field_of(f, now), a));
		}
		json_object_set_new(o, *names, change);
	}
}

struct str changes_of(const struct task *old, const struct task *now, struct arena *a)
{
	json_t *o = json_object();
	struct str out = STR("");
	char *text;

	add_fields(o, fields, true, old, now, a);
	add_fields(o, texts, false, old, now, a);
	if (json_object_size(o)) {
		text = json_dumps(o, JSON_COMPACT);
		out = arena_str(a, str_c(text));
		free(text);
	}
	json_decref(o);
	return out;
}

json_t *changes_json(struct str changes)
{
	json_t *o = changes.n ? json_loadb(changes.p, changes.n, JSON_REJECT_DUPLICATES, NULL)
			      : NULL;

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* --- for people --------------------------------------------------------------------------------- */

static bool list_has(const json_t *list, const json_t *item)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (json_equal(v, item))
			return true;
	return false;
}

/* The items of `list` that `other` lacks, each after the sign. */
static void put_items(struct buf *b, const json_t *list, const json_t *other, const char *sign)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (json_is_string(v) && !list_has(other, v))
			buf_addf(b, " %s%s", sign, json_string_value(v));
}

static void put_value(struct buf *b, const json_t *v)
{
	if (json_is_integer(v))
		buf_addf(b, "%lld", (long long)json_integer_value(v));
	else if (json_is_string(v) && strchr(json_string_value(v), ' '))
		buf_addf(b, "\"%s\"", json_string_value(v));
	else if (json_is_string(v))
		buf_adds(b, str_c(json_string_value(v)));
	else
		buf_adds(b, STR("none"));
}

static void put_change(struct buf *b, const char *name, const json_t *change)
{
	const json_t *from = json_object_get(change, "from"), *to = json_object_get(change, "to");

	buf_addf(b, "%s%s", b->n ? ", " : "", name);
	if (!to) {
		buf_adds(b, STR(" changed"));
	} else if (json_is_array(to) || json_is_array(from)) {
		put_items(b, to, from, "+");
		put_items(b, from, to, "-");
	} else {
		buf_addc(b, ' ');
		put_value(b, from);
		buf_adds(b, STR(" → "));
		put_value(b, to);
	}
}

struct str changes_text(struct str changes, struct arena *a)
{
	json_t *o = changes_json(changes);
	struct buf b = BUF_MAX(TEXT_MAX);
	struct str out;

	for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
		put_change(&b, json_object_iter_key(at), json_object_iter_value(at));
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	json_decref(o);
	return out;
}
