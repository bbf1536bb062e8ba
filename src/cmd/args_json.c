#include "cmd/args_json.h"

#include <ctype.h>

/* "unblock_action" is --unblock-action, "id" is ID. */
static bool same_name(const char *param, const char *key)
{
	for (; *param && *key; param++, key++) {
		char a = (char)tolower((unsigned char)*param), b = *key == '_' ? '-' : *key;

		if (a != b)
			return false;
	}
	return !*param && !*key;
}

static const struct param *find_in(const struct param *list, const char *key)
{
	for (const struct param *p = list; p && p->name; p++)
		if (same_name(p->name, key))
			return p;
	return NULL;
}

/* Of those that every command has, only what is about the call itself. */
static const struct param *find_param(const struct command *c, const char *key)
{
	const struct param *p = find_in(c->params, key);

	if (!p && (same_name("token", key) || same_name("request-id", key)))
		p = find_in(global_params, key);
	return p;
}

static const char *set_text(struct args *args, const struct param *p, struct str text,
			    struct arena *a)
{
	const char *fault;

	if (p->type == P_FLAG)
		return arena_printf(a, "%s: it is true or false", p->name).p;
	fault = param_set(args, p, text, a);
	return fault ? arena_printf(a, "%s: %s", p->name, fault).p : NULL;
}

static const char *set_dumped(struct args *args, const struct param *p, const json_t *v,
			      struct arena *a)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	const char *fault = set_text(args, p, str_c(text), a);

	free(text);
	return fault;
}

static const char *set_value(struct args *args, const struct param *p, const json_t *v,
			     struct arena *a)
{
	if (json_is_string(v))
		return set_text(args, p, str_n(json_string_value(v), json_string_length(v)), a);
	if (json_is_number(v) || (json_is_object(v) && p->type == P_JSON))
		return set_dumped(args, p, v, a);
	if (json_is_boolean(v) && p->type == P_FLAG)
		return json_is_true(v) ? param_set(args, p, STR(""), a) : NULL;
	return arena_printf(a, "%s: this kind of value does not fit", p->name).p;
}

static const char *set_list(struct args *args, const struct param *p, const json_t *list,
			    struct arena *a)
{
	const char *fault = NULL;
	const json_t *v;
	size_t i;

	if (!param_repeats(p))
		return arena_printf(a, "%s: one value, no list", p->name).p;
	if (!json_array_size(list))
		return set_text(args, p, STR(""), a);
	json_array_foreach(list, i, v) {
		if (!fault)
			fault = set_value(args, p, v, a);
	}
	return fault;
}

static const char *missing(const struct args *args, const struct command *c, struct arena *a)
{
	for (const struct param *p = c->params; p && p->name; p++) {
		bool given = p->arg ? args->rq.has >> (p->arg - 1) & 1
				    : args->seen >> (p - c->params) & 1;

		if (p->flags & P_REQUIRED && !given)
			return arena_printf(a, "%s needs %s: %s", c->name, p->name, p->help).p;
	}
	return NULL;
}

const char *args_from_json(struct args *args, const struct command *c, const json_t *object,
			   struct arena *a)
{
	const char *key, *fault = NULL;
	json_t *v;

	*args = (struct args){ .rq.op = c->op };
	json_object_foreach((json_t *)object, key, v) {
		const struct param *p = find_param(c, key);

		if (fault || json_is_null(v))
			continue;
		if (!p)
			fault = arena_printf(a, "%s has no parameter '%.60s'", c->name, key).p;
		else if (json_is_array(v))
			fault = set_list(args, p, v, a);
		else
			fault = set_value(args, p, v, a);
		if (p && c->params && p >= c->params && p - c->params < 64 &&
		    find_in(c->params, key) == p)
			args->seen |= UINT64_C(1) << (p - c->params);
	}
	return fault ? fault : missing(args, c, a);
}
