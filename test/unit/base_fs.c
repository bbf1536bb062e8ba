#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/fs.h"
#include "base/os.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* Each test runs in its own folder. */
static int enter(void **state)
{
	return folder_enter(state) ? 0 : -1;
}

static void put(const char *path, struct str data)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, data), 0);
	close(fd);
}

static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void reads(void **state)
{
	struct arena a = { 0 };
	struct str s;
	char big[100000];

	(void)state;
	put("f", STR("a\0b\n"));
	assert_int_equal(fs_read(&a, "f", 4, &s), 0);
	assert_true(str_eq(s, STR("a\0b\n")));
	assert_int_equal(s.p[s.n], '\0');
	assert_int_equal(fs_read(&a, "f", SIZE_MAX, &s), 0);
	assert_int_equal(fs_read(&a, "f", 3, &s), -EFBIG);
	put("empty", STR(""));
	assert_int_equal(fs_read(&a, "empty", 0, &s), 0);
	assert_int_equal(s.n, 0);
	assert_string_equal(s.p, "");
	memset(big, 'x', sizeof(big));
	put("big", str_n(big, sizeof(big)));
	assert_int_equal(fs_read(&a, "big", sizeof(big), &s), 0);
	assert_true(str_eq(s, str_n(big, sizeof(big))));
	assert_int_equal(fs_read(&a, "big", sizeof(big) - 1, &s), -EFBIG);
	arena_free(&a);
}

/* Files in /proc report size 0. */
static void reads_proc(void **state)
{
	struct arena a = { 0 };
	struct str s;

	(void)state;
	assert_int_equal(fs_read(&a, "/proc/self/maps", 1 << 24, &s), 0);
	assert_true(s.n > 500);
	assert_int_equal(fs_read(&a, "/proc/self/maps", 100, &s), -EFBIG);
	arena_free(&a);
}

static void refuses_to_read(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "socket" };
	struct arena a = { 0 };
	struct str s;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	alarm(10); /* opening a FIFO must not hang */
	put("f", STR("secret"));
	assert_int_equal(symlink("f", "link"), 0);
	assert_int_equal(symlink("nothing", "dangling"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(mkdir("dir", 0700), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fs_read(&a, "link", 100, &s), -ELOOP);
	assert_int_equal(fs_read(&a, "dangling", 100, &s), -ELOOP);
	assert_int_equal(fs_read(&a, "fifo", 100, &s), -EINVAL);
	assert_int_equal(fs_read(&a, "dir", 100, &s), -EINVAL);
	assert_int_equal(fs_read(&a, "socket", 100, &s), -EINVAL);
	assert_int_equal(fs_read(&a, "/dev/null", 100, &s), -EINVAL);
	assert_int_equal(fs_read(&a, "nothing", 100, &s), -ENOENT);
	assert_int_equal(fs_read(&a, "f/below", 100, &s), -ENOTDIR);
	assert_int_equal(fs_read(&a, "", 100, &s), -ENOENT);
	alarm(0);
	close(fd);
	arena_free(&a);
}

static void reads_private(void **state)
{
	struct arena a = { 0 };
	struct str s;

	(void)state;
	put("f", STR("secret"));
	assert_int_equal(chmod("f", 0600), 0);
	assert_int_equal(fs_read_private(&a, "f", 6, &s), 0);
	assert_true(str_is(s, "secret"));
	assert_int_equal(fs_read_private(&a, "f", 5, &s), -EFBIG);
	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		assert_int_equal(chmod("f", 0600 | bit), 0);
		assert_int_equal(fs_read_private(&a, "f", 6, &s), -EPERM);
	}
	assert_int_equal(symlink("f", "link"), 0);
	assert_int_equal(fs_read_private(&a, "link", 6, &s), -ELOOP);
	assert_int_equal(fs_read_private(&a, "nothing", 6, &s), -ENOENT);
	alarm(10); /* opening a FIFO must not hang */
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(fs_read_private(&a, "fifo", 6, &s), -EPERM);
	alarm(0);
	arena_free(&a);
}

static void check_file(const char *path, const char *want)
{
	struct arena a = { 0 };
	struct str s;

	assert_int_equal(fs_read(&a, path, 1 << 20, &s), 0);
	assert_string_equal(s.p, want);
	arena_free(&a);
}

static void writes_atomically(void **state)
{
	char name[NAME_MAX + 1];
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(fs_write_atomic("f", STR("one"), 0640), 0);
	check_file("f", "one");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(fs_write_atomic("./f", STR("two"), 0600), 0);
	check_file("f", "two");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fs_write_atomic("f", STR(""), 0600), 0);
	check_file("f", "");
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	assert_int_equal(fs_write_atomic(name, STR("long"), 0600), 0);
	assert_int_equal(entries("."), 2);
}

