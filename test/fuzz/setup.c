/* Other programs' files: an entry that was put in can be taken out, and everything else stays the
 * same to the byte. */
#include "kit.h"
#include "format/json_text.h"
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

/* Puts in every entry that fits, one after the other; then takes them out, in the same order or the
 * reverse. */
static void check_json(struct str text, bool backwards, struct arena *a)
{
	bool in[PLACES] = { false };
	struct str now = text;

	for (size_t i = 0; i < PLACES; i++) {
		json_t *v = value_of(i);

		in[i] = json_text_add(now, &places[i], v, &now, a) == TEXT_CHANGED;
		CHECK(!json_text_fault(now, a));
		CHECK(!in[i] || json_text_add(now, &places[i], v, &now, a) == TEXT_SAME);
		json_decref(v);
	}
	for (size_t k = 0; k < PLACES; k++) {
		size_t i = backwards ? PLACES - 1 - k : k;
		json_t *v = value_of(i);

		if (in[i])
			CHECK(json_text_remove(now, &places[i], v, &now, a) == TEXT_CHANGED);
		json_decref(v);
	}
	CHECK(str_eq(now, text));
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
	}
	arena_free(&a);
	return 0;
}
