/* Turns a task into a record of another program by reading its table backwards. Keys and links that an import from that
 * program kept in `extra` go back into the record. */
#include <stdlib.h>
#include <strings.h>

#include "base/str.h"
#include "base/when.h"
#include "format/json.h"
#include "transfer/foreign_out.h"

static int by_id(const void *a, const void *b)
{
	const struct foreign_task *x = *(struct foreign_task *const *)a,
				  *y = *(struct foreign_task *const *)b;

	return strcasecmp(x->parcel.task.id.p, y->parcel.task.id.p); /* ids end with a NUL */
}

void foreign_out_sort(struct foreign_out *o)
{
	o->by_id = arena_array(&o->arena, struct foreign_task *, o->n);
	for (size_t i = 0; i < o->n; i++) {
		o->tasks[i].parcel.task.id = arena_str(&o->arena, o->tasks[i].parcel.task.id);
		o->by_id[i] = &o->tasks[i];
	}
	if (o->n)
		qsort(o->by_id, o->n, sizeof(*o->by_id), by_id);
}

struct foreign_task *foreign_out_find(const struct foreign_out *o, struct str id)
{
	struct arena a = { 0 };
	struct foreign_task wanted = { .parcel.task.id = arena_str(&a, id) }, *key = &wanted,
			    **found = o->n ? bsearch(&key, o->by_id, o->n, sizeof(*o->by_id), by_id)
					   : NULL;

	arena_free(&a);
	return found ? *found : NULL;
}

/* Taskwarrior's form: 20261116T103000Z. */
static struct str foreign_out_compact(struct str iso, struct arena *a)
{
	return arena_printf(a, "%.4s%.2s%.2sT%.2s%.2s%.2sZ", iso.p, iso.p + 5, iso.p + 8,
			    iso.p + 11, iso.p + 14, iso.p + 17);
}

static struct str time_text(const struct foreign_out *o, int64_t ms, bool date, struct arena *a)
{
	struct str iso = when_text(a, ms);
	int64_t midnight;

	if (date && !strcmp(o->to->name, "taskwarrior") &&
	    when_parse(when_date_iso(a, ms), &midnight))
		iso = when_text(a, midnight); /* Taskwarrior's days begin at local midnight */
	if (!strcmp(o->to->name, "taskwarrior"))
		return foreign_out_compact(iso, a);
	if (date)
		return str_n(iso.p, strlen("2026-11-16"));
	if (!strcmp(o->to->name, "backlog"))
		return arena_printf(a, "%.10s %.5s", iso.p, iso.p + 11);
	if (o->to->shape == LINES)
		return str_n(when_local(a, ms).p, strlen("2026-11-16"));
	return iso;
}

/* NULL: the task has no value in this field. */
static json_t *field_value(struct foreign_out *o, const struct task *t, const char *name)
{
	const struct field *f = field_find(str_c(name));
	const int64_t *n = field_of(f, t);

	if (f->kind == FIELD_TIME || f->kind == FIELD_DATE)
		return *n ? json_str(time_text(o, *n, f->kind == FIELD_DATE, &o->arena)) : NULL;
	if (f->kind == FIELD_STATUS)
		return json_string(status_name(*n));
	if (f->kind == FIELD_CLASS)
		return json_string(class_name(*n));
	if (f->kind == FIELD_INT)
		return json_sprintf("%lld", (long long)*n);
	return plain_value(f, t, &o->arena);
}

/* The program's first word for ours. A number between two words gets the lower one; a status without a word gets Ready's. */
static const char *word_back(const struct foreign *f, const char *key, const char *ours)
{
	const char *ready = NULL, *highest = NULL;
	int64_t n, most = str_to_i64(str_c(ours), &n) ? n : -1, best = -1;

	for (const struct foreign_word *w = f->words; w->key; w++) {
		if (strcmp(w->key, key))
			continue;
		if (!strcmp(w->ours, ours))
			return w->theirs;
		if (!strcmp(w->ours, "Ready") && !ready)
			ready = w->theirs;
		if (str_to_i64(str_c(w->ours), &n) && n <= most && n > best) {
			best = n;
			highest = w->theirs;
		}
	}
	return highest ? highest : ready;
}

