/*
 * Reads and writes the files of Task Master and Backlog.md.
 *
 * Task Master: one object with a list of tasks for each tag, {"master":{"tasks":[…]},"other tag":…}, or the older
 * {"tasks":[…]}. Tasks contain their sub-tasks. In a tag other than master, an id gets the tag before the number, as in
 * "tag-7", so that equal numbers in two tags stay two tasks.
 */
#include <ctype.h>

#include "base/str.h"
#include "format/json.h"
#include "format/yaml.h"
#include "transfer/foreign_out.h"

#define DEEPEST 64
#define SIBLINGS \
	100 /* in a sub-task, a smaller number is a sibling; "68.2" and larger numbers are absolute */

/* --- in ------------------------------------------------------------------------------------------ */

/* Finds the lines of the tasks in an object's text, because jansson does not keep line numbers. */
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
	struct str tag, before; /* before: the prefix of ids, so that ids in two tags differ */
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

/* Tasks in a tag other than master get a key `tag`, which the table turns into a label. */
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

/* "tag-" for the id "tag-7.2"; empty: master. */
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

/* Task Master cannot express a link to another tag, or from a sub-task to a task whose number could be a sibling's. */
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

/* Task Master has only two levels, so deeper tasks become sub-tasks of the outermost one. A sub-task's id is its number. */
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

/* Gives sub-tasks their ids before any record is written, because links refer to them as "68.2". */
static void number_inner(struct foreign_out *o, struct str top, struct foreign_task *around,
			 size_t *n)
{
	for (struct foreign_task *t = around->first; t; t = t->next) {
		t->theirs = arena_printf(&o->arena, "%.*s.%zu", STRF(top), ++*n);
		if (t->depth < DEEPEST)
			number_inner(o, top, t, n);
	}
}

/* The tag's list of tasks. `tag` ends with '-', or is empty for master. */
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

/* --- foreign backlog -------------------------------------------------------------------------- */

/*
 * Backlog.md: a Markdown file for each task. Comments such as "<!-- SECTION:PLAN:BEGIN -->" mark its sections. In pawl,
 * acceptance criteria and final summary become fields; the description keeps the other sections under their headings,
 * without the marks. An export restores headings and marks, so that Backlog.md finds its sections again.
 */

static const struct {
	const char *heading, *begin, *end;
} sections[] = {
	{ "## Acceptance Criteria", "<!-- AC:BEGIN -->", "<!-- AC:END -->" },
	{ "## Definition of Done", "<!-- DOD:BEGIN -->", "<!-- DOD:END -->" },
	{ "## Implementation Plan", "\n<!-- SECTION:PLAN:BEGIN -->", "<!-- SECTION:PLAN:END -->" },
	{ "## Implementation Notes", "\n<!-- SECTION:NOTES:BEGIN -->",
	  "<!-- SECTION:NOTES:END -->" },
	{ "## Final Summary", "\n<!-- SECTION:FINAL_SUMMARY:BEGIN -->",
	  "<!-- SECTION:FINAL_SUMMARY:END -->" },
};

#define N_SECTIONS (sizeof(sections) / sizeof(*sections))

/* --- in ------------------------------------------------------------------------------------------ */

