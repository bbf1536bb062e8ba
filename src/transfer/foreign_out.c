/* Writes the files of other programs from records. Fields that a format cannot hold are counted in `lost`, so that an export
 * does not drop them silently. In the gh script, all texts are quoted: a title must not become a command. */
#include "transfer/foreign_out.h"

#include <ctype.h>
#include <stdlib.h>

#include "format/record_form.h"
#include "format/json.h"
#include "format/task_form.h"

#define DEEPEST 64

/* --- fields that the program has no place for -------------------------------------------------------- */

void foreign_out_lost(struct foreign_out *o, const char *field)
{
	size_t i = 0;

	while (i < sizeof(o->lost) / sizeof(*o->lost) - 1 && o->lost[i].n &&
	       strcmp(o->lost[i].field, field))
		i++;
	o->lost[i].field = field;
	o->lost[i].n++;
}

/* Does the program have a place for this field? A checklist and the gh script write less than the table reads. */
static bool has_place(const struct foreign *f, const char *field)
{
	if (!strcmp(f->name, "github"))
		return !strcmp(field, "description") || !strcmp(field, "labels");
	if (!strcmp(f->name, "markdown"))
		return !strcmp(field, "description") || !strcmp(field, "parent");
	if (!strcmp(f->name, "task-master") && !strcmp(field, "labels"))
		return false;
	for (const struct foreign_rule *r = f->rules; r->key; r++)
		if ((r->how == LINK && !strcmp(field, "depends")) ||
		    (r->how == LINK && !strcmp(r->to, "blocks") && !strcmp(field, "parent")) ||
		    (r->how == LABEL && !strcmp(field, "labels")) ||
		    (r->how == NOTES && !strcmp(field, "comments")) ||
		    (r->to && !strcmp(r->to, field)))
			return true;
	return false;
}

static void count_lost(struct foreign_out *o, const struct foreign_task *t)
{
	const struct task *task = &t->parcel.task;
	const struct {
		const char *field;
		bool has;
	} fields[] = { { "description", task->description.n },
		       { "acceptance", task->acceptance.n },
		       { "labels", task->labels.n },
		       { "depends", task->depends.n },
		       { "parent", task->parent.n },
		       { "assignee", task->assignee.n },
		       { "due", task->due },
		       { "not_before", task->not_before },
#define PLAIN(tag, part, name, limit, argument, help) { #name, task->name.n },
#include "core/task.def"
		       { "summary", task->summary.n },
		       { "comments", t->parcel.n_comments } };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].has && !has_place(o->to, fields[i].field))
			foreign_out_lost(o, fields[i].field);
}

/* --- ids ------------------------------------------------------------------------------------------ */

void foreign_out_add(struct foreign_out *o, const struct parcel *p)
{
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	struct foreign_task *t;

	o->tasks = arena_grow(&o->arena, o->tasks, o->n, sizeof(*o->tasks));
	t = &o->tasks[o->n++];
	*t = (struct foreign_task){ 0 };
	task_pack(&p->task, HOT | BODY, &b);
	(void)task_unpack(arena_str(&o->arena, buf_str(&b)), &t->parcel.task, &o->arena);
	buf_free(&b);
	t->parcel.comments = arena_array(&o->arena, struct event, p->n_comments);
	for (size_t i = 0; i < p->n_comments; i++) {
		struct event *e = &t->parcel.comments[i];

		*e = (struct event){ .at = p->comments[i].at };
		e->text = arena_str(&o->arena, p->comments[i].text);
		e->agent = arena_str(&o->arena, p->comments[i].agent);
	}
	t->parcel.n_comments = p->n_comments;
}

/* The id that the task had in this program; empty: the task does not come from it. */
static struct str old_id(struct foreign_out *o, const struct task *t)
{
	json_t *extra = json_loadb(str_p(t->extra), t->extra.n, 0, NULL),
	       *source = json_object_get(extra, "source");
	struct str id = STR("");

	if (str_is(json_get(source, "tool"), o->to->name))
		id = arena_str(&o->arena, json_get(source, "id"));
	json_decref(extra);
	return id;
}