/* Mode and owner stay whatever the umask is; a foreign owner is kept or refused, never lost. */
static void writes_like_another(void **state)
{
	struct stat like, st;
	int r;

	(void)state;
	umask(077);
	put("f", STR("one"));
	assert_int_equal(chmod("f", 0664), 0);
	assert_int_equal(stat("f", &like), 0);
	assert_int_equal(fs_write_like("f", STR("two"), &like), 0);
	check_file("f", "two");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0664);
	like.st_uid += 4321;
	r = fs_write_like("f", STR("three"), &like);
	assert_int_equal(stat("f", &st), 0);
	if (!r)
		assert_int_equal(st.st_uid, like.st_uid);
	else
		check_file("f", "two");
	assert_int_equal(entries("."), 1);
	umask(022);
}

/* The link is replaced; its target stays as it was. */
static void write_follows_no_link(void **state)
{
	struct stat st;

	(void)state;
	put("target", STR("kept"));
	assert_int_equal(symlink("target", "link"), 0);
	assert_int_equal(fs_write_atomic("link", STR("new"), 0600), 0);
	check_file("target", "kept");
	check_file("link", "new");
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(entries("."), 2);
}

static void write_failures_leave_nothing(void **state)
{
	(void)state;
	assert_int_equal(mkdir("dir", 0700), 0);
	assert_int_equal(fs_write_atomic("dir", STR("x"), 0600), -EISDIR);
	assert_int_equal(fs_write_atomic("dir/", STR("x"), 0600), -EINVAL);
	assert_int_equal(fs_write_atomic(".", STR("x"), 0600), -EINVAL);
	assert_int_equal(fs_write_atomic("dir/..", STR("x"), 0600), -EINVAL);
	assert_int_equal(fs_write_atomic("", STR("x"), 0600), -EINVAL);
	assert_int_equal(fs_write_atomic("/", STR("x"), 0600), -EINVAL);
	assert_int_equal(fs_write_atomic("none/f", STR("x"), 0600), -ENOENT);
	assert_int_equal(entries("."), 1);
	assert_int_equal(entries("dir"), 0);
}

