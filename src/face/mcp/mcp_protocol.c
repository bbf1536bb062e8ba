/*
 * JSON-RPC, the protocol versions, and a client's first requests. A request gets at most one
 * answer; a notification gets none.
 */
#include <math.h>

#include "base/os.h"
#include "base/text.h"
#include "face/mcp/mcp.h"
#include "format/json.h"

/* Newest first. Only 2025-03-26 has batches. */
static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
					       "2024-11-05" };
#define BATCHES "2025-03-26"
#define META MCP_META

const char *mcp_legacy(struct str version)
{
	for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(*legacy_versions); i++)
		if (str_is(version, legacy_versions[i]))
			return legacy_versions[i];
	return NULL;
}

/* --- sending -------------------------------------------------------------------------------------- */

static void mcp_protocol_put(struct mcp *m, struct mcp_out out, json_t *message)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);

	m->out = out;
	json_write(message, &b);
	m->send(m->ctx, buf_str(&b));
	buf_free(&b);
	json_decref(message);
}

/* Makes an answer. If the id could not be read, the answer has none. */
static json_t *answer_to(json_t *id, const char *key, json_t *value)
{
	json_t *o = json_pack("{s:s}", "jsonrpc", "2.0");

	if (id)
		json_object_set(o, "id", id);
	json_object_set_new(o, key, value);
	return o;
}

static void mcp_protocol_answer(const struct mcp_call *c, int error, json_t *o)
{
	if (c->m->batch)
		json_array_append_new(c->m->batch, o);
	else
		mcp_protocol_put(
			c->m, (struct mcp_out){ .via = c->via, .last = true, .error = error }, o);
}

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "pawl", "title", "pawl task queue", "version",
			 PAWL_VERSION);
}

void mcp_reply(const struct mcp_call *c, json_t *result)
{
	if (c->modern) {
		json_t *meta = json_object_get(result, "_meta");

		if (!meta) {
			meta = json_object();
			json_object_set_new(result, "_meta", meta);
		}
		json_object_set_new(meta, META "serverInfo", server_info());
		json_object_set_new(result, "resultType", json_string("complete"));
	}
	mcp_protocol_answer(c, 0, answer_to(c->id, "result", result));
}

void mcp_reply_kept(const struct mcp_call *c, json_t *result, int64_t ms)
{
	if (c->modern) {
		json_object_set_new(result, "ttlMs", json_integer(ms));
		json_object_set_new(result, "cacheScope", json_string("private"));
	}
	mcp_reply(c, result);
}

json_t *mcp_error(json_t *id, enum rpc_error code, struct str message, json_t *data)
{
	json_t *e = json_pack("{s:i}", "code", (int)code);

	json_object_set_new(e, "message", json_str(message));
	if (data)
		json_object_set_new(e, "data", data);
	return answer_to(id, "error", e);
}

void mcp_fail(const struct mcp_call *c, enum rpc_error code, struct str message, json_t *data)
{
	mcp_protocol_answer(c, code, mcp_error(c->id, code, message, data));
}

