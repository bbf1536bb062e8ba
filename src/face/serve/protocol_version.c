/*
 * The two protocol versions of MCP. Up to 2025-11-25 a client begins a session with `initialize`
 * and names it in each request. From 2026-07-28 on each request is complete in itself: it names its
 * protocol version in _meta, and headers repeat parts of it for proxies. A message that differs
 * from its headers is refused.
 */
#include "face/serve/mcp_http.h"

#include "base/secret.h"

static json_t *meta_of(const json_t *message)
{
	return json_object_get(json_object_get(message, "params"), "_meta");
}

bool protocol_version_is_modern(const struct post *p, const json_t *message)
{
	struct str method = json_get(message, "method");

	return json_object_get(meta_of(message), MCP_META "protocolVersion") ||
	       str_is(p->version, MCP_MODERN) || str_is(method, "server/discover");
}

int protocol_version_status(bool modern, int error)
{
	switch (error) {
	case RPC_PARSE:
	case RPC_INVALID:
	case RPC_VERSION:
	case RPC_HEADER:
		return 400;
	case RPC_NO_METHOD:
		return modern ? 404 : 200;
	default:
		return 200;
	}
}

static int version_refuse(const json_t *message, int status, enum rpc_error code, const char *text,
			  json_t **error)
{
	*error = mcp_error(json_object_get(message, "id"), code, str_c(text), NULL);
	return status;
}

/* --- headers ---------------------------------------------------------------------------------------- */

/* Decodes a name that does not fit into a header and is sent as =?base64?…?=. false: it is
 * damaged. */
static bool version_decode(struct str *value, struct arena *a)
{
	struct str inner = *value;

	if (!str_cut_prefix(&inner, STR("=?base64?")) || !str_ends(inner, STR("?=")))
		return true;
	inner.n -= 2;
	return base64_bytes(inner, value, a);
}

/* The member that Mcp-Name repeats; NULL: the method has none. */
static const char *named_by(struct str method)
{
	if (str_is(method, "tools/call") || str_is(method, "prompts/get"))
		return "name";
	return str_is(method, "resources/read") ? "uri" : NULL;
}

static const char *header_fault(const struct post *p, const json_t *message)
{
	struct str method = json_get(message, "method"), name = p->name;
	const char *key = named_by(method);
	struct arena a = { 0 };
	const char *fault = NULL;

	if (!p->has_method || !str_eq(p->method, method))
		fault = "the header Mcp-Method must be the method of the message";
	else if (key && (!p->has_name || !version_decode(&name, &a) ||
			 !str_eq(name, json_get(json_object_get(message, "params"), key))))
		fault = "the header Mcp-Name must be the name or the URI in the message";
	arena_free(&a);
	return fault;
}

/* --- checks ----------------------------------------------------------------------------------------- */

static int check_modern(const struct post *p, const json_t *message, json_t **error)
{
	const json_t *meta = meta_of(message),
		     *version = json_object_get(meta, MCP_META "protocolVersion");
	const char *fault;

	if (!p->has_version)
		return version_refuse(message, 400, RPC_HEADER,
				      "the header MCP-Protocol-Version is missing", error);
	if (!json_object_get(message, "id")) /* a notification */
		return 0;
	if (!json_is_string(version) ||
	    !json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
		return version_refuse(message, 400, RPC_PARAMS,
				      "_meta needs " MCP_META "protocolVersion and " MCP_META
				      "clientCapabilities",
				      error);
	if (!str_eq(json_text(version), p->version))
		return version_refuse(message, 400, RPC_HEADER,
				      "the header MCP-Protocol-Version differs from the message",
				      error);
	if (!str_is(p->version, MCP_MODERN))
		return 0; /* mcp_take() refuses it and names the supported versions */
	fault = header_fault(p, message);
	return fault ? version_refuse(message, 400, RPC_HEADER, fault, error) : 0;
}

static int check_legacy(const struct post *p, const json_t *message, json_t **error)
{
	bool begins = str_is(json_get(message, "method"), "initialize");

	if (p->has_version && !mcp_legacy(p->version))
		return version_refuse(message, 400, RPC_INVALID,
				      "the server does not support this MCP-Protocol-Version",
				      error);
	if (begins)
		return 0;
	if (!p->has_session)
		return version_refuse(
			message, 400, RPC_INVALID,
			"the header MCP-Session-Id is missing; a session begins with initialize",
			error);
	if (!p->knows_session)
		return version_refuse(
			message, 404, RPC_INVALID,
			"the server does not recognise this session; begin a new one with initialize",
			error);
	return 0;
}

int protocol_version_check(const struct post *p, json_t *message, json_t **error)
{
	*error = NULL;
	return p->modern ? check_modern(p, message, error) : check_legacy(p, message, error);
}
