/*
 * Fills in a command's arguments from a JSON object. Every value goes through param_set(), so JSON callers get the same checks as the command line.
 * args_json_offered() keeps P_TERMINAL parameters from models and P_HERE parameters from callers on other
 * machines.
 */
#include "cmd/args_json.h"

#include <math.h>

#include "base/text.h"

const char *args_json_type(const struct param *p)
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

/* --- values ------------------------------------------------------------------------------------------ */

static const char *args_json_fault(const struct param *p, const char *what, struct arena *a)
{
	return arena_printf(a, "the argument %s: %s", arena_cstr(a, param_argument(p, a)), what).p;
}

/* Writes a number as text; only a duration may have a fraction. */
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

static const char *set_text(struct args *args, const struct param *p, struct str text,
			    struct arena *a)
{
	const char *what = param_set(args, p, text, a);

	return what ? args_json_fault(p, what, a) : NULL;
}

static const char *set_flag(struct args *args, const struct param *p, const json_t *v,
			    struct arena *a)
{
	if (json_is_true(v) || str_is(json_text(v), "true"))
		return set_text(args, p, STR(""), a);
	if (json_is_false(v) || str_is(json_text(v), "false"))
		return NULL;
	return args_json_fault(p, "must be true or false", a);
}

static const char *set_object(struct args *args, const struct param *p, const json_t *v,
			      struct arena *a)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(15));
	const char *what = set_text(args, p, str_c(text), a);

	free(text);
	return what;
}

static const char *set_scalar(struct args *args, const struct param *p, const json_t *v,
			      struct arena *a)
{
	if (json_is_string(v))
		return set_text(args, p, json_text(v), a);
	if (json_is_number(v) && p->type != P_JSON)
		return set_text(args, p, number_text(p, v, a), a);
	return args_json_fault(p, arena_printf(a, "must be of type %s", args_json_type(p)).p, a);
}

static const char *set_list(struct args *args, const struct param *p, const json_t *list,
			    struct arena *a)
{
	const char *what = NULL;
	const json_t *v;
	size_t i;

	if (!json_array_size(list) && p->flags & P_EMPTY)
		return set_text(args, p, STR(""), a);
	json_array_foreach(list, i, v)
		if (!what)
			what = set_scalar(args, p, v, a);
	return what;
}

static const char *set_one(struct args *args, const struct param *p, const json_t *v,
			   struct arena *a)
{
	if (p->type == P_FLAG)
		return set_flag(args, p, v, a);
	if (json_is_array(v) && param_repeats(p))
		return set_list(args, p, v, a);
	if (json_is_object(v) && p->type == P_JSON)
		return set_object(args, p, v, a);
	return set_scalar(args, p, v, a);
}

/* --- names ------------------------------------------------------------------------------------------- */

static bool args_json_offered(const struct param *p, enum args_from from)
{
	static const unsigned withheld[] = { [ARGS_MODEL] = P_TERMINAL,
					     [ARGS_MODEL_AFAR] = P_TERMINAL | P_HERE,
					     [ARGS_PROGRAM] = 0,
					     [ARGS_REMOTE] = P_HERE };

	return !(p->flags & withheld[from]);
}

const struct param *args_version(const struct command *c)
{
	bool one = c->op == OP_UNDO || (op_flags(c->op) & OP_TASK && !(op_flags(c->op) & OP_READS));

	return one && c->flags & C_WRITE ? param_find(global_params, STR("if_version")) : NULL;
}

/* A JSON caller may give only those global options that belong to the request. */
static const struct param *find_param(const struct command *c, struct str key, enum args_from from)
{
	const struct param *p = param_find(c->params, key);

	if (p)
		return args_json_offered(p, from) ? p : NULL;
	p = param_find(global_params, key);
	return p && p->arg && (from >= ARGS_PROGRAM || p == args_version(c)) ? p : NULL;
}

static const char *args_json_unknown(const struct command *c, struct str key, enum args_from from,
				     struct arena *a)
{
	struct str known = STR("");

	for (const struct param *p = c->params; p && p->name; p++)
		if (args_json_offered(p, from))
			known = arena_printf(a, "%.*s%s%s", STRF(known), known.n ? ", " : "",
					     arena_cstr(a, param_argument(p, a)));
	return arena_printf(a, "%s has no argument '%s'; it has: %s", c->name,
			    arena_cstr(a, text_cut(a, text_line(a, key), 60)),
			    arena_cstr(a, known.n ? known : STR("none")))
		.p;
}

const char *args_from_json(struct args *args, const struct command *c, const json_t *object,
			   enum args_from from, struct arena *a)
{
	const struct param *p;
	const char *key, *what;
	json_t *v;

	json_object_foreach((json_t *)object, key, v) {
		p = find_param(c, str_c(key), from);
		if (!p)
			return args_json_unknown(c, str_c(key), from, a);
		if (json_is_null(v))
			continue;
		what = set_one(args, p, v, a);
		if (what)
			return what;
		if (p == param_find(c->params, str_c(key)))
			args->seen |= UINT64_C(1) << (p - c->params);
	}
	p = command_missing(c, args);
	return p ? arena_printf(a, "%s needs the argument %s: %s", c->name,
				arena_cstr(a, param_argument(p, a)), p->help)
			       .p
		 : NULL;
}