void mcp_notify(struct mcp *m, void *via, const char *method, json_t *params)
{
	mcp_protocol_put(
		m, (struct mcp_out){ .via = via },
		json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

/* --- the first request ------------------------------------------------------------------------------ */

static json_t *mcp_protocol_capabilities(void)
{
	return json_pack("{s:{}, s:{s:b}, s:{}}", "tools", "resources", "subscribe", 1, "prompts");
}

static void mcp_protocol_discover(struct mcp_call *c)
{
	json_t *o = json_pack("{s:[s], s:o, s:s}", "supportedVersions", MCP_MODERN, "capabilities",
			      mcp_protocol_capabilities(), "instructions",
			      c->m->profile->instructions);

	mcp_reply_kept(c, o, FOR_HOURS);
}

/* Agrees on the protocol version that the client asks for, if we support it, else on the newest one
 * with `initialize`. */
static void mcp_protocol_initialize(struct mcp_call *c)
{
	struct str asked = json_get(c->params, "protocolVersion");
	json_t *o;

	if (!asked.n) {
		mcp_fail(c, RPC_PARAMS, STR("initialize needs a protocolVersion"), NULL);
		return;
	}
	mcp_meet(c->m, json_get(json_object_get(c->params, "clientInfo"), "name"));
	c->m->legacy = mcp_legacy(asked);
	if (!c->m->legacy)
		c->m->legacy = legacy_versions[0];
	o = json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", c->m->legacy, "capabilities",
		      mcp_protocol_capabilities(), "serverInfo", server_info(), "instructions",
		      c->m->profile->instructions);
	mcp_reply(c, o);
}

static void mcp_protocol_ping(struct mcp_call *c)
{
	mcp_reply(c, json_object());
}

/* --- requests ------------------------------------------------------------------------------------- */

enum { LEGACY = 1, MODERN = 2 };

static const struct {
	const char *name;
	unsigned protocol_versions;
	void (*run)(struct mcp_call *c);
} methods[] = {
	{ "tools/call", LEGACY | MODERN, tools_call },
	{ "tools/list", LEGACY | MODERN, tools_list },
	{ "server/discover", MODERN, mcp_protocol_discover },
	{ "initialize", LEGACY, mcp_protocol_initialize },
	{ "ping", LEGACY, mcp_protocol_ping },
	{ "resources/list", LEGACY | MODERN, resources_list },
	{ "resources/templates/list", LEGACY | MODERN, resources_templates },
	{ "resources/read", LEGACY | MODERN, resources_read },
	{ "resources/subscribe", LEGACY, resources_subscribe },
	{ "resources/unsubscribe", LEGACY, resources_unsubscribe },
	{ "subscriptions/listen", MODERN, subscriptions_listen },
	{ "prompts/list", LEGACY | MODERN, prompts_list },
	{ "prompts/get", LEGACY | MODERN, prompts_get },
};

/* A request that names its protocol version is modern; then all required members must be there. */
static bool find_protocol_version(struct mcp_call *c)
{
	const json_t *meta = json_object_get(c->params, "_meta"),
		     *version = json_object_get(meta, META "protocolVersion");

	c->modern = version != NULL;
	if (!version)
		return true;
	if (!json_is_string(version)) {
		mcp_fail(c, RPC_PARAMS, STR("_meta: " META "protocolVersion is not a string"),
			 NULL);
		return false;
	}
	if (!str_is(json_text(version), MCP_MODERN)) {
		mcp_fail(
			c, RPC_VERSION,
			STR("the server does not support this revision of the protocol; those before " MCP_MODERN
			    " begin with initialize"),
			json_pack("{s:[s], s:O}", "supported", MCP_MODERN, "requested", version));
		return false;
	}
	if (!json_is_object(json_object_get(meta, META "clientCapabilities"))) {
		mcp_fail(c, RPC_PARAMS, STR("_meta: " META "clientCapabilities is missing"), NULL);
		return false;
	}
	mcp_meet(c->m, json_get(json_object_get(meta, META "clientInfo"), "name"));
	return true;
}

/* Every list is one page, so the server has never given out a cursor. */
static bool valid_cursor(struct mcp_call *c, struct str method)
{
	if (!str_ends(method, STR("/list")) || !json_object_get(c->params, "cursor"))
		return true;
	mcp_fail(c, RPC_PARAMS, STR("this cursor does not exist: the list is one page"), NULL);
	return false;
}

static void mcp_protocol_request(struct mcp_call *c, struct str method)
{
	struct arena a = { 0 };

	if (!find_protocol_version(c) || !valid_cursor(c, method))
		return;
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (!str_is(method, methods[i].name))
			continue;
		if (!c->modern && methods[i].protocol_versions == MODERN) {
			mcp_fail(c, RPC_PARAMS,
				 STR("this method needs " META "protocolVersion in its _meta"),
				 NULL);
			return;
		}
		if (methods[i].protocol_versions & (c->modern ? MODERN : LEGACY)) {
			methods[i].run(c);
			return;
		}
	}
	mcp_fail(c, RPC_NO_METHOD,
		 arena_printf(&a, "there is no method '%s'",
			      arena_cstr(&a, text_cut(&a, text_line(&a, method), 60))),
		 NULL);
	arena_free(&a);
}

/* Unknown notifications are ignored, because they get no answer. */
static void mcp_protocol_notification(struct mcp *m, struct str method, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");

	if (!str_is(method, "notifications/cancelled") || !id)
		return;
	wait_cancel(m, id);
	subscriptions_cancel(m, id);
}

