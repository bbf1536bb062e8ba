/* Features of git: only: refs that others move, interrupted changes, clocks of other machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "format/pack.h"
#include "format/task_form.h"
#include "kit/scale.h"
#include "store/store.h"
#include "queue/queue.h"

struct bench {
	char dir[64], uri[128];
	struct store_error err;
	struct store_env env;
	struct store *s;
	struct arena a;
};

static int64_t fake = 1800000000000;

static int64_t clock_ms(void)
{
	return fake;
}

static int run(struct bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int run(struct bench *b, const char *fmt, ...)
{
	char line[600], whole[800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "cd %s && %s", b->dir, line);
	return system(whole);
}

static int open_as(struct bench *b, const char *uri, enum store_mode mode, const char *boot)
{
	store_close(b->s);
	b->s = NULL;
	b->env.mode = mode;
	b->env.opt.boot_id = str_c(boot);
	return store_open(&b->s, str_c(uri), &b->env);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	snprintf(b->dir, sizeof(b->dir), "/tmp/pawl-git-XXXXXX");
	if (!mkdtemp(b->dir))
		return -1;
	snprintf(b->uri, sizeof(b->uri), "git:%s/q.git", b->dir);
	setenv("XDG_STATE_HOME", b->dir, 1);
	b->env = (struct store_env){ .rules = &queue_rules,
				     .opt.timeout_ms = 20000,
				     .opt.who = STR("git_test"),
				     .opt.wall = clock_ms,
				     .opt.boot = clock_ms,
				     .err = &b->err };
	*state = b;
	return open_as(b, b->uri, STORE_CREATE, "here");
}

static int teardown(void **state)
{
	struct bench *b = *state;

	store_close(b->s);
	run(b, "rm -rf %s", b->dir);
	arena_free(&b->a);
	free(b);
	return 0;
}

/* --- records ------------------------------------------------------------------------------------ */

static struct str packed(struct bench *b, const struct task *t, unsigned part)
{
	struct buf buf = BUF_MAX(1 << 20);
	struct str out;

	task_pack(t, part, &buf);
	out = arena_str(&b->a, buf_str(&buf));
	buf_free(&buf);
	return out;
}

static struct record record_of(struct bench *b, const struct task *t)
{
	struct record r = { .key = task_key(&b->a, t->id),
			    .hot = packed(b, t, HOT),
			    .body = packed(b, t, BODY),
			    .body_changed = true };

	queue_rules.index(t, &r.ix, &b->a);
	return r;
}

static struct task task_named(const char *id)
{
	return (struct task){ .id = str_c(id),
			      .title = str_c(id),
			      .status = READY,
			      .class_rank = STANDARD,
			      .created_at = 1,
			      .updated_at = 1 };
}

struct several {
	struct record *r;
	size_t n;
};

static int put_several(struct edit *e, void *ctx)
{
	struct several *p = ctx;

	for (size_t i = 0; i < p->n; i++)
		edit_put(e, &p->r[i]);
	return 0;
}

static int put(struct bench *b, struct record *r, size_t n)
{
	struct several p = { r, n };
	struct change c = { .fn = put_several, .ctx = &p };

	return b->s->ops->modify(b->s, &c, 1);
}

static struct task get(struct bench *b, const char *id)
{
	struct record *r = arena_new(&b->a, struct record);
	struct task t = { 0 };

	assert_int_equal(b->s->ops->get(b->s, task_key(&b->a, str_c(id)), r, &b->a), 0);
	assert_int_equal(task_unpack(r->hot, &t, &b->a), 0);
	return t;
}

/* Adds one to the number. */
static int raise(struct edit *e, void *ctx)
{
	struct record *r;
	struct task t = { 0 };
	struct buf buf = BUF_MAX(1 << 20);
	int rc;

	(void)ctx;
	rc = edit_get(e, STR("task/one"), &r);
	if (rc || task_unpack(r->hot, &t, e->arena))
		return rc ? rc : STORE_IO;
	t.priority++;
	task_pack(&t, HOT, &buf);
	r->hot = arena_str(e->arena, buf_str(&buf));
	buf_free(&buf);
	edit_put(e, r);
	return 0;
}

static int raise_priority(struct bench *b)
{
	struct change c = { .fn = raise };

	return b->s->ops->modify(b->s, &c, 1);
}

/* --- records that were only read ---------------------------------------------------------------- */

