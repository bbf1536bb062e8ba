#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/fs.h"

/* Each test runs in its own folder, with a store and a folder beside it. */
static int enter(void **state)
{
	if (!folder_enter(state))
		return -1;
	assert_int_equal(mkdir("store", 0700), 0);
	assert_int_equal(mkdir("store/sub", 0700), 0);
	assert_int_equal(mkdir("other", 0700), 0);
	assert_int_equal(fs_write_atomic("store/sub/file", STR("ours"), 0600), 0);
	assert_int_equal(fs_write_atomic("other/file", STR("theirs"), 0600), 0);
	return 0;
}

static int store(void)
{
	int dir = beneath_dir("store", "");

	assert_true(dir >= 0);
	return dir;
}

/* The result of beneath_open for PATH below the store; closes the descriptor. */
static int opened(const char *path, int flags)
{
	int dir = store(), fd = beneath_open(dir, path, flags, 0600);

	close(dir);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void opens_and_makes_files(void **state)
{
	(void)state;
	assert_int_equal(opened("sub/file", O_RDONLY), 0);
	assert_int_equal(opened("sub//file", O_RDWR), 0);
	assert_int_equal(opened("sub/new", O_RDWR | O_CREAT | O_EXCL), 0);
	assert_int_equal(opened("sub/new", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
	assert_int_equal(opened("sub", O_RDONLY | O_DIRECTORY), 0);
	assert_int_equal(opened("sub/none", O_RDONLY), -ENOENT);
	assert_int_equal(opened("none/file", O_RDONLY), -ENOENT);
	assert_int_equal(opened("sub/file/x", O_RDONLY), -ENOTDIR);
	assert_int_equal(opened("", O_RDONLY), -ENOENT);
}

static void refuses_links(void **state)
{
	(void)state;
	assert_int_equal(symlink("../other/file", "store/link"), 0);
	assert_int_equal(symlink("../other", "store/folder"), 0);
	assert_int_equal(symlink("../other/made", "store/dangling"), 0);
	assert_int_equal(symlink("sub/file", "store/inside"), 0);
	assert_int_equal(opened("link", O_RDONLY), -ELOOP);
	assert_int_equal(opened("link", O_WRONLY | O_TRUNC), -ELOOP);
	assert_int_equal(opened("inside", O_RDONLY), -ELOOP);
	assert_int_equal(opened("folder/file", O_RDONLY), -ELOOP);
	assert_int_equal(opened("folder", O_RDONLY | O_DIRECTORY), -ELOOP);
	assert_int_equal(opened("dangling", O_WRONLY | O_CREAT), -ELOOP);
	assert_false(fs_exists("other/made"));
	assert_int_equal(beneath_dir("store", "folder"), -ELOOP);
}

static void refuses_ways_out(void **state)
{
	(void)state;
	assert_int_equal(opened("../other/file", O_RDONLY), -EXDEV);
	assert_int_equal(opened("sub/../../other/file", O_RDONLY), -EXDEV);
	assert_int_equal(opened("sub/..", O_RDONLY | O_DIRECTORY), -EXDEV);
	assert_int_equal(opened("/etc/passwd", O_RDONLY), -EXDEV);
}

static void refuses_what_is_not_a_file(void **state)
{
	char name[300];

	(void)state;
	assert_int_equal(mkfifo("store/fifo", 0600), 0);
	assert_int_equal(opened("fifo", O_RDONLY), -EINVAL);
	assert_int_equal(opened("fifo", O_WRONLY), -EINVAL);
	assert_int_equal(opened("fifo", O_RDWR), -EINVAL);
	assert_int_equal(opened("sub", O_RDONLY), -EINVAL);
	assert_int_equal(opened("sub", O_WRONLY), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	assert_int_equal(opened(name, O_RDONLY), -ENAMETOOLONG);
}

static void the_root_may_be_a_link(void **state)
{
	int dir;

	(void)state;
	assert_int_equal(symlink("store", "way"), 0);
	dir = beneath_dir("way", "sub");
	assert_true(dir >= 0);
	assert_int_equal(faccessat(dir, "file", R_OK, 0), 0);
	close(dir);
	assert_int_equal(beneath_dir("none", ""), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opens_and_makes_files, enter, folder_leave),
		cmocka_unit_test_setup_teardown(refuses_links, enter, folder_leave),
		cmocka_unit_test_setup_teardown(refuses_ways_out, enter, folder_leave),
		cmocka_unit_test_setup_teardown(refuses_what_is_not_a_file, enter, folder_leave),
		cmocka_unit_test_setup_teardown(the_root_may_be_a_link, enter, folder_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
