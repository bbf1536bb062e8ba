/* Sessions that share a name and a worktree: no call gets the token of another session. */
#include "kit.h"

#include "client/caller.h"

static struct mcp other; /* the connection that does not talk now */

/* The other connection continues. */
static void swap(void)
{
	struct mcp now = m;

	m = other;
	other = now;
}

static void connect_second(const char *agent)
{
	swap();
	connect_with("all", agent, 60 * MIN);
}

static void end_second(void)
{
	swap();
	mcp_close(&other, false);
	other = (struct mcp){ 0 };
}

/* A call of either era, with these members in its _meta. */
static json_t *call_with(const char *meta, const char *tool, const char *arguments)
{
	json_t *o = ASK("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			"\"name\":\"%s\",\"arguments\":%s,\"_meta\":{%s}}}",
			tool, arguments, meta);

	return structured(json_object_get(o, "result"));
}

#define MODERN                                                        \
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}"

static const char *code(const json_t *o)
{
	return json_is_true(at(o, "ok")) ? "ok" : word(o, "error.code");
}

/* The run of the last event of the task. */
static const char *run_of(const char *id)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans;

	GIVE(&rq, id, str_c(id));
	mcp_ask(&m, &rq, &ans, &arena);
	assert_int_equal(ans.code, SUCCESS);
	return arena_cstr(&arena, ans.events[ans.n_events - 1].run);
}

static int begin(void **state)
{
	int r = setup(state);

	unsetenv("PAWL_RUN");
	good("create", "{\"title\":\"x\"}");
	good("create", "{\"title\":\"y\"}");
	reconnect("all", "alice");
	return r;
}

static int end(void **state)
{
	unsetenv("PAWL_RUN");
	unsetenv("CLAUDE_CODE_SESSION_ID");
	return teardown(state);
}

/* --- a server is a run of its own ----------------------------------------------------------------- */

static void servers_are_apart_in(const char *meta)
{
	static const char *const ends[][2] = {
		{ "done", "{\"id\":\"t1\"}" },
		{ "heartbeat", "{\"id\":\"t1\"}" },
		{ "release", "{\"id\":\"t1\"}" },
		{ "block", "{\"id\":\"t1\",\"reason\":\"r\",\"unblock_action\":\"u\"}" },
	};
	json_t *o;

	assert_string_equal(code(call_with(meta, "claim", "{\"id\":\"t1\"}")), "ok");
	connect_second("alice");
	for (size_t i = 0; i < 4; i++) {
		o = call_with(meta, ends[i][0], ends[i][1]);
		assert_string_equal(code(o), "CONFLICT");
		assert_non_null(strstr(word(o, "error.message"), "this session does not hold t1"));
	}
	o = call_with(meta, "claim", "{\"id\":\"t1\"}");
	assert_string_equal(code(o), "CONFLICT");
	assert_non_null(strstr(word(o, "error.message"), "t1 is held by alice"));
	assert_null(at(call_with(meta, "next", "{}"), "held"));
	end_second();
	assert_string_equal(code(call_with(meta, "done", "{\"id\":\"t1\"}")), "ok");
}

static void servers_are_apart(void **state)
{
	(void)state;
	servers_are_apart_in("\"progressToken\":1");
}

static void modern_servers_are_apart(void **state)
{
	(void)state;
	servers_are_apart_in(MODERN);
}

static void continues_a_dead_server(void **state)
{
	const char *first;

	(void)state;
	good("claim", "{\"id\":\"t1\"}");
	first = run_of("t1");
	assert_int_equal(strncmp(first, "mcp-", 4), 0);
	connect_second("alice");
	good("claim", "{\"id\":\"t2\"}");
	assert_string_not_equal(run_of("t2"), first);
	swap();
	disconnect(false); /* the server of t1 dies; that of t2 lives */
	connect_with("all", "bob", 60 * MIN);
	assert_string_equal(code(structured(call("done", "{\"id\":\"t1\"}"))), "CONFLICT");
	reconnect("all", "alice");
	assert_string_equal(word(good("next", "{}"), "held.0.task"), "t1");
	assert_string_equal(code(structured(call("done", "{\"id\":\"t2\"}"))), "CONFLICT");
	good("done", "{\"id\":\"t1\"}");
	assert_string_equal(run_of("t1"), first);
	swap();
	good("done", "{\"id\":\"t2\"}");
	end_second();
}