/* Another clone with its own handle. */
struct rival {
	struct bench *b;
	struct store_error err;
	struct store *s;
	struct record one;
	int runs;
};

static int copy_priority(struct edit *e, void *ctx)
{
	struct rival *v = ctx;
	struct several p = { &v->one, 1 };
	struct change c = { .fn = put_several, .ctx = &p };
	struct record *one, *two;

	if (edit_get(e, STR("task/one"), &one) || edit_get(e, STR("task/two"), &two))
		return STORE_IO;
	if (v->runs++ == 0)
		assert_int_equal(v->s->ops->modify(v->s, &c, 1), 0);
	two->ix.priority = one->ix.priority;
	edit_put(e, two);
	return 0;
}

/* A ref that the change does not move must still be as it was read when the others move. */
static void test_read_guard(void **state)
{
	struct bench *b = *state;
	struct rival v = { .b = b };
	struct store_env env = b->env;
	struct task one = task_named("one"), two = task_named("two");
	struct record r[2] = { record_of(b, &one), record_of(b, &two) }, got;
	struct change c = { .fn = copy_priority, .ctx = &v };
	char uri[160], here[400];

	snprintf(uri, sizeof(uri), "git:file://%s/q.git", b->dir);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(run(b, "git init -q one && git init -q two"), 0);
	assert_int_equal(chdir(b->dir) || chdir("one"), 0);
	assert_int_equal(open_as(b, uri, STORE_WRITE, "here"), 0);
	assert_int_equal(put(b, r, 2), 0);
	env.err = &v.err;
	env.mode = STORE_WRITE;
	env.opt.boot_id = STR("there");
	env.opt.timeout_ms = 4000;
	assert_int_equal(chdir("../two"), 0);
	assert_int_equal(store_open(&v.s, str_c(uri), &env), 0);
	v.one = r[0];
	v.one.ix.priority = 5;
	assert_int_equal(b->s->ops->modify(b->s, &c, 1), 0);
	assert_int_equal(v.runs, 2);
	assert_int_equal(b->s->ops->get(b->s, STR("task/two"), &got, &b->a), 0);
	assert_int_equal(got.ix.priority, 5);
	store_close(v.s);
	assert_int_equal(chdir(here), 0);
}

/* --- interrupted changes ------------------------------------------------------------------------ */

/* Changes two tasks together, then sets one ref back, as if the server had died between the two. */
static void cut_short(struct bench *b)
{
	struct task one = task_named("one"), two = task_named("two");
	struct record r[2];

	r[0] = record_of(b, &one);
	r[1] = record_of(b, &two);
	assert_int_equal(put(b, r, 2), 0);
	one.priority = two.priority = 9;
	r[0] = record_of(b, &one);
	r[1] = record_of(b, &two);
	assert_int_equal(put(b, r, 2), 0);
	assert_int_equal(run(b, "git -C q.git update-ref refs/pawl/default/t/two "
				"refs/pawl/default/t/two~1"),
			 0);
}

static void test_reader_sees_it_whole(void **state)
{
	struct bench *b = *state;

	cut_short(b);
	assert_int_equal(open_as(b, b->uri, STORE_READ, "here"), 0);
	assert_int_equal(get(b, "one").priority, 9);
	assert_int_equal(get(b, "two").priority, 9);
}

static void test_writer_finishes_it(void **state)
{
	struct bench *b = *state;
	struct task three = task_named("three");
	struct record r;

	cut_short(b);
	r = record_of(b, &three);
	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(run(b, "git -C q.git log -1 --format=%%b refs/pawl/default/t/two | "
				"grep -q '\"priority\":9'"),
			 0);
	assert_int_equal(get(b, "two").priority, 9);
}

/* A process that died with its locks in place. */
static void test_locks_left(void **state)
{
	struct bench *b = *state;
	struct task one = task_named("one");
	struct record r = record_of(b, &one);

	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(
		run(b,
		    "cd q.git && echo x >pawl/locks/refs%%2fpawl%%2fdefault%%2ft%%2fone && "
		    "ln pawl/locks/refs%%2fpawl%%2fdefault%%2ft%%2fone refs/pawl/default/t/one.lock"),
		0);
	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(run(b, "test ! -e q.git/refs/pawl/default/t/one.lock"), 0);
	/* pawl does not remove the lock of another program */
	assert_int_equal(run(b, "touch -d '2 hours ago' q.git/refs/pawl/default/t/one.lock"), 0);
	assert_int_equal(put(b, &r, 1), STORE_BUSY);
	assert_int_equal(b->err.applied, 'n');
	assert_int_equal(run(b, "rm q.git/refs/pawl/default/t/one.lock"), 0);
	assert_int_equal(put(b, &r, 1), 0);
}

