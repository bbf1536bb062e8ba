/* Other programs' files, with comments or without: an entry that was put in can be replaced and taken out, and
 * everything else stays the same to the byte. */
#include "kit.h"
#include "format/json.h"
#include "format/section.h"

static const struct json_place places[] = {
	{ { "mcpServers", "pawl" }, false },
	{ { "hooks", "PostToolUse" }, true },
	{ { "hooks", "SessionEnd" }, true },
	{ { "a", "b", "c" }, true },
};

#define PLACES (sizeof(places) / sizeof(*places))

static json_t *value_of(size_t i)
{
	return json_pack("{s:s, s:[s, i]}", "command", "pawl", "args", "}],\n", (int)i);
}

/* The text as a client reads it. */
static json_t *read_by_client(struct str text, struct arena *a)
{
	struct json_doc d;

	CHECK(!json_scan(text, &d, a));
	return json_loadb(d.strict, text.n, 0, NULL);
}

/* The comments, with a zero byte after each. */
static struct str notes_of(struct str text, struct arena *a)
{
	struct json_doc d;
	char *out = arena_alloc(a, text.n * 2 + 1);
	size_t n = 0;

	CHECK(!json_scan(text, &d, a));
	for (size_t i = 0; i < text.n; i++) {
		if (json_is_note(d.map[i]) && d.strict[i] != d.map[i])
			out[n++] = text.p[i];
		else if (n && out[n - 1])
			out[n++] = '\0';
	}
	return str_n(out, n);
}

/* Does `has` contain all of `was`, in its order? An array may have more at its end. */
static bool kept(json_t *was, json_t *has)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_object(was) && json_is_object(has)) {
		json_object_foreach(was, key, v)
			if (!kept(v, json_object_get(has, key)))
				return false;
		return true;
	}
	if (json_is_array(was) && json_is_array(has)) {
		json_array_foreach(was, i, v)
			if (!json_equal(v, json_array_get(has, i)))
				return false;
		return true;
	}
	return json_equal(was, has);
}

static void check_kept(struct str was, struct str has, struct arena *a)
{
	json_t *x = read_by_client(was, a), *y = read_by_client(has, a);

	CHECK(x && y && kept(x, y));
	CHECK(str_eq(notes_of(was, a), notes_of(has, a)));
	json_decref(x);
	json_decref(y);
}

static struct str put_in(struct str text, size_t i, bool *in, struct arena *a)
{
	json_t *v = value_of(i), *other = value_of(i + PLACES);
	struct str now = text, changed;
	enum text_change r = json_text_add(text, &places[i], v, &now, a);

	*in = r == TEXT_CHANGED;
	if (*in) {
		check_kept(text, now, a);
		CHECK(json_text_add(now, &places[i], v, &now, a) == TEXT_SAME);
		CHECK(json_text_replace(now, &places[i], v, other, &changed, a) == TEXT_CHANGED);
		check_kept(text, changed, a);
		CHECK(json_text_replace(changed, &places[i], other, v, &changed, a) ==
		      TEXT_CHANGED);
		CHECK(str_eq(changed, now));
	}
	json_decref(v);
	json_decref(other);
	return now;
}

/* Puts in every entry that fits, one after the other; then takes them out, in the same order or the
 * reverse. */
static void check_json(struct str text, bool backwards, struct arena *a)
{
	bool in[PLACES] = { false };
	struct str now = text;

	for (size_t i = 0; i < PLACES; i++)
		now = put_in(now, i, &in[i], a);
	for (size_t k = 0; k < PLACES; k++) {
		size_t i = backwards ? PLACES - 1 - k : k;
		json_t *v = value_of(i);

		if (in[i])
			CHECK(json_text_remove(now, &places[i], v, &now, a) == TEXT_CHANGED);
		json_decref(v);
	}
	CHECK(str_eq(now, text));
}

/* Taking out an entry that somebody else wrote leaves a file that clients can read, with its comments. */
static void check_remove(struct str text, struct arena *a)
{
	static const struct json_place at = { { "a", "b" }, false };
	json_t *v = json_text_get(text, &at);
	struct str now;

	if (v && json_text_remove(text, &at, v, &now, a) == TEXT_CHANGED) {
		json_t *left = json_text_get(now, &at);

		CHECK(!left && !json_text_fault(now, a));
		CHECK(notes_of(now, a).n <= notes_of(text, a).n);
	}
	json_decref(v);
}

static void check_section(struct str text, struct arena *a)
{
	static const struct section s = { "<<", ">>", "<< begin\n\nwhat\n>> end\n" };
	struct str with, without;

	if (section_remove(text, &s, &without, a) != TEXT_SAME)
		return; /* the text has an entry already, or a part of one */
	CHECK(section_add(text, true, &s, &with, a) == TEXT_CHANGED);
	CHECK(section_add(with, true, &s, &without, a) == TEXT_SAME);
	CHECK(section_remove(with, &s, &without, a) == TEXT_CHANGED);
	CHECK(str_eq(without, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = arena_str(&a, str_n((const char *)data, size));

	if (memchr(text.p, '\0', text.n))
		return arena_free(&a), 0;
	check_section(text, &a);
	if (!json_text_fault(text, &a)) {
		check_json(text, false, &a);
		check_json(text, true, &a);
		check_remove(text, &a);
	}
	arena_free(&a);
	return 0;
}