static bool is_mark(struct str line)
{
	static const char *const begins[] = { "<!-- SECTION:", "<!-- AC:", "<!-- DOD:",
					      "<!-- COMMENTS:" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (str_starts(line, str_c(begins[i])))
			return true;
	return false;
}

/* Reads comments of the form "author: ann", "created: 2026-11-17 09:04", "---", text, "---". *rest begins after the mark
 * that begins the comments. */
static json_t *take_comments(struct str *rest)
{
	json_t *list = json_array(), *o = NULL;
	struct buf text = BUF_MAX(SIZE_MAX / 4);
	bool head = true;

	while (rest->n) {
		struct str line = str_cut(rest, '\n'), value = line,
			   key = str_trim(str_cut(&value, ':'));

		if (str_starts(str_trim(line), STR("<!-- COMMENTS:END")))
			break;
		if (!o)
			o = json_object();
		if (str_is(str_trim(line), "---") && !head) {
			json_object_set_new(o, "text", json_str(str_trim(buf_str(&text))));
			json_array_append_new(list, o);
			o = NULL;
			text.n = 0;
		} else if (head && (str_is(key, "author") || str_is(key, "created"))) {
			json_object_set_new(o, str_is(key, "author") ? "author" : "created",
					    json_str(str_trim(value)));
		} else if (!head) {
			buf_addf(&text, "%.*s\n", STRF(line));
		}
		if (str_is(str_trim(line), "---"))
			head = !head;
	}
	json_decref(o);
	buf_free(&text);
	return list;
}

static void set_text(json_t *o, const char *key, struct buf *b)
{
	struct str s = str_trim(buf_str(b));

	if (s.n || !strcmp(key, "body"))
		json_object_set_new(o, key, json_str(s));
	buf_free(b);
}

void foreign_backlog_body(json_t *o, struct str body)
{
	struct buf rest = BUF_MAX(SIZE_MAX / 4), wanted = BUF_MAX(SIZE_MAX / 4),
		   summary = BUF_MAX(SIZE_MAX / 4), *to = &rest;

	while (body.n) {
		struct str line = str_cut(&body, '\n'), heading = str_trim(line);

		if (str_starts(heading, STR("<!-- COMMENTS:BEGIN")))
			json_object_set_new(o, "comments", take_comments(&body));
		if (is_mark(heading))
			continue;
		if (str_starts(line, STR("## ")))
			to = str_is(heading, "## Acceptance Criteria") ? &wanted
			     : str_is(heading, "## Final Summary")     ? &summary
								       : &rest;
		if (to != &rest && str_starts(line, STR("## ")))
			continue;
		if (!str_is(heading, "## Description") && !str_is(heading, "## Comments"))
			buf_addf(to, "%.*s\n", STRF(line));
	}
	set_text(o, "body", &rest);
	set_text(o, "acceptance", &wanted);
	set_text(o, "summary", &summary);
}

/* Backlog.md keeps documents, decisions and an archive beside the tasks. */
const char *foreign_backlog_left_out(struct str path)
{
	if (str_has_nocase(path, STR("/archive/")))
		return "archived in Backlog.md";
	if (str_has_nocase(path, STR("/tasks/")) || str_has_nocase(path, STR("/completed/")) ||
	    str_has_nocase(path, STR("/drafts/")))
		return NULL;
	return "a document of Backlog.md, not a task";
}

/* --- out ----------------------------------------------------------------------------------------- */

/* Keeps letters, digits and the characters in `also`, with '-' for all others; at most `most` bytes. */
static struct str foreign_backlog_slug(struct str s, size_t most, const char *also, struct arena *a)
{
	char *p = arena_cstr(a, s);
	size_t n = 0;

	for (size_t i = 0; i < s.n && n < most; i++) {
		bool word = isalnum((unsigned char)s.p[i]) || (n && strchr(also, s.p[i]));

		if (word || (n && p[n - 1] != '-'))
			p[n++] = word ? s.p[i] : '-';
	}
	while (n && p[n - 1] == '-')
		n--;
	return str_n(p, n);
}

struct str foreign_backlog_name(const struct foreign_task *t, struct arena *a)
{
	struct str id = foreign_backlog_slug(t->theirs, 60, ".", a),
		   title = foreign_backlog_slug(t->parcel.task.title, 60, "", a);
	char *p = arena_cstr(a, id.n ? id : t->parcel.task.id);

	for (size_t i = 0; p[i]; i++)
		p[i] = (char)tolower((unsigned char)p[i]);
	return arena_printf(a, "%s - %.*s.md", p, STRF(title));
}

static void add_section(struct buf *out, size_t i, struct str text)
{
	text = str_trim(text);
	if (text.n)
		buf_addf(out, "\n%s\n%s\n%.*s\n%s\n", sections[i].heading, sections[i].begin,
			 STRF(text), sections[i].end);
}

/* The section that begins with this line; N_SECTIONS: another. */
static size_t section_at(struct str line)
{
	size_t i = 0;

	while (i < N_SECTIONS && !str_is(str_trim(line), sections[i].heading))
		i++;
	return i;
}

/* Headings that Backlog.md does not have stay in its description. */
static void add_texts(struct buf *out, struct str about, struct str acceptance, struct str summary)
{
	struct buf texts[N_SECTIONS + 1];
	size_t at = N_SECTIONS;

	for (size_t i = 0; i <= N_SECTIONS; i++)
		texts[i] = (struct buf)BUF_MAX(SIZE_MAX / 4);
	while (about.n) {
		struct str line = str_cut(&about, '\n');
		bool heading = str_starts(line, STR("## "));

		if (heading)
			at = section_at(line);
		if (!heading || at == N_SECTIONS)
			buf_addf(&texts[at], "%.*s\n", STRF(line));
	}
	buf_adds(&texts[0], acceptance);
	buf_adds(&texts[N_SECTIONS - 1], summary);
	buf_adds(out, STR("\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\n"));
	buf_adds(out, str_trim(buf_str(&texts[N_SECTIONS])));
	buf_adds(out, STR("\n<!-- SECTION:DESCRIPTION:END -->\n"));
	for (size_t i = 0; i <= N_SECTIONS; i++) {
		if (i < N_SECTIONS)
			add_section(out, i, buf_str(&texts[i]));
		buf_free(&texts[i]);
	}
}

static void add_comments(struct buf *out, const json_t *list)
{
	if (!json_array_size(list))
		return;
	buf_adds(out, STR("\n## Comments\n\n<!-- COMMENTS:BEGIN -->\n"));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct str author = json_get(o, "author"), created = json_get(o, "created"),
			   text = json_get(o, "text");

		buf_adds(out, i ? STR("\n") : STR(""));
		if (author.n)
			buf_addf(out, "author: %.*s\n", STRF(author));
		buf_addf(out, "created: %.*s\n---\n%.*s\n---\n", STRF(created), STRF(text));
	}
	buf_adds(out, STR("<!-- COMMENTS:END -->\n"));
}

