#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "kit/skip.h"
#include "base/fs.h"
#include "client/place.h"

static struct arena arena;
static struct answer ans;
static struct place p;
static const char *top;

static int enter(void **state)
{
	top = folder_enter(state);
	return top ? 0 : -1;
}

static int leave(void **state)
{
	int r = folder_leave(state);

	arena_free(&arena);
	arena = (struct arena){ 0 };
	return r;
}

static void dirs(const char *path)
{
	assert_int_equal(fs_make_dirs(path, 0755), 0);
}

static void put(const char *path, const char *text)
{
	dirs(arena_cstr(&arena, fs_dirname(str_c(path))));
	assert_int_equal(fs_write_atomic(path, str_c(text), 0644), 0);
}

static enum result find_in(const char *dir)
{
	enum result r;

	assert_int_equal(chdir(dir), 0);
	ans = (struct answer){ 0 };
	r = place_find(&p, &ans, &arena);
	assert_int_equal(chdir(top), 0);
	return r;
}

/* Checks the queue that is found from `dir`: paths below the test's folder, NULL: no queue. */
static void check(const char *dir, const char *pawl, const char *init, const char *tree)
{
	size_t n = strlen(top) + 1;

	assert_int_equal(find_in(dir), SUCCESS);
	if (pawl) {
		assert_non_null(p.pawl_dir);
		assert_string_equal(p.pawl_dir + n, pawl);
	} else {
		assert_null(p.pawl_dir);
	}
	assert_string_equal(p.init_dir + n, init);
	assert_string_equal(p.worktree + n, tree);
}

static void test_upward(void **state)
{
	(void)state;
	dirs("a/b/c");
	check("a/b", NULL, "a/b", "a/b");
	dirs("a/.pawl");
	check("a/b/c", "a/.pawl", "a/b/c", "a");
	dirs("a/b/.pawl");
	check("a/b/c", "a/b/.pawl", "a/b/c", "a/b");
	dirs("a/.git");
	check("a/b/c", "a/b/.pawl", "a/b/c", "a");
}

static void test_something_else(void **state)
{
	(void)state;
	dirs("a/b");
	put("a/.pawl", "a file\n");
	assert_int_equal(find_in("a/b"), MISCONFIGURED);
	assert_true(str_has_nocase(ans.message, STR("a/.pawl is not a folder")));
	unlink("a/.pawl");
	assert_int_equal(symlink("nowhere", "a/.pawl"), 0);
	assert_int_equal(find_in("a/b"), MISCONFIGURED);
	dirs("a/nowhere");
	assert_int_equal(find_in("a/b"), MISCONFIGURED); /* a clone may contain such a link */
	assert_true(str_has_nocase(ans.message, STR("a/.pawl is a symbolic link")));
}

static void test_folder_is_gone(void **state)
{
	(void)state;
	dirs("a/b");
	assert_int_equal(chdir("a/b"), 0);
	assert_int_equal(rmdir("../b"), 0);
	ans = (struct answer){ 0 };
	assert_int_equal(place_find(&p, &ans, &arena), API_ERROR);
	assert_true(str_has_nocase(ans.message, STR("does not exist any more")));
	assert_int_equal(chdir(top), 0);
}

static void fake_worktree(const char *gitdir, const char *commondir)
{
	put("wt/.git", arena_cstr(&arena, arena_printf(&arena, "gitdir: %s\n", gitdir)));
	put("main/.git/worktrees/wt/commondir", commondir);
	dirs("wt/sub/deep");
}

static void test_linked_worktree(void **state)
{
	char *absolute = fs_join(&arena, str_c(top), STR("main/.git/worktrees/wt"));

	(void)state;
	fake_worktree(absolute, "../..\n");
	check("wt/sub", NULL, "main", "wt");
	dirs("main/.pawl");
	put("wt/.pawl/config", "agent = copy\n");
	check("wt/sub/deep", "main/.pawl", "main", "wt");
	check("wt", "main/.pawl", "main", "wt");
	check("main", "main/.pawl", "main", "main");
	dirs("main/sub/.pawl"); /* one queue for each part of a repository */
	check("wt/sub/deep", "main/sub/.pawl", "main", "wt");
	fake_worktree("../main/.git/worktrees/wt", "../..");
	check("wt", "main/.pawl", "main", "wt");
	put("main/.git/worktrees/wt/commondir",
	    arena_cstr(&arena, arena_printf(&arena, "%s/main/.git\r\n", top)));
	check("wt", "main/.pawl", "main", "wt");
}

