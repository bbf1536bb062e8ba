/*
 * The text of an answer, made from its object. Some clients show a model only the object, others only the text, so
 * the text says the same. Texts by others are quoted line by line: they cannot look like ours.
 */
#include "face/mcp/mcp.h"

#include "base/text.h"

static void put_lines(struct buf *b, const char *name, struct str text)
{
	buf_addf(b, "%s:\n", name);
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		buf_adds(b, STR("> "));
		text_visible(b, line, false);
		buf_addc(b, '\n');
	}
}

static void put_scalar(struct buf *b, const json_t *v)
{
	char *text = json_is_string(v) ? NULL
				       : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY |
							       JSON_REAL_PRECISION(15));

	text_visible(b, text ? str_c(text) : json_text(v), false);
	free(text);
}

static bool one_of(const char *key, const char *const *names)
{
	while (*names && strcmp(*names, key) != 0)
		names++;
	return *names;
}

/* A small object on one line: "t1 Ready: Fix it", "fence 1, expires_in 900". */
static void put_row(struct buf *b, const json_t *o)
{
	static const char *const bare[] = { "id", "task", "status", "event", NULL },
				 *const last[] = { "title", "text", NULL };
	const json_t *v, *text = NULL;
	const char *key, *between = "";

	json_object_foreach((json_t *)o, key, v) {
		if (one_of(key, last)) {
			text = v;
			continue;
		}
		buf_adds(b, str_c(between));
		if (!one_of(key, bare))
			buf_addf(b, "%s ", key);
		put_scalar(b, v);
		between = one_of(key, bare) ? " " : ", ";
	}
	if (!text)
		return;
	buf_adds(b, str_c(*between ? ": " : ""));
	put_scalar(b, text);
}

static void put_list(struct buf *b, const char *key, const json_t *list)
{
	static const char *const steps[] = { "call_next", "warnings", NULL };
	const json_t *v;
	size_t i;

	if (!json_array_size(list))
		return;
	buf_addf(b, "%s:", key);
	json_array_foreach(list, i, v) {
		if (json_is_object(v)) {
			buf_adds(b, STR("\n> "));
			put_row(b, v);
		} else {
			buf_adds(b, one_of(key, steps) ? STR("\n- ") : i ? STR(", ") : STR(" "));
			put_scalar(b, v);
		}
	}
	buf_addc(b, '\n');
}

static void put_members(struct buf *b, const json_t *o);

/* The first line: the result in a few words. */
static void put_head(struct buf *b, const json_t *o)
{
	const json_t *task = json_object_get(o, "task"), *lock = json_object_get(o, "lock");
	struct str code = json_get(o, "code");

	if (code.n && !str_is(code, result_name(SUCCESS))) {
		text_visible(b, code, false);
		buf_addc(b, '\n');
	}
	if (json_is_object(task) && lock && json_object_get(o, "call_next"))
		buf_addf(b, "You hold %.*s (fence %lld).\n", STRF(json_get(task, "id")),
			 (long long)json_integer_value(json_object_get(lock, "fence")));
}

static void put_member(struct buf *b, const char *key, const json_t *v)
{
	static const char *const lines[] = { "description",
					     "acceptance",
					     "summary",
					     "blocker_reason",
					     "unblock_action",
					     "last_reason",
					     NULL },
				 *const parts[] = { "next", "came_back", NULL };

	if (json_is_null(v)) {
		buf_adds(b,
			 !strcmp(key, "next") ? STR("next: no task is eligible now\n") : STR(""));
	} else if (json_is_array(v)) {
		put_list(b, key, v);
	} else if (!strcmp(key, "task") && json_object_get(v, "title")) {
		put_members(b, v); /* the task of the answer */
	} else if (json_is_object(v) && one_of(key, parts)) {
		buf_addf(b, "%s:\n", key);
		put_head(b, v);
		put_members(b, v);
	} else if (json_is_string(v) && one_of(key, lines)) {
		put_lines(b, key, json_text(v));
	} else {
		buf_addf(b, "%s: ", key);
		if (json_is_object(v))
			put_row(b, v);
		else
			put_scalar(b, v);
		buf_addc(b, '\n');
	}
}

static void put_members(struct buf *b, const json_t *o)
{
	static const char *const shown[] = { "ok", "untrusted", "error", "code", NULL };
	const json_t *v;
	const char *key;

	json_object_foreach((json_t *)o, key, v)
		if (!one_of(key, shown))
			put_member(b, key, v);
}

static void put_error(struct buf *b, const json_t *error)
{
	struct str hint = json_get(error, "hint");

	text_visible(b, json_get(error, "code"), false);
	buf_adds(b, STR(": "));
	text_visible(b, json_get(error, "message"), false);
	buf_addc(b, '\n');
	if (!hint.n)
		return;
	buf_adds(b, STR("hint: "));
	text_visible(b, hint, false);
	buf_addc(b, '\n');
}

struct str say_text(const json_t *o, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str text;

	if (json_object_get(o, "error"))
		put_error(&b, json_object_get(o, "error"));
	put_head(&b, o);
	if (json_object_get(o, "untrusted")) {
		buf_adds(&b, json_get(o, "untrusted"));
		buf_addc(&b, '\n');
	}
	put_members(&b, o);
	if (!b.n)
		buf_adds(&b, STR("done\n"));
	text = arena_str(a, buf_str(&b));
	buf_free(&b);
	return text;
}
