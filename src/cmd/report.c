/*
 * pawl report: shows what happened in a period, by default since yesterday evening. report_run() makes one
 * JSON object, and every form of the output is made from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "cmd/cmd.h"

struct report_args {
	struct args args;
	struct str format;
};

static const struct param params[] = {
	PARAM(since, "since", P_TIME, .def = "yesterday 18:00", .help = "begin of the report"),
	PARAM(until, "until", P_TIME, .def = "now", .help = "end of the report"),
	PARAM(holder, "by", P_NAME, .value = "AGENT", .help = "report only the work of this agent"),
	LOCAL(report, format, "format", P_CHOICE, .choices = "text markdown json",
	      .value = "FORMAT", .def = "text",
	      .help = "format of the output: text, markdown or json"),
	{ 0 }
};

static enum result report_run(struct session *s, struct args *a, struct reply *out);
static void report_show(const struct reply *r, struct view *v);

const struct command cmd_report = {
	.name = "report",
	.group = "look",
	.summary = "show what happened, for example overnight",
	.detail =
		"Shows the tasks that were completed, failed, sent back for rework or abandoned since yesterday 18:00, with "
		"times and agents, the tasks that wait for a person now, and the work of each agent. Times are local. A "
		"task that ended twice appears twice.",
	.example = "pawl report\n"
		   "pawl report --since \"3 days ago\" --format markdown",
	.see = "stats, log, status",
	.model = "What was done in a period, for people. Changes nothing.",
	.gives = "report",
	.params = params,
	.args_size = sizeof(struct report_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LOG,
	.run = report_run,
	.show = report_show,
};

#define KINDS PERIOD_WORK "done,approved,failed,rework,abandoned,comment"
#define WAITING (STATUS_BIT(REVIEW) | STATUS_BIT(NEEDS_HELP) | STATUS_BIT(BLOCKED))

/* --- sections ------------------------------------------------------------------------------------ */

/* The members of the report, and the events in each. */
static const struct section {
	const char *name, *title, *events[3];
} sections[] = {
	{ "done", "Done", { "done", "approved" } },
	{ "failed", "Failed", { "failed" } },
	{ "reworked", "Reworked", { "rework" } },
	{ "abandoned", "Abandoned", { "abandoned" } },
};
#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

static const struct section *section_of(struct str kind)
{
	for (size_t i = 0; i < SECTIONS; i++)
		for (size_t k = 0; sections[i].events[k]; k++)
			if (str_is(kind, sections[i].events[k]))
				return &sections[i];
	return NULL;
}

static void report_set(json_t *o, const char *name, struct str text)
{
	if (text.n)
		json_object_set_new(o, name, json_str(text));
}

/* rework and approve log the reviewer's text as a comment in the same change. */
static struct str text_of(const struct answer *ans, const struct event *e)
{
	const struct event *next = e + 1;

	if (!e->text.n && next < ans->events + ans->n_events && str_is(next->name, "comment") &&
	    next->at == e->at && str_eq(next->task, e->task))
		return next->text;
	return e->text;
}

static json_t *line_of(const struct answer *ans, const struct event *e, struct arena *a)
{
	const struct task *t = period_task(ans, e->task);
	json_t *o = json_object();

	report_set(o, "at", when_text(a, e->at));
	report_set(o, "task", e->task);
	report_set(o, "title", t ? t->title : STR(""));
	report_set(o, "agent", period_worker(ans, e));
	report_set(o, "text", text_of(ans, e));
	return o;
}

static void add_sections(json_t *report, const struct answer *ans, struct str by, struct arena *a)
{
	for (size_t i = 0; i < SECTIONS; i++)
		json_object_set_new(report, sections[i].name, json_array());
	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];
		const struct section *s = section_of(e->name);

		if (s && (!by.n || str_eq(by, period_worker(ans, e))))
			json_array_append_new(json_object_get(report, s->name), line_of(ans, e, a));
	}
}

static void add_waiting(json_t *report, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];
		json_t *o = json_object();

		report_set(o, "at", when_text(a, t->updated_at));
		report_set(o, "task", t->id);
		report_set(o, "title", t->title);
		report_set(o, "status", str_c(status_name(t->status)));
		report_set(o, "text", t->status == REVIEW ? t->summary : t->blocker_reason);
		json_array_append_new(list, o);
	}
	json_object_set_new(report, "waiting", list);
}

/* --- agents -------------------------------------------------------------------------------------- */

static json_t *agent_in(json_t *agents, struct str name)
{
	size_t i;
	json_t *o;

	json_array_foreach(agents, i, o)
		if (str_eq(json_get(o, "agent"), name))
			return o;
	o = json_object();
	report_set(o, "agent", name);
	for (size_t k = 0; k < SECTIONS; k++)
		json_object_set_new(o, sections[k].name, json_integer(0));
	json_array_append_new(agents, o);
	return o;
}

