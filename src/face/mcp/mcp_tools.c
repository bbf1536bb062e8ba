/*
 * tools/list and tools/call. A call never waits: one that could get a better answer later is deferred (mcp_wait.c).
 *
 * Where a tool's texts are declared:
 *   which tools a profile offers, its instructions, the prompt `work`   mcp_profile.c
 *   a tool of the profile pm: its name, texts and arguments             mcp_pm.c
 *   every other tool is a command, declared in src/cmd/NAME.c (the tool lock_acquire is "lock acquire" in lock.c):
 *     its description     .model; without one .summary, .detail and .fails
 *     an argument         .model of its parameter; without one .help
 *     its annotations     .flags: C_WRITE, C_IDEMPOTENT, C_DESTRUCTIVE
 *     its output          .gives; the type of each member is in mcp_tools.c
 *   the brief that comes with a lock                                    mcp_brief.c
 *   hints after a refusal                                               mcp_refusals.c
 *   the answer: mcp_answer.c makes its parts, mcp_brief.c puts them together and makes the text from them
 * mcp_tools.c makes the tool's entry in tools/list from these declarations.
 */
#include "base/text.h"
#include "base/when.h"
#include "client/redact.h"
#include "cmd/args_json.h"
#include "core/role.h"
#include "face/mcp/mcp.h"
#include "format/answer_form.h"

void tools_list(struct mcp_call *c)
{
	const struct profile *p = c->m->profile;
	const struct command *tool;
	struct arena a = { 0 };
	json_t *list = json_array();

	for (size_t i = 0; (tool = profile_tool(p, i)); i++)
		if (tool_allowed(c->m, tool))
			json_array_append_new(list, schema_tool(tool, p->narrow, &a));
	mcp_reply_kept(c, json_pack("{s:o}", "tools", list), FOR_HOURS);
	arena_free(&a);
}

static const struct command *mcp_tools_find(const struct profile *p, struct str name,
					    struct arena *a)
{
	const struct command *tool;

	for (size_t i = 0; (tool = profile_tool(p, i)); i++)
		if (str_eq(tool_name(tool, a), name))
			return tool;
	return NULL;
}

/* --- one call ------------------------------------------------------------------------------------- */

/* A client that acts for several agents names the agent: tokens are saved under that name. */
static void act_as(struct client *c, struct str agent)
{
	c->self.agent = c->keyring.agent = agent;
}

/* Did another agent's lock of the whole queue prevent the call? */
static bool mcp_tools_barred(const struct reply *r)
{
	return !reply_ok(r) && r->ans.barred;
}

static struct str session_of(const struct mcp_call *c)
{
	return json_get(json_object_get(c->params, "_meta"), "threadId");
}

/* Over the network the token decides which names are allowed. */
static bool may_act(struct mcp *m, const struct request *rq, struct answer *ans)
{
	const struct mcp_host *host = m->options.host;

	if (!host || !HAS(rq, agent) || host->may_act_as(host->ctx, rq->agent))
		return true;
	answer_fail(ans, MISCONFIGURED, STR("the token does not allow this agent name"), STR(""));
	ans->fault = STR("forbidden");
	return false;
}

static enum result mcp_tools_execute(const struct mcp_call *c, const struct command *tool,
				     struct args *args, struct reply *out, struct arena *a)
{
	struct mcp *m = c->m;
	struct session *s = &m->session;
	struct client *client = &s->client;
	struct answer ans = { 0 };
	struct request *rq = &args->rq;
	struct str self;
	enum result code;
	bool last;

	if (mcp_ready(m, &ans, a) != SUCCESS || !may_act(m, rq, &ans)) {
		redact_answer(client, m->options.host ? ROLE_READER : ROLE_NONE, &ans, a);
		return run_answer(&ans, out);
	}
	if (tool == &cmd_next && under_run_next(m, rq, out, a))
		return out->ans.code;
	self = client->self.agent;
	s->arena = client->arena = a;
	mcp_enter(m, session_of(c));
	/* the keeper knows its locks by the full id */
	if (rq->id.n && rq->id.p[0] >= '0' && rq->id.p[0] <= '9' &&
	    client_open(client, STORE_READ, &ans) == SUCCESS)
		client_know_ids(client, rq);
	last = under_run_done(m, rq);
	keeper_prove(m, rq);
	brief_ask(tool, rq);
	if (HAS(rq, agent))
		act_as(client, rq->agent);
	code = command_run(tool, s, args, out);
	act_as(client, self);
	client->arena = &m->base;
	if (last && code == SUCCESS)
		reply_warn(
			out,
			STR("no next task was claimed. Stop here: the next task gets a new session"),
			a);
	mcp_answered(m, mcp_tools_barred(out) ? SUCCESS : code);
	keeper_learn(m, rq, &out->ans);
	return code;
}