/* --- the memo ----------------------------------------------------------------------------------- */

#define MEMO "q.git/pawl/memo/refs%2fpawl%2fdefault%2f"
#define MEMO_HEAD 32 /* of an entry: checksum, size, commit */

static struct str memo_read(struct bench *b)
{
	struct str text = { 0 };
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", b->dir, MEMO);
	assert_int_equal(fs_read(&b->a, path, 1 << 20, &text), 0);
	return text;
}

static void memo_write(struct bench *b, struct str text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", b->dir, MEMO);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text.p, 1, text.n, f), text.n);
	fclose(f);
}

static uint32_t entry_size(const char *at)
{
	uint32_t n;

	memcpy(&n, at + 8, sizeof(n));
	return n;
}

/* Three tasks, each changed once more through its own handle. */
static void three_tasks(struct bench *b)
{
	struct task t[3] = { task_named("one"), task_named("two"), task_named("three") };

	for (int i = 0; i < 3; i++) {
		struct record r = record_of(b, &t[i]);

		assert_int_equal(put(b, &r, 1), 0);
	}
	for (int i = 0; i < 3; i++) {
		struct record r;

		t[i].priority = i + 1;
		r = record_of(b, &t[i]);
		assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
		assert_int_equal(put(b, &r, 1), 0);
	}
}

static void all_seen(struct bench *b, enum store_mode mode)
{
	assert_int_equal(open_as(b, b->uri, mode, "here"), 0);
	assert_int_equal(get(b, "one").priority, 1);
	assert_int_equal(get(b, "two").priority, 2);
	assert_int_equal(get(b, "three").priority, 3);
}

/* The memo knows a commit's content without reading it, but no change relies on that. */
static void test_memo_knows(void **state)
{
	struct bench *b = *state;
	struct task two = task_named("two");
	struct record r = record_of(b, &two);

	three_tasks(b);
	assert_int_equal(run(b, "cd q.git && h=$(git rev-parse refs/pawl/default/t/one) && "
				"mv objects/$(echo $h | cut -c-2)/$(echo $h | cut -c3-) ../kept && "
				"echo $h >../name"),
			 0);
	all_seen(b, STORE_READ);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_int_equal(raise_priority(b), STORE_CORRUPT);
	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(run(b, "h=$(cat name) && mv kept q.git/objects/$(echo $h | cut -c-2)/"
				"$(echo $h | cut -c3-)"),
			 0);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_int_equal(raise_priority(b), 0);
	assert_int_equal(get(b, "one").priority, 2);
}

/* A damaged, truncated, missing or foreign memo does not change the answers. */
static void test_memo_damaged(void **state)
{
	struct bench *b = *state;
	static const char *const ways[] = {
		": >'" MEMO "'",
		"rm -r q.git/pawl/memo",
		"rm -rf '" MEMO "' && ln -s /etc/passwd '" MEMO "'",
		"rm -rf '" MEMO "' && mkdir '" MEMO "'",
		"rm -rf '" MEMO "' && mkfifo '" MEMO "'",
		"rm -rf q.git/pawl/memo && touch q.git/pawl/memo",
		"rm -f q.git/pawl/memo && mkdir -p q.git/pawl/memo && echo 'something else' >'" MEMO
		"'",
		"head -c 5000000 /dev/urandom >>'" MEMO "'",
	};
	struct str text;

	three_tasks(b);
	text = memo_read(b);
	assert_true(text.n > 300);
	for (size_t i = 0; i < text.n; i += SCALE(1, 7)) {
		char *bad = arena_cstr(&b->a, text);

		bad[i] ^= 0x41;
		memo_write(b, str_n(bad, text.n));
		all_seen(b, STORE_READ);
		memo_write(b, str_n(text.p, i));
		all_seen(b, STORE_READ);
	}
	memo_write(b, text);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct task one = task_named("one");
		struct record r;

		one.priority = 1;
		r = record_of(b, &one);
		assert_int_equal(run(b, "%s", ways[i]), 0);
		all_seen(b, STORE_WRITE);
		assert_int_equal(put(b, &r, 1), 0);
		all_seen(b, STORE_WRITE);
	}
}