/* Without tokens there is nothing to continue, and no file is left. */
static void a_new_server_is_a_new_run(void **state)
{
	const char *first;

	(void)state;
	good("claim", "{\"id\":\"t1\"}");
	first = run_of("t1");
	good("done", "{\"id\":\"t1\"}");
	assert_int_equal(system("mkdir away && cp pawl/*.run away"), 0);
	disconnect(false);
	assert_int_equal(folder_count("pawl", ".run"), 0);
	assert_int_equal(system("cp away/*.run pawl"), 0); /* as if the server had been killed */
	connect_with("all", "alice", 60 * MIN);
	good("claim", "{\"id\":\"t2\"}");
	assert_string_not_equal(run_of("t2"), first);
	assert_int_equal(folder_count("pawl", ".run"), 1);
}

/* --- a session of the client ------------------------------------------------------------------------ */

static void threads_are_apart(void **state)
{
	const char *const one = "\"threadId\":\"019a-one\"", *const two =
								     "\"threadId\":\"019a-two\"";
	json_t *o;

	(void)state;
	assert_string_equal(code(call_with(one, "claim", "{\"id\":\"t1\"}")), "ok");
	assert_string_equal(run_of("t1"), "019a-one");
	assert_string_equal(code(call_with(two, "done", "{\"id\":\"t1\"}")), "CONFLICT");
	refused("done", "{\"id\":\"t1\"}", CONFLICT);
	o = call_with(two, "claim", "{\"id\":\"t1\"}");
	assert_non_null(strstr(word(o, "error.message"), "t1 is held by alice"));
	assert_null(at(call_with(two, "next", "{}"), "held"));
	live_for(40 * MIN); /* the locks of all threads are renewed */
	assert_true(lease_left("t1") > 0);
	assert_string_equal(word(call_with(one, "next", "{}"), "held.0.task"), "t1");
	assert_string_equal(code(call_with(one, "done", "{\"id\":\"t1\"}")), "ok");
}

/* A repeated `done` does not show the task that its session took, if another session has that task now. */
static void a_repeat_shows_no_task_of_another_thread(void **state)
{
	const char *const one = "\"threadId\":\"one\"", *const two = "\"threadId\":\"two\"";
	const char *const done = "{\"id\":\"t1\",\"claim_next\":true}";
	json_t *o;

	(void)state;
	assert_string_equal(code(call_with(one, "claim", "{\"id\":\"t1\"}")), "ok");
	assert_string_equal(word(call_with(one, "done", done), "next.task.id"), "t2");
	assert_string_equal(word(call_with(one, "done", done), "next.task.id"), "t2");
	assert_string_equal(code(call_with(one, "release", "{\"id\":\"t2\"}")), "ok");
	assert_string_equal(code(call_with(two, "claim", "{\"id\":\"t2\"}")), "ok");
	o = call_with(one, "done", done);
	assert_true(json_is_true(at(o, "repeated")));
	assert_null(at(o, "next"));
	assert_string_equal(word(o, "hint"), "next claim=true takes another task");
}

/* The thread of a call that waits is that of its own, not of the calls meanwhile. */
static void a_waiting_call_keeps_its_thread(void **state)
{
	(void)state;
	good("claim", "{\"id\":\"t1\"}");
	good("claim", "{\"id\":\"t2\"}");
	send_text(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"next\","
		"\"arguments\":{\"claim\":true,\"wait\":60},\"_meta\":{\"threadId\":\"waits\"}}}");
	silence();
	good("create", "{\"title\":\"z\"}");
	live_for(1000);
	assert_string_equal(word(structured(json_object_get(heard(), "result")), "task.id"), "t3");
	assert_string_equal(run_of("t3"), "waits");
}

