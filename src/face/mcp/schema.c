/* Makes a tool from the declaration of its command. */
#include "face/mcp/mcp.h"

#include "base/when.h"
#include "cmd/args_json.h"

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

/* The default in the unit of the argument: tools take durations in seconds. */
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

/* Statuses are spelt as in answers, so that answers and calls look the same. */
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

/* narrow: the tool's own description says which task its id is. */
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

		/* Some values have two options on the command line; a tool has one. */
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
	{ "waiting", "integer", false },
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

/* A refusal must match the schema too: it has an error, and the object that it is about. */
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

/* Without a text for models: the text for people, and the codes of a refusal. */
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

/* Claude Code loads other tools only when the model searches for them; these two are in every loop. */
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
