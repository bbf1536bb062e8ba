/*
 * A message over HTTP and its headers. The input: a byte of flags (which headers there are), the lines of
 * MCP-Protocol-Version, Mcp-Method and Mcp-Name, and the message. Every message is accepted, or refused with a status and
 * an error of JSON-RPC; an accepted one has the headers that its protocol version needs.
 */
#include "kit.h"
#include "face/serve/mcp_http.h"

/* The check of Mcp-Name that does not use the code under test: only names that need no encoding. */
static bool has_plain_name(const struct post *p, const json_t *message, const char *key)
{
	struct str name = json_get(json_object_get(message, "params"), key);

	return str_starts(p->name, STR("=?base64?")) || str_eq(p->name, name);
}

static void check_accepted(const struct post *p, const json_t *message)
{
	struct str method = json_get(message, "method");

	if (!p->modern) {
		CHECK(!p->has_version || mcp_legacy(p->version));
		CHECK(str_is(method, "initialize") || (p->has_session && p->knows_session));
		return;
	}
	CHECK(p->has_version);
	if (!json_object_get(message, "id") || !str_is(p->version, MCP_MODERN))
		return;
	CHECK(p->has_method && str_eq(p->method, method));
	if (str_is(method, "tools/call"))
		CHECK(p->has_name && has_plain_name(p, message, "name"));
	if (str_is(method, "resources/read"))
		CHECK(p->has_name && has_plain_name(p, message, "uri"));
}

static void check_refused(const json_t *message, int status, const json_t *error)
{
	const json_t *body = json_object_get(error, "error"), *id = json_object_get(message, "id");

	CHECK(status == 400 || status == 404);
	CHECK(json_is_integer(json_object_get(body, "code")) && json_get(body, "message").n);
	CHECK(!id || json_equal(id, json_object_get(error, "id")));
}

static void check(struct post *p, json_t *message)
{
	json_t *error;
	int status;

	p->modern = protocol_version_is_modern(p, message);
	status = protocol_version_check(p, message, &error);
	CHECK(!status == !error);
	if (status)
		check_refused(message, status, error);
	else
		check_accepted(p, message);
	json_decref(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_n((const char *)data, size);
	struct post p = { .kind = POST_MESSAGE };
	json_t *message;

	if (!size)
		return 0;
	rest = str_n(rest.p + 1, rest.n - 1);
	p.version = str_cut(&rest, '\n');
	p.method = str_cut(&rest, '\n');
	p.name = str_cut(&rest, '\n');
	p.has_version = data[0] & 1;
	p.has_method = data[0] & 2;
	p.has_name = data[0] & 4;
	p.has_session = data[0] & 8;
	p.knows_session = p.has_session && data[0] & 16;
	/* a header that is missing has no value */
	p.version.n = p.has_version ? p.version.n : 0;
	p.method.n = p.has_method ? p.method.n : 0;
	p.name.n = p.has_name ? p.name.n : 0;
	message = json_loadb(str_p(rest), rest.n,
			     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	if (message)
		check(&p, message);
	json_decref(message);
	return 0;
}
