/*
 * The Markdown text that `pawl edit` opens: it writes a task as such a text and reads the person's changes from it.
 * form_read() refuses unknown keys, because a misspelled field must not become a key of `extra` unnoticed. form_changes()
 * compares two readings, so fields that the person did not touch are not sent.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "cmd/cmd.h"
#include "cmd/reply.h"
#include "format/markdown.h"

struct str form_text(const struct task *t, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str head, out;

	head = arena_printf(
		a,
		"# %s%.*s. Change the fields here, and the description below the next line of dashes.\n"
		"# Remove a line to clear its field. Lines that begin with # here are not kept.\n"
		"# Fields: title, status, class, priority, labels, "
#define PLAIN(tag, part, name, limit, argument, help) #name ", "
#include "core/task.def"
		"assignee, due,\n"
		"# not_before, parent, depends, acceptance, extra.\n",
		t->id.n ? "Task " : "A new task", STRF(t->id));
	task_md_form(t, head, &b, a);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* --- reading -------------------------------------------------------------------------------------- */

struct form_keys {
	struct form *form;
	json_t *extra;
	struct yaml_fault *fault;
	struct arena *arena;
};

/* Refuses an unknown key, unless the task's `extra` has it already. */
static int take_key(void *ctx, struct str key, json_t *value, size_t line)
{
	struct form_keys *k = ctx;
	const char *name = arena_cstr(k->arena, key);

	json_object_set_new(k->form->lines, name, json_integer((json_int_t)line));
	if (str_is(key, "title"))
		k->form->titled = json_is_string(value) && str_trim(json_text(value)).n > 0;
	if (task_md_editable(key) || json_object_get(k->extra, name))
		return 0;
	*k->fault = (struct yaml_fault){
		line,
		arena_printf(
			k->arena, "there is no field '%s'; put keys of your own under extra",
			arena_cstr(k->arena, text_cut(k->arena, text_line(k->arena, key), 60))),
	};
	return -EINVAL;
}

int form_read(struct str text, struct str extra, struct form *out, struct yaml_fault *fault,
	      struct arena *a)
{
	struct form_keys k = { out, json_loadb(str_p(extra), extra.n, 0, NULL), fault, a };
	struct plain p;
	int r;

	*out = (struct form){ .lines = json_object() };
	*fault = (struct yaml_fault){ 0 };
	plain_start(&p, when_parse, false, a);
	r = text_valid(text) ? task_md_keys(text, take_key, &k, fault, a) : 0;
	if (!r)
		r = task_md_parse(text, STR("x.md"), &p, fault);
	json_decref(k.extra);
	out->task = p.task;
	if (r)
		form_free(out);
	return r ? -EBADMSG : 0;
}

void form_free(struct form *f)
{
	json_decref(f->lines);
	f->lines = NULL;
}

size_t form_line(const struct form *f, struct str message)
{
	size_t n = 0;
	char name[32];

	while (n < message.n && n < sizeof(name) - 1 && message.p[n] != ' ' && message.p[n] != ':')
		n++;
	memcpy(name, str_p(message), n);
	name[n] = '\0';
	return (size_t)json_integer_value(json_object_get(f->lines, name));
}

/* --- changes -------------------------------------------------------------------------------------- */

struct strs form_without(struct strs list, struct strs others, struct arena *a)
{
	struct strs out = { 0 };

	for (size_t i = 0; i < list.n; i++)
		if (!strs_have(others, list.v[i]))
			out = arena_append(a, out, list.v[i]);
	return out;
}

/* The argument of `update --extra`: null removes a key. */
static struct str extra_patch(struct str was, struct str is, struct arena *a)
{
	json_t *old = json_loadb(str_p(was), was.n, 0, NULL),
	       *new = json_loadb(str_p(is), is.n, 0, NULL);
	struct str out = is;
	char *text;

	if (json_is_object(old) && json_is_object(new)) {
		for (void *at = json_object_iter(old); at; at = json_object_iter_next(old, at))
			if (!json_object_get(new, json_object_iter_key(at)))
				json_object_set_new(new, json_object_iter_key(at), json_null());
		text = json_dumps(new, JSON_COMPACT);
		out = arena_str(a, str_c(text));
		free(text);
	}
	json_decref(old);
	json_decref(new);
	return out;
}

bool form_changes(const struct form *before, const struct form *after, struct request *rq,
		  struct arena *a)
{
	const struct task *was = &before->task, *is = &after->task;
	uint64_t had = rq->has;
	bool stays = !json_object_get(after->lines, "status"); /* a status cannot be cleared */

#define TEXT(name)                        \
	if (!str_eq(was->name, is->name)) \
	GIVE(rq, name, is->name)
#define NUMBER(name)               \
	if (was->name != is->name) \
	GIVE(rq, name, is->name)
	TEXT(title);
	TEXT(description);
	TEXT(acceptance);
#define PLAIN(tag, part, name, limit, argument, help) TEXT(name);
#include "core/task.def"
	TEXT(assignee);
	TEXT(parent);
	if (!stays)
		NUMBER(status);
	NUMBER(class_rank);
	NUMBER(priority);
	NUMBER(due);
	NUMBER(not_before);
#undef TEXT
#undef NUMBER
	if (!strs_eq(was->labels, is->labels))
		GIVE(rq, labels, is->labels);
	if (!str_eq(was->extra, is->extra))
		GIVE(rq, extra, extra_patch(was->extra, is->extra, a));
	if (rq->op == OP_CREATE && !strs_eq(was->depends, is->depends))
		GIVE(rq, depends, is->depends);
	return rq->has != had;
}
