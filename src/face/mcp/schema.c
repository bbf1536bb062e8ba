/* A tool, from the declaration of its command; and its arguments, by the same declaration. */
#include "face/mcp/mcp.h"

#include <math.h>

#include "base/text.h"

struct str tool_name(const struct command *c, struct arena *a)
{
	char *name = arena_cstr(a, str_c(c->name));

	for (char *p = name; *p; p++)
		if (*p == ' ')
			*p = '_';
	return str_c(name);
}

/* --- what goes in --------------------------------------------------------------------------------- */

/* Options are arguments here: "--claim" is claim, "--unblock-action" unblock_action. */
static struct str without_dashes(const char *text, struct arena *a)
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

static json_t *description(const struct param *p, struct arena *a)
{
	const char *unit = p->type == P_DURATION ? "; seconds" : "";
	struct str text = without_dashes(p->model ? p->model : p->help, a);

	if (p->def)
		return json_str(arena_printf(a, "%.*s%s (default: %s)", STRF(text), unit, p->def));
	return json_str(arena_printf(a, "%.*s%s", STRF(text), unit));
}

/* As they are shown, so that they look the same in answers and in calls. */
static json_t *choices(const struct param *p)
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

static const char *type_name(const struct param *p)
{
	switch (p->type) {
	case P_FLAG:
		return "boolean";
	case P_INT:
	case P_PRIORITY:
		return "integer";
	case P_DURATION:
		return "number";
	case P_JSON:
		return "object";
	default:
		return param_repeats(p) ? "array" : "string";
	}
}

static json_t *property(const struct param *p, struct arena *a)
{
	json_t *o = json_pack("{s:s, s:o}", "type", type_name(p), "description", description(p, a));
	json_t *items = param_repeats(p) ? json_pack("{s:s}", "type", "string") : NULL;

	if (param_choices(p))
		json_object_set_new(items ? items : o, "enum", choices(p));
	if (items)
		json_object_set_new(o, "items", items);
	if (p->type == P_INT && (p->min || p->max))
		set_range(o, p->min, p->max);
	return o;
}

static bool offered(const struct param *p, bool narrow)
{
	return !(p->flags & P_TERMINAL) && !(narrow && p->flags & P_SELDOM);
}

static json_t *input_schema(const struct command *c, bool narrow, struct arena *a)
{
	json_t *properties = json_object(), *required = json_array(),
	       *o = json_pack("{s:s}", "type", "object");

	for (const struct param *p = c->params; p && p->name; p++) {
		struct str name = param_argument(p, a);

		/* Some can be said in two ways on a command line. */
		if (!offered(p, narrow) || json_object_get(properties, name.p))
			continue;
		json_object_set_new(properties, name.p, property(p, a));
		if (p->flags & P_REQUIRED)
			json_array_append_new(required, json_str(name));
	}
	json_object_set_new(o, "properties", properties);
	if (json_array_size(required))
		json_object_set_new(o, "required", required);
	else
		json_decref(required);
	return o;
}

/* --- what comes out ------------------------------------------------------------------------------- */

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
	{ "warnings", "array", false },    { "count", "integer", false },
	{ "total", "integer", false },     { "held_total", "integer", false },
	{ "locked", "boolean", false },    { "is_locked", "boolean", false },
	{ "success", "boolean", false },   { "existed", "boolean", false },
	{ "id", "string", false },         { "message", "string", false },
	{ "emergency", "object", false },  { "health", "object", false },
	{ "lock_holder", "string", true }, { "lock_expires_at", "string", true },
};

static json_t *shape(struct str name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (str_is(name, shapes[i].name))
			return shapes[i].none
				       ? json_pack("{s:[s, s]}", "type", shapes[i].type, "null")
				       : json_pack("{s:s}", "type", shapes[i].type);
	return json_object();
}

/* A refusal fits it as well: then there is an error, and what it is about. */
static json_t *output_schema(const struct command *c)
{
	struct str rest = str_c(c->gives);
	json_t *p = json_pack("{s:{s:s}, s:{s:s}, s:{s:s}}", "ok", "type", "boolean", "code",
			      "type", "string", "error", "type", "object");

	while (rest.n) {
		struct str name = str_cut(&rest, ' ');

		json_object_setn_new(p, name.p, name.n, shape(name));
	}
	return json_pack("{s:s, s:o, s:[s]}", "type", "object", "properties", p, "required", "ok");
}

/* --- the tool ------------------------------------------------------------------------------------- */

static json_t *annotations(const struct command *c)
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

/* Without words for models: what people are told, and how it can be refused. */
static struct str told(const struct command *c, struct arena *a)
{
	struct str text;