static void note_number(struct foreign_out *o, struct str id)
{
	struct str s = id;
	int64_t n;

	while (s.n && !isdigit((unsigned char)s.p[0]))
		s = str_n(s.p + 1, s.n - 1);
	if (str_to_i64(str_cut(&s, '.'), &n) && n >= o->next && n < INT64_C(1000000000))
		o->next = n + 1;
}

/* A UUID for a task that came from elsewhere, of version 8 (custom). It depends only on pawl's id, so that a second export
 * gives the same one. */
static struct str new_uuid(struct foreign_out *o, struct str id)
{
	uint64_t a = str_sum(11, id.p, id.n), b = str_sum(13, id.p, id.n);

	return arena_printf(&o->arena, "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(a >> 32),
			    (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
			    (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
			    (unsigned long long)(b & 0xffffffffffffu));
}

static struct str new_id(struct foreign_out *o, const struct task *t)
{
	const char *name = o->to->name;

	if (!strcmp(name, "taskwarrior"))
		return new_uuid(o, t->id);
	if (!strcmp(name, "backlog"))
		return arena_printf(&o->arena, "TASK-%lld", (long long)o->next++);
	if (!strcmp(name, "task-master") || !strcmp(name, "todo-txt"))
		return arena_printf(&o->arena, "%lld", (long long)o->next++);
	return t->id;
}

static void find_inside(struct foreign_out *o, struct foreign_task *t)
{
	struct foreign_task *around = t->parcel.task.parent.n
					      ? foreign_out_find(o, t->parcel.task.parent)
					      : NULL;

	if (!around)
		return;
	t->inside = around;
	if (around->last)
		around->last->next = t;
	else
		around->first = t;
	around->last = t;
}

void foreign_out_settle(struct foreign_out *o)
{
	o->next = 1;
	foreign_out_sort(o);
	for (size_t i = 0; i < o->n; i++) {
		o->tasks[i].theirs = old_id(o, &o->tasks[i].parcel.task);
		note_number(o, o->tasks[i].theirs);
		find_inside(o, &o->tasks[i]);
	}
	for (size_t i = 0; i < o->n; i++)
		if (!o->tasks[i].theirs.n)
			o->tasks[i].theirs = new_id(o, &o->tasks[i].parcel.task);
	for (size_t i = 0; i < o->n; i++) {
		for (const struct foreign_task *t = o->tasks[i].inside;
		     t && o->tasks[i].depth < DEEPEST; t = t->inside)
			o->tasks[i].depth++;
		count_lost(o, &o->tasks[i]);
	}
}

void foreign_out_end(struct foreign_out *o)
{
	arena_free(&o->arena);
}

/* --- JSON ------------------------------------------------------------------------------------------ */

static void add_json(struct buf *out, json_t *v, size_t flags)
{
	char *text = json_dumps(v, flags | JSON_ENCODE_ANY);

	buf_adds(out, str_c(text));
	free(text);
	json_decref(v);
}

/* In beads, priorities are numbers. */
static void foreign_out_number(json_t *record, const char *key)
{
	int64_t n;

	if (str_to_i64(json_get(record, key), &n))
		json_object_set_new(record, key, json_integer(n));
}

static void add_lines(struct foreign_out *o, struct buf *out)
{
	for (size_t i = 0; i < o->n; i++) {
		json_t *record = foreign_record(o, &o->tasks[i]);

		foreign_out_number(record, "priority");
		add_json(out, record, JSON_COMPACT);
		buf_addc(out, '\n');
	}
}

static void add_master(struct foreign_out *o, struct buf *out)
{
	add_json(out, foreign_master_write(o), JSON_INDENT(2));
	buf_addc(out, '\n');
}

static void add_array(struct foreign_out *o, struct buf *out)
{
	buf_adds(out, STR("["));
	for (size_t i = 0; i < o->n; i++) {
		json_t *record = foreign_record(o, &o->tasks[i]), *project;

		project = json_incref(json_object_get(record, "project"));
		if (json_is_array(project)) /* a Taskwarrior task has one project */
			json_object_set(record, "project", json_array_get(project, 0));
		json_decref(project);
		buf_adds(out, i ? STR(",\n") : STR("\n"));
		add_json(out, record, JSON_COMPACT);
	}
	buf_adds(out, STR("\n]\n"));
}

/* --- lines ----------------------------------------------------------------------------------------- */

static void add_words(struct buf *out, const json_t *list, char mark)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		buf_addc(out, ' ');
		buf_addc(out, mark);
		buf_adds(out, json_text(json_array_get(list, i)));
	}
}

