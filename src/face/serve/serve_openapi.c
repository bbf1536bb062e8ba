/* /openapi.json, generated from the table of commands, so the operations cannot differ from it. */
#include <stdlib.h>

#include "cmd/args_json.h"
#include "core/role.h"
#include "face/serve/serve.h"

#ifndef PAWL_VERSION
#define PAWL_VERSION "0.2.0-dev"
#endif

static json_t *openapi_words(const struct param *p)
{
	struct str rest = str_c(param_choices(p));
	json_t *list = json_array();

	while (rest.n)
		json_array_append_new(list, json_str(str_cut(&rest, ' ')));
	return list;
}

static json_t *openapi_property(const struct param *p, struct arena *a)
{
	struct str text = str_c(p->help);
	json_t *o, *item = param_repeats(p) ? json_pack("{s:s}", "type", "string") : NULL;

	if (p->type == P_DURATION)
		text = arena_printf(a, "%s; seconds", p->help);
	o = json_pack("{s:s, s:o}", "type", args_json_type(p), "description", json_str(text));
	if (p->type == P_CHOICE && p->choices)
		json_object_set_new(item ? item : o, "enum", openapi_words(p));
	if (item)
		json_object_set_new(o, "items", item);
	return o;
}

static void add_params(json_t *properties, json_t *required, const struct param *list, bool global,
		       struct arena *a)
{
	for (const struct param *p = list; p && p->name; p++) {
		struct str name = param_argument(p, a);

		if (p->flags & P_HERE || (global && !p->arg) || json_object_get(properties, name.p))
			continue;
		json_object_set_new(properties, name.p, openapi_property(p, a));
		if (p->flags & P_REQUIRED)
			json_array_append_new(required, json_str(name));
	}
}

static json_t *openapi_arguments(const struct command *c, struct arena *a)
{
	json_t *properties = json_object(), *required = json_array(), *o;

	add_params(properties, required, c->params, false, a);
	add_params(properties, required, global_params, true, a);
	json_object_set_new(properties, "agent",
			    json_pack("{s:s, s:s}", "type", "string", "description",
				      "name of the agent, if the token allows several"));
	json_object_set_new(properties, "run",
			    json_pack("{s:s, s:s}", "type", "string", "description",
				      "run (session) of the agent"));
	o = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
		      "additionalProperties", 0);
	if (json_array_size(required))
		json_object_set(o, "required", required);
	json_decref(required);
	return o;
}

static json_t *openapi_answers(void)
{
	static const struct {
		const char *status, *text;
	} all[] = { { "200", "the answer; code tells success, NO_TASKS or LOCK_FREE" },
		    { "400", "the call itself is wrong" },
		    { "401", "no token, or one that is not valid" },
		    { "403", "the token does not allow it" },
		    { "404", "the task does not exist" },
		    { "409", "another agent holds the task, or the caller has lost its lock" },
		    { "422", "the state of the task or the queue does not allow it" },
		    { "429", "too many calls; Retry-After" },
		    { "503", "the store cannot answer now; Retry-After" } };
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		json_object_set_new(o, all[i].status,
				    json_pack("{s:s, s:{s:{s:{s:s}}}}", "description", all[i].text,
					      "content", "application/json", "schema", "$ref",
					      "#/components/schemas/answer"));
	return o;
}

static json_t *queue_parameter(void)
{
	return json_pack("{s:s, s:s, s:s, s:{s:s}}", "name", "queue", "in", "query", "description",
			 "name of the queue in the store", "schema", "type", "string");
}

static json_t *openapi_operation(const struct command *c, struct arena *a)
{
	char *id = arena_cstr(a, str_c(c->name));

	for (char *p = id; *p; p++)
		*p = *p == ' ' ? '_' : *p;
	return json_pack("{s:{s:s, s:s, s:o, s:s, s:[o], s:{s:b, s:{s:{s:o}}}, s:o}}", "post",
			 "operationId", id, "summary", c->summary, "description",
			 json_str(arena_printf(a, "Least role: %s. %s", role_name(command_role(c)),
					       c->detail ? c->detail : "")),
			 "x-pawl-role", role_name(command_role(c)), "parameters", queue_parameter(),
			 "requestBody", "required", 0, "content", "application/json", "schema",
			 openapi_arguments(c, a), "responses", openapi_answers());
}

static json_t *openapi_get(const char *summary, const char *type, bool open)
{
	json_t *o = json_pack("{s:s, s:{s:{s:s, s:{s:{}}}}}", "summary", summary, "responses",
			      "200", "description", "the answer", "content", type);

	if (open)
		json_object_set_new(o, "security", json_array());
	return json_pack("{s:o}", "get", o);
}