	if (c->model)
		return str_c(c->model);
	text = arena_printf(a, "%s.%s%s", c->summary, c->detail ? " " : "",
			    c->detail ? without_dashes(c->detail, a).p : "");
	for (const enum result *r = c->fails; r && *r; r++)
		text = arena_printf(a, "%.*s%s %s: %s", STRF(text), r == c->fails ? "" : ";",
				    result_name(*r), result_text(*r));
	return text;
}

json_t *schema_tool(const struct command *c, bool narrow, struct arena *a)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", json_str(tool_name(c, a)),
			 "description", json_str(told(c, a)), "inputSchema",
			 input_schema(c, narrow, a), "outputSchema", output_schema(c),
			 "annotations", annotations(c));
}

/* --- arguments ------------------------------------------------------------------------------------ */

static const char *fault(const struct param *p, const char *what, struct arena *a)
{
	return arena_printf(a, "the argument %.*s: %s", STRF(param_argument(p, a)), what).p;
}

/* A number as it would be written; reals only where they mean something. */
static struct str number_text(const struct param *p, const json_t *v, struct arena *a)
{
	double whole, real = json_number_value(v);

	if (json_is_integer(v))
		return arena_printf(a, "%lld", (long long)json_integer_value(v));
	if (p->type == P_DURATION)
		return arena_printf(a, "%.3fs", real);
	if (modf(real, &whole) == 0 && fabs(real) < 1e15)
		return arena_printf(a, "%.0f", real);
	return arena_printf(a, "%g", real);
}

static const char *set_text(struct tool_args *t, const struct param *p, struct str text,
			    struct arena *a)
{
	const char *what = param_set(&t->args, p, text, a);

	return what ? fault(p, what, a) : NULL;
}

static const char *set_flag(struct tool_args *t, const struct param *p, const json_t *v,
			    struct arena *a)
{
	if (json_is_true(v) || str_is(json_text(v), "true"))
		return set_text(t, p, STR(""), a);
	if (json_is_false(v) || str_is(json_text(v), "false"))
		return NULL;
	return fault(p, "must be true or false", a);
}

static const char *set_scalar(struct tool_args *t, const struct param *p, const json_t *v,
			      struct arena *a)
{
	if (json_is_string(v))
		return set_text(t, p, json_text(v), a);
	if (json_is_number(v) && p->type != P_JSON)
		return set_text(t, p, number_text(p, v, a), a);
	return fault(p, arena_printf(a, "must be of type %s", type_name(p)).p, a);
}

static const char *set_object(struct tool_args *t, const struct param *p, const json_t *v,
			      struct arena *a)
{
	char *text = json_dumps(v, JSON_COMPACT);
	const char *what = set_text(t, p, str_c(text), a);

	free(text);
	return what;
}

static const char *set_array(struct tool_args *t, const struct param *p, const json_t *list,
			     struct arena *a)
{
	const char *what = NULL;
	const json_t *v;
	size_t i;

	if (!json_array_size(list) && p->flags & P_EMPTY)
		return set_text(t, p, STR(""), a);
	json_array_foreach(list, i, v)
		if (!what)
			what = set_scalar(t, p, v, a);
	return what;
}

static const char *set_one(struct tool_args *t, const struct param *p, const json_t *v,
			   struct arena *a)
{
	if (json_is_null(v))
		return NULL;
	if (p->type == P_FLAG)
		return set_flag(t, p, v, a);
	if (json_is_array(v) && param_repeats(p))
		return set_array(t, p, v, a);
	if (json_is_object(v) && p->type == P_JSON)
		return set_object(t, p, v, a);
	return set_scalar(t, p, v, a);
}

static const char *unknown(const struct command *c, struct str name, struct arena *a)
{
	struct str known = STR("");

	for (const struct param *p = c->params; p && p->name; p++)
		if (offered(p, false))
			known = arena_printf(a, "%.*s%s%.*s", STRF(known), known.n ? ", " : "",
					     STRF(param_argument(p, a)));
	return arena_printf(a, "%.*s has no argument '%.*s'; it has: %.*s", STRF(tool_name(c, a)),
			    STRF(text_cut(a, text_line(a, name), 60)),
			    STRF(known.n ? known : STR("none")))
		.p;
}

const char *arguments_set(const struct command *c, const json_t *arguments, struct tool_args *out,
			  struct arena *a)
{
	const struct param *missing;
	const char *key, *what;
	json_t *v;

	json_object_foreach((json_t *)arguments, key, v) {
		const struct param *p = param_find(c->params, str_c(key));

		if (!p || p->flags & P_TERMINAL)
			return unknown(c, str_c(key), a);
		what = set_one(out, p, v, a);
		if (what)
			return what;
		if (!json_is_null(v))
			out->args.seen |= UINT64_C(1) << (p - c->params);
	}
	missing = command_missing(c, &out->args);
	return missing ? arena_printf(a, "%.*s needs the argument %.*s: %s", STRF(tool_name(c, a)),
				      STRF(param_argument(missing, a)), missing->help)
				 .p
		       : NULL;
}
