#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/fs.h"
#include "base/secret.h"
#include "client/keyring.h"

static struct arena arena;
static struct keyring k;

static void open_as(struct keyring *ring, const char *agent, const char *run)
{
	assert_int_equal(keyring_open(ring, STR("sqlite:/q queue default"), str_c(agent),
				      str_c(run), STR("/work\ntree"), &arena),
			 0);
}

static int enter(void **state)
{
	const char *dir = folder_enter(state);

	if (!dir)
		return -1;
	setenv("XDG_STATE_HOME", fs_join(&arena, str_c(dir), STR("state/home")), 1);
	open_as(&k, "ann", "");
	return 0;
}

static int leave(void **state)
{
	int r = folder_leave(state);

	arena_free(&arena);
	arena = (struct arena){ 0 };
	return r;
}

static int files(const char *ending)
{
	return folder_count("state/home/pawl", ending);
}

static void assert_found(struct keyring *ring, const char *task, struct str token, int64_t fence)
{
	struct str t = { 0 };
	int64_t f = 0;

	assert_true(keyring_find(ring, str_c(task), &t, &f));
	assert_true(str_eq(t, token));
	assert_int_equal(f, fence);
}

static bool found(struct keyring *ring, const char *task)
{
	struct str t;
	int64_t f;

	return keyring_find(ring, str_c(task), &t, &f);
}

static struct str claim(struct keyring *ring, const char *task, int64_t fence)
{
	struct pending p;

	assert_int_equal(keyring_begin(ring, str_c(task), &p), 0);
	assert_true(token_valid(p.token));
	assert_int_equal(keyring_keep(ring, &p, str_c(task), fence), 0);
	return p.token;
}

static void test_kept_and_forgotten(void **state)
{
	struct keyring other;
	struct str token;

	(void)state;
	assert_false(found(&k, "t1"));
	token = claim(&k, "T1", 7);
	assert_found(&k, "t1", token, 7);
	assert_int_equal(files(".pending"), 0);
	assert_false(found(&k, "t2"));
	open_as(&other, "ann", "run 2");
	assert_false(found(&other, "t1"));
	open_as(&other, "bob", "");
	assert_false(found(&other, "t1"));
	open_as(&other, "ann", "");
	assert_found(&other, "t1", token, 7);
	keyring_forget(&k, STR("t1"), 7);
	assert_false(found(&k, "t1"));
	assert_int_equal(files(""), 2); /* . and .. */
}

