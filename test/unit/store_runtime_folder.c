/* The private runtime folder of a user's processes: a folder that others can read or replace is not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "kit/folder.h"
#include "kit/skip.h"
#include "store/local/runtime_folder.h"

#define NOBODY 65534

static struct arena arena;
static char top[FOLDER_PATH + 20], ours[FOLDER_PATH + 40];

static int begin(void **state)
{
	const char *dir = folder_enter(state);

	if (!dir)
		return -1;
	snprintf(top, sizeof(top), "%s/run", dir);
	snprintf(ours, sizeof(ours), "%s/pawl", top);
	setenv("XDG_RUNTIME_DIR", top, 1);
	return mkdir(top, 0700);
}

static int end(void **state)
{
	arena_free(&arena);
	return folder_leave(state);
}

/* Is the folder below $XDG_RUNTIME_DIR used? If not, there is another one, or none. */
static bool used(void)
{
	struct stat like;
	const char *path = runtime_folder_path(&arena, STR("name"), &like);

	assert_true(!path || str_ends(str_c(path), STR("/name")));
	assert_int_equal(like.st_mode, 0600);
	return path && str_starts(str_c(path), str_c(top));
}

static void test_made(void **state)
{
	struct stat st;

	(void)state;
	assert_true(used());
	assert_int_equal(stat(ours, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(used());
}

static void test_modes(void **state)
{
	(void)state;
	assert_true(used());
	assert_int_equal(chmod(ours, 0750), 0);
	assert_false(used());
	assert_int_equal(chmod(ours, 0701), 0);
	assert_false(used());
	assert_int_equal(chmod(ours, 0700), 0);
	assert_int_equal(chmod(top, 0770), 0);
	assert_false(used());
	assert_int_equal(chmod(top, 01777), 0);
	assert_false(used());
	assert_int_equal(chmod(top, 0755), 0);
	assert_true(used());
}

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(mkdir("elsewhere", 0700), 0);
	assert_int_equal(symlink("../elsewhere", "run/pawl"), 0);
	assert_false(used());
	assert_int_equal(unlink("run/pawl"), 0);
	assert_true(used());
	assert_int_equal(rename("run", "real"), 0);
	assert_int_equal(symlink("real", "run"), 0);
	assert_false(used());
}

static void test_not_a_folder(void **state)
{
	FILE *f = fopen("run/pawl", "w");

	(void)state;
	assert_non_null(f);
	fclose(f);
	assert_false(used());
	setenv("XDG_RUNTIME_DIR", "run", 1); /* relative */
	assert_false(used());
	setenv("XDG_RUNTIME_DIR", "/there/is/none", 1);
	assert_false(used());
}

static void test_another_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("needs root to become another user");
	assert_true(used());
	assert_int_equal(chown(ours, NOBODY, NOBODY), 0);
	assert_false(used());
	assert_int_equal(chown(ours, 0, 0), 0);
	assert_int_equal(chown(top, NOBODY, NOBODY), 0);
	assert_false(used());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
		T(test_made),         T(test_modes),        T(test_links),
		T(test_not_a_folder), T(test_another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
