/* Tokens of callers over the network: names, files and times. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "client/bearer.h"

static struct arena mem;
static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/pawl-bearer-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "tokens", "uses", "lock" };
	int r;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		(void)remove(fs_join(&mem, str_c(dir), str_c(names[i])));
	r = remove(dir);
	arena_free(&mem);
	mem = (struct arena){ 0 };
	return r;
}

static bool names(const char *pattern, const char *agent)
{
	struct bearer b = { .agent = str_c(pattern) };

	return bearer_names(&b, str_c(agent));
}

static void patterns(void **state)
{
	(void)state;
	assert_true(names("al", "al"));
	assert_false(names("al", "all"));
	assert_false(names("al", "a"));
	assert_false(names("al", ""));
	assert_true(names("*", ""));
	assert_true(names("*", "anything at all"));
	assert_true(names("ci-*", "ci-"));
	assert_true(names("ci-*", "ci-7"));
	assert_false(names("ci-*", "xci-7"));
	assert_true(names("*-ci", "a-ci-ci"));
	assert_false(names("*-ci", "a-ci-c"));
	assert_true(names("a*b*c", "aXbbXc"));
	assert_false(names("a*b*c", "aXcXb"));
	assert_false(names("a?", "ab"));
}

static struct bearer made(const char *name, struct str *secret)
{
	struct bearer b = {
		.name = str_c(name), .agent = str_c(name), .role = ROLE_AGENT, .created = 5
	};

	assert_int_equal(bearer_add(dir, &b, secret, &mem), 0);
	return b;
}

static void kept(void **state)
{
	struct str a, b;
	struct bearers list;
	const struct bearer *found;

	(void)state;
	assert_int_equal(bearer_load(dir, &list, &mem), 0);
	assert_int_equal(list.n, 0);
	made("a", &a);
	made("b", &b);
	assert_int_equal(bearer_load(dir, &list, &mem), 0);
	assert_int_equal(list.n, 2);
	found = bearer_find(&list, b, &mem);
	assert_non_null(found);
	assert_true(str_is(found->name, "b"));
	assert_null(bearer_find(&list, STR("pawl_"), &mem));
	assert_null(bearer_find(&list, found->hash, &mem)); /* the hash is not the token */
	assert_int_equal(bearer_add(dir, found, &a, &mem), -EEXIST);
	assert_int_equal(bearer_remove(dir, STR("b"), &mem), 0);
	assert_int_equal(bearer_remove(dir, STR("b"), &mem), -ENOENT);
	assert_int_equal(bearer_load(dir, &list, &mem), 0);
	assert_null(bearer_find(&list, b, &mem));
}

static void uses(void **state)
{
	struct bearers list;
	struct str secret;

	(void)state;
	made("a", &secret);
	assert_int_equal(bearer_load(dir, &list, &mem), 0);
	assert_int_equal(list.v[0].used, 0);
	list.v[0].used = 77;
	assert_int_equal(bearer_note_uses(dir, &list, &mem), 0);
	assert_int_equal(bearer_load(dir, &list, &mem), 0);
	assert_int_equal(list.v[0].used, 77);
}

static void expiry(void **state)
{
	struct bearer b = { 0 };

	(void)state;
	assert_false(bearer_expired(&b, INT64_MAX));
	b.expires = 10;
	assert_false(bearer_expired(&b, 9));
	assert_true(bearer_expired(&b, 10));
}

static void hostile_files(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"tokens\":{}}",
		"{\"tokens\":[1]}",
		"{\"tokens\":[{\"name\":\"a\",\"sha256\":\"x\",\"agent\":\"a\",\"role\":\"admin\"}]}",
		"{\"tokens\":[{\"name\":\"a\",\"sha256\":"
		"\"0123456789012345678901234567890123456789012345678901234567890123\","
		"\"agent\":\"a\",\"role\":\"root\"}]}",
	};
	char *path = bearer_file(dir, &mem);
	struct bearers list;
	struct str secret;
	struct bearer b;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(fs_write_atomic(path, str_c(bad[i]), 0600), 0);
		assert_int_equal(bearer_load(dir, &list, &mem), -EBADMSG);
		assert_int_equal(list.n, 0);
	}
	assert_int_equal(remove(path), 0);
	b = made("a", &secret);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(bearer_load(dir, &list, &mem), -EPERM);
	assert_int_equal(bearer_add(dir, &b, &secret, &mem), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test_setup_teardown(kept, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(uses, make_dir, remove_dir),
		cmocka_unit_test(expiry),
		cmocka_unit_test_setup_teardown(hostile_files, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