static const char *last_entry(struct str text)
{
	const char *at = text.p + 16, *next;

	for (; (next = at + MEMO_HEAD + entry_size(at)) < text.p + text.n; at = next)
		;
	assert_true(next == text.p + text.n);
	return at;
}

/* Writes an entry with a valid checksum that claims this content for the newest commit. */
static void lie(struct bench *b, struct str payload)
{
	struct str text = memo_read(b);
	const char *at = last_entry(text);
	struct buf out = BUF_MAX(1 << 20);
	uint64_t sum = str_sum(str_sum(payload.n, at + 12, 20), payload.p, payload.n);

	buf_adds(&out, str_n(text.p, (size_t)(at - text.p)));
	buf_add(&out, &sum, sizeof(sum));
	buf_add(&out, &(uint32_t){ (uint32_t)payload.n }, 4);
	buf_adds(&out, str_n(at + 12, 20));
	buf_adds(&out, payload);
	memo_write(b, buf_str(&out));
	buf_free(&out);
}

/* Priority 0, then 7; the memo claims 0. */
static void lie_about_one(struct bench *b)
{
	struct task one = task_named("one");
	struct record r = record_of(b, &one);
	struct str text;
	const char *at;

	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_int_equal(put(b, &r, 1), 0);
	text = memo_read(b);
	one.priority = 7;
	r = record_of(b, &one);
	assert_int_equal(put(b, &r, 1), 0);
	at = last_entry(text);
	lie(b, str_n(at + MEMO_HEAD, entry_size(at)));
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_int_equal(get(b, "one").priority, 0);
}

static int refuse_low(struct edit *e, void *ctx)
{
	struct record *r;
	struct task t = { 0 };

	(void)ctx;
	if (edit_get(e, STR("task/one"), &r) || task_unpack(r->hot, &t, e->arena))
		return STORE_IO;
	return t.priority < 7 ? 5 : 6;
}

static void test_memo_lies(void **state)
{
	struct bench *b = *state;
	struct task two = task_named("two");
	struct record r = record_of(b, &two);
	struct several p = { &r, 1 };
	struct change c = { .fn = refuse_low }, more = { .fn = put_several, .ctx = &p };
	struct store_env env = b->env;
	struct store_error err = { 0 };
	struct store *other = NULL;

	lie_about_one(b);
	assert_int_equal(raise_priority(b), 0);
	assert_int_equal(get(b, "one").priority, 8);
	/* a refusal does not rely on it either */
	lie_about_one(b);
	assert_int_equal(b->s->ops->modify(b->s, &c, 1), 0);
	assert_int_equal(c.rc, 6);
	/* nor if the file is gone or replaced */
	lie_about_one(b);
	assert_int_equal(run(b, "rm -r q.git/pawl/memo"), 0);
	assert_int_equal(raise_priority(b), 0);
	assert_int_equal(get(b, "one").priority, 8);
	lie_about_one(b);
	assert_int_equal(run(b, "rm -r q.git/pawl/memo"), 0);
	env.mode = STORE_WRITE;
	env.err = &err;
	assert_int_equal(store_open(&other, str_c(b->uri), &env), 0);
	assert_int_equal(other->ops->modify(other, &more, 1), 0);
	store_close(other);
	assert_int_equal(raise_priority(b), 0);
	assert_int_equal(get(b, "one").priority, 8);
}

/* A move of the ref `name` to a commit that does not exist. */
static void add_move(struct bench *b, const char *name, struct buf *out)
{
	char hex[41] = { 0 }, move[2 * 20 + 20] = { 0 };
	FILE *f = popen(
		arena_printf(&b->a, "git -C %s/q.git rev-parse refs/pawl/default/%s", b->dir, name)
			.p,
		"r");

	assert_non_null(f);
	assert_int_equal(fread(hex, 1, 40, f), 40);
	pclose(f);
	for (int i = 0; i < 20; i++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		move[i] = (char)byte;
	}
	memcpy(move + 40, name, strlen(name));
	pack_str(out, 5, str_n(move, 40 + strlen(name)));
}