static void test_modes(void **state)
{
	struct pending p;
	struct stat st;

	(void)state;
	umask(0);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	assert_int_equal(stat(p.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fcntl(p.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(stat(k.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(chmod(k.dir, 0777), 0);
	assert_false(found(&k, "t1"));
	assert_int_equal(stat(k.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	keyring_drop(&k, &p);
	assert_int_equal(files(".pending"), 0);
	umask(022);
}

static void test_any_task(void **state)
{
	struct pending p;

	(void)state;
	assert_int_equal(keyring_begin(&k, STR(""), &p), 0);
	assert_int_equal(keyring_keep(&k, &p, STR("t9"), 3), 0);
	assert_found(&k, "t9", p.token, 3);
	assert_int_equal(files(".pending"), 0);
}

static void test_unanswered_is_repeated(void **state)
{
	struct pending p, again, other;

	(void)state;
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	keyring_leave(&k, &p);
	assert_int_equal(keyring_begin(&k, STR("t2"), &other), 0);
	assert_false(str_eq(other.token, p.token));
	keyring_drop(&k, &other);
	assert_int_equal(keyring_begin(&k, STR("T1"), &again), 0);
	assert_true(str_eq(again.token, p.token));
	assert_int_equal(keyring_keep(&k, &again, STR("t1"), 1), 0);
	assert_int_equal(keyring_begin(&k, STR("t1"), &again), 0);
	assert_false(str_eq(again.token, p.token)); /* a saved token is never used for a claim */
	keyring_drop(&k, &again);
	assert_found(&k, "t1", p.token, 1);
}

/* Another process begins a claim, reports its token, and waits to be killed or told to continue. */
static pid_t begin_elsewhere(struct str *token)
{
	char text[TOKEN_LEN];
	struct pending p;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (keyring_begin(&k, STR("t1"), &p) ||
		    write(fds[1], p.token.p, TOKEN_LEN) != TOKEN_LEN)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], text, TOKEN_LEN), TOKEN_LEN);
	*token = arena_str(&arena, str_n(text, TOKEN_LEN));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_processes(void **state)
{
	struct str one, two;
	struct pending p, q, r;
	pid_t a, b;

	(void)state;
	a = begin_elsewhere(&one);
	b = begin_elsewhere(&two);
	assert_false(str_eq(one, two));
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0); /* both are alive: a third one */
	assert_false(str_eq(p.token, one) || str_eq(p.token, two));
	assert_int_equal(files(".pending"), 3);
	keyring_drop(&k, &p);
	end(b);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	assert_true(str_eq(p.token, two)); /* from either file */
	end(a);
	assert_int_equal(keyring_begin(&k, STR("t1"), &q), 0);
	assert_true(str_eq(q.token, one));
	assert_int_equal(keyring_begin(&k, STR("t1"), &r), 0);
	assert_int_equal(files(".pending"), 3);
	keyring_drop(&k, &p);
	keyring_drop(&k, &q);
	keyring_drop(&k, &r);
	assert_int_equal(files(".pending"), 0);
}

/* The token of a granted lock replaces the saved token of an earlier one. */
static void test_replaced(void **state)
{
	struct str token;

	(void)state;
	claim(&k, "t1", 1);
	token = claim(&k, "t1", 2);
	assert_found(&k, "t1", token, 2);
	assert_int_equal(keyring_save(&k, STR("t1"), token, 3), 0); /* the same again */
	assert_found(&k, "t1", token, 3);
	token = token_make(&arena);
	assert_int_equal(keyring_save(&k, STR("t1"), token, 4), 0);
	assert_found(&k, "t1", token, 4);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(files(".tmp"), 0);
	assert_int_equal(files(".pending"), 0);
}

/* --- keys by queue -------------------------------------------------------------------------- */

#define ID_A STR("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
#define ID_B STR("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")

static void open_at(struct keyring *ring, const char *label, struct str id, const char *tree)
{
	assert_int_equal(keyring_open(ring, str_c(label), STR("ann"), STR(""), str_c(tree), &arena),
			 0);
	keyring_queue(ring, id, true);
	ring->home = arena_printf(&arena, "%s/.pawl", tree);
}

/* A process that saves late does not overwrite the token of a later lock. */
static void test_saved_late(void **state)
{
	struct pending late;
	struct str token;

	(void)state;
	keyring_queue(&k, ID_A, true);
	assert_int_equal(keyring_begin(&k, STR("t1"), &late), 0);
	token = claim(&k, "t1", 2);
	assert_int_equal(keyring_keep(&k, &late, STR("t1"), 1), 0);
	assert_found(&k, "t1", token, 2);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(files(".pending"), 0);
	/* if the id may be that of a queue that is gone, fences prove nothing */
	keyring_queue(&k, ID_A, false);
	token = claim(&k, "t1", 1);
	assert_found(&k, "t1", token, 1);
}

static void test_ids(void **state)
{
	struct keyring other = k;
	/* saved before the queue had an id */
	struct str old = claim(&k, "t1", 5), token;

	(void)state;
	keyring_queue(&k, ID_A, true);
	assert_found(&k, "t1", old, 5);
	token = claim(&k, "t1", 6);
	assert_found(&k, "t1", token, 6);
	assert_int_equal(files(".token"), 1); /* the older one is gone */
	keyring_queue(&k, ID_B, true);        /* another queue in the same place */
	assert_false(found(&k, "t1"));
	token = claim(&k, "t1", 1);
	assert_found(&k, "t1", token, 1);
	keyring_forget(&k, STR("t1"), 1);
	assert_false(found(&k, "t1"));
	keyring_queue(&k, ID_A, true);
	assert_true(found(&k, "t1"));
	keyring_queue(&k, STR("../../not an id at all, but as long.."), true);
	assert_string_equal(k.id, "");
	assert_false(k.sure);
	open_at(&other, "files:/elsewhere queue default", ID_A, "/work\ntree"); /* migrated */
	assert_true(found(&other, "t1"));
	keyring_forget(&other, STR("t1"), 6);
	assert_int_equal(files(".token"), 0);
}

static struct keyring at_server(const char *origin)
{
	struct keyring ring;

	open_at(&ring, arena_printf(&arena, "%s queue default", origin).p, ID_A, "/work\ntree");
	keyring_server(&ring, str_c(origin));
	return ring;
}

/* A server that claims the id of a queue gets none of its tokens, and cannot replace or remove them. */
static void test_origins(void **state)
{
	struct keyring evil = at_server("http://evil:80"), good = at_server("https://good:443");
	struct str token, other;
	struct pending p, theirs;

	(void)state;
	keyring_queue(&k, ID_A, true);
	token = claim(&k, "t1", 5);
	assert_int_equal(keyring_begin(&k, STR("t2"), &p), 0);
	keyring_leave(&k, &p);
	assert_false(found(&evil, "t1"));
	assert_int_equal(keyring_begin(&evil, STR("t2"), &theirs), 0);
	assert_false(str_eq(theirs.token, p.token));
	keyring_drop(&evil, &theirs);
	other = claim(&evil, "t1", 1000);
	assert_found(&k, "t1", token, 5);
	keyring_forget(&evil, STR("t1"), INT64_MAX);
	keyring_forget_token(&evil, STR("t1"), token);
	assert_found(&k, "t1", token, 5);
	token = claim(&good, "t1", 7);
	assert_false(found(&evil, "t1"));
	assert_false(str_eq(token, other));
}

/* `migrate` copies the tokens of the queue that it copies, and no others. */
static void test_copied(void **state)
{
	struct keyring a = at_server("http://a:80"), b = at_server("http://b:80"), bob;
	struct str ours, theirs, later;

	(void)state;
	keyring_queue(&k, ID_A, true);
	ours = claim(&k, "t1", 5);
	open_as(&bob, "bob", "run 2");
	keyring_queue(&bob, ID_A, true);
	theirs = claim(&bob, "t2", 6);
	keyring_queue(&bob, ID_B, true);
	claim(&bob, "t3", 1);
	assert_int_equal(keyring_copy(&k, &a), 0);
	assert_found(&a, "t1", ours, 5);
	assert_found(&k, "t1", ours, 5);
	assert_int_equal(files(".token"), 5);
	bob = at_server("http://a:80");
	bob.agent = STR("bob");
	bob.run = STR("run 2");
	assert_found(&bob, "t2", theirs, 6);
	assert_false(found(&b, "t1"));
	later = claim(&a, "t1", 8);
	assert_int_equal(keyring_copy(&k, &a), 0); /* again: the later token stays */
	assert_found(&a, "t1", later, 8);
	assert_int_equal(keyring_copy(&a, &b), 0);
	assert_found(&b, "t1", later, 8);
}

/* A token that was saved without an origin, for a store that pawl opens itself, goes to no server. */
static void test_without_an_origin(void **state)
{
	struct keyring old = at_server("http://a:80"), a = old, b = at_server("http://b:80");

	(void)state;
	keyring_server(&old, STR(""));
	claim(&old, "t1", 5);
	assert_false(found(&b, "t1"));
	assert_false(found(&a, "t1"));
	keyring_queue(&k, ID_A, true);
	claim(&k, "t2", 5);
	assert_false(found(&a, "t2"));
}

/* A claim that was interrupted before the queue had an id continues after the queue got one. */
static void test_pending_gets_id(void **state)
{
	struct pending p, again;

	(void)state;
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	keyring_leave(&k, &p);
	keyring_queue(&k, ID_A, true);
	assert_int_equal(keyring_begin(&k, STR("t1"), &again), 0);
	assert_true(str_eq(again.token, p.token));
	assert_int_equal(keyring_keep(&k, &again, STR("t1"), 1), 0);
	assert_found(&k, "t1", p.token, 1);
	keyring_queue(&k, ID_B, true);
	assert_false(found(&k, "t1"));
	assert_int_equal(keyring_begin_any(&k, STR("docs"), STR("x"), &p), 0);
	keyring_leave(&k, &p);
	assert_int_equal(keyring_begin_any(&k, STR("docs"), STR(""), &again), 0);
	assert_true(str_eq(again.token, p.token));
	keyring_drop(&k, &again);
}

static void test_moved(void **state)
{
	char *from = fs_join(&arena, str_c(k.dir), STR("../from")),
	     *to = fs_join(&arena, str_c(k.dir), STR("../to"));
	struct keyring old, new;
	struct str token;

	(void)state;
	assert_int_equal(fs_make_dirs(from, 0700), 0);
	open_at(&old, arena_printf(&arena, "sqlite:%s/.pawl/queue.db queue q", from).p, ID_A, from);
	token = claim(&old, "t1", 3);
	open_at(&new, arena_printf(&arena, "sqlite:%s/.pawl/queue.db queue q", to).p, ID_A, to);
	assert_false(found(&new, "t1")); /* a copy: the first one still exists */
	assert_int_equal(rename(from, to), 0);
	keyring_queue(&new, ID_A, false);
	assert_false(found(&new, "t1"));
	keyring_queue(&new, ID_B, true);
	assert_false(found(&new, "t1"));
	keyring_queue(&new, ID_A, true);
	new.agent = STR("bob");
	assert_false(found(&new, "t1"));
	new.agent = STR("ann");
	new.worktree = str_c(fs_join(&arena, str_c(to), STR("linked")));
	assert_false(found(&new, "t1")); /* it was claimed in the other worktree */
	new.worktree = str_c(to);
	assert_false(found(&new, "t2"));
	assert_found(&new, "T1", token, 3);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(fs_make_dirs(from, 0700), 0);
	assert_found(&new, "t1", token, 3); /* now under its name */
	assert_false(found(&old, "t1"));
	keyring_forget(&new, STR("t1"), 3);
	assert_int_equal(files(".token"), 0);
}

static void make_old(const char *ending)
{
	DIR *d = opendir(k.dir);
	struct dirent *e;
	struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	assert_non_null(d);
	while ((e = readdir(d)))
		if (str_ends(str_c(e->d_name), str_c(ending)))
			assert_int_equal(utimensat(dirfd(d), e->d_name, long_ago, 0), 0);
	closedir(d);
}

/* Old files of queues that are gone are removed; files of other queues, and recent ones, stay. */
static void test_sweep(void **state)
{
	struct keyring gone, far;
	struct pending p;

	(void)state;
	open_at(&gone, "sqlite:/not/there/.pawl/queue.db queue default", ID_A, "/not/there");
	open_at(&far, "postgres://host/db queue default", ID_B, "/not/there");
	claim(&gone, "t1", 1);
	claim(&far, "t1", 1);
	assert_int_equal(keyring_begin(&gone, STR("t2"), &p), 0);
	keyring_queue(&k, ID_A, true); /* of the queue that was here before */
	claim(&k, "t3", 1);
	keyring_queue(&k, ID_B, true);
	claim(&k, "t4", 1);
	keyring_sweep(&k);
	assert_int_equal(files(".token"), 4);
	make_old(".token");
	make_old(".pending");
	keyring_sweep(&k);
	assert_true(found(&far, "t1") && found(&k, "t4"));
	assert_int_equal(files(".token"), 2);
	assert_int_equal(files(".pending"), 1); /* still in flight */
	keyring_leave(&gone, &p);
	keyring_sweep(&k);
	assert_int_equal(files(".pending"), 0);
}

/* The saved token may belong to a later lock that another window took. */
static void test_only_what_is_over(void **state)
{
	struct str one = claim(&k, "t1", 1), two;

	(void)state;
	keyring_forget(&k, STR("t1"), 0);
	assert_found(&k, "t1", one, 1);
	keyring_forget(&k, STR("t1"), 1);
	two = claim(&k, "t1", 2);
	keyring_forget(&k, STR("t1"), 1);
	keyring_forget_token(&k, STR("t1"), one);
	keyring_forget_token(&k, STR("t1"), STR(""));
	assert_found(&k, "t1", two, 2);
	claim(&k, "t1", 3);
	keyring_forget(&k, STR("t1"), 3);
	two = claim(&k, "t1", 4);
	keyring_forget_token(&k, STR("T1"), two);
	assert_int_equal(files(""), 2);
}

static char *saved_file(void)
{
	DIR *d = opendir(k.dir);
	struct dirent *e;
	char *saved = NULL;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (str_ends(str_c(e->d_name), STR(".token")))
			saved = fs_join(&arena, str_c(k.dir), str_c(e->d_name));
	closedir(d);
	assert_non_null(saved);
	return saved;
}

/* No other process may replace the file between reading it and removing it. */
static void test_forget_waits(void **state)
{
	struct str two = token_make(&arena);
	char *saved, *other;
	int fd, status;
	pid_t pid;

	(void)state;
	claim(&k, "t2", 2);
	other = saved_file();
	assert_int_equal(rename(other, "aside"), 0);
	claim(&k, "t1", 1);
	saved = saved_file();
	fd = open(saved, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0); /* as a process that replaces it does */
	pid = fork();
	if (pid == 0) {
		keyring_forget(&k, STR("t1"), 1);
		_exit(0);
	}
	usleep(100000);
	assert_true(fs_exists(saved));
	assert_int_equal(rename("aside", saved), 0);
	flock(fd, LOCK_UN);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(fs_exists(saved));
	/* and vice versa: a replacement waits for the reader */
	fd = open(saved, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pid = fork();
	if (pid == 0)
		_exit(keyring_save(&k, STR("t1"), two, 3) ? 1 : 0);
	usleep(100000);
	assert_int_equal(unlink(saved), 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_found(&k, "t1", two, 3);
}

static void test_stopped_process_blocks_nobody(void **state)
{
	struct str token;
	int fd;

	(void)state;
	claim(&k, "t1", 1);
	fd = open(saved_file(), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	keyring_forget(&k, STR("t1"), 1);
	assert_int_equal(files(".token"), 1);
	token = claim(&k, "t1", 2);
	assert_found(&k, "t1", token, 2);
	close(fd);
	keyring_forget_token(&k, STR("t1"), token);
	assert_int_equal(files(".token"), 0);
}

static void assert_begins(const char *filter, const char *of, struct str token, bool same)
{
	struct pending p;

	assert_int_equal(keyring_begin_any(&k, str_c(filter), str_c(of), &p), 0);
	assert_int_equal(str_eq(p.token, token), same);
	assert_int_equal(p.adopted, same);
	if (same)
		keyring_leave(&k, &p);
	else
		keyring_drop(&k, &p);
}

static void test_which_unanswered(void **state)
{
	struct pending docs, done;

	(void)state;
	assert_int_equal(keyring_begin_any(&k, STR("docs"), STR(""), &docs), 0);
	assert_false(docs.adopted);
	keyring_leave(&k, &docs);
	assert_begins("", "", docs.token, false);
	assert_begins("Docs", "", docs.token, false);
	assert_begins("docs", "x", docs.token, false); /* a repeat would claim a second task */
	assert_begins("docs", "", docs.token, true);
	assert_int_equal(keyring_begin_any(&k, STR(""), STR("x"), &done), 0);
	assert_begins("", "x", done.token, false); /* still in flight */
	keyring_leave(&k, &done);
	assert_begins("", "y", done.token, false);
	assert_begins("", "x", done.token, true);
	assert_begins("", "", done.token, true);
	assert_int_equal(files(".pending"), 2);
	assert_int_equal(keyring_begin_any(&k, STR(""), STR(""), &done), 0);
	assert_int_equal(keyring_keep(&k, &done, STR("t1"), 1), 0);
	assert_found(&k, "t1", done.token, 1);
	assert_int_equal(files(".pending"), 1);
}

static void test_died_while_saving(void **state)
{
	struct pending p, again;
	char *saved;
	struct str token = claim(&k, "t1", 1);

	(void)state;
	/* Simulates a kill between link and unlink: two names, one file. */
	saved = saved_file();
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	keyring_drop(&k, &p);
	assert_int_equal(link(saved, p.path), 0);
	assert_int_equal(keyring_begin(&k, STR("t1"), &again), 0);
	assert_true(str_eq(again.token, token));
	assert_int_equal(keyring_keep(&k, &again, STR("t1"), 1), 0);
	assert_int_equal(files(".pending"), 0);
	assert_found(&k, "t1", token, 1);
}

static void count_garbage(void *ctx, const struct key_file *f)
{
	int *n = ctx;

	assert_true(f->modified > 0);
	if (f->task.n) {
		assert_true(str_is(f->task, "t1"));
		assert_true(str_is(f->agent, "ann"));
		assert_true(str_is(f->queue, "sqlite:/q queue default"));
		n[f->pending]++;
	} else {
		n[2]++;
	}
}

static void test_garbage(void **state)
{
	struct pending p;
	int n[3] = { 0 }, fd;

	(void)state;
	claim(&k, "t1", 1);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	fd = open(fs_join(&arena, str_c(k.dir), STR("x.token")), O_CREAT | O_WRONLY, 0600);
	assert_int_equal(fs_write_all(fd, STR("token=no\n\xff\n=\nfence=x\n")), 0);
	close(fd);
	assert_int_equal(keyring_each(&k, count_garbage, n), 0);
	assert_int_equal(n[0], 1);
	assert_int_equal(n[1], 1);
	assert_int_equal(n[2], 1);
	assert_int_equal(ftruncate(p.fd, 0), 0); /* the process died before it wrote */
	keyring_leave(&k, &p);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	assert_true(token_valid(p.token));
	assert_int_equal(files(".pending"), 1);
	keyring_leave(&k, &p);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), 0);
	keyring_drop(&k, &p);
}

static void test_folder_refused(void **state)
{
	struct pending p;

	(void)state;
	assert_int_equal(fs_make_dirs("state/home", 0700), 0);
	assert_int_equal(mkdir("else", 0700), 0);
	assert_int_equal(symlink("../../else", "state/home/pawl"), 0);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), -ELOOP);
	assert_int_equal(p.fd, -1);
	assert_int_equal(keyring_save(&k, STR("t1"), token_make(&arena), 1), -ELOOP);
	assert_int_equal(unlink("state/home/pawl"), 0);
	if (geteuid() == 0) {
		assert_int_equal(mkdir("state/home/pawl", 0700), 0);
		assert_int_equal(chown("state/home/pawl", 12345, 12345), 0);
		assert_int_equal(keyring_begin(&k, STR("t1"), &p), -EPERM);
		assert_int_equal(rmdir("state/home/pawl"), 0);
	}
	fs_write_atomic("state/home/pawl", STR("file"), 0600);
	assert_int_equal(keyring_begin(&k, STR("t1"), &p), -ENOTDIR);
	assert_int_equal(keyring_each(&k, count_garbage, NULL), -ENOTDIR);
}

static void test_links_refused(void **state)
{
	struct pending p, q;
	struct str token = claim(&k, "t1", 1);

	(void)state;
	assert_int_equal(keyring_begin(&k, STR("t2"), &p), 0);
	keyring_drop(&k, &p);
	assert_int_equal(symlink("/tmp/nothing-of-ours", p.path), 0);
	assert_int_equal(keyring_begin(&k, STR("t2"), &q), 0); /* next to it */
	assert_string_not_equal(q.path, p.path);
	assert_int_equal(keyring_keep(&k, &q, STR("t2"), 1), 0);
	assert_false(fs_exists("/tmp/nothing-of-ours"));
	assert_found(&k, "t1", token, 1);
}

static void test_home(void **state)
{
	struct keyring ring;

	(void)state;
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/home/of/mine", 1);
	open_as(&ring, "ann", "");
	assert_string_equal(ring.dir, "/home/of/mine/.local/state/pawl");
	setenv("XDG_STATE_HOME", "relative", 1);
	open_as(&ring, "ann", "");
	assert_string_equal(ring.dir, "/home/of/mine/.local/state/pawl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept_and_forgotten, enter, leave),
		cmocka_unit_test_setup_teardown(test_modes, enter, leave),
		cmocka_unit_test_setup_teardown(test_any_task, enter, leave),
		cmocka_unit_test_setup_teardown(test_unanswered_is_repeated, enter, leave),
		cmocka_unit_test_setup_teardown(test_processes, enter, leave),
		cmocka_unit_test_setup_teardown(test_replaced, enter, leave),
		cmocka_unit_test_setup_teardown(test_saved_late, enter, leave),
		cmocka_unit_test_setup_teardown(test_ids, enter, leave),
		cmocka_unit_test_setup_teardown(test_origins, enter, leave),
		cmocka_unit_test_setup_teardown(test_copied, enter, leave),
		cmocka_unit_test_setup_teardown(test_without_an_origin, enter, leave),
		cmocka_unit_test_setup_teardown(test_pending_gets_id, enter, leave),
		cmocka_unit_test_setup_teardown(test_moved, enter, leave),
		cmocka_unit_test_setup_teardown(test_sweep, enter, leave),
		cmocka_unit_test_setup_teardown(test_only_what_is_over, enter, leave),
		cmocka_unit_test_setup_teardown(test_forget_waits, enter, leave),
		cmocka_unit_test_setup_teardown(test_stopped_process_blocks_nobody, enter, leave),
		cmocka_unit_test_setup_teardown(test_which_unanswered, enter, leave),
		cmocka_unit_test_setup_teardown(test_died_while_saving, enter, leave),
		cmocka_unit_test_setup_teardown(test_garbage, enter, leave),
		cmocka_unit_test_setup_teardown(test_folder_refused, enter, leave),
		cmocka_unit_test_setup_teardown(test_links_refused, enter, leave),
		cmocka_unit_test_setup_teardown(test_home, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
