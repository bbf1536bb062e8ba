/*
 * Sets a task's fields for create and update. An update may change the status only as update_from()
 * allows. It cannot move a task out of In Progress while its lock is live: the holder releases the
 * task, or an operator breaks the lock first.
 */
#include <jansson.h>
#include <stdlib.h>

#include "core/lease.h"
#include "core/rules.h"

#define BIT(name) (UINT64_C(1) << ARG_##name)

static const uint64_t fields = BIT(title) | BIT(description) | BIT(acceptance) | BIT(labels) |
			       BIT(add_labels) | BIT(remove_labels) | BIT(due) | BIT(not_before) |
			       BIT(delay) | BIT(extra) | BIT(class_rank) | BIT(priority) |
			       BIT(append) | BIT(assignee)
#define PLAIN(tag, part, name, limit, argument, help) | BIT(name)
#include "core/task.def"
	;

bool update_any(const struct request *r)
{
	return r->has & (fields | BIT(status) | BIT(parent));
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

/* Appends the text to `old` as a separate paragraph. */
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
#define PLAIN(tag, part, name, limit, argument, help) SET(name);
#include "core/task.def"
	SET(assignee);
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

/* The statuses from which `update --status` may move a task to `target`. */
static unsigned update_from(int64_t target)
{
	if (target == BACKLOG)
		return STATUS_BIT(READY) | STATUS_BIT(BACKLOG);
	if (target == READY)
		return STATUS_BIT(BACKLOG) | STATUS_BIT(READY) | STATUS_BIT(BLOCKED) |
		       STATUS_BIT(NEEDS_HELP) | STATUS_BIT(IN_PROGRESS);
	return 0;
}

static bool status_allowed(const struct task *t, struct call *c)
{
	int64_t target = c->rq->status;

	if (!HAS(c->rq, status) || update_from(target) & STATUS_BIT(t->status))
		return true;
	if (update_from(target))
		refuse_status(c, t, "this update", update_from(target));
	else
		refuse(c, MISCONFIGURED,
		       arena_printf(c->arena, "update cannot move %.*s to %s", STRF(t->id),
				    status_name(target)),
		       arena_printf(c->arena,
				    "pawl status %.*s STATUS picks the operation that leads there",
				    STRF(t->id)));
	return false;
}

/* An update may move a task from In Progress to Ready only if its lock was lost. A holder
 * releases its task instead. */
static bool is_left(const struct task *t, struct call *c)
{
	if (!HAS(c->rq, status) || t->status != IN_PROGRESS || !lease_live(&t->lock, c->now))
		return true;
	if (lease_owned(&t->lock, c->proof, c->now)) {
		refuse_status(c, t, "that update", update_from(READY) & ~STATUS_BIT(IN_PROGRESS));
		return false;
	}
	refuse_held(c, t);
	c->hint = arena_printf(c->arena, "pawl lock break %.*s --reason TEXT ends this lock",
			       STRF(t->id));
	return false;
}

/* The fields that the request sets, by the names that a task shows. */
static struct strs task_update_named(const struct request *r, struct arena *a)
{
	static const struct {
		uint64_t bits;
		const char *name;
	} others[] = {
		{ BIT(labels) | BIT(add_labels) | BIT(remove_labels), "labels" },
		{ BIT(not_before) | BIT(delay), "not_before" },
		{ BIT(class_rank), "class" },
		{ BIT(description) | BIT(append), "description" },
	};
	uint64_t rest = r->has & (fields | BIT(status) | BIT(parent));
	struct strs out = { 0 };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (rest & others[i].bits)
			out = arena_append(a, out, str_c(others[i].name));
		rest &= ~others[i].bits;
	}
	for (int i = 0; i < ARG_END; i++)
		if (rest >> i & 1)
			out = arena_append(a, out, str_c(arg_name((enum arg)i)));
	return out;
}

void update_apply(struct task *t, struct call *c)
{
	bool over = override_is(t, c);
	int64_t from = t->status;

	if (!status_allowed(t, c) || !rules_free(t, c) || !is_left(t, c))
		return;
	if (over)
		override_note(t, c, task_update_named(c->rq, c->arena));
	update_fields(t, c->rq, c->now, c->arena);
	if (HAS(c->rq, status))
		t->status = c->rq->status;
	if (t->status != from && (from == BLOCKED || from == NEEDS_HELP || from == IN_PROGRESS)) {
		t->abandoned = 0;
		if (!over)
			lease_clear(t, c->now);
	}
	call_edited(c, t);
	call_event(c, t, "updated", from, c->rq->reason);
}
