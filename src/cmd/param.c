/*
 * Parses the values of parameters and stores them in the arguments. All faces come here, so a value
 * is valid for all of them or for none.
 */
#include "cmd/command.h"

#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "core/validate.h"
#include "core/typed.h"

static const char *const value_names[] = {
	[P_FLAG] = NULL,     [P_TEXT] = "TEXT",     [P_TITLE] = "TEXT",        [P_NAME] = "NAME",
	[P_ID] = "ID",       [P_IDS] = "ID",        [P_NAMES] = "NAME",        [P_WORDS] = "WORD",
	[P_CHOICE] = "WORD", [P_INT] = "N",         [P_DURATION] = "DURATION", [P_TIME] = "TIME",
	[P_DATE] = "DATE",   [P_STATUS] = "STATUS", [P_STATUSES] = "STATUS",   [P_CLASS] = "CLASS",
	[P_PRIORITY] = "N",  [P_TOKEN] = "TOKEN",   [P_JSON] = "JSON",
};

const char *param_value(const struct param *p)
{
	return p->value ? p->value : value_names[p->type];
}

const char *param_choices(const struct param *p)
{
	if (p->choices)
		return p->choices;
	switch (p->type) {
	case P_STATUS:
	case P_STATUSES:
		return "backlog ready in-progress blocked needs-help review done failed canceled";
	case P_CLASS:
		return "expedite fixed-date standard intangible";
	default:
		return NULL;
	}
}

bool param_repeats(const struct param *p)
{
	return p->type == P_IDS || p->type == P_NAMES || p->type == P_WORDS ||
	       p->type == P_STATUSES;
}

static char argument_letter(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + 'a' - 'A');
	return c == '-' ? '_' : c;
}

struct str param_argument(const struct param *p, struct arena *a)
{
	char *name = arena_cstr(a, str_c(p->name));

	for (char *c = name; *c; c++)
		*c = argument_letter(*c);
	return str_c(name);
}

static bool argument_is(const struct param *p, struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!p->name[i] || argument_letter(p->name[i]) != argument_letter(name.p[i]))
			return false;
	return p->name[name.n] == '\0';
}

const struct param *param_positional(const struct param *list, size_t n)
{
	const struct param *last = NULL;

	for (const struct param *p = list; p && p->name; p++) {
		if (!(p->flags & P_POSITIONAL) || p->flags & P_REST)
			continue;
		last = p;
		if (!n--)
			return p;
	}
	return last && param_repeats(last) ? last : NULL;
}

const struct param *param_find(const struct param *list, struct str name)
{
	for (const struct param *p = list; p && p->name; p++)
		if (argument_is(p, name))
			return p;
	return NULL;
}

static const char *param_fault(struct arena *a, struct str text, const char *what)
{
	return arena_printf(a, "'%s': %s", arena_cstr(a, text_cut(a, text_line(a, text), 60)), what)
		.p;
}

static const char *text_fault(const struct param *p, struct str text, struct arena *a)
{
	bool line = p->type != P_TEXT && p->type != P_TITLE && p->type != P_JSON;
	size_t max = p->type == P_TEXT || p->type == P_JSON ? TEXT_MAX
		     : p->type == P_TITLE                   ? TITLE_MAX
							    : NAME_MAX_BYTES;

	if (!text_valid(text))
		return "not valid UTF-8";
	if (text.n > max)
		return arena_printf(a, "%zu bytes long; at most %zu are allowed", text.n, max).p;
	if (!str_trim(text).n && !(p->flags & P_EMPTY) &&
	    (p->flags & (P_REQUIRED | P_FILLED) || p->type != P_TEXT))
		return "may not be empty";
	if (line && (memchr(text.p, '\n', text.n) || memchr(text.p, '\r', text.n)))
		return "must be one line";
	return NULL;
}

static const char *json_fault(struct str text, struct arena *a)
{
	json_error_t e;
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &e);
	bool object = json_is_object(o);

	if (!o)
		return arena_printf(a, "not JSON: %s (line %d, column %d)",
				    arena_cstr(a, text_line(a, str_c(e.text))), e.line, e.column)
			.p;
	json_decref(o);
	return object ? NULL : "not a JSON object, such as {\"key\": \"value\"}";
}

static const char *check_id(const struct param *p, struct str text, struct arena *a)
{
	const char *what = bad_handle_is(text) ? NULL : id_fault(text);

	if (p->flags & P_TYPED && text.n && text.p[0] == '@')
		what = typed_of(text) ? NULL
				      : "the locks of the whole queue are @write, @batch, @config, "
					"@maintenance and @sync";
	return what ? param_fault(a, text, what) : NULL;
}

static const char *set_str(const struct param *p, struct str *at, struct str text, struct arena *a)
{
	const char *what = NULL;

	if (p->flags & P_EMPTY && !text.n)
		what = NULL;
	else if (p->type == P_ID)
		what = check_id(p, text, a);
	else if (p->type == P_TOKEN)
		what = token_valid(text) ? NULL
					 : param_fault(a, text, "not a token; a token is a UUID");
	else
		what = text_fault(p, text, a);
	if (!what && p->type == P_JSON && text.n)
		what = json_fault(text, a);
	if (!what)
		*at = arena_str(a, text);
	return what;
}

