/*
 * Task Master: one object with a list of tasks for each tag, {"master":{"tasks":[…]},"other tag":…}, or the older
 * {"tasks":[…]}. Tasks hold their sub-tasks. The ids of a tag other than master get it before the number: "tag-7".
 */
#include "base/str.h"
#include "format/json.h"
#include "transfer/foreign_out.h"

#define DEEPEST 64
#define SIBLINGS \
	100 /* in a sub-task, a smaller number is a sibling; "68.2" and larger numbers are absolute */

/* --- in ------------------------------------------------------------------------------------------ */

/* Where the tasks of one object are in its text: jansson does not keep lines. */
struct lines {
	struct str text;
	size_t at, line;
};

/* The line of the next "id" key. */
static size_t next_line(struct lines *l)
{
	static const char key[] = "\"id\"";
	const char *from = l->text.p + l->at,
		   *found = memmem(from, l->text.n - l->at, key, strlen(key));

	for (const char *p = from; found && p < found; p++)
		l->line += *p == '\n';
	if (found)
		l->at = (size_t)(found - l->text.p) + strlen(key);
	return l->line;
}

static struct str number_text(const json_t *v, struct arena *a)
{
	if (json_is_integer(v))
		return arena_printf(a, "%lld", (long long)json_integer_value(v));
	return json_text(v);
}

static json_t *foreign_master_absolute(const json_t *links, struct str parent, struct str before,
				       struct arena *a)
{
	json_t *out = json_array();

	for (size_t i = 0; i < json_array_size(links); i++) {
		struct str id = number_text(json_array_get(links, i), a);
		int64_t n;

		if (parent.n && str_to_i64(id, &n) && n < SIBLINGS)
			id = arena_printf(a, "%.*s.%.*s", STRF(parent), STRF(id));
		else if (before.n)
			id = arena_printf(a, "%.*s%.*s", STRF(before), STRF(id));
		json_array_append_new(out, json_str(id));
	}
	return out;
}

struct nest {
	struct port_in *in;
	struct lines lines;
	struct str tag, before; /* before: put before ids, so that those of two tags differ */
	struct arena *a;
};

static enum result take_tasks(struct nest *n, const json_t *tasks, struct str parent);

static enum result take_task(struct nest *n, const json_t *task, struct str parent)
{
	size_t line = next_line(&n->lines);
	struct str own = number_text(json_object_get(task, "id"), n->a), id;
	json_t *o = json_copy((json_t *)task), *subtasks = json_object_get(task, "subtasks");
	enum result code;

	if (!json_is_object(task)) {
		json_decref(o);
		return port_refuse(n->in, line, STR("not an object"));
	}
	id = parent.n ? arena_printf(n->a, "%.*s.%.*s", STRF(parent), STRF(own))
		      : arena_printf(n->a, "%.*s%.*s", STRF(n->before), STRF(own));
	if (own.n)
		json_object_set_new(o, "id", json_str(id));
	json_object_set_new(o, "dependencies",
			    foreign_master_absolute(json_object_get(task, "dependencies"), parent,
						    n->before, n->a));
	json_object_del(o, "subtasks");
	if (parent.n)
		json_object_set_new(o, "parent", json_str(parent));
	if (n->tag.n)
		json_object_set_new(o, "tag", json_str(n->tag));
	code = foreign_found(n->in, o, line);
	json_decref(o);
	return code == SUCCESS ? take_tasks(n, subtasks, id) : code;
}

static enum result take_tasks(struct nest *n, const json_t *tasks, struct str parent)
{
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < json_array_size(tasks); i++)
		code = take_task(n, json_array_get(tasks, i), parent);
	return code;
}

/* Tasks of other tags get a label. */
enum result foreign_master_read(struct port_in *in, json_t *o, struct str text, size_t line)
{
	struct arena a = { 0 };
	struct nest n = { .in = in, .lines = { text, 0, line }, .a = &a };
	enum result code = SUCCESS;
	const char *tag;
	json_t *v;

	if (json_is_array(json_object_get(o, "tasks"))) {
		code = take_tasks(&n, json_object_get(o, "tasks"), STR(""));
	} else {
		json_object_foreach(o, tag, v) {
			bool master = !strcmp(tag, "master");

			if (code != SUCCESS || !json_is_array(json_object_get(v, "tasks")))
				continue;
			n.tag = master ? STR("") : str_c(tag);
			n.before = master ? STR("") : arena_printf(&a, "%s-", tag);
			code = take_tasks(&n, json_object_get(v, "tasks"), STR(""));
		}
	}
	arena_free(&a);
	return code;
}

