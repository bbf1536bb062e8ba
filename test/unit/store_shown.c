/* URIs for people: no part of a password is shown, however the URI is malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "store/store.h"

static struct arena arena;

static void check(const char *uri, const char *shown)
{
	struct str got = uri_shown(&arena, str_c(uri));

	if (!str_is(got, shown))
		fail_msg("%s is shown as %.*s, not as %s", uri, STRF(got), shown);
}

static void test_clear(void **state)
{
	static const char *const uris[][2] = {
		{ "postgres://h/db", "postgres://h/db" },
		{ "postgres://", "postgres://" },
		{ "postgres://u@h:5432/db?queue=q&schema=s", NULL },
		{ "postgres://u:secret@h/db", "postgres://u@h/db" },
		{ "postgresql://u:secret@h:1,[::1]:2,h3/db?sslmode=require",
		  "postgresql://u@h:1,[::1]:2,h3/db?sslmode=require" },
		{ "fault+postgres://u:sec%40ret@h/db", "fault+postgres://u@h/db" },
		{ "postgres://u%40x:sec%2Fret%3A@h/db", "postgres://u%40x@h/db" },
		{ "postgres://u:s:e:c@h/db", "postgres://u@h/db" },
		{ "postgres://:secret@h/db", "postgres://@h/db" },
		{ "postgres://u@%2Fvar%2Frun%40x/db", NULL },
		{ "postgres://u@h/db?password=secret&queue=q", "postgres://u@h/db?queue=q" },
		{ "postgres://u@h/db?pass%77ord=secret", "postgres://u@h/db" },
		{ "postgres://u@h/db?PASSWORD=secret", "postgres://u@h/db" },
		{ "postgres://u@h/db?sslpassword=secret&host=x", "postgres://u@h/db?host=x" },
		{ "postgres://u@h/db?password=sec&ret=x", "postgres://u@h/db" },
		{ "postgres://u@h/db?dbname=host%3Dx%20password%3Dsecret", "postgres://u@h/db" },
		{ "postgres://u@h/db?host=sec%40ret&queue=q", "postgres://u@h/db?queue=q" },
		{ "postgres://?service=s", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++) {
		check(uris[i][0], uris[i][1] ? uris[i][1] : uris[i][0]);
		assert_true(uri_is_clear(str_c(uris[i][0])));
	}
}

/* An unquoted '@', '/', '?', '#', ':' or '[' in a password, also half quoted. */
static void test_unclear(void **state)
{
	static const char *const uris[] = {
		"postgres://u:sec@ret@h/db",
		"postgres://u:sec/ret@h/db",
		"postgres://u:12/34@h/db",
		"postgres://u:sec?ret@h/db",
		"postgres://u:12?34@h/db",
		"postgres://u:12?host=34@h/db",
		"postgres://u:sec/r?et@h/db",
		"postgres://u:sec@r?et@h/db",
		"postgres://u:12#34@h/db",
		"postgres://u:sec#ret@h/db",
		"postgres://u:sec@r/et@h/db",
		"postgres://u:secret/h/db",
		"postgres://u:secret%40h/db",
		"postgres://u%3Asecret%40h/db",
		"postgres://u%3asecret@h/db",
		"postgres://u:12/34%40h/db",
		"postgres://u:12/34%40h",
		"postgres://u:[12]sec@ret@h/db",
		"postgres://[secret]/db",
		"postgres://u@h/db?queue=q;password=secret",
		"postgres:u:secret@h/db",
		"postgres:/u:secret@h/db",
		"postgres//u:secret@h/db",
		"postgres:host=h password=secret",
		"postgres://host=h password=secret",
		"postgres://u@h/password=secret",
		"postgres:host=h://password=secret",
		"POSTGRES://u:sec/ret@h/db",
		"postgress://u:sec/ret@h/db",
		"fault+postgresql://u:sec/ret@h/db",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++) {
		check(uris[i], "postgres://…");
		assert_false(uri_is_clear(str_c(uris[i])));
	}
}

static void test_others(void **state)
{
	static const char *const uris[][2] = {
		{ "host=h password=secret", "…" },
		{ "u:secret@h/db", "…" },
		{ "fault+u:secret@h/db", "…" },
		{ "u@h:secret", "…" },
		{ "nonsense", "nonsense" },
		{ "sqlite:/home/a@b/password/q.db", "sqlite:/home/a@b/password/q.db" },
		{ "fault+files:/a@b", "fault+files:/a@b" },
		{ "git:git@host:path", "git:git@host:path" },
		{ "git:ssh://git:secret@host/path", "git:ssh://git@host/path" },
		{ "https://key@host/path", "https://host/path" },
		{ "https://host/path", "https://host/path" },
		{ "https://to/ken@host", "https://…" },
		{ "https://key@h/path@v1", "https://…" },
		{ "git:https://u:p/w@host", "git:https://…" },
		{ "git:ssh://git:se/cret@host/path", "git:ssh://…" },
		{ "git:https://u:p/w?x@host", "git:https://…" },
		{ "git:file:///home/a@b", "git:file:///home/a@b" },
		{ "files:///home/a@b", "files:///home/a@b" },
		{ "pawl:one", "pawl:one" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++)
		check(uris[i][0], uris[i][1]);
}

static int end(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_clear, end),
		cmocka_unit_test_teardown(test_unclear, end),
		cmocka_unit_test_teardown(test_others, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