static json_t *foreign_out_links(struct foreign_out *o, const struct task *t, bool typed,
				 const struct foreign_task *self)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->depends.n; i++) {
		const struct foreign_task *to = foreign_out_find(o, t->depends.v[i]);

		if (to && typed)
			json_array_append_new(list,
					      json_pack("{s:o, s:o, s:s}", "issue_id",
							json_str(self->theirs), "depends_on_id",
							json_str(to->theirs), "type", "blocks"));
		else if (to)
			json_array_append_new(list, json_str(to->theirs));
	}
	if (typed && self->inside)
		json_array_append_new(list, json_pack("{s:o, s:o, s:s}", "issue_id",
						      json_str(self->theirs), "depends_on_id",
						      json_str(self->inside->theirs), "type",
						      "parent-child"));
	return list;
}

/* Does this rule take the labels that match no rule's prefix? A rule without a prefix does, or else the last rule. */
static bool takes_rest(const struct foreign *f, const struct foreign_rule *rule)
{
	const struct foreign_rule *taker = NULL;

	for (const struct foreign_rule *r = f->rules; r->key; r++)
		if (r->how == LABEL && !(taker && !*taker->to))
			taker = r;
	return taker == rule;
}

/* The labels that begin with the rule's prefix, without the prefix. */
static json_t *foreign_out_labels(const struct foreign *f, const struct task *t,
				  const struct foreign_rule *rule)
{
	json_t *list = json_array();
	bool rest = takes_rest(f, rule);

	for (size_t i = 0; i < t->labels.n; i++) {
		struct str s = t->labels.v[i];
		bool other = false;

		for (const struct foreign_rule *r = f->rules; r->key; r++)
			other |= r->how == LABEL && *r->to && str_starts(s, str_c(r->to));
		if ((*rule->to && str_cut_prefix(&s, str_c(rule->to))) || (!other && rest))
			json_array_append_new(list, json_str(s));
	}
	return list;
}

/* names: the keys for text, author and time, separated by commas. */
static json_t *foreign_out_notes(struct foreign_out *o, const struct foreign_task *t,
				 const char *names)
{
	struct str rest = str_c(names);
	const char *text = arena_cstr(&o->arena, str_cut(&rest, ',')),
		   *author = arena_cstr(&o->arena, str_cut(&rest, ',')),
		   *at = arena_cstr(&o->arena, rest);
	json_t *list = json_array();

	for (size_t i = 0; i < t->parcel.n_comments; i++) {
		const struct event *e = &t->parcel.comments[i];
		json_t *note = json_object();

		json_object_set_new(note, text, json_str(e->text));
		if (*author && e->agent.n)
			json_object_set_new(note, author, json_str(e->agent));
		if (e->at)
			json_object_set_new(note, at,
					    json_str(time_text(o, e->at, false, &o->arena)));
		json_array_append_new(list, note);
	}
	return list;
}

static json_t *foreign_out_worded(struct foreign_out *o, const struct foreign_rule *r,
				  const struct task *t)
{
	json_t *v = field_value(o, t, r->to);
	const char *word = v ? word_back(o->to, r->key, json_string_value(v)) : NULL;

	json_decref(v);
	return word ? json_string(word) : NULL;
}

static json_t *value_for(struct foreign_out *o, const struct foreign_rule *r,
			 const struct foreign_task *t)
{
	const struct task *task = &t->parcel.task;

	switch (r->how) {
	case TAKE:
		return !strcmp(r->to, "id") ? json_str(t->theirs) : field_value(o, task, r->to);
	case WORDS:
		return foreign_out_worded(o, r, task);
	case LINK:
		return foreign_out_links(o, task, !strcmp(r->to, "blocks"), t);
	case INSIDE:
		return t->inside ? json_str(t->inside->theirs) : NULL;
	case LABEL:
		return foreign_out_labels(o->to, task, r);
	case NOTES:
		return foreign_out_notes(o, t, r->to);
	case SECTION: /* stays in the description */
	case ALIAS:
	case DROP:
		break;
	}
	return NULL;
}