/* Entries that would mislead others: an infinite time, a move of a foreign ref. */
static void test_memo_hostile(void **state)
{
	struct bench *b = *state;
	struct task one = task_named("one"), two = task_named("two");
	struct record r = record_of(b, &two);

	assert_int_equal(put(b, &r, 1), 0);
	for (int way = 0; way < 2; way++) {
		struct buf bad = BUF_MAX(1 << 20);
		const char *at;

		assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
		r = record_of(b, &one);
		assert_int_equal(put(b, &r, 1), 0);
		at = last_entry(memo_read(b));
		buf_adds(&bad, str_n(at + MEMO_HEAD, entry_size(at)));
		if (way == 0)
			pack_int(&bad, 1, INT64_C(1) << 62);
		else
			add_move(b, "t/two", &bad);
		lie(b, buf_str(&bad));
		buf_free(&bad);
		assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
		assert_int_equal(raise_priority(b), 0);
		assert_int_equal(run(b, "rm -rf q.git/pawl/memo"), 0);
		assert_int_equal(open_as(b, b->uri, STORE_READ, "here"), 0);
		assert_int_equal(get(b, "one").priority, 1);
		assert_int_equal(get(b, "two").priority, 0);
	}
}

/* It has all records of a large change. */
static void test_memo_many(void **state)
{
	struct bench *b = *state;
	struct record *r = arena_array(&b->a, struct record, 1000);
	struct str text;
	size_t n = 0;

	b->env.opt.relaxed = true;
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	for (int i = 0; i < 1000; i++) {
		struct task t = task_named(arena_printf(&b->a, "t%d", i).p);

		r[i] = record_of(b, &t);
	}
	assert_int_equal(put(b, r, 1000), 0);
	text = memo_read(b);
	for (size_t at = 16; at < text.n; at += MEMO_HEAD + entry_size(text.p + at))
		n++;
	assert_int_equal(n, 1000);
}

/* It does not grow without limit, and readers never write it. */
static void test_memo_stays_small(void **state)
{
	struct bench *b = *state;
	struct task one = task_named("one");
	size_t most = 0;

	b->env.opt.relaxed = true;
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	for (int i = 0; i < 600; i++) {
		struct record r;

		one.priority = i;
		r = record_of(b, &one);
		assert_int_equal(put(b, &r, 1), 0);
		if (i == 100)
			most = 4 * memo_read(b).n;
	}
	assert_true(memo_read(b).n < most);
	assert_int_equal(run(b, "rm -r q.git/pawl/memo"), 0);
	assert_int_equal(open_as(b, b->uri, STORE_READ, "here"), 0);
	assert_int_equal(get(b, "one").priority, 599);
	store_close(b->s);
	b->s = NULL;
	assert_int_equal(run(b, "test ! -e q.git/pawl/memo"), 0);
}

/* --- foreign content ---------------------------------------------------------------------------- */

static void test_foreign_commit(void **state)
{
	struct bench *b = *state;
	struct task one = task_named("one"), two = task_named("two");
	struct record r[2] = { record_of(b, &one), record_of(b, &two) }, got;

	assert_int_equal(put(b, r, 2), 0);
	assert_int_equal(
		run(b,
		    "git -C q.git update-ref refs/pawl/default/t/one $(git -C q.git -c user.name=x "
		    "-c user.email=x@x commit-tree -m junk $(git -C q.git mktree </dev/null))"),
		0);
	assert_int_equal(get(b, "two").priority, 0);
	assert_int_equal(b->s->ops->get(b->s, STR("task/one"), &got, &b->a), STORE_CORRUPT);
	r[1].ix.priority = 3;
	assert_int_equal(put(b, &r[1], 1), 0);
	/* the state before is still known */
	assert_int_equal(run(b, "git -C q.git update-ref -d refs/pawl/default/t/one"), 0);
	assert_int_equal(put(b, &r[0], 1), 0);
	assert_int_equal(b->s->ops->get(b->s, STR("task/one"), &got, &b->a), 0);
}

/* Edits the commit of a task, and moves its ref to the result. */
static int edit_commit(struct bench *b, const char *id, const char *sed)
{
	return run(b,
		   "git -C q.git cat-file commit refs/pawl/default/t/%s | sed '%s' >c && git -C "
		   "q.git update-ref refs/pawl/default/t/%s $(git -C q.git hash-object -t commit "
		   "-w ../c)",
		   id, sed, id);
}

/* Handmade commits: a change that would move foreign refs, and one with a time in the far
 * future. */
