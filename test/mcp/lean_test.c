/*
 * The costs and the texts for a model: the size of each answer, and texts that name tools, never shell commands.
 *
 * A token is four bytes here, rounded up. Both forms of an answer must stand alone and keep the limit, since a client
 * shows only one of them to its model: the object as compact JSON, or the text.
 */
#include "kit.h"

#define CHANGE 100
#define REFUSAL 80
#define CLAIM 150 /* besides the task's own text */
#define NEWS 300  /* comments, earlier attempts and changes by others */
#define LIST 1200
#define TOOLS 2500
#define TOOLS_SEEN 1400 /* names, descriptions and arguments: the part that clients show */

#define ALICE "claude@workstation-12/parser"
#define BOB "codex@build-host/release-2.1"

static size_t tokens(size_t bytes)
{
	return (bytes + 3) / 4;
}

static size_t size_of(const json_t *o)
{
	return json_dumpb(o, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* --- texts ---------------------------------------------------------------------------------------- */

/* "pawl" and the name of a command. */
static bool names_shell_command(const char *text)
{
	for (const char *p = text; (p = strstr(p, "pawl ")); p += 5) {
		size_t n = strspn(p + 5, "abcdefghijklmnopqrstuvwxyz"), used;
		const char *first = arena_cstr(&arena, str_n(p + 5, n));

		if (command_prefix(first) || command_find(&first, 1, &used))
			return true;
	}
	return strstr(text, "--") || strstr(text, " -q") || strstr(text, "exit code");
}

static const struct command *tool_of(const char *name, size_t n)
{
	const struct command *tool;

	for (size_t i = 0; (tool = profile_tool(m.profile, i)); i++)
		if (str_eq(tool_name(tool, &arena), str_n(name, n)))
			return tool;
	return NULL;
}

static bool is_command(const char *name, size_t n)
{
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(tool_name(commands[i], &arena), str_n(name, n)))
			return true;
	return false;
}

/* A word before "argument=" is a tool of this profile, which has that argument. prose: or it is just a word. */
static void check_calls(const char *hint, bool prose)
{
	const char *before = "";
	size_t n = 0;

	for (const char *p = hint; *p;) {
		size_t length = strcspn(p, " ;:,"), name = strcspn(p, " ;:,=");

		if (name < length && n && !memchr(before, '=', n) &&
		    !(prose && !is_command(before, n))) {
			const struct command *tool = tool_of(before, n);
			bool known = tool && param_find(tool->params, str_n(p, name));

			for (const struct tool_extra *e = tool_extras; tool && e->name; e++)
				known |= e->tool == tool && str_is(str_n(p, name), e->name);
			if (!known)
				print_message("%s\n", hint);
			assert_true(known);
		}
		before = p;
		n = length;
		p += length + strspn(p + length, " ;:,");
	}
}

/* No member is a matter of the machine; no text is for a shell. */
static void check_members(const json_t *o)
{
	static const char *const hidden[] = { "pid",  "pid_start", "boot_id",  "host",
					      "user", "token",     "agent_run" };
	const json_t *v;
	const char *key;
	size_t i;

	for (i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		assert_null(json_object_get(o, hidden[i]));
	json_object_foreach((json_t *)o, key, v) {
		assert_false(str_ends(str_c(key), STR("_at")));
		if (!strcmp(key, "hint") || !strcmp(key, "more") || !strcmp(key, "cut"))
			check_calls(json_string_value(v), false);
		check_members(v);
	}
	json_array_foreach(o, i, v)
		check_members(v);
}

static void check_texts(json_t *result)
{
	const char *hint = word(structured(result), "error.hint");
	char *object = json_dumps(structured(result), JSON_COMPACT);

	if (names_shell_command(object) || names_shell_command(text_of(result)))
		print_message("%s\n%s\n", object, text_of(result));
	assert_false(names_shell_command(object));
	assert_false(names_shell_command(text_of(result)));
	assert_null(strstr(hint, "approve"));
	assert_null(strstr(hint, "unblock"));
	free(object);
}

/* --- sizes ---------------------------------------------------------------------------------------- */

#define TITLE "Replace the hand-written parser by the generated one"
#define DESCRIPTION                                                                             \
	"The parser in src/parse.c accepts input that the grammar forbids.\\nGenerate it from " \
	"grammar.y instead, and keep its interface: parse_open, parse_next, parse_close."
#define ACCEPTANCE "make test passes, and the fuzzer finds nothing within an hour"
#define OWN (sizeof(TITLE DESCRIPTION ACCEPTANCE) / 4)
#define WHOLE                                                     \
	"{\"title\":\"" TITLE "\",\"description\":\"" DESCRIPTION \
	"\",\"acceptance\":\"" ACCEPTANCE                         \
	"\",\"label\":[\"bug\",\"parser\"],\"priority\":5,\"parent\":\"t1\"}"

/* Each call in turn, by the agent named last, and the limit of its answer in tokens. code: that of a refusal. */
static const struct {
	const char *agent, *tool, *arguments;
	size_t most;
	enum result code;
} calls[] = {
	{ ALICE, "create", "{\"title\":\"The epic\"}", CHANGE, SUCCESS },
	{ NULL, "create", WHOLE, CHANGE, SUCCESS },
	{ NULL, "create", WHOLE, CHANGE, SUCCESS },
	{ NULL, "create", WHOLE, CHANGE, SUCCESS },
	{ NULL, "next", "{}", OWN + CLAIM, SUCCESS },
	{ NULL, "claim", "{\"id\":\"t2\"}", OWN + CLAIM, SUCCESS },
	{ NULL, "claim", "{\"id\":\"t2\"}", REFUSAL, CONFLICT },
	{ NULL, "heartbeat", "{\"id\":\"t2\"}", CHANGE, SUCCESS },
	{ NULL, "comment", "{\"id\":\"t2\",\"text\":\"half done\"}", CHANGE, SUCCESS },
	{ NULL, "show", "{\"id\":\"t2\"}", OWN + CLAIM, SUCCESS },
	{ NULL, "done", "{\"id\":\"t3\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "done", "{\"id\":\"nine\"}", REFUSAL, NOT_FOUND },
	{ NULL, "create", "{\"id\":\"t2\",\"title\":\"x\"}", REFUSAL, CONFLICT },
	{ NULL, "create", "{\"title\":\"x\",\"parent\":\"nine\"}", REFUSAL, NOT_FOUND },
	{ NULL, "create", "{\"title\":\"x\",\"colour\":\"red\"}", REFUSAL, USAGE },
	{ NULL, "create", "{\"title\":\"x\",\"priority\":5000}", REFUSAL, USAGE },
	{ NULL, "next", "{\"ttl\":5}", REFUSAL, USAGE },
	{ NULL, "block", "{\"id\":\"t2\"}", REFUSAL, USAGE },
	{ NULL, "list", "{\"after\":\"nine\"}", REFUSAL, USAGE },
	{ NULL, "claim", "{\"id\":\"t1\"}", OWN + CLAIM, SUCCESS },
	{ NULL, "done", "{\"id\":\"t1\"}", REFUSAL, INCOMPLETE_SUBTASKS },
	{ NULL, "release", "{\"id\":\"t1\",\"reason\":\"it waits for its parts\"}", CHANGE,
	  SUCCESS },
	{ NULL, "release", "{\"id\":\"t1\",\"reason\":\"it waits for its parts\"}", CHANGE,
	  SUCCESS },
	{ BOB, "claim", "{\"id\":\"t2\"}", REFUSAL, CONFLICT },
	{ NULL, "done", "{\"id\":\"t2\"}", REFUSAL, CONFLICT },
	{ NULL, "claim", "{\"id\":\"t3\"}", OWN + CLAIM, SUCCESS },
	{ NULL, "block", "{\"id\":\"t3\",\"reason\":\"r\",\"unblock_action\":\"u\"}", CHANGE,
	  SUCCESS },
	{ NULL, "block", "{\"id\":\"t3\",\"reason\":\"r\",\"unblock_action\":\"u\"}", CHANGE,
	  SUCCESS },
	{ NULL, "heartbeat", "{\"id\":\"t3\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "claim", "{\"id\":\"t3\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "claim", "{\"id\":\"t4\"}", OWN + CLAIM, SUCCESS },
	{ NULL, "review", "{\"id\":\"t4\",\"summary\":\"look\"}", CHANGE, SUCCESS },
	{ NULL, "review", "{\"id\":\"t4\",\"summary\":\"look\"}", CHANGE, SUCCESS },
	{ NULL, "done", "{\"id\":\"t4\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "claim", "{\"id\":\"t4\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "next", "{\"claim\":true}", CHANGE, SUCCESS }, /* NO_TASKS */
	{ NULL, "create", WHOLE, CHANGE, SUCCESS },
	{ ALICE, "done", "{\"id\":\"t2\",\"claim_next\":true}", CHANGE + OWN + CLAIM, SUCCESS },
	{ NULL, "done", "{\"id\":\"t2\",\"claim_next\":true}", CHANGE + OWN + CLAIM, SUCCESS },
	{ NULL, "done", "{\"id\":\"t5\"}", CHANGE, SUCCESS },
	{ NULL, "claim", "{\"id\":\"t2\"}", REFUSAL, MISCONFIGURED },
	{ NULL, "next", "{\"explain\":true}", LIST, SUCCESS },
	{ NULL, "list", "{}", LIST, SUCCESS },
};

/* Refusals of tools that only the profile all has, with a part of the hint. */
static const struct {
	const char *tool, *arguments, *hint;
	enum result code;
} refusals[] = {
	{ "approve", "{\"id\":\"t1\"}", "show id=t1", MISCONFIGURED },
	{ "rework", "{\"id\":\"t1\",\"reason\":\"r\"}", "show id=t1", MISCONFIGURED },
	{ "unblock", "{\"id\":\"t1\"}", "show id=t1", MISCONFIGURED },
	{ "retry", "{\"id\":\"t1\"}", "show id=t1", MISCONFIGURED },
	{ "reopen", "{\"id\":\"t1\",\"reason\":\"r\"}", "show id=t1", MISCONFIGURED },
	{ "remove", "{\"id\":\"t1\"}", "show id=t1", MISCONFIGURED },
	{ "depend", "{\"id\":\"t2\",\"on\":[\"t1\"]}", "show id=t2", MISCONFIGURED },
	{ "update", "{\"id\":\"t2\",\"parent\":\"t2\"}", "show id=t2", MISCONFIGURED },
	{ "update", "{\"id\":\"t3\",\"priority\":1}", "comment id=t3", CONFLICT },
	{ "update", "{\"id\":\"t1\"}", "call update again", USAGE },
	{ "cancel", "{\"id\":\"t3\",\"reason\":\"r\"}", "comment id=t3", CONFLICT },
	{ "lock_acquire", "{\"id\":\"t3\"}", "next claim=true", CONFLICT },
	{ "lock_release", "{\"id\":\"t3\"}", "next claim=true", CONFLICT },
	{ "status", "{\"id\":\"t3\",\"status\":\"In Progress\"}", "next claim=true", CONFLICT },
	{ "escalate", "{\"id\":\"t2\",\"reason\":\"r\"}", "claim id=t2", MISCONFIGURED },
	{ "fail", "{\"id\":\"t2\",\"reason\":\"r\"}", "claim id=t2", MISCONFIGURED },
	{ "guard", "{\"id\":\"t2\"}", "show id=t2", LOST_LOCK },
	{ "log", "{\"after\":\"zz\"}", "call log again", MISCONFIGURED },
	{ "find", "{}", "call find again", USAGE },
	{ "lock_status", "{\"id\":\"nine\"}", "list text=", NOT_FOUND },
};

static void check_size(const char *what, json_t *result, size_t most)
{
	size_t object = tokens(size_of(structured(result))), text = tokens(strlen(text_of(result)));

	if (object > most || text > most)
		print_message("%s: %zu and %zu tokens, more than %zu\n%s\n", what, object, text,
			      most, json_dumps(structured(result), JSON_INDENT(1)));
	assert_true(object <= most);
	assert_true(text <= most);
}

static void answers_are_small_in(const char *profile)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		json_t *r;

		if (calls[i].agent)
			reconnect(profile, calls[i].agent);
		r = call(calls[i].tool, calls[i].arguments);
		if (calls[i].code != SUCCESS &&
		    strcmp(word(structured(r), "error.code"), result_name(calls[i].code)) != 0)
			print_message("%s %s: %s\n", calls[i].tool, calls[i].arguments, text_of(r));
		if (calls[i].code == SUCCESS)
			assert_true(json_is_true(at(structured(r), "ok")));
		else
			assert_string_equal(word(structured(r), "error.code"),
					    result_name(calls[i].code));
		check_size(arena_printf(&arena, "%s %s", calls[i].tool, calls[i].arguments).p, r,
			   calls[i].most);
		check_members(structured(r));
		check_texts(r);
	}
}

static void answers_are_small(void **state)
{
	(void)state;
	answers_are_small_in("agent");
}

static void answers_of_all_are_small(void **state)
{
	(void)state;
	answers_are_small_in("all");
}

static void refusals_of_all_name_tools(void **state)
{
	(void)state;
	reconnect("all", BOB);
	good("create", "{\"title\":\"The epic\"}");
	good("create", "{\"title\":\"A part\",\"parent\":\"t1\"}");
	good("create", "{\"title\":\"Of another agent\"}");
	good("claim", "{\"id\":\"t3\"}");
	reconnect("all", ALICE);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		json_t *r = call(refusals[i].tool, refusals[i].arguments);
		const char *hint = word(structured(r), "error.hint");

		if (!strstr(hint, refusals[i].hint))
			print_message("%s %s: %s\n", refusals[i].tool, refusals[i].arguments,
				      text_of(r));
		assert_string_equal(word(structured(r), "error.code"),
				    result_name(refusals[i].code));
		assert_non_null(strstr(hint, refusals[i].hint));
		check_size(refusals[i].tool, r, REFUSAL);
		check_members(structured(r));
		check_texts(r);
	}
}

/* Sub-tasks and dependencies are the answer of these tools. */
static void links_are_kept(void **state)
{
	json_t *r;

	(void)state;
	reconnect("all", "alice");
	good("create", "{\"title\":\"a\"}");
	good("create", "{\"title\":\"b\",\"parent\":\"t1\"}");
	good("create", "{\"title\":\"c\",\"depends\":[\"t1\"]}");
	assert_string_equal(word(good("tree", "{}"), "tasks.1.parent"), "t1");
	r = call("graph", "{}");
	assert_null(at(structured(r), "tasks.0.depends"));
	assert_string_equal(word(structured(r), "tasks.2.depends.0"), "t1");
	assert_non_null(strstr(text_of(r), "depends [\"t1\"]"));
	r = call("lock_acquire", "{\"id\":\"@batch\"}");
	assert_int_equal(json_array_size(at(structured(r), "call_next")), 1);
	check_texts(r);
}

static void tools_are_small(void **state)
{
	json_t *o, *seen = json_array(), *t;
	size_t i;

	(void)state;
	o = ask_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	json_array_foreach(at(o, "result.tools"), i, t)
		json_array_append_new(
			seen, json_pack("{s:O, s:O, s:O}", "name", json_object_get(t, "name"),
					"description", json_object_get(t, "description"),
					"inputSchema", json_object_get(t, "inputSchema")));
	print_message("tools/list: %zu tokens, of which a model sees %zu\n", tokens(size_of(o)),
		      tokens(size_of(seen)));
	assert_true(tokens(size_of(o)) <= TOOLS);
	assert_true(tokens(size_of(seen)) <= TOOLS_SEEN);
	json_decref(seen);
}

static const char *filled(size_t n, char c)
{
	char *text = arena_alloc(&arena, n + 1);

	memset(text, c, n);
	text[n] = '\0';
	return text;
}

/* Old comments are left out, long ones cut; the answer says how to read them. */
static void comments_are_cut(void **state)
{
	json_t *r;

	(void)state;
	good("create", "{\"title\":\"x\"}");
	for (int i = 0; i < 30; i++)
		good("comment", arena_printf(&arena, "{\"id\":\"t1\",\"text\":\"%d %s\"}", i,
					     filled(1000, 'c'))
					.p);
	r = call("show", "{\"id\":\"t1\"}");
	check_size("show", r, CLAIM + NEWS);
	r = call("claim", "{\"id\":\"t1\"}");
	check_size("claim", r, CLAIM + NEWS);
	assert_non_null(strstr(word(structured(r), "more"), "show id=t1 full=true"));
	assert_non_null(strstr(text_of(r), "show id=t1 full=true"));
	r = structured(r);
	assert_true(json_array_size(at(r, "comments")) >= 1);
	assert_non_null(strstr(
		word(json_array_get(at(r, "comments"), json_array_size(at(r, "comments")) - 1),
		     "text"),
		"29 c"));
	good("release", "{\"id\":\"t1\",\"reason\":\"r\"}");
	for (int i = 0; i < 6; i++) {
		good("claim", "{\"id\":\"t1\"}");
		good("release",
		     arena_printf(&arena, "{\"id\":\"t1\",\"reason\":\"%s\"}", filled(900, 'r')).p);
	}
	check_size("claim", call("claim", "{\"id\":\"t1\"}"), CLAIM + NEWS);
	r = good("show", "{\"id\":\"t1\",\"full\":true}");
	assert_int_equal(json_array_size(at(r, "comments")), 30);
	assert_non_null(at(r, "task.lock.boot_id"));
}

static void as_operator(struct request rq)
{
	struct answer ans;

	GIVE(&rq, agent, STR("boss"));
	GIVE(&rq, reason, str_c(filled(900, 'r')));
	queue_call(m.session.client.conn.queue, &rq, &ans, &arena); /* without the holder's token */
	assert_int_equal(ans.code, SUCCESS);
}

/* An operator changes the task of a holder, and pauses the queue. */
static void notices_are_cut(void **state)
{
	struct request update = { .op = OP_UPDATE };
	json_t *r;

	(void)state;
	good("create", "{\"title\":\"x\"}");
	good("create", "{\"title\":\"y\"}");
	good("claim", "{\"id\":\"t1\"}");
	GIVE(&update, id, STR("t1"));
	GIVE(&update, priority, 9);
	GIVE(&update, force, 1);
	as_operator(update);
	r = call("heartbeat", "{\"id\":\"t1\"}");
	check_size("heartbeat", r, CHANGE + NEWS);
	check_members(structured(r));
	assert_string_equal(word(structured(r), "changed.by"), "boss");
	assert_non_null(strstr(text_of(r), "boss"));
	as_operator((struct request){ .op = OP_PAUSE });
	r = call("claim", "{\"id\":\"t2\"}");
	assert_string_equal(word(structured(r), "error.message"), "the queue is paused");
	check_size("claim", r, REFUSAL);
	check_texts(r);
	r = call("next", "{\"claim\":true}");
	assert_string_equal(word(structured(r), "paused.by"), "boss");
	check_size("next", r, CHANGE + NEWS);
	assert_null(at(structured(r), "more"));
	check_texts(r);
}

static void create_tasks(int n, const char *title)
{
	for (int i = 0; i < n; i++)
		good("create", arena_printf(&arena, "{\"title\":\"%s\"}", title).p);
}

static void lists_have_pages(void **state)
{
	json_t *r, *seen = json_object();
	const char *after = "";
	size_t pages = 0;

	(void)state;
	create_tasks(120, "Write a test for the parser of dates");
	good("claim", "{\"id\":\"t3\"}");
	do {
		const json_t *tasks;
		size_t n;

		r = call("list",
			 *after ? arena_printf(&arena, "{\"after\":\"%s\"}", after).p : "{}");
		check_size("list", r, LIST);
		tasks = at(structured(r), "tasks");
		n = json_array_size(tasks);
		assert_int_equal(n, pages < 2 ? 50 : 20);
		assert_int_equal(json_integer_value(at(structured(r), "count")), n);
		assert_int_equal(json_integer_value(at(structured(r), "total")), 120);
		for (size_t i = 0; i < n; i++)
			json_object_set_new(seen, get(json_array_get(tasks, i), "id"), json_true());
		after = arena_str(&arena, str_c(get(json_array_get(tasks, n - 1), "id"))).p;
		pages++;
	} while (at(structured(r), "more"));
	assert_int_equal(pages, 3);
	assert_int_equal(json_object_size(seen), 120);
	json_decref(seen);
	assert_int_equal(json_array_size(at(good("list", "{\"limit\":7}"), "tasks")), 7);
	r = good("list", "{\"text\":\"dates\",\"status\":[\"In Progress\"]}");
	assert_int_equal(json_integer_value(at(r, "total")), 1);
	assert_null(at(r, "more"));
}

/* Long titles are cut; what still does not fit is on the next page. */
static void lists_of_long_titles(void **state)
{
	json_t *r;
	size_t n;

	(void)state;
	create_tasks(60, filled(500, 't'));
	r = call("list", "{\"limit\":0}");
	check_size("list", r, LIST);
	n = json_array_size(at(structured(r), "tasks"));
	assert_true(n >= 40);
	assert_non_null(
		strstr(word(structured(r), "more"), arena_printf(&arena, "%zu more", 60 - n).p));
	check_size("next", call("next", "{\"explain\":true}"), LIST);
	reconnect("all", "alice");
	check_size("find", call("find", "{\"text\":\"ttt\"}"), LIST);
	check_size("log", call("log", "{\"limit\":0}"), LIST);
}

/* --- words ---------------------------------------------------------------------------------------- */

static bool may_get(const struct command *c, enum result code)
{
	/* a comment of somebody who shows no token needs no lock */
	return !(code == LOST_LOCK && c->op == OP_COMMENT);
}

/* An argument is described without the ways of the shell: exit codes, lists with commas, durations such as 15m. */
static void check_argument(const char *tool, const char *name, const char *text)
{
	static const char *const wrong[] = { "force",    "else 20",  "repeated", "commas",
					     "DURATION", "commands", "15m",      "5m)" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		if (strstr(text, wrong[i]))
			print_message("%s: %s: %s\n", tool, name, text);
		assert_null(strstr(text, wrong[i]));
	}
	check_calls(text, true);
}

/* Each description names every refusal that the tool can get, and speaks of tools. */
static void descriptions_are_for_models(void **state)
{
	static const char *const profiles[] = { "agent", "all" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		json_t *o, *t, *p;
		const char *key;
		size_t k;

		reconnect(profiles[i], "alice");
		o = ask_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
		json_array_foreach(at(o, "result.tools"), k, t) {
			const struct command *c = profile_tool(m.profile, k);
			char *all = json_dumps(t, JSON_COMPACT);

			if (names_shell_command(all) || !c->model)
				print_message("%s: %s\n", c->name, all);
			assert_false(names_shell_command(all));
			assert_non_null(c->model);
			assert_null(strstr(all, "PAWL_"));
			assert_null(strstr(all, "standard input"));
			assert_null(strstr(c->model, "force"));
			for (const enum result *r = c->fails; r && *r; r++) {
				if (may_get(c, *r) && !strstr(c->model, result_name(*r)))
					print_message("%s: %s\n", c->name, result_name(*r));
				assert_true(!may_get(c, *r) || strstr(c->model, result_name(*r)));
			}
			json_object_foreach((json_t *)at(t, "inputSchema.properties"), key, p)
				check_argument(c->name, key, word(p, "description"));
			check_calls(c->model, true);
			free(all);
		}
	}
}

/* The words and types of arguments are those of answers. */
static void words_are_those_of_answers(void **state)
{
	const json_t *p, *v;
	json_t *o;
	size_t i;

	(void)state;
	o = json_incref(ask_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"));
	p = at(o, "result.tools.7.inputSchema.properties");
	assert_string_equal(word(o, "result.tools.7.name"), "create");
	assert_string_equal(word(p, "priority.type"), "integer");
	assert_int_equal(json_integer_value(at(p, "priority.maximum")), PRIORITY_MAX);
	assert_int_equal(json_array_size(at(p, "class.enum")), CLASS_END - 1);
	json_array_foreach(at(p, "class.enum"), i, v) {
		json_t *shown;

		good("create",
		     arena_printf(
			     &arena,
			     "{\"title\":\"x\",\"id\":\"c%zu\",\"class\":\"%s\",\"priority\":%d}",
			     i, json_string_value(v), PRIORITY_MAX)
			     .p);
		shown = good("show", arena_printf(&arena, "{\"id\":\"c%zu\",\"full\":true}", i).p);
		assert_string_equal(word(shown, "task.class"), json_string_value(v));
		assert_true(json_is_integer(at(shown, "task.priority")));
	}
	p = at(o, "result.tools.10.inputSchema.properties");
	assert_int_equal(json_array_size(at(p, "status.items.enum")), STATUS_END - 1);
	json_array_foreach(at(p, "status.items.enum"), i, v)
		assert_string_equal(json_string_value(v), status_name((int64_t)i + BACKLOG));
	json_decref(o);
}

static void two_tools_are_always_loaded(void **state)
{
	json_t *o = ask_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"), *t;
	size_t i;

	(void)state;
	json_array_foreach(at(o, "result.tools"), i, t) {
		bool loop = !strcmp(get(t, "name"), "next") || !strcmp(get(t, "name"), "done");
		const json_t *meta = json_object_get(t, "_meta");

		assert_int_equal(json_is_true(json_object_get(meta, "anthropic/alwaysLoad")), loop);
	}
}

static void next_says_whose_it_is(void **state)
{
	json_t *r;

	(void)state;
	good("create", "{\"title\":\"x\"}");
	r = call("next", "{}");
	assert_string_equal(word(structured(r), "hint"),
			    "t1 is not yours yet: claim id=t1 takes it");
	assert_non_null(strstr(text_of(r), "t1 is not yours yet"));
	assert_null(at(good("next", "{\"claim\":true}"), "hint"));
}

/* Stale locks: the words differ for a session that had the lock and one that never did. */
static void says_what_was_lost(void **state)
{
	json_t *o;

	(void)state;
	disconnect(false);
	connect_with("agent", "alice", 0);
	good("create", "{\"title\":\"x\"}");
	good("claim", "{\"id\":\"t1\",\"ttl\":60}");
	live_for(2 * MIN);
	o = refused("done", "{\"id\":\"t1\"}", LOST_LOCK);
	assert_non_null(strstr(word(o, "error.hint"), "claim id=t1 resume=1"));
	good("claim", "{\"id\":\"t1\",\"resume\":1}");
	good("release", "{\"id\":\"t1\"}");
	o = refused("done", "{\"id\":\"t1\"}", MISCONFIGURED);
	assert_string_equal(word(o, "error.message"),
			    "this session does not hold t1, which is Ready");
	assert_string_equal(word(o, "error.hint"), "claim id=t1 first");
}

/* Another call would fail, too: a person ends the emergency. */
static void an_emergency_is_for_the_user(void **state)
{
	json_t *o;

	(void)state;
	reconnect("all", "alice");
	good("create", "{\"title\":\"x\"}");
	good("claim", "{\"id\":\"t1\"}");
	good("emergency_on", "{\"reason\":\"r\"}");
	o = refused("done", "{\"id\":\"t1\"}", API_ERROR);
	assert_string_equal(word(o, "error.hint"),
			    "stop and tell the user; the server keeps renewing your locks");
	live_for(40 * MIN);
	good("emergency_off", "{}");
	good("done", "{\"id\":\"t1\"}");
}

/* Each text that is cut says so, also beside another one. */
static void long_texts_are_announced(void **state)
{
	char text[9001] = { 0 };
	json_t *r;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	good("create", arena_printf(&arena, "{\"title\":\"x\",\"description\":\"%s\"}", text).p);
	good("create",
	     arena_printf(&arena, "{\"title\":\"x\",\"description\":\"%s\",\"acceptance\":\"%s!\"}",
			  text, text)
		     .p);
	r = structured(call("claim", "{\"id\":\"t1\"}"));
	assert_string_equal(
		word(r, "task.cut"),
		"description: the first 8192 of 9000 bytes; show id=t1 full=true has all");
	r = call("claim", "{\"id\":\"t2\"}");
	assert_string_equal(word(structured(r), "task.cut"),
			    "description: the first 8192 of 9000 bytes, acceptance: the first 8192 "
			    "of 9001 bytes; show id=t2 full=true has all");
	assert_int_equal(strlen(word(structured(r), "task.acceptance")), 8192);
	assert_non_null(strstr(text_of(r), "9000 bytes, acceptance: the first 8192 of 9001"));
	check_members(structured(r));
}

/* The profile pm keeps its members, without those of the machine. */
static void pm_is_lean_too(void **state)
{
	static const char *const pm_calls[][2] = {
		{ "create_task", "{\"name\":\"x\"}" },
		{ "acquire_task_lock", "{\"task_id\":\"t1\",\"agent_id\":\"a\"}" },
		{ "acquire_task_lock", "{\"task_id\":\"t1\",\"agent_id\":\"b\"}" },
		{ "get_task_lock_status", "{\"task_id\":\"t1\"}" },
		{ "list_tasks", "{}" },
		{ "update_task_status",
		  "{\"task_id\":\"t1\",\"agent_id\":\"a\",\"status\":\"DONE\"}" },
		{ "get_task_details", "{\"task_id\":\"t1\"}" },
	};

	(void)state;
	reconnect("pm", "orchestrator");
	for (size_t i = 0; i < sizeof(pm_calls) / sizeof(*pm_calls); i++) {
		json_t *r = call(pm_calls[i][0], pm_calls[i][1]);
		char *object = json_dumps(structured(r), JSON_COMPACT);

		assert_null(strstr(object, "\"pid\""));
		assert_null(strstr(object, "\"boot_id\""));
		assert_null(strstr(object, "\"token\""));
		assert_null(strstr(object, "created_at"));
		assert_false(names_shell_command(object));
		free(object);
		check_size(pm_calls[i][0], r, 250);
	}
}

/* A queue that is not there is a matter for the user. */
static void no_queue_names_no_command(void **state)
{
	struct mcp_options o = { .who.agent = STR("alice"), .profile = STR("agent") };
	struct answer ans;
	json_t *r;

	(void)state;
	disconnect(false);
	m = (struct mcp){ .send = hear };
	assert_int_equal(mcp_open(&m, &o, &ans, &arena), SUCCESS);
	r = call("next", "{\"claim\":true}");
	assert_string_equal(word(structured(r), "error.code"), "MISCONFIGURED");
	assert_string_equal(word(structured(r), "error.hint"),
			    "tell the user; when it is corrected, call next again");
	check_texts(r);
	check_size("no queue", r, REFUSAL);
}

static void plain_texts(void **state)
{
	static const char *const texts[][2] = {
		{ "3 records cannot be used and are left out: pawl doctor",
		  "3 records cannot be used and are left out" },
		{ "the file is gone; to make a new one: pawl init",
		  "the file is gone; to make a new one" },
		{ "pawl lock break t1 --reason TEXT", "" },
		{ "--next-token needs --claim-next", "next_token needs claim_next" },
		{ "a title of pawl itself", "a title of pawl itself" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct str got = advice_plain(str_c(texts[i][0]), &arena);

		assert_string_equal(arena_cstr(&arena, got), texts[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_are_small),
		TEST(answers_of_all_are_small),
		TEST(refusals_of_all_name_tools),
		TEST(links_are_kept),
		TEST(tools_are_small),
		TEST(comments_are_cut),
		TEST(notices_are_cut),
		TEST(lists_have_pages),
		TEST(lists_of_long_titles),
		TEST(descriptions_are_for_models),
		TEST(words_are_those_of_answers),
		TEST(two_tools_are_always_loaded),
		TEST(next_says_whose_it_is),
		TEST(says_what_was_lost),
		TEST(an_emergency_is_for_the_user),
		TEST(long_texts_are_announced),
		TEST(pm_is_lean_too),
		TEST(no_queue_names_no_command),
		TEST(plain_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
