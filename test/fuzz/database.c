/*
 * A whole database that another program changed: a queue of ours with some bytes replaced. The
 * input: whether the bytes are those of the -wal (one byte, its lowest bit), then patches: where
 * (two bytes, in units of 2), how many bytes (one), the bytes. The store answers or reports the
 * damage, and touches no other file.
 */
#include <unistd.h>

#include "kit.h"
#include "base/fs.h"
#include "store/store.h"

#define TASKS 20

static const char *dir;
static char database[128], uri[144];
static struct arena kept;
static struct str sound, sound_wal;

static const char *beside(const char *end)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s%s", database, end);
	return path;
}

/* --- the queue ------------------------------------------------------------------------------------ */

static int put_one(struct edit *e, void *ctx)
{
	int i = *(int *)ctx;
	struct str *lists = arena_array(e->arena, struct str, 2), other;
	struct record r = { .ix = { .lane = i % 4,
				    .status = 1 + i % 5,
				    .class_rank = 1 + i % 4,
				    .eligible_at = i % 3 ? 0 : i * 1000,
				    .labels = { &lists[0], 1 },
				    .depends = { &lists[1], i % 2 } },
			    .hot = STR("hot"),
			    .body = STR("a text"),
			    .body_changed = true };

	other = arena_printf(e->arena, "task/t%d", i / 2);
	lists[0] = STR("label");
	lists[1] = other;
	r.ix.id = arena_printf(e->arena, "t%d", i);
	r.key = arena_printf(e->arena, "task/t%d", i);
	r.ix.holder = i % 5 ? STR("") : STR("agent");
	r.ix.token = i % 5 ? STR("") : r.ix.id;
	r.ix.parent = i % 7 ? STR("") : other;
	edit_put(e, &r);
	edit_log(e, r.key, STR("made"));
	return 0;
}

static int open_it(enum store_mode mode, struct store **out, struct store_error *err)
{
	struct store_env env = {
		.mode = mode, .opt.timeout_ms = 1000, .opt.who = STR("fuzz"), .err = err
	};

	*err = (struct store_error){ 0 };
	return store_open(out, str_c(uri), &env);
}

static int change(struct store *s, int i)
{
	struct change c = { .fn = put_one, .ctx = &i, .rc = 0 };

	return s->ops->modify(s, &c, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct store_error err;
	struct store *s;

	(void)argc, (void)argv;
	dir = fuzz_dir();
	snprintf(database, sizeof(database), "%s/q.db", dir);
	snprintf(uri, sizeof(uri), "sqlite:%s", database);
	CHECK(open_it(STORE_CREATE, &s, &err) == 0);
	for (int i = 0; i < TASKS; i++)
		CHECK(change(s, i) == 0);
	store_close(s);
	CHECK(fs_read(&kept, database, 1 << 22, &sound) == 0);
	CHECK(fs_read(&kept, beside("-wal"), 1 << 22, &sound_wal) == 0);
	return 0;
}

/* The store waits and looks again at a file that seems damaged; nobody changes it here, so do not
 * wait. */
int usleep(useconds_t us)
{
	(void)us;
	return 0;
}

/* --- an input --------------------------------------------------------------------------------------- */

static struct str patched(struct str base, struct str patches, struct arena *a)
{
	struct str out = arena_str(a, base);
	char *bytes = (char *)(uintptr_t)out.p;

	while (patches.n >= 3) {
		const unsigned char *p = (const unsigned char *)patches.p;
		size_t at = 2 * ((size_t)p[0] << 8 | p[1]) % base.n, n = p[2];

		patches = str_n(patches.p + 3, patches.n - 3);
		n = n < patches.n ? n : patches.n;
		n = n < base.n - at ? n : base.n - at;
		memcpy(bytes + at, patches.p, n);
		patches = str_n(patches.p + n, patches.n - n);
	}
	return out;
}

static int check_one(const struct record *r, void *ctx)
{
	size_t *sum = ctx;

	*sum += r->key.n + r->hot.n + r->body.n + r->ix.id.n + r->ix.holder.n;
	for (size_t i = 0; i < r->ix.labels.n; i++)
		*sum += r->ix.labels.v[i].n ? (unsigned char)r->ix.labels.v[i].p[0] : 0;
	for (size_t i = 0; i < r->ix.depends.n; i++)
		*sum += r->ix.depends.v[i].n ? (unsigned char)r->ix.depends.v[i].p[0] : 0;
	return 0;
}

static int look_at_entry(const struct entry *e, void *ctx)
{
	*(size_t *)ctx += e->data.n + e->key.n + e->cursor.n;
	return 0;
}

static void said(int rc, const struct store_error *err)
{
	CHECK(rc >= 0 || (err->fault == rc && err->text[0]));
}

static void on_finding(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	(void)level, (void)fix;
	*(size_t *)ctx += strlen(what) + text.n;
}

static void use(enum store_mode mode)
{
	static const enum pick picks[] = { PICK_ALL, PICK_ELIGIBLE, PICK_LATER, PICK_OTHERS };
	struct arena a = { 0 };
	struct store_error err;
	struct store *s = NULL;
	struct record r;
	int64_t counts[16];
	size_t sum = 0;
	int rc = open_it(mode, &s, &err);

	said(rc, &err);
	if (rc < 0)
		return;
	for (size_t i = 0; i < sizeof(picks) / sizeof(picks[0]); i++)
		said(s->ops->scan(s, &(struct query){ .pick = picks[i], .body = i % 2 == 0 },
				  check_one, &sum),
		     &err);
	said(s->ops->get(s, STR("task/t3"), &r, &a), &err);
	said(s->ops->tally(s, counts), &err);
	said(s->ops->entries(s, &(struct entry_query){ .last = 0 }, look_at_entry, &sum), &err);
	if (mode == STORE_WRITE) {
		said(change(s, 3), &err);
		said(change(s, TASKS + 1), &err);
		said(s->ops->check(s, on_finding, &sum), &err);
	}
	store_close(s);
	arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str patches;
	bool in_wal;

	if (size < 1)
		return 0;
	in_wal = data[0] & 1;
	patches = str_n((const char *)data + 1, size - 1);
	unlink(beside("-shm"));
	fuzz_write(database, in_wal ? sound : patched(sound, patches, &a));
	fuzz_write(beside("-wal"), in_wal ? patched(sound_wal, patches, &a) : STR(""));
	if (!in_wal)
		unlink(beside("-wal"));
	use(STORE_READ);
	use(STORE_WRITE);
	CHECK(fuzz_only(dir,
			(const char *[]){ "q.db", "q.db-wal", "q.db-shm", "q.db-gate", NULL }));
	arena_free(&a);
	return 0;
}