static void test_hostile_commit(void **state)
{
	static const char *const edits[] = {
		"s/\"stamp\":[0-9]*/&,\"moves\":[{\"ref\":\"..\\/..\\/..\\/..\\/..\\/evil\\/x\","
		"\"old\":\"0000000000000000000000000000000000000000\","
		"\"new\":\"1111111111111111111111111111111111111111\"}]/",
		"s/\"stamp\":[0-9]*/\"stamp\":9223372036854775807/",
	};
	struct bench *b = *state;
	struct task one = task_named("one"), two = task_named("two");
	struct record r[2] = { record_of(b, &one), record_of(b, &two) }, got;

	assert_int_equal(put(b, r, 2), 0);
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		assert_int_equal(edit_commit(b, "one", edits[i]), 0);
		assert_int_equal(b->s->ops->get(b->s, STR("task/one"), &got, &b->a), STORE_CORRUPT);
		r[1].ix.priority = (int)i;
		assert_int_equal(put(b, &r[1], 1), 0);
		assert_int_equal(run(b, "test ! -e evil && test ! -e ../evil"), 0);
		assert_int_equal(run(b, "git -C q.git update-ref -d refs/pawl/default/t/one"), 0);
		assert_int_equal(put(b, &r[0], 1), 0);
	}
}

/* Pawl 0.1 did not write the due date into the index. */
static void test_older(void **state)
{
	static const char without_due[] = "s/,\"due\":0//";
	struct bench *b = *state;
	struct task one = task_named("one"), two = task_named("two");
	struct record r[2] = { record_of(b, &one), record_of(b, &two) }, got;

	assert_int_equal(put(b, r, 2), 0);
	assert_int_equal(edit_commit(b, "one", without_due), 0);
	assert_int_equal(b->s->ops->get(b->s, STR("task/one"), &got, &b->a), STORE_CORRUPT);
	assert_int_equal(get(b, "two").priority, 0); /* one such commit is only damage */
	assert_int_equal(edit_commit(b, "two", without_due), 0);
	assert_int_equal(b->s->ops->get(b->s, STR("task/two"), &got, &b->a), STORE_OLDER);
	assert_int_equal(put(b, &r[1], 1), STORE_OLDER);
	for (int mode = STORE_READ; mode <= STORE_CREATE; mode++) {
		int rc = open_as(b, b->uri, mode, "here");

		if (rc == 0) /* a handle that does not create reads nothing yet */
			rc = b->s->ops->get(b->s, STR("task/two"), &got, &b->a);
		assert_int_equal(rc, STORE_OLDER);
		assert_non_null(strstr(b->err.text, "older pawl"));
		assert_non_null(strstr(b->err.hint, "pawl import tasks.json"));
	}
}

static void test_base_gone(void **state)
{
	struct bench *b = *state;
	struct task one = task_named("one");
	struct record r = record_of(b, &one), got;

	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(run(b, "cd q.git && cp refs/pawl/default/base saved && "
				"git update-ref -d refs/pawl/default/base"),
			 0);
	assert_int_equal(b->s->ops->get(b->s, r.key, &got, &b->a), STORE_ABSENT);
	assert_int_equal(put(b, &r, 1), STORE_ABSENT);
	assert_int_equal(run(b, "cd q.git && git update-ref refs/pawl/default/base $(cat saved)"),
			 0);
	assert_int_equal(b->s->ops->get(b->s, r.key, &got, &b->a), 0);
}

/* --- invalid places ----------------------------------------------------------------------------- */

static void test_bad_remotes(void **state)
{
	static const char *const bad[] = { "git:",
					   "git:--upload-pack=touch pawl-was-run",
					   "git:-x",
					   "git:ext::sh -c touch% pawl-was-run",
					   "git:foo::bar",
					   "git:gopher://x/y",
					   "git:a\nb",
					   "git:/tmp/x?prefix=heads",
					   "git:/tmp/x?prefix=refs/a..b",
					   "git:/tmp/x?refs=many",
					   "git:/tmp/x?skew=often",
					   "git:/tmp/x#a..b",
					   "git:/tmp/x?layout=tree" };
	struct bench *b = *state;
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(b->dir), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(open_as(b, bad[i], STORE_CREATE, "here"), STORE_UNSUPPORTED);
		assert_true(b->err.text[0] && b->err.hint[0]);
	}
	assert_int_equal(chdir(here), 0);
	assert_int_equal(run(b, "test ! -e pawl-was-run && mkdir full && touch full/file"), 0);
	snprintf(b->uri, sizeof(b->uri), "git:%s/full", b->dir);
	assert_int_equal(open_as(b, b->uri, STORE_CREATE, "here"), STORE_FOREIGN);
	snprintf(b->uri, sizeof(b->uri), "git:%s/none.git", b->dir);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), STORE_ABSENT);
	snprintf(b->uri, sizeof(b->uri), "git:file://%s/none.git", b->dir);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), STORE_UNREACHABLE);
}

