/*
 * kit: one connection without a transport, with a store and a clock of the test. A program of test/mcp includes it
 * once.
 */
#ifndef TEST_MCP_KIT_H
#define TEST_MCP_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/mcp/mcp.h"
#include "kit/folder.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-function"
#else
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#define MIN (INT64_C(60) * 1000)

/* --- time ----------------------------------------------------------------------------------------- */

int64_t __wrap_os_wall_ms(void);
int64_t __wrap_os_boot_ms(void);

static int64_t passed;

int64_t __wrap_os_wall_ms(void)
{
	return 1800000000000 + passed;
}

int64_t __wrap_os_boot_ms(void)
{
	return 5000000 + passed;
}

/* --- a connection --------------------------------------------------------------------------------- */

static struct mcp m;
static struct arena arena;
static json_t *said; /* messages that were sent and not yet read by the test */
static int last_id;

static const char *get(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void hear(void *ctx, struct str message)
{
	json_t *o;

	(void)ctx;
	assert_null(memchr(message.p, '\n', message.n));
	o = json_loadb(message.p, message.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	assert_non_null(o);
	json_array_append_new(said, o);
}

static void connect_with(const char *profile, const char *agent, int64_t max_hold)
{
	struct mcp_options o = { .who.store = STR("sqlite:q.db"),
				 .who.agent = str_c(agent),
				 .profile = str_c(profile),
				 .max_hold = max_hold };
	struct answer ans;

	m = (struct mcp){ .send = hear };
	assert_int_equal(mcp_open(&m, &o, &ans, &arena), SUCCESS);
}

static void disconnect(bool release)
{
	mcp_close(&m, release);
	json_array_clear(said);
}

static void reconnect(const char *profile, const char *agent)
{
	disconnect(false);
	connect_with(profile, agent, 60 * MIN);
}

static int setup(void **state)
{
	struct client c;
	struct client_options who = { .store = STR("sqlite:q.db") };
	struct answer ans;

	assert_non_null(folder_enter(state));
	setenv("XDG_STATE_HOME", *state, 1);
	setenv("HOME", *state, 1);
	unsetenv("PAWL_STORE");
	passed = 0;
	said = json_array();
	assert_int_equal(client_init(&c, &who, &ans, &arena), SUCCESS);
	assert_int_equal(client_open(&c, STORE_CREATE, &ans), SUCCESS);
	client_close(&c);
	connect_with("agent", "alice", 60 * MIN);
	return 0;
}

static int teardown(void **state)
{
	disconnect(false);
	json_decref(said);
	arena_free(&arena);
	return folder_leave(state);
}

static void send_text(const char *text)
{
	mcp_receive(&m, str_c(text));
}

/* The oldest unread message; valid until the next call. */
static json_t *heard(void)
{
	static json_t *last;

	json_decref(last);
	last = json_incref(json_array_get(said, 0));
	json_array_remove(said, 0);
	return last;
}

static void silence(void)
{
	assert_int_equal(json_array_size(said), 0);
}

static json_t *ask_text(const char *text)
{
	json_t *o;

	send_text(text);
	o = heard();
	assert_non_null(o);
	silence();
	return o;
}

#define ASK(...) ask_text(arena_printf(&arena, __VA_ARGS__).p)

static void send_call(const char *tool, const char *arguments)
{
	send_text(arena_printf(&arena,
			       "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
			       "\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
			       ++last_id, tool, arguments)
			  .p);
}

/* The result of a call that is answered at once. */
static json_t *call(const char *tool, const char *arguments)
{
	json_t *o;

	send_call(tool, arguments);
	o = heard();
	silence();
	assert_int_equal(json_integer_value(json_object_get(o, "id")), last_id);
	o = json_object_get(o, "result");
	assert_non_null(o);
	return o;
}

static json_t *structured(json_t *result)
{
	return json_object_get(result, "structuredContent");
}

/* The answer of a call that the queue accepts; NO_TASKS is such an answer. */
static json_t *good(const char *tool, const char *arguments)
{
	json_t *r = call(tool, arguments);

	if (json_is_true(json_object_get(r, "isError")))
		print_message("%s %s: %s\n", tool, arguments,
			      json_dumps(structured(r), JSON_COMPACT));
	assert_false(json_is_true(json_object_get(r, "isError")));
	assert_true(json_is_true(json_object_get(structured(r), "ok")));
	return structured(r);
}

static json_t *refused(const char *tool, const char *arguments, enum result code)
{
	json_t *r = call(tool, arguments);

	assert_true(json_is_true(json_object_get(r, "isError")));
	assert_string_equal(get(json_object_get(structured(r), "error"), "code"),
			    result_name(code));
	return structured(r);
}

static const char *text_of(json_t *result)
{
	return get(json_array_get(json_object_get(result, "content"), 0), "text");
}

static const json_t *at(const json_t *o, const char *path)
{
	struct str rest = str_c(path);

	while (rest.n && o) {
		struct str key = str_cut(&rest, '.');
		int64_t i;

		o = str_to_i64(key, &i) ? json_array_get(o, (size_t)i)
					: json_object_get(o, arena_cstr(&arena, key));
	}
	return o;
}

static const char *word(const json_t *o, const char *path)
{
	const char *s = json_string_value(at(o, path));

	return s ? s : "(none)";
}

static int code_of(const json_t *message)
{
	return (int)json_integer_value(at(message, "error.code"));
}

/* Runs the connection: it wakes up when it asked to, and no later. */
static void live_for(int64_t ms)
{
	int64_t end = passed + ms;

	while (passed < end) {
		int64_t next = mcp_tick(&m);

		passed = next < 0 || passed + next > end ? end : passed + (next ? next : 1);
	}
	mcp_tick(&m);
}

static const char *status_now(const char *id)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans;

	GIVE(&rq, id, str_c(id));
	mcp_ask(&m, &rq, &ans, &arena);
	assert_int_equal(ans.code, SUCCESS);
	return status_name(ans.task->status);
}

static int64_t lease_left(const char *id)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans;

	GIVE(&rq, id, str_c(id));
	mcp_ask(&m, &rq, &ans, &arena);
	return ans.task->lock.holder.n ? ans.task->lock.expires_at - ans.now : 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
