/* Modules; TEST_MODULE_DIR is the folder of those in test/module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/module.h"
#include "store/store.h"

static struct store_error err;
static const struct store_env env = { .mode = STORE_CREATE, .opt.timeout_ms = 1000, .err = &err };

static int use_dir(void **state)
{
	const char *dir = getenv("TEST_MODULE_DIR");

	(void)state;
	if (!dir || dir[0] != '/') {
		print_error("TEST_MODULE_DIR must be an absolute path\n");
		return -1;
	}
	return setenv("PAWL_MODULE_DIR", dir, 1);
}

static void test_loads(void **state)
{
	struct store *s;
	struct record r;
	struct arena a = { 0 };

	(void)state;
	assert_int_equal(store_open(&s, STR("memx:"), &env), 0);
	assert_int_equal(s->ops->get(s, STR("task/x"), &r, &a), 1);
	store_close(s);
	assert_int_equal(store_open(&s, STR("fault+memx:named?fault=get:1"), &env), 0);
	assert_int_equal(s->ops->get(s, STR("task/x"), &r, &a), STORE_IO);
	store_close(s);
	arena_free(&a);
}

static void test_other_interface(void **state)
{
	static const char *const names[] = { "older", "newer" };
	const struct module *m;
	struct store *s;
	char why[300], text[100], uri[20];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(module_load("store", str_c(names[i]), &m, why, sizeof(why)), -1);
		assert_null(m);
		snprintf(text, sizeof(text), "%s pawl (module interface %d, this one has %d)",
			 names[i], i ? MODULE_ABI + 1 : 1, MODULE_ABI);
		assert_non_null(strstr(why, text));
		snprintf(uri, sizeof(uri), "%s:x", names[i]);
		assert_int_equal(store_open(&s, str_c(uri), &env), STORE_UNSUPPORTED);
		assert_non_null(strstr(err.text, text));
		assert_non_null(strstr(err.hint, "install the modules of version " PAWL_VERSION));
	}
}

static void test_no_module(void **state)
{
	const struct module *m;
	char why[200];

	(void)state;
	assert_int_equal(module_load("store", STR("nothing"), &m, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "not a module"));
}

static void test_missing(void **state)
{
	const struct module *m;
	struct store *s;
	char why[200];

	(void)state;
	assert_int_equal(module_load("store", STR("git"), &m, why, sizeof(why)), 1);
	assert_int_equal(store_open(&s, STR("git:origin#pawl"), &env), STORE_UNSUPPORTED);
	assert_non_null(strstr(err.text, "pawl-store-git.so, which is not installed in /"));
	assert_non_null(strstr(err.hint, "make install"));
	assert_int_equal(store_open(&s, STR("nosuch://u:secret@h/db"), &env), STORE_UNSUPPORTED);
	assert_non_null(strstr(err.text, "'nosuch' is not a store"));
	assert_null(strstr(err.text, "secret"));
}

static void test_names(void **state)
{
	static const char *const bad[] = { "", "../memx", "/etc", "Memx", "mem-x", "1mem", "a.b" };
	const struct module *m;
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(module_load("store", str_c(bad[i]), &m, why, sizeof(why)), 1);
}

static void test_relative_dir(void **state)
{
	const struct module *m;
	char why[200], module[500];

	assert_non_null(folder_enter(state));
	snprintf(module, sizeof(module), "%s/pawl-store-memx.so", getenv("TEST_MODULE_DIR"));
	assert_int_equal(symlink(module, "pawl-store-here.so"), 0);
	setenv("PAWL_MODULE_DIR", ".", 1);
	assert_int_equal(module_dir()[0], '/');
	assert_int_equal(module_load("store", STR("here"), &m, why, sizeof(why)), 1);
	setenv("PAWL_MODULE_DIR", "", 1);
	assert_int_equal(module_load("store", STR("here"), &m, why, sizeof(why)), 1);
	assert_int_equal(folder_leave(state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_loads, use_dir),
		cmocka_unit_test_setup(test_other_interface, use_dir),
		cmocka_unit_test_setup(test_no_module, use_dir),
		cmocka_unit_test_setup(test_missing, use_dir),
		cmocka_unit_test_setup(test_names, use_dir),
		cmocka_unit_test_setup(test_relative_dir, use_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