static const char *set_choice(const struct param *p, struct str *at, struct str text,
			      struct arena *a)
{
	struct str rest = str_c(p->choices);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (str_eq_nocase(word, text)) {
			*at = word;
			return NULL;
		}
	}
	return param_fault(a, text, arena_printf(a, "not one of: %s", p->choices).p);
}

static const char *status_fault(struct str text, struct arena *a)
{
	static const char what[] =
		"this status does not exist; use Backlog, Ready, In-Progress, Blocked, Needs-Help, Review, Done, Failed or "
		"Canceled";
	return param_fault(a, text, what);
}

#define LIST_MAX 256

static const char *param_append(struct strs *list, struct str item, struct arena *a)
{
	if (list->n >= LIST_MAX)
		return arena_printf(a, "at most %d are allowed", LIST_MAX).p;
	*list = arena_append(a, *list, arena_str(a, item));
	return NULL;
}

/* One item of a list, or the only one. */
static const char *add_item(const struct param *p, void *at, struct str item, struct arena *a)
{
	const char *what;
	enum status s;

	if (p->type == P_STATUSES) {
		s = status_parse(item);
		if (!s)
			return status_fault(item, a);
		*(int64_t *)at |= STATUS_BIT(s);
		return NULL;
	}
	if (p->type == P_IDS)
		what = check_id(p, item, a);
	else /* P_EMPTY applies to the list, not to its items */
		what = item.n ? text_fault(p, item, a) : "may not be empty";
	if (!what && !strs_have(*(struct strs *)at, item))
		what = param_append(at, item, a);
	return what;
}

static const char *set_list(const struct param *p, void *at, struct str text, struct arena *a)
{
	if (p->type == P_WORDS)
		return param_append(at, text, a);
	if (p->flags & P_EMPTY && !text.n)
		return NULL;
	do {
		const char *what = add_item(p, at, str_trim(str_cut(&text, ',')), a);

		if (what)
			return what;
	} while (text.n);
	return NULL;
}

static const char *set_time(const struct param *p, int64_t *at, struct str text, struct arena *a)
{
	static const char what[] =
		"not a time; write 2026-02-06, 2026-02-06 10:30, 2026-02-06T10:30:00Z, tomorrow, friday 17:00 or "
		"in 3 days";
	int64_t now = os_wall_ms();

	*at = 0;
	if (p->flags & P_EMPTY && !text.n)
		return NULL;
	if (!text_valid(text))
		return "not valid UTF-8";
	if (p->type == P_DATE ? when_parse_date(text, now, at, a)
			      : when_parse_words(text, now, at, a))
		return NULL;
	if (p->flags & P_PAST && duration_parse(text, at) && *at <= now) {
		*at = now - *at;
		return NULL;
	}
	return param_fault(a, text, what);
}

static const char *set_int(const struct param *p, int64_t *at, struct str text, struct arena *a)
{
	int64_t max = p->max ? p->max : INT64_MAX;

	if (!str_to_i64(text, at))
		return param_fault(a, text, "not a whole number");
	if (*at >= p->min && *at <= max)
		return NULL;
	if (p->max)
		return param_fault(
			a, text,
			arena_printf(a, "not from %lld to %lld", (long long)p->min, (long long)max)
				.p);
	return param_fault(a, text, arena_printf(a, "not %lld or more", (long long)p->min).p);
}

static const char *set_number(const struct param *p, int64_t *at, struct str text, struct arena *a)
{
	switch (p->type) {
	case P_DURATION:
		if (p->flags & P_OPTIONAL && !text.n) {
			*at = P_FOREVER;
			return NULL;
		}
		if (duration_parse(text, at))
			return NULL;
		return param_fault(
			a, text,
			"not a duration; write 90, 90s, 15m, 2h or 1d (a bare number is seconds)");
	case P_PRIORITY:
		if (priority_parse(text, at))
			return NULL;
		return param_fault(a, text,
				   "a priority is 0 to 1000, or low (1), medium (2), high (3)");
	case P_CLASS:
		*at = class_parse(text);
		return *at ? NULL
			   : param_fault(
				     a, text,
				     "this class does not exist; use Expedite, Fixed-Date, Standard or Intangible");
	case P_STATUS:
		*at = status_parse(text);
		return *at ? NULL : status_fault(text, a);
	case P_TIME:
	case P_DATE:
		return set_time(p, at, text, a);
	default:
		return set_int(p, at, text, a);
	}
}

const char *param_set(void *into, const struct param *p, struct str text, struct arena *a)
{
	struct args *args = into;
	void *at = (char *)into + p->offset;
	const char *what = NULL;

	if (p->type == P_FLAG)
		*(int64_t *)at = 1;
	else if (param_repeats(p))
		what = set_list(p, at, text, a);
	else if (p->type == P_CHOICE)
		what = set_choice(p, at, text, a);
	else if (p->type == P_TEXT || p->type == P_TITLE || p->type == P_NAME || p->type == P_ID ||
		 p->type == P_TOKEN || p->type == P_JSON)
		what = set_str(p, at, text, a);
	else
		what = set_number(p, at, text, a);
	if (!what && p->arg)
		args->rq.has |= UINT64_C(1) << (p->arg - 1);
	return what;
}