/* A call that was tried once. */
struct attempt {
	const struct command *tool;
	struct reply reply;
	int64_t wait; /* the caller would wait up to this long for a better answer */
	bool full;
	struct str after; /* the last task of the previous page */
	int64_t skipped;
};

/* --- arguments that only tools have ------------------------------------------------------------------ */

const struct tool_extra tool_extras[] = {
	{ &cmd_show, "full", "boolean", "every field, time and lock; long texts whole" },
	{ &cmd_list, "after", "string", "the next page: after this id" },
	{ &cmd_find, "after", "string", "the next page: after this id" },
	{ 0 }
};

#define PAGE 50

static bool is_paged(const struct command *tool)
{
	return tool == &cmd_list || tool == &cmd_find;
}

/* Takes `full` and `after` out of the arguments. NULL, or the fault. */
static const char *take_extras(struct attempt *t, json_t *arguments)
{
	const json_t *full = json_object_get(arguments, "full"),
		     *after = json_object_get(arguments, "after");

	if (t->tool == &cmd_show && full) {
		if (!json_is_boolean(full) && !json_is_null(full))
			return "the argument full: must be true or false";
		t->full = json_is_true(full);
		json_object_del(arguments, "full");
	}
	if (is_paged(t->tool) && after) {
		t->after = json_text(after);
		if (id_fault(t->after))
			return "the argument after: must be the id of a task";
	}
	return NULL;
}

/* Reduces the answer to the page after `after`. */
static void next_page(struct attempt *t, int64_t limit)
{
	struct answer *ans = &t->reply.ans;
	size_t i = 0;

	if (ans->code != SUCCESS || !t->after.n)
		return;
	while (i < ans->n_tasks && !str_eq_nocase(ans->tasks[i].id, t->after))
		i++;
	if (i == ans->n_tasks) {
		reply_free(&t->reply);
		run_fail(USAGE, STR("the argument `after` names a task that is not in this list"),
			 STR(""), &t->reply);
		return;
	}
	t->skipped = (int64_t)i + 1;
	ans->tasks += t->skipped;
	ans->n_tasks -= (size_t)t->skipped;
	if (limit && ans->n_tasks > (size_t)limit)
		ans->n_tasks = (size_t)limit;
}

/* --- answers ----------------------------------------------------------------------------------------- */

static void mcp_tools_show(const struct mcp_call *c, struct attempt *t, struct arena *a)
{
	const struct mcp_host *host = c->m->options.host;
	struct reply *r = &t->reply;
	struct briefing b = { .m = c->m,
			      .tool = t->tool,
			      .reply = r,
			      .arena = a,
			      .full = t->full,
			      .paged = is_paged(t->tool),
			      .skipped = t->skipped };
	json_t *o;

	if (host && host->called)
		host->called(host->ctx, c->via, t->tool, r->ans.code);
	o = brief_json(&b);
	mcp_reply(c, json_pack("{s:[{s:s, s:o}], s:o, s:b}", "content", "type", "text", "text",
			       brief_text(&b, o), "structuredContent", o, "isError", !reply_ok(r)));
	reply_free(r);
	c->m->news = (struct strs){ 0 };
	arena_free(&c->m->told);
	c->m->told = (struct arena){ 0 };
}

/* Refuses a long answer before its JSON is made, which may need far more memory. */
static void refuse_long(struct attempt *t, struct arena *a)
{
	size_t memory = answer_json_memory(&t->reply.ans);

	if (memory <= CALL_JSON_MOST)
		arena_count(a, memory);
	if (memory <= CALL_JSON_MOST && !a->crowded)
		return;
	reply_free(&t->reply);
	t->reply = (struct reply){ 0 };
	answer_too_long(&t->reply.ans);
}

static void mcp_tools_run(const struct mcp_call *c, struct attempt *t, struct args *args,
			  struct arena *a)
{
	struct request *rq = &args->rq;
	int64_t limit = HAS(rq, limit) ? rq->limit : PAGE;

