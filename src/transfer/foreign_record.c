/* A task as a record of another program: its table read backwards. */
#include <stdlib.h>
#include <strings.h>

#include "base/when.h"
#include "format/json_value.h"
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

/* 20261116T103000Z, as Taskwarrior has it. */
static struct str compact(struct str iso, struct arena *a)
{
	return arena_printf(a, "%.4s%.2s%.2sT%.2s%.2s%.2sZ", iso.p, iso.p + 5, iso.p + 8,
			    iso.p + 11, iso.p + 14, iso.p + 17);
}

static struct str time_text(const struct foreign_out *o, int64_t ms, bool date, struct arena *a)
{
	struct str iso = when_text(a, ms);

	if (!strcmp(o->to->name, "taskwarrior"))
		return compact(iso, a);
	if (!strcmp(o->to->name, "backlog"))
		return arena_printf(a, "%.10s %.5s", iso.p, iso.p + 11);
	if (date || o->to->shape == LINES)
		return str_n(iso.p, strlen("2026-11-16"));
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

/* Their first word for ours. A value between two words takes the lower one; a status without a word that of Ready. */
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

static json_t *links(struct foreign_out *o, const struct task *t, bool typed,
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

/* Labels that begin with `before`, without it. An empty `before` takes those that no other rule takes. */
static json_t *labels(const struct foreign *f, const struct task *t, const char *before)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->labels.n; i++) {
		struct str s = t->labels.v[i];
		bool other = false;

		for (const struct foreign_rule *r = f->rules; r->key && !*before; r++)
			other |= r->how == LABEL && *r->to && str_starts(s, str_c(r->to));
		if (!other && str_cut_prefix(&s, str_c(before)))
			json_array_append_new(list, json_str(s));
	}
	return list;
}

/* names: the keys for text, author and time, with commas. */
static json_t *notes(struct foreign_out *o, const struct foreign_task *t, const char *names)
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

static json_t *worded(struct foreign_out *o, const struct foreign_rule *r, const struct task *t)
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
		return worded(o, r, task);
	case LINK:
		return links(o, task, !strcmp(r->to, "blocks"), t);
	case INSIDE:
		return t->inside ? json_str(t->inside->theirs) : NULL;
	case LABEL:
		return labels(o->to, task, r->to);
	case NOTES:
		return notes(o, t, r->to);
	case SECTION: /* stays in the description */
	case DROP:
		break;
	}
	return NULL;
}

/* The first rule for a field writes it; github knows two spellings. */
static bool is_first(const struct foreign *f, const struct foreign_rule *rule)
{
	for (const struct foreign_rule *r = f->rules; r != rule; r++)
		if (r->how == rule->how && r->to && rule->to && !strcmp(r->to, rule->to))
			return false;
	return true;
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
	return out;
}