static void test_worktree_inside_main(void **state)
{
	(void)state;
	put("main/trees/one/.git", "gitdir: ../../.git/worktrees/one\n");
	put("main/.git/worktrees/one/commondir", "../..\n");
	dirs("main/.pawl");
	check("main/trees/one", "main/.pawl", "main", "main/trees/one");
	dirs("main/trees/.pawl"); /* not above the same folder of the main worktree */
	check("main/trees/one", "main/.pawl", "main", "main/trees/one");
}

static void test_bare_main(void **state)
{
	(void)state;
	put("wt/.git", "gitdir: ../repo.git/worktrees/wt\n");
	put("repo.git/worktrees/wt/commondir", "../..\n");
	dirs("wt/.pawl");
	check("wt", "wt/.pawl", "wt", "wt");
	fake_worktree("../main/.git/worktrees/wt", "../..\n");
	put("main/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
	dirs("main/.pawl");
	check("wt", "wt/.pawl", "wt", "wt");
	put("main/.git/config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n");
	check("wt", "main/.pawl", "main", "wt");
}

static void test_submodule(void **state)
{
	(void)state;
	put("super/sub/.git", "gitdir: ../.git/modules/sub\n");
	put("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
	dirs("super/.pawl");
	check("super/sub", "super/.pawl", "super/sub", "super/sub");
	/* a linked worktree of that submodule */
	put("wt/.git", "gitdir: ../super/.git/modules/sub/worktrees/wt\n");
	put("super/.git/modules/sub/worktrees/wt/commondir", "../..\n");
	check("wt", "super/.pawl", "super/sub", "wt");
}

static void test_garbage(void **state)
{
	static const char *const files[] = { "",          "\n",
					     "gitdir:\n", "gitdir: nowhere\n",
					     "what?\n",   "gitdir: /\n" };

	(void)state;
	dirs("wt/.pawl");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put("wt/.git", files[i]);
		check("wt", "wt/.pawl", "wt", "wt");
	}
	fake_worktree("../main/.git/worktrees/wt", "../../nowhere/at/all\n");
	check("wt", "wt/.pawl", "wt", "wt");
	put("main/.git/worktrees/wt/commondir", "");
	check("wt", "wt/.pawl", "wt", "wt");
}

static void test_real_git(void **state)
{
	(void)state;
	if (system("git --version >/dev/null 2>&1") != 0)
		skip_because("needs git");
	assert_int_equal(
		system("exec >/dev/null 2>&1; export GIT_CONFIG_GLOBAL=/dev/null; git init main && "
		       "cd main && mkdir sub .pawl && echo x >sub/f && git add . && "
		       "git -c user.name=t -c user.email=t@t commit -m x && "
		       "git worktree add ../wt && git worktree add trees/in"),
		0);
	check("main/sub", "main/.pawl", "main/sub", "main");
	check("wt/sub", "main/.pawl", "main", "wt");
	check("main/trees/in/sub", "main/.pawl", "main", "main/trees/in");
	assert_int_equal(system("exec >/dev/null 2>&1; git clone --bare main bare.git && "
				"git -C bare.git worktree add ../from-bare"),
			 0);
	check("from-bare", NULL, "from-bare", "from-bare");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_upward, enter, leave),
		cmocka_unit_test_setup_teardown(test_something_else, enter, leave),
		cmocka_unit_test_setup_teardown(test_folder_is_gone, enter, leave),
		cmocka_unit_test_setup_teardown(test_linked_worktree, enter, leave),
		cmocka_unit_test_setup_teardown(test_worktree_inside_main, enter, leave),
		cmocka_unit_test_setup_teardown(test_bare_main, enter, leave),
		cmocka_unit_test_setup_teardown(test_submodule, enter, leave),
		cmocka_unit_test_setup_teardown(test_garbage, enter, leave),
		cmocka_unit_test_setup_teardown(test_real_git, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