/* last: the time of the agent's newest line. */
static void add_agents(json_t *report)
{
	json_t *agents = json_array(), *line;
	size_t n;

	for (size_t i = 0; i < SECTIONS; i++)
		json_array_foreach(json_object_get(report, sections[i].name), n, line) {
			struct str name = json_get(line, "agent");
			json_t *o;

			if (!name.n)
				continue;
			o = agent_in(agents, name);
			json_object_set_new(o, sections[i].name,
					    json_integer(view_int(o, sections[i].name) + 1));
			if (str_cmp(json_get(o, "last"), json_get(line, "at")) < 0)
				report_set(o, "last", json_get(line, "at"));
		}
	json_object_set_new(report, "agents", agents);
}

static enum result report_run(struct session *s, struct args *a, struct reply *out)
{
	int64_t now = os_wall_ms(), since = period_day(now, -1, 18);
	struct answer log = { 0 }, waiting = { 0 };
	json_t *report;

	if (period_read(s, &a->rq, KINDS, &since, &log) != SUCCESS)
		return run_answer(&log, out);
	if (period_tasks(s, WAITING, &waiting) != SUCCESS)
		return run_answer(&waiting, out);
	report = json_object();
	report_set(report, "since", when_text(s->arena, since));
	report_set(report, "until",
		   when_text(s->arena, HAS(&a->rq, until) ? a->rq.until : log.now));
	add_sections(report, &log, a->rq.holder, s->arena);
	add_waiting(report, &waiting, s->arena);
	add_agents(report);
	json_object_set_new(reply_more(out), "report", report);
	out->own = arena_cstr(s->arena, ((const struct report_args *)a)->format);
	out->ans.warnings = log.warnings;
	return SUCCESS;
}

/* --- for people ---------------------------------------------------------------------------------- */

static int64_t time_in(const json_t *o, const char *name)
{
	int64_t ms = 0;

	(void)when_parse(json_get(o, name), &ms);
	return ms;
}

/* 11-17 07:12 */
static struct str short_time(const json_t *o, const char *name, struct arena *a)
{
	struct str text = when_local(a, time_in(o, name));

	return str_n(text.p + 5, 11);
}

static struct str long_time(const json_t *o, const char *name, struct arena *a)
{
	struct str text = when_local(a, time_in(o, name));

	return str_n(text.p, 16);
}

static struct str report_headline(const json_t *report, struct arena *a)
{
	static const char *const words[] = { "done", "failed", "reworked", "abandoned" };
	struct str out = STR("");

	for (size_t i = 0; i < SECTIONS; i++)
		out = arena_printf(a, "%.*s%s%zu %s", STRF(out), i ? ", " : "",
				   json_array_size(json_object_get(report, words[i])), words[i]);
	return arena_printf(a, "%.*s; %zu waiting for a person", STRF(out),
			    json_array_size(json_object_get(report, "waiting")));
}

#define COLUMNS 5

static void show_section(struct view *v, const char *title, const char *third, const json_t *list)
{
	const char *heads[COLUMNS] = { "TIME", "TASK", third, "TITLE", "TEXT" };
	struct cell *cells = arena_array(v->arena, struct cell, json_array_size(list) * COLUMNS);
	size_t i, last = 4;
	json_t *o;

	if (!json_array_size(list))
		return;
	json_array_foreach(list, i, o) {
		struct cell *c = cells + i * COLUMNS;
		struct str status = json_get(o, "status");

		c[0].text = short_time(o, "at", v->arena);
		c[0].paint = DIM;
		c[1] = view_cell(v, BOLD, json_get(o, "task"));
		c[2] = view_cell(v, CYAN, status.n ? status : json_get(o, "agent"));
		c[3] = view_cell(v, PLAIN, json_get(o, "title"));
		c[4] = view_cell(v, DIM, json_get(o, "text"));
		last = json_get(o, "text").n ? COLUMNS : last;
	}
	for (size_t k = 0; last < COLUMNS && k < i * last; k++)
		cells[k] = cells[k / last * COLUMNS + k % last];
	view_text(v, PLAIN, "\n");
	view_text(v, BOLD, "%s\n", title);
	view_table(v, heads, last, cells, i);
}

static struct cell number_cell(struct view *v, int64_t n)
{
	return (struct cell){ n ? PLAIN : DIM, arena_printf(v->arena, "%lld", (long long)n) };
}