/* --- messages ------------------------------------------------------------------------------------- */

static bool valid_id(const json_t *id)
{
	double whole;

	return json_is_string(id) || json_is_integer(id) ||
	       (json_is_real(id) && modf(json_real_value(id), &whole) == 0);
}

static void mcp_protocol_one(struct mcp *m, void *via, json_t *o)
{
	json_t *id = json_object_get(o, "id"), *method = json_object_get(o, "method"),
	       *params = json_object_get(o, "params");
	struct mcp_call c = { .m = m, .id = id && valid_id(id) ? id : NULL, .via = via };

	if (!json_is_object(o) || !str_is(json_get(o, "jsonrpc"), "2.0")) {
		mcp_fail(&c, RPC_INVALID, STR("not a JSON-RPC 2.0 message"), NULL);
		return;
	}
	/* An answer to a request that we never sent. */
	if (!method && (json_object_get(o, "result") || json_object_get(o, "error")))
		return;
	if (!json_is_string(method) || (id && !c.id)) {
		mcp_fail(&c, RPC_INVALID,
			 method ? STR("the id is neither a string nor a whole number")
				: STR("the message has no method"),
			 NULL);
		return;
	}
	if (!id) {
		mcp_protocol_notification(m, json_text(method), params);
		return;
	}
	if (params && !json_is_object(params)) {
		mcp_fail(&c, RPC_PARAMS, STR("params is not an object"), NULL);
		return;
	}
	c.params = params;
	mcp_protocol_request(&c, json_text(method));
}

#define BATCH_BYTES ((size_t)4 << 20)

/* Answers a message of a batch without handling it, because the answers before it are too long. */
static void leave_out(struct mcp *m, void *via, const json_t *message)
{
	json_t *id = json_object_get(message, "id");
	struct mcp_call c = { .m = m, .id = id && valid_id(id) ? id : NULL, .via = via };

	if (c.id)
		mcp_fail(&c, RPC_INVALID,
			 STR("the answers before it are too long for one batch: send it again"),
			 NULL);
}

static void mcp_protocol_batch(struct mcp *m, void *via, const json_t *list)
{
	json_t *item, *answers = json_array();
	size_t i, bytes = 0;

	m->batch = answers;
	json_array_foreach(list, i, item) {
		size_t before = json_array_size(answers);

		if (bytes < BATCH_BYTES)
			mcp_protocol_one(m, via, item);
		else
			leave_out(m, via, item);
		if (json_array_size(answers) > before)
			bytes += json_dumpb(json_array_get(answers, before), NULL, 0, JSON_COMPACT);
	}
	m->batch = NULL;
	if (json_array_size(answers))
		mcp_protocol_put(m, (struct mcp_out){ .via = via, .last = true }, answers);
	else
		json_decref(answers);
}

void mcp_receive(struct mcp *m, struct str message)
{
	struct mcp_call nobody = { .m = m };
	json_error_t e;
	json_t *o;

	if (!str_trim(message).n)
		return;
	o = json_loadb(message.p, message.n,
		       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (o)
		mcp_take(m, NULL, o);
	else
		mcp_fail(&nobody, RPC_PARSE, STR("this is not JSON"),
			 json_pack("{s:i}", "position", e.position));
	json_decref(o);
}

void mcp_take(struct mcp *m, void *via, json_t *message)
{
	struct mcp_call nobody = { .m = m, .via = via };

	m->heard = os_boot_ms();
	if (!json_is_array(message))
		mcp_protocol_one(m, via, message);
	else if (json_array_size(message) > BATCH_MAX)
		mcp_fail(&nobody, RPC_INVALID, STR("a batch has at most 32 messages"),
			 json_pack("{s:i}", "max", BATCH_MAX));
	else if (json_array_size(message) && m->legacy && !strcmp(m->legacy, BATCHES))
		mcp_protocol_batch(m, via, message);
	else
		mcp_fail(&nobody, RPC_INVALID, STR("only one message at a time"), NULL);
}

void mcp_too_long(struct mcp *m)
{
	struct mcp_call nobody = { .m = m };

	mcp_fail(&nobody, RPC_INVALID, STR("the message is longer than 8 MiB"),
		 json_pack("{s:i}", "max", (int)MESSAGE_MAX));
}