static void odd_threads(void **state)
{
	char meta[600] = "\"threadId\":\"";

	(void)state;
	memset(meta + 12, 'x', 500);
	meta[512] = '"';
	assert_string_equal(code(call_with(meta, "claim", "{\"id\":\"t1\"}")), "ok");
	assert_int_equal(strlen(run_of("t1")), 64);
	meta[511] = 'y';
	assert_string_equal(code(call_with(meta, "done", "{\"id\":\"t1\"}")), "CONFLICT");
	meta[511] = 'x';
	assert_string_equal(code(call_with(meta, "done", "{\"id\":\"t1\"}")), "ok");
	assert_string_equal(code(call_with("\"threadId\":7", "claim", "{\"id\":\"t2\"}")), "ok");
	assert_int_equal(strncmp(run_of("t2"), "mcp-", 4), 0);
	good("release", "{\"id\":\"t2\"}");
	assert_string_equal(
		code(call_with("\"threadId\":\"a\\nb\\u0000\"", "claim", "{\"id\":\"t2\"}")), "ok");
	assert_int_equal(strlen(run_of("t2")), 64);
}

static void the_named_run_counts(void **state)
{
	(void)state;
	setenv("CLAUDE_CODE_SESSION_ID", "0b4c", 1);
	reconnect("all", "alice");
	good("claim", "{\"id\":\"t1\"}");
	assert_string_equal(run_of("t1"), "0b4c");
	assert_int_equal(folder_count("pawl", ".run"), 0);
	setenv("PAWL_RUN", "named", 1);
	reconnect("all", "alice");
	assert_string_equal(code(call_with("\"threadId\":\"0b4c\"", "done", "{\"id\":\"t1\"}")),
			    "CONFLICT");
	good("claim", "{\"id\":\"t2\"}");
	assert_string_equal(run_of("t2"), "named");
	unsetenv("PAWL_RUN");
	reconnect("all", "alice"); /* the session's server was restarted */
	assert_string_equal(word(good("next", "{}"), "held.0.task"), "t1");
	good("done", "{\"id\":\"t1\"}");
}

/* Sub-agents share their parent's connection: a claim must not hand one the task of the other. */
static void sub_agents_share_a_connection(void **state)
{
	char *text;
	json_t *o;

	(void)state;
	good("claim", "{\"id\":\"t1\"}");
	for (int i = 0; i < 2; i++) {
		o = refused("claim", "{\"id\":\"t1\"}", CONFLICT);
		assert_string_equal(word(o, "error.message"),
				    "this session holds t1 (fence 1); if you did not claim it, "
				    "call next");
		assert_null(at(o, "call_next"));
		assert_null(at(o, "task.description"));
		text = json_dumps(o, 0);
		assert_null(strstr(text, "token"));
		free(text);
	}
	assert_string_equal(word(good("next", "{\"claim\":true}"), "task.id"), "t2");
	good("done", "{\"id\":\"t1\"}");
}

#undef TEST
/* --- agents on other machines ----------------------------------------------------------------------- */

static void prepare_afar(void *ctx, struct client *c)
{
	(void)ctx;
	c->self.afar = true;
}

static bool act_as_any(void *ctx, struct str agent)
{
	(void)ctx;
	(void)agent;
	return true;
}

/* As `pawl serve` makes a session. */
static void connect_afar(const char *run)
{
	static const struct mcp_host host = { prepare_afar, act_as_any, NULL, NULL };
	struct mcp_options o = { .who.store = STR("sqlite:q.db"),
				 .who.agent = STR("alice"),
				 .who.run = str_c(run),
				 .profile = STR("all"),
				 .max_hold = 300 * MIN,
				 .host = &host };
	struct answer ans;

	disconnect(false);
	m = (struct mcp){ .send = hear };
	assert_int_equal(mcp_open(&m, &o, &ans, &arena), SUCCESS);
	keeper_restore(&m);
}

static void arrives(bool arrived)
{
	assert_non_null(m.session.client.granted);
	client_delivered(m.session.client.granted, arrived);
	m.session.client.granted = NULL;
}