static void show_agents(struct view *v, const json_t *agents)
{
	static const char *const heads[] = { "AGENT",    "DONE",      "FAILED",
					     "REWORKED", "ABANDONED", "LAST" };
	struct cell *cells = arena_array(v->arena, struct cell, json_array_size(agents) * 6);
	size_t i;
	json_t *o;

	if (!json_array_size(agents))
		return;
	json_array_foreach(agents, i, o) {
		cells[i * 6] = view_cell(v, CYAN, json_get(o, "agent"));
		for (size_t k = 0; k < SECTIONS; k++)
			cells[i * 6 + 1 + k] = number_cell(v, view_int(o, sections[k].name));
		cells[i * 6 + 5].text = short_time(o, "last", v->arena);
	}
	view_text(v, PLAIN, "\n");
	view_text(v, BOLD, "By agent\n");
	view_table(v, heads, 6, cells, i);
}

static void show_text(const json_t *report, struct view *v)
{
	view_text(v, DIM, "%s to %s\n", arena_cstr(v->arena, long_time(report, "since", v->arena)),
		  arena_cstr(v->arena, long_time(report, "until", v->arena)));
	view_text(v, PLAIN, "%s\n", arena_cstr(v->arena, report_headline(report, v->arena)));
	for (size_t i = 0; i < SECTIONS; i++)
		show_section(v, sections[i].title, "AGENT",
			     json_object_get(report, sections[i].name));
	show_section(v, "Waiting for a person", "STATUS", json_object_get(report, "waiting"));
	show_agents(v, json_object_get(report, "agents"));
}

/* --- Markdown ------------------------------------------------------------------------------------ */

/* Adds the text as one line, with every character escaped that could begin markup. */
static void put_plain(struct view *v, struct str text)
{
	struct str line = text_line(v->arena, text);

	for (size_t i = 0; i < line.n; i++) {
		if (strchr("\\`*_[]<>|#", line.p[i]))
			buf_addc(v->out, '\\');
		buf_addc(v->out, line.p[i]);
	}
}

static void put_item(struct view *v, const json_t *o)
{
	struct str status = json_get(o, "status"), agent = json_get(o, "agent"),
		   text = json_get(o, "text");

	view_text(v, PLAIN, "- %s **", arena_cstr(v->arena, short_time(o, "at", v->arena)));
	put_plain(v, json_get(o, "task"));
	buf_adds(v->out, STR("** "));
	put_plain(v, json_get(o, "title"));
	if (status.n || agent.n) {
		buf_adds(v->out, STR(" ("));
		put_plain(v, status.n ? status : agent);
		buf_addc(v->out, ')');
	}
	if (text.n) {
		buf_adds(v->out, STR(": "));
		put_plain(v, text);
	}
	buf_addc(v->out, '\n');
}

static void put_section(struct view *v, const char *title, const json_t *list)
{
	size_t i;
	json_t *o;

	if (!json_array_size(list))
		return;
	view_text(v, PLAIN, "\n## %s\n\n", title);
	json_array_foreach(list, i, o)
		put_item(v, o);
}

static void put_agents(struct view *v, const json_t *agents)
{
	size_t i;
	json_t *o;

	if (!json_array_size(agents))
		return;
	buf_adds(v->out, STR("\n## By agent\n\n| agent | done | failed | reworked | abandoned |\n"
			     "| --- | --- | --- | --- | --- |\n"));
	json_array_foreach(agents, i, o) {
		buf_adds(v->out, STR("| "));
		put_plain(v, json_get(o, "agent"));
		for (size_t k = 0; k < SECTIONS; k++)
			view_text(v, PLAIN, " | %lld", (long long)view_int(o, sections[k].name));
		buf_adds(v->out, STR(" |\n"));
	}
}

static void show_markdown(const json_t *report, struct view *v)
{
	view_text(v, PLAIN, "# Report: %s to %s\n\n%s.\n",
		  arena_cstr(v->arena, long_time(report, "since", v->arena)),
		  arena_cstr(v->arena, long_time(report, "until", v->arena)),
		  arena_cstr(v->arena, report_headline(report, v->arena)));
	for (size_t i = 0; i < SECTIONS; i++)
		put_section(v, sections[i].title, json_object_get(report, sections[i].name));
	put_section(v, "Waiting for a person", json_object_get(report, "waiting"));
	put_agents(v, json_object_get(report, "agents"));
}

static void show_json(const struct reply *r, struct view *v)
{
	json_t *o = reply_json(r, v->arena);
	char *text = json_dumps(o, JSON_COMPACT);

	buf_adds(v->out, str_c(text));
	buf_addc(v->out, '\n');
	free(text);
	json_decref(o);
}

static void report_show(const struct reply *r, struct view *v)
{
	const json_t *report = json_object_get(r->more, "report");
	struct str format = str_c(r->own);

	if (str_is(format, "json"))
		show_json(r, v);
	else if (str_is(format, "markdown"))
		show_markdown(report, v);
	else
		show_text(report, v);
}