/* Only a field's first rule writes it: github's table has two spellings for some fields. */
static bool is_first(const struct foreign *f, const struct foreign_rule *rule)
{
	for (const struct foreign_rule *r = f->rules; r != rule; r++)
		if (r->how == rule->how && r->to && rule->to && !strcmp(r->to, rule->to))
			return false;
	return true;
}

/* --- values that pawl kept in `extra` ------------------------------------------------------------ */

static const struct foreign_rule *rule_for(const struct foreign *f, const char *key)
{
	const struct foreign_rule *r = f->rules;

	while (r->key && strcmp(r->key, key))
		r++;
	return r->key ? r : NULL;
}

/* The program's own spelling of a lost link's id: foreign_id() reversed. */
static json_t *lost_id(const struct foreign *f, struct str id, struct arena *a)
{
	struct str number = id;
	char *p;

	if (!str_cut_prefix(&number, str_c(f->prefix)) || !number.n)
		return json_str(id);
	p = arena_cstr(a, number);
	for (size_t i = 0; i < number.n; i++) {
		if (p[i] == '_')
			p[i] = '.';
		else if (!is_digit(p[i]))
			return json_str(id);
	}
	return json_string(p);
}

/* Restores links of kinds that pawl does not know, and links to tasks that did not exist. */
static void links_back(struct foreign_out *o, const struct foreign_task *t, const json_t *extra,
		       json_t *out)
{
	const struct foreign_rule *r = o->to->rules;
	const json_t *others = json_object_get(extra, "links"),
		     *lost = json_object_get(extra, "lost_links");
	json_t *list;

	while (r->key && r->how != LINK)
		r++;
	if (!r->key || o->to->id_most || !(json_array_size(others) + json_array_size(lost)))
		return;
	list = json_object_get(out, r->key);
	if (!list) {
		list = json_array();
		json_object_set_new(out, r->key, list);
	}
	for (size_t i = 0; i < json_array_size(others); i++)
		json_array_append(list, json_array_get(others, i));
	for (size_t i = 0; i < json_array_size(lost); i++) {
		json_t *id = lost_id(o->to, json_text(json_array_get(lost, i)), &o->arena);

		json_array_append_new(list,
				      strcmp(r->to, "blocks")
					      ? id
					      : json_pack("{s:o, s:o, s:s}", "issue_id",
							  json_str(t->theirs), "depends_on_id", id,
							  "type", "blocks"));
	}
}

/* An import takes the first of several values. Is it still the same? Then all of them go back. */
static bool begins_with(const json_t *list, const json_t *first)
{
	struct str s = json_text(json_array_get(list, 0));

	(void)str_cut_prefix(&s, STR("@"));
	return json_is_string(first) && str_eq(s, json_text(first));
}

/* Restores the keys that pawl does not know from `extra`, if the task came from this program. */
static void put_back(struct foreign_out *o, const struct foreign_task *t, json_t *out)
{
	static const char *const own[] = { "source", "imported", "links", "lost_links" };
	struct str text = t->parcel.task.extra;
	json_t *extra = json_loadb(str_p(text), text.n, 0, NULL), *v;
	const char *key;

	json_object_foreach(extra, key, v) {
		json_t *has = json_object_get(out, key);
		bool skip = !str_is(json_get(json_object_get(extra, "source"), "tool"),
				    o->to->name);

		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			skip |= !strcmp(key, own[i]);
		if (!skip && (has ? begins_with(v, has) : !rule_for(o->to, key)))
			json_object_set(out, key, v);
	}
	if (str_is(json_get(json_object_get(extra, "source"), "tool"), o->to->name))
		links_back(o, t, extra, out);
	json_decref(extra);
}

json_t *foreign_record(struct foreign_out *o, const struct foreign_task *t)
{
	json_t *out = json_object();

	for (const struct foreign_rule *r = o->to->rules; r->key; r++) {
		json_t *v = is_first(o->to, r) ? value_for(o, r, t) : NULL;

		if (v && !(json_is_array(v) && !json_array_size(v)))
			json_object_set_new(out, r->key, v);
		else
			json_decref(v);
	}
	put_back(o, t, out);
	return out;
}