static void add_pair(struct buf *out, const json_t *record, const char *key)
{
	struct str s = json_get(record, key);

	if (s.n)
		buf_addf(out, " %s:%.*s", key, STRF(s));
}

static void add_todo(struct foreign_out *o, struct buf *out)
{
	for (size_t i = 0; i < o->n; i++) {
		json_t *r = foreign_record(o, &o->tasks[i]);
		struct str done = json_get(r, "done"), priority = json_get(r, "priority"),
			   completed = json_get(r, "completed"), created = json_get(r, "created"),
			   title = json_get(r, "title");

		if (done.n)
			buf_addf(out, "x %.*s%s", STRF(completed), completed.n ? " " : "");
		else
			buf_addf(out, "(%.*s) ", STRF(priority));
		buf_addf(out, "%.*s %.*s", STRF(created), STRF(title));
		add_words(out, json_object_get(r, "project"), '+');
		add_words(out, json_object_get(r, "context"), '@');
		add_pair(out, r, "due");
		add_pair(out, r, "t");
		buf_addf(out, "%s%.*s id:%.*s\n", done.n ? " pri:" : "",
			 done.n ? (int)priority.n : 0, str_p(priority), STRF(o->tasks[i].theirs));
		json_decref(r);
	}
}

static void add_item(const struct foreign_task *t, struct buf *out)
{
	const struct task *task = &t->parcel.task;
	struct str rest = task->description;

	buf_addf(out, "%*s- [%c] %.*s\n", (int)t->depth * 2, "",
		 task->status == DONE || task->status == CANCELED ? 'x' : ' ', STRF(task->title));
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (line.n)
			buf_addf(out, "%*s%.*s\n", (int)t->depth * 2 + 2, "", STRF(line));
		else
			buf_addc(out, '\n');
	}
	for (const struct foreign_task *inner = t->first; inner && t->depth < DEEPEST;
	     inner = inner->next)
		add_item(inner, out);
}

static void add_checklist(struct foreign_out *o, struct buf *out)
{
	for (size_t i = 0; i < o->n; i++)
		if (!o->tasks[i].inside)
			add_item(&o->tasks[i], out);
}

/* --- a script of gh commands ------------------------------------------------------------------------ */

/* Quotes the text as one word of a POSIX shell. It may contain newlines. */
static void add_quoted(struct buf *out, struct str s)
{
	buf_addc(out, '\'');
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\'')
			buf_adds(out, STR("'\\''"));
		else
			buf_addc(out, s.p[i]);
	buf_addc(out, '\'');
}

static void add_gh(struct foreign_out *o, struct buf *out)
{
	buf_adds(
		out,
		STR("#!/bin/sh -e\n# Makes an issue for each task: run it in a clone of the repository.\n"));
	for (size_t i = 0; i < o->n; i++) {
		const struct task *t = &o->tasks[i].parcel.task;

		buf_adds(out, STR("url=$(gh issue create --title "));
		add_quoted(out, t->title);
		buf_adds(out, STR(" --body "));
		add_quoted(out, t->description);
		for (size_t k = 0; k < t->labels.n; k++) {
			buf_adds(out, STR(" --label "));
			add_quoted(out, t->labels.v[k]);
		}
		buf_adds(out, STR(")\n"));
		if (t->status == DONE || t->status == CANCELED)
			buf_addf(out, "gh issue close \"$url\" --reason %s\n",
				 t->status == DONE ? "completed" : "\"not planned\"");
	}
}

void foreign_out_text(struct foreign_out *o, struct buf *out)
{
	static const struct {
		const char *name;
		void (*write)(struct foreign_out *o, struct buf *out);
	} writers[] = { { "task-master", add_master }, { "beads", add_lines },
			{ "taskwarrior", add_array },  { "todo-txt", add_todo },
			{ "markdown", add_checklist }, { "github", add_gh } };

	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++)
		if (!strcmp(o->to->name, writers[i].name))
			writers[i].write(o, out);
}
