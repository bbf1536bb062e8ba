/* The list of sessions that their MCP clients ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "face/serve/mcp_http.h"

static const struct session_owner ann = { STR("hash"), STR("ann"), STR("default") };

/* Is a session with this run found? */
static bool goes_on(struct session_ids *v, struct str run)
{
	struct arena a = { 0 };
	struct session_id out;
	struct str id = session_id_make(v, &ann, run, "2025-11-25", &a);
	bool found = session_id_find(v, &ann, id, &out, &a);

	arena_free(&a);
	return found;
}

static void test_ended_in_memory(void **state)
{
	struct session_ids v = { 0 };
	struct arena a = { 0 };
	struct str run;

	(void)state;
	assert_int_equal(session_ids_open(&v, NULL), 0);
	for (int i = 0; i < 5; i++) {
		run = session_id_begin(&a);
		assert_true(goes_on(&v, run));
		assert_int_equal(session_id_end(&v, run), 0);
		assert_false(goes_on(&v, run));
	}
	arena_free(&a);
	session_ids_close(&v);
}

/* A server without a state folder must not grow with the number of sessions. The runs are long: few of them suffice. */
static void test_memory_is_bounded(void **state)
{
	struct session_ids v = { 0 };
	struct arena a = { 0 };
	char *text = arena_alloc(&a, 100000);
	struct str run = session_id_begin(&a);

	(void)state;
	memset(text, 'r', 100000);
	assert_int_equal(session_ids_open(&v, NULL), 0);
	for (int i = 0; i < 60; i++)
		assert_int_equal(session_id_end(&v, str_n(text, 100000)), 0);
	assert_int_equal(session_id_end(&v, run), 0);
	assert_in_range(v.ended.n, 1, 4u << 20);
	assert_false(goes_on(&v, run));
	arena_free(&a);
	session_ids_close(&v);
}

/* The last line of the file may be cut off: the disk was full, or the machine lost power. */
static void test_torn_file(void **state)
{
	struct session_ids v = { 0 };
	struct arena a = { 0 };
	char dir[] = "/tmp/pawl-session-id.XXXXXX";
	struct str first = session_id_begin(&a), second = session_id_begin(&a);

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(session_ids_open(&v, dir), 0);
	assert_int_equal(
		fs_write_atomic(v.ended_file, arena_printf(&a, "%.*s 17", STRF(first)), 0600), 0);
	assert_true(goes_on(&v, second));
	assert_int_equal(session_id_end(&v, second), 0);
	assert_false(goes_on(&v, second));
	assert_int_equal(unlink(v.ended_file), 0);
	assert_int_equal(unlink(fs_join(&a, str_c(dir), STR("mcp-key"))), 0);
	assert_int_equal(rmdir(dir), 0);
	arena_free(&a);
	session_ids_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended_in_memory),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_torn_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
