#include "core/update.h"

#include <jansson.h>
#include <stdlib.h>

#include "core/lease.h"
#include "core/refuse.h"

#define BIT(name) (UINT64_C(1) << ARG_##name)
#define FIELDS                                                                                     \
	(BIT(title) | BIT(description) | BIT(acceptance) | BIT(type) | BIT(effort) | BIT(labels) | \
	 BIT(add_labels) | BIT(remove_labels) | BIT(due) | BIT(not_before) | BIT(delay) |          \
	 BIT(extra) | BIT(class_rank) | BIT(priority) | BIT(append))

bool update_any(const struct request *r)
{
	return r->has & (FIELDS | BIT(status) | BIT(parent));
}

/* Adds the members of `more` to `old`; null removes a member. */
static struct str merge_extra(struct str old, struct str more, struct arena *a)
{
	json_t *o = json_loadb(str_p(old), old.n, 0, NULL),
	       *n = json_loadb(more.p, more.n, 0, NULL);
	char *text;
	struct str out;

	if (!o)
		o = json_object();
	for (void *at = json_object_iter(n); at; at = json_object_iter_next(n, at)) {
		json_t *value = json_object_iter_value(at);

		if (json_typeof(value) == JSON_NULL)
			json_object_del(o, json_object_iter_key(at));
		else
			json_object_set(o, json_object_iter_key(at), value);
	}
	text = json_dumps(o, JSON_COMPACT);
	out = json_object_size(o) ? arena_str(a, str_c(text)) : STR("");
	free(text);
	json_decref(o);
	json_decref(n);
	return out;
}

static void update_labels(struct task *t, const struct request *r, struct arena *a)
{
	struct strs list = t->labels;

	if (HAS(r, labels))
		list.n = 0;
	for (size_t i = 0; i < r->labels.n; i++)
		if (!strs_have(list, r->labels.v[i]))
			list = arena_append(a, list, r->labels.v[i]);
	for (size_t i = 0; i < r->add_labels.n; i++)
		if (!strs_have(list, r->add_labels.v[i]))
			list = arena_append(a, list, r->add_labels.v[i]);
	for (size_t i = 0; i < r->remove_labels.n; i++)
		list = arena_without(a, list, r->remove_labels.v[i]);
	t->labels = list;
}

/* The text as a paragraph of its own at the end of `old`. */
static struct str with_paragraph(struct str old, struct str text, struct arena *a)
{
	while (str_ends(old, STR("\n")))
		old.n--;
	return old.n ? arena_printf(a, "%.*s\n\n%.*s", STRF(old), STRF(text)) : text;
}

void update_fields(struct task *t, const struct request *r, int64_t now, struct arena *a)
{
#define SET(name)         \
	if (HAS(r, name)) \
	t->name = r->name
	SET(title);
	SET(description);
	SET(acceptance);
	SET(type);
	SET(effort);
	SET(due);
	SET(not_before);
	SET(class_rank);
	SET(priority);
#undef SET
	if (HAS(r, delay))
		t->not_before = r->delay ? now + r->delay : 0;
	if (HAS(r, extra))
		t->extra = r->extra.n ? merge_extra(t->extra, r->extra, a) : STR("");
	if (HAS(r, append))
		t->description = with_paragraph(t->description, r->append, a);
	update_labels(t, r, a);
}

/* The statuses that `update --status` may start from to get to `target`. */
static unsigned update_from(int64_t target)
{
	if (target == BACKLOG)
		return STATUS_BIT(READY) | STATUS_BIT(BACKLOG);
	if (target == READY)
		return STATUS_BIT(BACKLOG) | STATUS_BIT(READY) | STATUS_BIT(BLOCKED) |
		       STATUS_BIT(NEEDS_HELP);
	return 0;
}

static bool status_allowed(const struct task *t, const struct call *c, struct verdict *v)
{
	int64_t target = c->rq->status;

	if (!HAS(c->rq, status) || update_from(target) & STATUS_BIT(t->status))
		return true;
	if (update_from(target))
		refuse_status(v, c, t, "this update", update_from(target));
	else
		refuse(v, MISCONFIGURED,
		       arena_printf(c->arena, "update cannot move %.*s to %s", STRF(t->id),
				    status_name(target)),
		       arena_printf(c->arena,
				    "pawl status %.*s STATUS picks the operation that leads there",
				    STRF(t->id)));
	return false;
}

/* Has the task changed since the caller read it? */
static bool version_agrees(const struct task *t, const struct call *c, struct verdict *v)
{
	if (!HAS(c->rq, if_version) || c->rq->if_version == t->version)
		return true;
	refuse(v, CONFLICT,
	       arena_printf(c->arena, "%.*s has version %lld, not %lld: it changed meanwhile",
			    STRF(t->id), (long long)t->version, (long long)c->rq->if_version),
	       arena_printf(c->arena, "pawl show %.*s shows the task as it is now", STRF(t->id)));
	return false;
}

void update_apply(struct task *t, const struct call *c, struct verdict *v)
{
	int64_t from = t->status;

	if (!version_agrees(t, c, v) || !status_allowed(t, c, v) || !rules_free(t, c, v))
		return;
	update_fields(t, c->rq, c->now, c->arena);
	if (HAS(c->rq, status))
		t->status = c->rq->status;
	if (t->status != from && (from == BLOCKED || from == NEEDS_HELP)) {
		t->abandoned = 0;
		lease_clear(t, c->now);
	}
	verdict_edited(v, c, t);
	verdict_event(v, c, t, "updated", from, c->rq->reason);
}