/* Backlog.md's assignee is a list of people, each with an '@'. */
static void set_people(json_t *record)
{
	json_t *who = json_object_get(record, "assignee");

	if (json_is_array(who))
		return;
	json_object_set_new(record, "assignee",
			    who ? json_pack("[o]", json_sprintf("@%s", json_string_value(who)))
				: json_array());
}

void foreign_backlog_file(struct foreign_out *o, const struct foreign_task *t, struct buf *out)
{
	static const char *const first[] = { "id",       "title",        "status",
					     "assignee", "created_date", "updated_date",
					     "due_date", "labels",       "dependencies" },
				 *const texts[] = { "body", "acceptance", "summary", "comments" };
	json_t *r = foreign_record(o, t), *v;
	const char *key;

	set_people(r);
	for (size_t i = 7; i < 9; i++)
		if (!json_object_get(r, first[i]))
			json_object_set_new(r, first[i], json_array());
	buf_adds(out, STR("---\n"));
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		if (json_object_get(r, first[i])) {
			yaml_add(out, str_c(first[i]), json_object_get(r, first[i]));
			json_object_del(r, first[i]);
		}
	json_object_foreach(r, key, v) {
		bool text = false;

		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			text |= !strcmp(key, texts[i]);
		if (!text)
			yaml_add(out, str_c(key), v);
	}
	buf_adds(out, STR("---\n"));
	add_texts(out, t->parcel.task.description, json_get(r, "acceptance"),
		  json_get(r, "summary"));
	add_comments(out, json_object_get(r, "comments"));
	json_decref(r);
}
