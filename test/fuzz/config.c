/*
 * Configuration files. The input: a setting (one byte), a value for it up to the first newline, and
 * the file to write it into.
 */
#include "kit.h"
#include "base/fs.h"
#include "base/text.h"
#include "format/ini.h"
#include "client/settings.h"

extern char **environ;

static const char *dir;
static char file[128];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *none[] = { NULL };

	(void)argc, (void)argv;
	dir = fuzz_dir();
	snprintf(file, sizeof(file), "%s/config", dir);
	environ = none;
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	return 0;
}

/* --- lines -------------------------------------------------------------------------------------- */

static void check_line(void *ctx, int line, struct str name, struct str value)
{
	int *last = ctx;

	CHECK(line > *last);
	*last = line;
	CHECK(name.n < (size_t)2 * INI_LINE_MAX && value.n <= INI_LINE_MAX);
	CHECK(!memchr(str_p(value), '\n', value.n) && !memchr(str_p(name), '\n', name.n));
	CHECK(str_trim(value).n == value.n);
}

static void check_lines(struct str text)
{
	int last = 0, lines = 1, bad;

	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	bad = ini_file_each(text, check_line, &last);
	CHECK(bad >= 0 && bad <= lines && last <= lines);
}

/* --- settings ----------------------------------------------------------------------------------- */

static bool load(struct settings *s, struct arena *a)
{
	struct answer ans = { 0 };
	enum result r = settings_load(s, dir, &ans, a);
	struct policy p;

	if (r != SUCCESS) {
		CHECK(r == MISCONFIGURED && ans.message.n);
		CHECK(fuzz_harmless(ans.message) && fuzz_harmless(ans.hint));
		return false;
	}
	settings_policy(s, &p);
	CHECK(p.lease_min > 0 && p.lease_min <= p.lease && p.lease <= p.lease_max);
	CHECK(p.lock_ttl > 0 && p.max_abandoned >= 0);
	for (const struct setting *set = settings_list; set->name; set++)
		CHECK(text_valid(settings_text(s, set->name)));
	return true;
}

/* Settings that were read and written again read the same. */
static void check_again(const struct settings *s, struct arena *a)
{
	struct buf b = BUF_MAX(64 * 1024);
	struct settings again = { 0 };

	for (const struct setting *set = settings_list; set->name; set++) {
		struct str value = settings_text(s, set->name);

		if (strlen(set->name) + 1 + value.n > INI_LINE_MAX) {
			buf_free(&b); /* it was in a section, in which its name is shorter */
			return;
		}
		if (!str_is(value, set->def)) /* the value can be empty */
			buf_addf(&b, "%s=%.*s\n", set->name, STRF(value));
	}
	fuzz_write(file, buf_str(&b));
	buf_free(&b);
	CHECK(load(&again, a));
	for (const struct setting *set = settings_list; set->name; set++)
		CHECK(str_eq(settings_text(s, set->name), settings_text(&again, set->name)));
}

static void check_others(const struct settings *before, const struct settings *after,
			 const struct setting *but)
{
	for (const struct setting *set = settings_list; set->name; set++)
		if (set != but)
			CHECK(str_eq(settings_text(before, set->name),
				     settings_text(after, set->name)));
}

static bool is_lease(const struct setting *set)
{
	return str_starts(str_c(set->name), STR("lease")) || !strcmp(set->name, "lock.ttl");
}

/* The file now has the value and is otherwise unchanged; after removal the value is gone. */
static void check_write(const struct setting *set, struct str value, const struct settings *before,
			bool sound, struct arena *a)
{
	struct answer ans = { 0 };
	enum result r = settings_write(file, str_c(set->name), &value, &ans, a);
	struct settings s = { 0 };

	if (r != SUCCESS) {
		CHECK(r == USAGE && ans.message.n && fuzz_harmless(ans.message));
		return;
	}
	/* leases that contradict each other are the only fault it cannot detect */
	if (load(&s, a)) {
		CHECK(str_eq(settings_text(&s, set->name), value));
		if (sound)
			check_others(before, &s, set);
	} else {
		CHECK(!sound || is_lease(set));
	}
	CHECK(settings_write(file, str_c(set->name), NULL, &ans, a) == SUCCESS);
	if (load(&s, a)) {
		CHECK(str_is(settings_text(&s, set->name), set->def));
		if (sound)
			check_others(before, &s, set);
	} else {
		CHECK(!sound || is_lease(set));
	}
}

static size_t count_settings(void)
{
	size_t n = 0;

	while (settings_list[n].name)
		n++;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text, value;
	struct settings s = { 0 };
	bool sound;

	if (!size)
		return 0;
	text = str_n((const char *)data + 1, size - 1);
	value = str_cut(&text, '\n');
	check_lines(text);
	fuzz_write(file, text);
	sound = load(&s, &a);
	check_write(&settings_list[data[0] % count_settings()], value, &s, sound, &a);
	if (sound)
		check_again(&s, &a);
	arena_free(&a);
	return 0;
}