	if (is_paged(t->tool))
		GIVE(rq, limit, t->after.n ? 0 : limit);
	mcp_tools_execute(c, t->tool, args, &t->reply, a);
	if (is_paged(t->tool))
		next_page(t, limit);
	if (!(t->tool->flags & C_WRITE))
		refuse_long(t, a);
}

static void mcp_tools_forbid(const struct mcp *m, const struct command *tool, struct reply *out,
			     struct arena *a)
{
	run_fail(MISCONFIGURED, role_refusal(m->session.client.self.role, tool_role(tool), a),
		 STR(""), out);
	out->ans.fault = STR("forbidden");
}

static struct attempt mcp_tools_attempt(const struct mcp_call *c, const struct command *tool,
					struct arena *a)
{
	struct session *s = &c->m->session;
	struct attempt t = { .tool = tool };
	struct args *args = args_new(tool, a);
	json_t *arguments = json_copy(json_object_get(c->params, "arguments"));
	const char *fault = take_extras(&t, arguments);

	if (is_paged(tool))
		json_object_del(arguments, "after");
	if (!fault)
		fault = args_from_json(args, tool, arguments,
				       c->m->options.host ? ARGS_MODEL_AFAR : ARGS_MODEL, a);
	json_decref(arguments);
	t.wait = args->wait;
	args->wait = 0;
	s->arena = a;
	if (!tool_allowed(c->m, tool))
		mcp_tools_forbid(c->m, tool, &t.reply, a);
	else if (fault)
		run_fail(USAGE, str_c(fault), STR("correct the arguments and call again"),
			 &t.reply);
	else
		mcp_tools_run(c, &t, args, a);
	advice_give(c->m, tool, &args->rq, &t.reply, a);
	return t;
}

static int64_t mcp_tools_worth(const struct mcp_call *c, const struct attempt *t)
{
	struct run_task ignored;

	if (t->reply.ans.code == NO_TASKS)
		return t->tool == &cmd_next && under_run(c->m, &ignored) ? 0 : t->wait;
	return mcp_tools_barred(&t->reply)
		       ? client_timeout(&c->m->session.client, op_flags(t->tool->op))
		       : 0;
}

bool tools_try(const struct mcp_call *c, int64_t left, int64_t *due)
{
	struct arena a = { .limit = CALL_ROOM, .pool = c->m->memory };
	struct attempt t = mcp_tools_attempt(
		c, mcp_tools_find(c->m->profile, json_get(c->params, "name"), &a), &a);
	bool waits = (t.reply.ans.code == NO_TASKS || mcp_tools_barred(&t.reply)) && left > 0;

	*due = t.reply.ans.wait_ms;
	if (waits)
		reply_free(&t.reply);
	else
		mcp_tools_show(c, &t, &a);
	mcp_leave(c->m);
	arena_free(&a);
	return !waits;
}

static void mcp_tools_call(const struct mcp_call *c, const struct command *tool, struct arena *a)
{
	struct attempt t = mcp_tools_attempt(c, tool, a);

	if (mcp_tools_worth(c, &t) > 0 && wait_park(c, mcp_tools_worth(c, &t), t.reply.ans.wait_ms))
		reply_free(&t.reply);
	else
		mcp_tools_show(c, &t, a);
	mcp_leave(c->m);
}

void tools_call(struct mcp_call *c)
{
	struct str name = json_get(c->params, "name");
	const json_t *arguments = json_object_get(c->params, "arguments");
	struct arena a = { .limit = CALL_ROOM, .pool = c->m->memory };
	const struct command *tool = mcp_tools_find(c->m->profile, name, &a);

	if (!json_is_string(json_object_get(c->params, "name")))
		mcp_fail(c, RPC_PARAMS, STR("tools/call needs the name of a tool"), NULL);
	else if (arguments && !json_is_object(arguments))
		mcp_fail(c, RPC_PARAMS, STR("the arguments of a tool are an object"), NULL);
	else if (!tool)
		mcp_fail(c, RPC_PARAMS,
			 arena_printf(&a, "there is no tool '%s'",
				      arena_cstr(&a, text_cut(&a, text_line(&a, name), 60))),
			 NULL);
	else
		mcp_tools_call(c, tool, &a);
	arena_free(&a);
}

/* --- schema ----------------------------------------------------------------------------------- */

/*
 * Makes a tool's entry in tools/list from the declaration of its command, so that the schema and
 * the parser cannot disagree.
 */