/* --- out ----------------------------------------------------------------------------------------- */

/* "tag" of "tag-7.2", with the '-'; empty: master. */
static struct str tag_of(struct str id)
{
	while (id.n && (is_digit(id.p[id.n - 1]) || id.p[id.n - 1] == '.'))
		id.n--;
	return id.n && id.p[id.n - 1] == '-' ? id : STR("");
}

static json_t *number_json(struct str id)
{
	int64_t n;

	return str_to_i64(id, &n) ? json_integer(n) : json_str(id);
}

/* Task Master has no links to another tag, nor from a sub-task to a task whose number is that of a sibling. */
static json_t *link_json(struct str tag, struct str id, bool inner)
{
	int64_t n;

	if (!str_eq(tag_of(id), tag))
		return NULL;
	id = str_n(id.p + tag.n, id.n - tag.n);
	return inner && str_to_i64(id, &n) && n < SIBLINGS ? NULL : number_json(id);
}

static json_t *links_json(struct foreign_out *o, const struct foreign_task *t, const json_t *ids)
{
	json_t *out = json_array();
	bool lost = false;

	for (size_t i = 0; i < json_array_size(ids); i++) {
		json_t *id = link_json(tag_of(t->theirs), json_text(json_array_get(ids, i)),
				       t->inside);

		if (id)
			json_array_append_new(out, id);
		lost |= !id;
	}
	if (lost)
		foreign_out_lost(o, "depends");
	return out;
}

static json_t *record_of(struct foreign_out *o, const struct foreign_task *t)
{
	json_t *record = foreign_record(o, t);
	struct str id = t->theirs;

	(void)str_cut_prefix(&id, tag_of(id));
	json_object_set_new(record, "id", number_json(id));
	json_object_del(record, "parent");
	json_object_del(record, "tag");
	json_object_set_new(record, "dependencies",
			    links_json(o, t, json_object_get(record, "dependencies")));
	return record;
}

/* There are two levels: tasks further in become sub-tasks of the outermost. A sub-task's id is its number. */
static void add_inner(struct foreign_out *o, const struct foreign_task *around, json_t *list)
{
	for (const struct foreign_task *t = around->first; t; t = t->next) {
		json_t *record = record_of(o, t);

		json_object_set_new(record, "id",
				    json_integer((json_int_t)json_array_size(list) + 1));
		json_array_append_new(list, record);
		if (t->depth < DEEPEST)
			add_inner(o, t, list);
	}
}

/* Before the records: links to sub-tasks are written as "68.2". */
static void number_inner(struct foreign_out *o, struct str top, struct foreign_task *around,
			 size_t *n)
{
	for (struct foreign_task *t = around->first; t; t = t->next) {
		t->theirs = arena_printf(&o->arena, "%.*s.%zu", STRF(top), ++*n);
		if (t->depth < DEEPEST)
			number_inner(o, top, t, n);
	}
}

/* The list of the tag, which ends with '-'. */
static json_t *tasks_of(json_t *tags, struct str tag, struct arena *a)
{
	const char *name = tag.n ? arena_cstr(a, str_n(tag.p, tag.n - 1)) : "master";

	if (!json_object_get(tags, name))
		json_object_set_new(tags, name, json_pack("{s:[]}", "tasks"));
	return json_object_get(json_object_get(tags, name), "tasks");
}

json_t *foreign_master_write(struct foreign_out *o)
{
	json_t *tags = json_object();

	(void)tasks_of(tags, STR(""), &o->arena);
	for (size_t i = 0; i < o->n; i++) {
		size_t n = 0;

		if (!o->tasks[i].inside)
			number_inner(o, o->tasks[i].theirs, &o->tasks[i], &n);
	}
	for (size_t i = 0; i < o->n; i++)
		if (!o->tasks[i].inside) {
			json_t *record = record_of(o, &o->tasks[i]), *inner = json_array();

			add_inner(o, &o->tasks[i], inner);
			json_object_set_new(record, "subtasks", inner);
			json_array_append_new(tasks_of(tags, tag_of(o->tasks[i].theirs), &o->arena),
					      record);
		}
	return tags;
}