/* --- time --------------------------------------------------------------------------------------- */

static struct record locked(struct bench *b, struct task *t, int64_t ends)
{
	*t = task_named("one");
	t->status = IN_PROGRESS;
	t->lock = (struct lock){ .holder = STR("alice"),
				 .token = STR("01234567890123456789012345678901"),
				 .acquired_at = fake,
				 .expires_at = ends,
				 .ttl = 10000 };
	return record_of(b, t);
}

static void test_other_clocks(void **state)
{
	struct bench *b = *state;
	int64_t ends = fake + 10000;
	struct task t;
	struct record r = locked(b, &t, ends);

	assert_int_equal(put(b, &r, 1), 0);
	assert_true(get(b, "one").lock.expires_at == ends);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "elsewhere"), 0);
	assert_true(get(b, "one").lock.expires_at == ends + 60000);
	/* another field changed: the holder keeps the lock unchanged */
	t = get(b, "one");
	t.id = t.title = STR("one");
	t.open_subs = 1;
	r = record_of(b, &t);
	assert_int_equal(put(b, &r, 1), 0);
	assert_true(get(b, "one").lock.expires_at == ends + 60000);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_true(get(b, "one").lock.expires_at == ends);
	assert_int_equal(get(b, "one").open_subs, 1);
}

/* Another clone on this machine may have begun before the wall clock was set. */
static void test_other_anchor(void **state)
{
	struct bench *b = *state;
	int64_t ends = fake + 10000;
	struct task t;
	struct record r = locked(b, &t, ends);

	assert_int_equal(put(b, &r, 1), 0);
	assert_int_equal(run(b, "read boot wall at <q.git/pawl/clock && "
				"echo $boot $((wall - 600000)) $at >q.git/pawl/clock"),
			 0);
	assert_int_equal(open_as(b, b->uri, STORE_WRITE, "here"), 0);
	assert_true(get(b, "one").lock.expires_at == ends + 60000);
}

/* A machine's clock is an hour behind. Its lease counts from when we first saw it, which the state
 * folder records. If it cannot be recorded, the lock does not expire. */
static void test_first_seen(void **state)
{
	struct bench *b = *state;
	struct task t;
	struct record r = locked(b, &t, fake - 3600000);
	char uri[160];

	assert_int_equal(put(b, &r, 1), 0);
	snprintf(uri, sizeof(uri), "%s?skew=0", b->uri);
	assert_int_equal(open_as(b, uri, STORE_WRITE, "elsewhere"), 0);
	assert_true(get(b, "one").lock.expires_at == fake + 10000);
	fake += 4000;
	assert_int_equal(open_as(b, uri, STORE_WRITE, "elsewhere"), 0);
	assert_true(get(b, "one").lock.expires_at == fake + 6000);
	assert_int_equal(run(b, "grep -q ' elsewhere$' pawl/git-locks-seen"), 0);
	assert_int_equal(run(b, "rm pawl/git-locks-seen && mkdir pawl/git-locks-seen"), 0);
	assert_int_equal(open_as(b, uri, STORE_WRITE, "elsewhere"), 0);
	assert_true(get(b, "one").lock.expires_at == fake + 10000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_memo_knows),
		TEST(test_memo_damaged),
		TEST(test_memo_lies),
		TEST(test_memo_hostile),
		TEST(test_memo_many),
		TEST(test_memo_stays_small),
		TEST(test_read_guard),
		TEST(test_reader_sees_it_whole),
		TEST(test_writer_finishes_it),
		TEST(test_locks_left),
		TEST(test_foreign_commit),
		TEST(test_hostile_commit),
		TEST(test_older),
		TEST(test_base_gone),
		TEST(test_bad_remotes),
		TEST(test_other_clocks),
		TEST(test_other_anchor),
		TEST(test_first_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