struct str tool_name(const struct command *c, struct arena *a)
{
	char *name = arena_cstr(a, str_c(c->name));

	for (char *p = name; *p; p++)
		if (*p == ' ')
			*p = '_';
	return str_c(name);
}

/* --- the input schema ------------------------------------------------------------------------------- */

struct str tool_words(const char *text, struct arena *a)
{
	char *out = arena_cstr(a, str_c(text)), *to = out;
	bool option = false;

	for (const char *p = out; *p; p++) {
		if (p[0] == '-' && p[1] == '-' && (p == out || p[-1] == ' ')) {
			option = true;
			p++;
			continue;
		}
		option = option && *p != ' ' && *p != ',' && *p != ';';
		*to++ = option && *p == '-' ? '_' : *p;
	}
	*to = '\0';
	return str_c(out);
}

/* The default in the argument's unit: tools take durations in seconds. */
static struct str default_value(const struct param *p, struct arena *a)
{
	int64_t ms;

	if (p->type == P_DURATION && duration_parse(str_c(p->def), &ms))
		return arena_printf(a, "%lld", (long long)(ms / 1000));
	return str_c(p->def);
}

static json_t *mcp_schema_description(const struct param *p, struct arena *a)
{
	const char *unit = p->type == P_DURATION ? "; seconds" : "";
	struct str text = tool_words(p->model ? p->model : p->help, a);

	if (p->def)
		return json_str(arena_printf(a, "%.*s%s (default: %s)", STRF(text), unit,
					     arena_cstr(a, default_value(p, a))));
	return json_str(arena_printf(a, "%.*s%s", STRF(text), unit));
}

/* Statuses are spelt as in answers, so that a model can copy them into calls. */
static json_t *mcp_schema_choices(const struct param *p)
{
	struct str rest = str_c(param_choices(p));
	json_t *out = json_array();

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (p->type == P_CLASS)
			word = str_c(class_name(class_parse(word)));
		else if (p->type != P_CHOICE)
			word = str_c(status_name(status_parse(word)));
		json_array_append_new(out, json_str(word));
	}
	return out;
}

static void set_range(json_t *o, int64_t min, int64_t max)
{
	json_object_set_new(o, "minimum", json_integer(min));
	if (max)
		json_object_set_new(o, "maximum", json_integer(max));
}

/* narrow: the tool's own description says which task the id means. */
static json_t *mcp_schema_property(const struct param *p, bool narrow, struct arena *a)
{
	json_t *o = json_pack("{s:s, s:o}", "type", args_json_type(p), "description",
			      mcp_schema_description(p, a));
	json_t *items = param_repeats(p) ? json_pack("{s:s}", "type", "string") : NULL;

	if (narrow && p->type == P_ID && p->flags & P_REQUIRED)
		json_object_del(o, "description");
	if (param_choices(p))
		json_object_set_new(items ? items : o, "enum", mcp_schema_choices(p));
	if (items)
		json_object_set_new(o, "items", items);
	if (p->type == P_INT && (p->min || p->max))
		set_range(o, p->min, p->max);
	if (p->type == P_PRIORITY)
		set_range(o, 0, PRIORITY_MAX);
	return o;
}

static bool mcp_schema_offered(const struct param *p, bool narrow)
{
	return !(p->flags & P_TERMINAL) && !(narrow && p->flags & P_SELDOM);
}

static json_t *input_schema(const struct command *c, bool narrow, struct arena *a)
{
	json_t *properties = json_object(), *required = json_array(),
	       *o = json_pack("{s:s}", "type", "object");

	for (const struct param *p = c->params; p && p->name; p++) {
		struct str name = param_argument(p, a);

		/* Some values have two options on the command line; a tool has only one. */
		if (!mcp_schema_offered(p, narrow) || json_object_get(properties, name.p))
			continue;
		json_object_set_new(properties, name.p, mcp_schema_property(p, narrow, a));
		if (p->flags & P_REQUIRED)
			json_array_append_new(required, json_str(name));
	}
	if (args_version(c) && !narrow)
		json_object_set_new(properties, "if_version",
				    mcp_schema_property(args_version(c), narrow, a));
	for (const struct tool_extra *e = tool_extras; e->name; e++)
		if (e->tool == c)
			json_object_set_new(
				properties, e->name,
				json_pack("{s:s, s:s}", "type", e->type, "description", e->help));
	json_object_set_new(o, "properties", properties);
	if (json_array_size(required))
		json_object_set_new(o, "required", required);
	else
		json_decref(required);
	return o;
}

