/*
 * Backlog.md: a Markdown file for each task. Its sections are marked with comments, "<!-- SECTION:PLAN:BEGIN -->". In
 * pawl the description keeps the sections under their headings, without the marks; some are fields.
 */
#include <ctype.h>

#include "format/json.h"
#include "format/yaml.h"
#include "transfer/foreign_out.h"

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

/* "author: ann", "created: 2026-11-17 09:04", "---", text, "---". *rest is after the mark that begins the comments. */
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

/* Documents and decisions are beside the tasks, and an archive. NULL: a task. */
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

/* Letters and digits, with '-' between them; at most `most` bytes. */
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

/* Backlog.md has a list of people, each with an '@'. */
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