/* The lease is 15 minutes: the last renewal is 15 minutes after the last call. */
static void an_agent_afar_must_show_life(void **state)
{
	(void)state;
	connect_afar("r1");
	good("claim", "{\"id\":\"t1\"}");
	arrives(true);
	live_for(29 * MIN);
	assert_true(lease_left("t1") > 0);
	live_for(2 * MIN);
	assert_true(lease_left("t1") <= 0);
	good("claim", "{\"id\":\"t2\"}");
	arrives(true);
	m.streams = 1;
	live_for(60 * MIN);
	assert_true(lease_left("t2") > 0);
	m.streams = 0;
	live_for(31 * MIN);
	assert_true(lease_left("t2") <= 0);
}

static void a_restart_keeps_the_locks_of_an_agent_afar(void **state)
{
	(void)state;
	connect_afar("r1");
	good("claim", "{\"id\":\"t1\"}");
	arrives(true);
	live_for(8 * MIN);
	connect_afar("r2");
	assert_null(m.held);
	connect_afar("r1");
	assert_non_null(m.held);
	good("list", "{}");
	live_for(14 * MIN);
	assert_true(lease_left("t1") > 10 * MIN); /* renewed, without a call about t1 */
	good("done", "{\"id\":\"t1\"}");
}

static void threads_afar_are_apart(void **state)
{
	const char *const one = "\"threadId\":\"one\"", *const two = "\"threadId\":\"two\"";

	(void)state;
	connect_afar("r1");
	assert_string_equal(code(call_with(one, "claim", "{\"id\":\"t1\"}")), "ok");
	arrives(true);
	assert_string_equal(run_of("t1"), "r1/one");
	assert_string_equal(code(call_with(two, "done", "{\"id\":\"t1\"}")), "CONFLICT");
	assert_string_equal(code(call_with(one, "done", "{\"id\":\"t1\"}")), "ok");
}

static void an_answer_that_was_lost_comes_again(void **state)
{
	json_t *o;

	(void)state;
	connect_afar("r1");
	assert_string_equal(word(good("next", "{\"claim\":true}"), "task.id"), "t1");
	arrives(false);
	connect_afar("r2"); /* another session does not get it */
	assert_string_equal(word(good("next", "{\"claim\":true}"), "task.id"), "t2");
	arrives(true);
	connect_afar("r1");
	o = good("next", "{\"claim\":true}");
	assert_string_equal(word(o, "task.id"), "t1");
	assert_true(json_is_true(at(o, "repeated")));
	arrives(true);
	assert_string_equal(word(good("next", "{\"claim\":true}"), "code"), "NO_TASKS");
	good("done", "{\"id\":\"t1\"}");
}

/* Two requests with the same id, of clients that do not know of each other. */
static void exchanges_are_apart(void **state)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
		"\"name\":\"next\",\"arguments\":{\"claim\":true,\"wait\":60}}}";
	json_t *message = json_loads(text, 0, NULL);
	int one, two;

	(void)state;
	good("claim", "{\"id\":\"t1\"}");
	good("claim", "{\"id\":\"t2\"}");
	mcp_take(&m, &one, message);
	mcp_take(&m, &two, message);
	silence();
	assert_true(mcp_is_open(&m, &one) && mcp_is_open(&m, &two));
	mcp_gone(&m, &one);
	assert_false(mcp_is_open(&m, &one));
	good("create", "{\"title\":\"z\"}");
	live_for(1000);
	assert_string_equal(word(structured(json_object_get(heard(), "result")), "task.id"), "t3");
	silence();
	assert_ptr_equal(m.out.via, &two);
	assert_true(m.out.last);
	json_decref(message);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(servers_are_apart),
		TEST(modern_servers_are_apart),
		TEST(continues_a_dead_server),
		TEST(a_new_server_is_a_new_run),
		TEST(threads_are_apart),
		TEST(a_repeat_shows_no_task_of_another_thread),
		TEST(a_waiting_call_keeps_its_thread),
		TEST(odd_threads),
		TEST(the_named_run_counts),
		TEST(sub_agents_share_a_connection),
		TEST(an_agent_afar_must_show_life),
		TEST(a_restart_keeps_the_locks_of_an_agent_afar),
		TEST(threads_afar_are_apart),
		TEST(an_answer_that_was_lost_comes_again),
		TEST(exchanges_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