/* --- the output schema ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *type;
	bool none; /* may be null */
} shapes[] = {
	{ "task", "object", true },        { "next", "object", true },
	{ "lock", "object", true },        { "parent", "object", false },
	{ "came_back", "object", false },  { "counts", "object", false },
	{ "tasks", "array", false },       { "held", "array", false },
	{ "locks", "array", false },       { "events", "array", false },
	{ "comments", "array", false },    { "candidates", "array", false },
	{ "waits_for", "array", false },   { "call_next", "array", false },
	{ "subtasks", "array", false },    { "depends_on", "array", false },
	{ "dependents", "array", false },  { "attempts", "array", false },
	{ "warnings", "array", false },    { "count", "integer", false },
	{ "total", "integer", false },     { "held_total", "integer", false },
	{ "locked", "boolean", false },    { "is_locked", "boolean", false },
	{ "success", "boolean", false },   { "existed", "boolean", false },
	{ "id", "string", false },         { "message", "string", false },
	{ "changed", "object", false },    { "paused", "object", true },
	{ "emergency", "object", false },  { "health", "object", false },
	{ "report", "object", false },     { "stats", "object", false },
	{ "as_of", "string", false },      { "cached_age_ms", "integer", false },
	{ "lock_holder", "string", true }, { "lock_expires_at", "string", true },
	{ "waiting", "integer", false },   { "undone", "object", false },
};

static json_t *mcp_schema_shape(struct str name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (str_is(name, shapes[i].name))
			return shapes[i].none
				       ? json_pack("{s:[s, s]}", "type", shapes[i].type, "null")
				       : json_pack("{s:s}", "type", shapes[i].type);
	return json_object();
}

/* A refusal must match the schema, too: it has an error, and the object that it is about. */
static json_t *output_schema(const struct command *c)
{
	struct str rest = str_c(c->gives);
	json_t *p = json_pack("{s:{s:s}, s:{s:s}, s:{s:s}}", "ok", "type", "boolean", "code",
			      "type", "string", "error", "type", "object");

	while (rest.n) {
		struct str name = str_cut(&rest, ' ');

		json_object_setn_new(p, name.p, name.n, mcp_schema_shape(name));
	}
	return json_pack("{s:s, s:o, s:[s]}", "type", "object", "properties", p, "required", "ok");
}

/* --- the tool ------------------------------------------------------------------------------------- */

static json_t *mcp_schema_annotations(const struct command *c)
{
	bool writes = c->flags & C_WRITE;
	json_t *o = json_pack("{s:b}", "readOnlyHint", !writes);

	if (writes) {
		json_object_set_new(o, "destructiveHint", json_boolean(c->flags & C_DESTRUCTIVE));
		json_object_set_new(o, "idempotentHint", json_boolean(c->flags & C_IDEMPOTENT));
	}
	json_object_set_new(o, "openWorldHint", json_false());
	return o;
}

/* The tool's description. Without a text for models, it is the text for people and the codes of a
 * refusal. */
static struct str mcp_schema_told(const struct command *c, struct arena *a)
{
	struct str text;

	if (c->model)
		return str_c(c->model);
	text = arena_printf(a, "%s.%s%s", c->summary, c->detail ? " " : "",
			    c->detail ? tool_words(c->detail, a).p : "");
	for (const enum result *r = c->fails; r && *r; r++)
		text = arena_printf(a, "%.*s%s %s: %s", STRF(text), r == c->fails ? "" : ";",
				    result_name(*r), result_text(*r));
	return text;
}

/* Claude Code loads other tools only when the model searches for them; every loop needs these
 * two. */
static void keep_loaded(json_t *tool, const struct command *c)
{
	if (c == &cmd_next || c == &cmd_done)
		json_object_set_new(tool, "_meta", json_pack("{s:b}", "anthropic/alwaysLoad", 1));
}

json_t *schema_tool(const struct command *c, bool narrow, struct arena *a)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", json_str(tool_name(c, a)),
			      "description", json_str(mcp_schema_told(c, a)), "inputSchema",
			      input_schema(c, narrow, a), "outputSchema", output_schema(c),
			      "annotations", mcp_schema_annotations(c));

	keep_loaded(o, c);
	return o;
}
