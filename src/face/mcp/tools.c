/* tools/list and tools/call. */
#include "face/mcp/mcp.h"

#include "base/text.h"
#include "cmd/args_json.h"

void tools_list(struct mcp_call *c)
{
	const struct profile *p = c->m->profile;
	const struct command *tool;
	struct arena a = { 0 };
	json_t *list = json_array();

	for (size_t i = 0; (tool = profile_tool(p, i)); i++)
		json_array_append_new(list, schema_tool(tool, p->narrow, &a));
	mcp_reply_kept(c, json_pack("{s:o}", "tools", list), FOR_HOURS);
	arena_free(&a);
}

static const struct command *find(const struct profile *p, struct str name, struct arena *a)
{
	const struct command *tool;

	for (size_t i = 0; (tool = profile_tool(p, i)); i++)
		if (str_eq(tool_name(tool, a), name))
			return tool;
	return NULL;
}

/* --- one call ------------------------------------------------------------------------------------- */

/* Whoever acts for several agents says for which: its tokens are kept under that name. */
static void act_as(struct client *c, struct str agent)
{
	c->agent = c->keyring.agent = agent;
}

/* Another's lock of the whole queue is in the way. */
static bool barred(const json_t *answer)
{
	return json_object_get(json_object_get(answer, "error"), "wait") != NULL;
}

static enum result execute(struct mcp *m, const struct command *tool, struct tool_args *t,
			   json_t **out, struct arena *a)
{
	struct session *s = &m->session;
	struct client *client = &s->client;
	struct answer ans = { 0 };
	struct request *rq = &t->args.rq;
	struct str self;
	enum result code;

	if (mcp_ready(m, &ans, a) != SUCCESS)
		return run_answer(&ans, a, out);
	self = client->agent;
	s->arena = client->arena = a;
	keeper_prove(m, rq);
	if (HAS(rq, agent))
		act_as(client, rq->agent);
	code = tool->run ? tool->run(s, &t->args, out) : run_op(s, &t->args, out);
	act_as(client, self);
	client->arena = &m->base;
	mcp_answered(m, barred(*out) ? SUCCESS : code);
	keeper_learn(m, rq, *out);
	return code;
}

static void add_news(struct mcp *m, json_t *answer)
{
	json_t *warnings = json_object_get(answer, "warnings");

	if (!json_array_size(m->news))
		return;
	if (!warnings) {
		warnings = json_array();
		json_object_set_new(answer, "warnings", warnings);
	}
	json_array_extend(warnings, m->news);
	json_array_clear(m->news);
}

static void show(const struct mcp_call *c, const struct command *tool, enum result code,
		 json_t *answer, struct arena *a)
{
	bool failed = json_is_false(json_object_get(answer, "ok"));
	json_t *text;

	brief_complete(c->m, tool, answer, a);
	add_news(c->m, answer);
	text = json_str(brief_text(tool, code, answer, a));
	brief_mark(answer);
	mcp_reply(c, json_pack("{s:[{s:s, s:o}], s:o, s:b}", "content", "type", "text", "text",
			       text, "structuredContent", answer, "isError", failed));
}

/* One try of a call, and how long the caller would wait for a better answer. */
struct attempt {
	const struct command *tool;
	enum result code;
	json_t *answer;
	int64_t wait;
};

static struct attempt attempt(const struct mcp_call *c, const struct command *tool, struct arena *a)
{
	struct session *s = &c->m->session;
	struct attempt t = { .tool = tool };
	struct tool_args args = { 0 };
	const char *fault = args_from_json(&args.args, tool,
					   json_object_get(c->params, "arguments"), false, a);

	t.wait = args.args.wait;
	args.args.wait = 0;
	s->arena = a;
	if (fault)
		t.code = run_fail(s, USAGE, str_c(fault),
				  STR("correct the arguments and call again"), &t.answer);
	else
		t.code = execute(c->m, tool, &args, &t.answer, a);
	return t;
}

static int64_t worth(const struct mcp_call *c, const struct attempt *t)
{
	if (t->code == NO_TASKS)
		return t->wait;
	return barred(t->answer) ? client_timeout(&c->m->session.client, op_flags(t->tool->op)) : 0;
}

/* When something comes due by itself. */
static int64_t due_in(const json_t *answer)
{
	const json_t *of = barred(answer) ? json_object_get(answer, "error") : answer;

	return (int64_t)(json_number_value(json_object_get(of, "wait")) * 1000);
}

bool tools_try(const struct mcp_call *c, int64_t left, int64_t *due)
{
	struct arena a = { 0 };
	struct attempt t = attempt(c, find(c->m->profile, mcp_text(c->params, "name"), &a), &a);
	bool waits = (t.code == NO_TASKS || barred(t.answer)) && left > 0;

	*due = due_in(t.answer);
	if (waits)
		json_decref(t.answer);
	else
		show(c, t.tool, t.code, t.answer, &a);
	arena_free(&a);
	return !waits;
}

static void call(const struct mcp_call *c, const struct command *tool, struct arena *a)
{
	struct attempt t = attempt(c, tool, a);

	if (worth(c, &t) > 0 && wait_park(c, worth(c, &t), due_in(t.answer)))
		json_decref(t.answer);
	else
		show(c, tool, t.code, t.answer, a);
}

void tools_call(struct mcp_call *c)
{
	struct str name = mcp_text(c->params, "name");
	const json_t *arguments = json_object_get(c->params, "arguments");
	struct arena a = { 0 };
	const struct command *tool = find(c->m->profile, name, &a);

	if (!json_is_string(json_object_get(c->params, "name")))
		mcp_fail(c, RPC_PARAMS, STR("tools/call needs the name of a tool"), NULL);
	else if (arguments && !json_is_object(arguments))
		mcp_fail(c, RPC_PARAMS, STR("the arguments of a tool are an object"), NULL);
	else if (!tool)
		mcp_fail(c, RPC_PARAMS,
			 arena_printf(&a, "there is no tool '%.*s'",
				      STRF(text_cut(&a, text_line(&a, name), 60))),
			 NULL);
	else
		call(c, tool, &a);
	arena_free(&a);
}