/* A write that fails half way, as on a full disk. */
static void write_cut_short(void **state)
{
	struct rlimit small = { 1000, RLIM_INFINITY }, before;
	char big[5000];

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_int_equal(fs_write_atomic("f", STR("old"), 0600), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(fs_write_atomic("f", str_n(big, sizeof(big)), 0600), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	check_file("f", "old");
	assert_int_equal(entries("."), 1);
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	ticks++;
}

/* Through a small, slow pipe, while signals arrive. */
static void write_all_goes_on(void **state)
{
	struct sigaction sa = { .sa_handler = tick }, before;
	static char big[1 << 20], got[1 << 20];
	size_t n = 0;
	int p[2];
	pid_t child;

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	sigaction(SIGUSR1, &sa, &before);
	assert_int_equal(pipe(p), 0);
	child = fork();
	if (child == 0) {
		close(p[0]);
		_exit(fs_write_all(p[1], str_n(big, sizeof(big))) || !ticks);
	}
	close(p[1]);
	usleep(20000);
	while (n < sizeof(big)) {
		ssize_t r = read(p[0], got + n, 60000 < sizeof(big) - n ? 60000 : sizeof(big) - n);

		assert_true(r > 0);
		n += (size_t)r;
		kill(child, SIGUSR1);
		usleep(500);
	}
	close(p[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_memory_equal(big, got, sizeof(big));
	sigaction(SIGUSR1, &before, NULL);
	assert_int_equal(fs_write_all(-1, STR("x")), -EBADF);
	assert_int_equal(fs_write_all(-1, STR("")), 0);
}

static void makes_dirs(void **state)
{
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(fs_make_dirs("a/b/c", 0700), 0);
	assert_true(fs_is_dir("a/b/c"));
	assert_int_equal(stat("a/b", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fs_make_dirs("a/b/c", 0700), 0);
	assert_int_equal(fs_make_dirs("a//b///d/", 0700), 0);
	assert_true(fs_is_dir("a/b/d"));
	assert_int_equal(fs_make_dirs("/", 0700), 0);
	assert_int_equal(fs_make_dirs(".", 0700), 0);
	assert_int_equal(fs_make_dirs("", 0700), -ENOENT);
	put("file", STR(""));
	assert_int_equal(fs_make_dirs("file", 0700), -ENOTDIR);
	assert_int_equal(fs_make_dirs("file/x", 0700), -ENOTDIR);
	assert_int_equal(symlink("a", "link"), 0);
	assert_int_equal(fs_make_dirs("link/e", 0700), 0);
	assert_true(fs_is_dir("a/e"));
}

static void exists(void **state)
{
	(void)state;
	put("f", STR(""));
	assert_true(fs_exists("f"));
	assert_true(fs_exists("."));
	assert_false(fs_exists("g"));
	assert_false(fs_is_dir("f"));
	assert_true(fs_is_dir("."));
	assert_false(fs_is_dir("g"));
}

static void joins_and_splits(void **state)
{
	static const char *const dirs[][2] = {
		{ "", "." },     { "a", "." },     { "a/", "." },      { "a/b", "a" },
		{ "a/b/", "a" }, { "a//b", "a" },  { "/", "/" },       { "//", "/" },
		{ "/a", "/" },   { "/a/", "/" },   { "/a/b", "/a" },   { ".", "." },
		{ "..", "." },   { "../a", ".." }, { "a/./b", "a/." }, { "//a", "/" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(dirs); i++)
		assert_string_equal(arena_cstr(&a, fs_dirname(str_c(dirs[i][0]))), dirs[i][1]);
	assert_string_equal(fs_join(&a, STR("a"), STR("b")), "a/b");
	assert_string_equal(fs_join(&a, STR("a/"), STR("b")), "a/b");
	assert_string_equal(fs_join(&a, STR("/"), STR("b")), "/b");
	assert_string_equal(fs_join(&a, STR(""), STR("b")), "b");
	assert_string_equal(fs_join(&a, STR("a"), STR("")), "a/");
	arena_free(&a);
}

static void check_real(struct arena *a, const char *path, const char *name)
{
	char *here = realpath(".", NULL), *got = fs_real(a, path);

	if (!name)
		assert_null(got);
	else
		assert_string_equal(got, name[0] ? fs_join(a, str_c(here), str_c(name)) : here);
	free(here);
}

static void real_paths(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_int_equal(fs_make_dirs("d/e", 0700), 0);
	put("d/f", STR(""));
	assert_int_equal(symlink("d", "link"), 0);
	assert_int_equal(symlink("d/new", "dangling"), 0);
	assert_int_equal(symlink("none/new", "lost"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	check_real(&a, ".", "");
	check_real(&a, "d/f", "d/f");
	check_real(&a, "link/f", "d/f");
	check_real(&a, "link/../d/./e", "d/e");
	check_real(&a, "d/new", "d/new");
	check_real(&a, "link/new", "d/new");
	check_real(&a, "link/new/", "d/new");
	check_real(&a, "new", "new");
	check_real(&a, "dangling", "d/new");
	check_real(&a, "lost", NULL);
	check_real(&a, "loop", NULL);
	check_real(&a, "none/new", NULL);
	check_real(&a, "d/f/new", NULL);
	check_real(&a, "none/..", NULL);
	check_real(&a, "", NULL);
	assert_string_equal(fs_real(&a, "/"), "/");
	assert_string_equal(fs_real(&a, "/no-such-file-here"), "/no-such-file-here");
	arena_free(&a);
}

static void settling_files(void **state)
{
	(void)state;
	put("new", str_c("x"));
	assert_true(fs_is_settling(AT_FDCWD, "new"));
	assert_int_equal(symlink("new", "link"), 0);
	assert_false(fs_is_settling(AT_FDCWD, "link"));
	assert_false(fs_is_settling(AT_FDCWD, "missing"));
	assert_false(fs_is_settling(AT_FDCWD, "."));
	assert_false(fs_is_settling(AT_FDCWD, "/etc/passwd")); /* old */
}

static void user_dirs(void **state)
{
	struct arena a = { 0 };

	(void)state;
	setenv("HOME", "/home/ann", 1);
	setenv("XDG_STATE_HOME", "/state", 1);
	assert_string_equal(fs_user_dir(&a, "XDG_STATE_HOME", ".local/state"), "/state/pawl");
	setenv("XDG_STATE_HOME", "relative", 1);
	assert_string_equal(fs_user_dir(&a, "XDG_STATE_HOME", ".local/state"),
			    "/home/ann/.local/state/pawl");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME"); /* the password file has it */
	assert_true(str_ends(str_c(fs_user_dir(&a, "XDG_STATE_HOME", ".config")),
			     STR("/.config/pawl")));
	arena_free(&a);
}

/* The writer is gone, or the time limit passes while it is silent. */
static void reads_until(void **state)
{
	struct buf b = BUF_MAX(100);
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_false(fs_read_until(ends[0], os_boot_ms() + 20, &b));
	assert_int_equal(fs_write_all(ends[1], STR("some")), 0);
	assert_false(fs_read_until(ends[0], os_boot_ms(), &b));
	assert_int_equal(b.n, 0);
	close(ends[1]);
	assert_true(fs_read_until(ends[0], INT64_MAX, &b));
	assert_true(str_is(buf_str(&b), "some"));
	close(ends[0]);
	buf_free(&b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, folder_leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads),
		TEST(reads_proc),
		TEST(refuses_to_read),
		TEST(reads_private),
		TEST(writes_atomically),
		TEST(writes_like_another),
		TEST(write_follows_no_link),
		TEST(write_failures_leave_nothing),
		TEST(write_cut_short),
		TEST(write_all_goes_on),
		TEST(reads_until),
		TEST(makes_dirs),
		TEST(exists),
		TEST(joins_and_splits),
		TEST(real_paths),
		TEST(settling_files),
		TEST(user_dirs),
	};

	return cmocka_run_group_tests_name("base/fs", tests, NULL, NULL);
}