/* MCP messages have a specification of their own, so they are not described here. */
static json_t *mcp_operation(const char *summary, const char *status, const char *type)
{
	json_t *all = openapi_answers(), *done = json_pack("{s:s}", "description", "the answer");

	if (type)
		json_object_set_new(done, "content", json_pack("{s:{}}", type));
	if (type && str_is(str_c(type), "application/json"))
		json_object_set_new(json_object_get(done, "content"), "text/event-stream",
				    json_object());
	json_object_del(all, "200");
	json_object_set_new(all, status, done);
	json_object_set_new(all, "404", json_pack("{s:s}", "description", "the session has ended"));
	return json_pack("{s:s, s:[o], s:o}", "summary", summary, "parameters", queue_parameter(),
			 "responses", all);
}

static json_t *mcp_path(void)
{
	json_t *post = mcp_operation("MCP (Streamable HTTP): one message of a client", "200",
				     "application/json");
	json_t *more = json_object_get(post, "responses");

	json_object_set_new(
		post, "requestBody",
		json_pack("{s:b, s:{s:{}}}", "required", 1, "content", "application/json"));
	json_object_set_new(more, "202", json_pack("{s:s}", "description", "a notification"));
	json_object_set_new(more, "406",
			    json_pack("{s:s}", "description", "Accept does not allow the answer"));
	json_object_set_new(more, "415", json_pack("{s:s}", "description", "the body is not JSON"));
	return json_pack(
		"{s:o, s:o, s:o}", "post", post, "get",
		mcp_operation("MCP: the notifications of a session", "200", "text/event-stream"),
		"delete", mcp_operation("MCP: ends a session", "204", NULL));
}

static json_t *openapi_paths(struct arena *a)
{
	json_t *o = json_object();

	for (size_t i = 0; commands[i]; i++) {
		char *path;

		if (command_local(commands[i]))
			continue;
		path = (char *)arena_printf(a, "/v1/%s", commands[i]->name).p;
		for (char *p = path; *p; p++)
			*p = *p == ' ' ? '_' : *p;
		json_object_set_new(o, path, openapi_operation(commands[i], a));
	}
	json_object_set_new(o, "/v1/call",
			    json_pack("{s:{s:s, s:[o], s:{s:{s:{}}}, s:o}}", "post", "summary",
				      "packed requests of another pawl, one or many", "parameters",
				      queue_parameter(), "requestBody", "content", FRAME_TYPE,
				      "responses", openapi_answers()));
	json_object_set_new(o, "/v1/store",
			    json_pack("{s:{s:s, s:[o], s:{s:{s:{}}}, s:o}}", "post", "summary",
				      "other functions of a queue, for another pawl: ?do=NAME",
				      "parameters", queue_parameter(), "requestBody", "content",
				      FRAME_TYPE, "responses", openapi_answers()));
	json_object_set_new(o, "/mcp", mcp_path());
	json_object_set_new(o, "/v1/events",
			    openapi_get("a snapshot, then every event; resume with Last-Event-ID",
					"text/event-stream", false));
	json_object_set_new(
		o, "/whoami",
		openapi_get("the role and the name of the caller", "application/json", false));
	json_object_set_new(o, "/", openapi_get("the board, a web page", "text/html", true));
	json_object_set_new(o, "/metrics",
			    openapi_get("counts for Prometheus", "text/plain", false));
	json_object_set_new(o, "/openapi.json",
			    openapi_get("this description", "application/json", false));
	json_object_set_new(o, "/livez", openapi_get("the process runs", "application/json", true));
	json_object_set_new(o, "/readyz",
			    openapi_get("the server takes calls", "application/json", true));
	return o;
}

char *openapi_text(void)
{
	struct arena a = { 0 };
	json_t *o = json_pack(
		"{s:s, s:{s:s, s:s}, s:[{s:[]}], s:o, s:{s:{s:{s:s, s:s}}, s:{s:{s:s, s:{s:{s:s}, "
		"s:{s:s}, s:{s:s}}, s:[s]}}}}",
		"openapi", "3.1.0", "info", "title", "pawl", "version", PAWL_VERSION, "security",
		"token", "paths", openapi_paths(&a), "components", "securitySchemes", "token",
		"type", "http", "scheme", "bearer", "schemas", "answer", "type", "object",
		"properties", "ok", "type", "boolean", "code", "type", "string", "error", "type",
		"object", "required", "ok");
	char *text = json_dumps(o, JSON_INDENT(1));

	json_decref(o);
	arena_free(&a);
	return text;
}
