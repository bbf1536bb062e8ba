/*
 * MCP: the input is a client's messages, one on each line; the first byte chooses the profile. For
 * any input the replies are messages of JSON-RPC, and the server stays alive.
 */
#include "kit.h"
#include "face/mcp/mcp.h"
#include "store/mem/mem.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	setenv("HOME", fuzz_dir(), 1);
	setenv("XDG_STATE_HOME", getenv("HOME"), 1);
	return 0;
}

#define RUNS 20 /* runs of one server: making it and its queue takes longer than most inputs */

static size_t heard;

static void check_message(const json_t *o)
{
	const json_t *result = json_object_get(o, "result"), *error = json_object_get(o, "error");

	CHECK(json_is_object(o) && str_is(json_get(o, "jsonrpc"), "2.0"));
	if (json_object_get(o, "method")) {
		CHECK(!result && !error && !json_object_get(o, "id"));
		return;
	}
	CHECK(!result != !error);
	CHECK(!result || (json_is_object(result) && json_object_get(o, "id")));
	CHECK(!error ||
	      (json_is_integer(json_object_get(error, "code")) && json_get(error, "message").n));
	CHECK(!json_object_get(result, "isError") ||
	      json_is_object(json_object_get(result, "structuredContent")));
}

static void hear(void *ctx, struct str message)
{
	json_t *o = json_loadb(message.p, message.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL),
	       *item;
	size_t i;

	(void)ctx;
	CHECK(!memchr(message.p, '\n', message.n));
	CHECK(o);
	if (json_is_array(o)) {
		CHECK(json_array_size(o));
		json_array_foreach(o, i, item)
			check_message(item);
	} else {
		check_message(o);
	}
	json_decref(o);
	heard++;
}

static void say(struct mcp *m, const char *text)
{
	mcp_receive(m, str_c(text));
}

/* A small queue: t1 is eligible, t2 is held by this agent, t3 waits for t2. */
static void begin(struct mcp *m, const char *profile)
{
	struct mcp_options o = { .who = { .store = STR("mem:fuzz"), .agent = STR("fuzz") },
				 .profile = str_c(profile),
				 .max_hold = 1000 };
	struct arena a = { 0 };
	struct answer ans;
	struct client c;

	mem_reset();
	CHECK(client_init(&c, &o.who, &ans, &a) == SUCCESS);
	CHECK(client_open(&c, STORE_CREATE, &ans) == SUCCESS);
	for (int i = 0; i < 3; i++) {
		struct request rq = { .op = OP_CREATE };
		struct strs on = { .v = &STR("t2"), .n = i == 2 };

		GIVE(&rq, title, STR("x"));
		if (on.n)
			GIVE(&rq, depends, on);
		client_call(&c, &rq, &ans);
		CHECK(ans.code == SUCCESS);
	}
	client_close(&c);
	*m = (struct mcp){ .send = hear };
	CHECK(mcp_open(m, &o, &ans, &a) == SUCCESS);
	arena_free(&a);
	say(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
	    "\"2025-03-26\"}}");
	say(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"claim\","
	    "\"arguments\":{\"id\":\"t2\"}}}");
	say(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/subscribe\",\"params\":{\"uri\":"
	    "\"pawl://board\"}}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const profiles[] = { "agent", "pm", "all" };
	static struct mcp m;
	static unsigned runs, last;
	struct str rest = str_n((const char *)data, size);
	unsigned profile = size ? data[0] % 3 : 0;

	if (!size)
		return 0;
	if (runs && (runs == RUNS || profile != last)) {
		mcp_close(&m, runs & 1);
		runs = 0;
	}
	if (!runs++)
		begin(&m, profiles[profile]);
	last = profile;
	rest = str_n(rest.p + 1, rest.n - 1);
	while (rest.n) {
		mcp_receive(&m, str_cut(&rest, '\n'));
		mcp_woken(&m);
		mcp_tick(&m);
	}
	heard = 0;
	say(&m, "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"method\":\"ping\"}");
	CHECK(heard == 1);
	return 0;
}
