/*
 * .pawl/state of a files: queue. The first byte of the input says where in a good state the rest
 * goes. A reader accepts it, partly or not at all, or reports that it is damaged. A writer leaves
 * the files of other programs in the folder as they are.
 */
#include <sys/stat.h>

#include "kit.h"
#include "base/fs.h"
#include "store/store.h"
#include "queue/queue.h"

static const char *dir;
static char uri[144], state[144];
static struct str good;
static struct arena forever;

static int put_some(struct edit *e, void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 3; i++) {
		struct record *r = arena_new(e->arena, struct record);

		r->key = arena_printf(e->arena, "task/t%d", i);
		r->ix = (struct index){
			.lane = LANE_READY, .status = 2, .id = STR("t"), .depends = { &r->key, 1 }
		};
		r->hot = r->body = STR("some bytes");
		r->body_changed = true;
		edit_put(e, r);
		edit_log(e, r->key, STR("line"));
	}
	return 0;
}

static struct store *open_store(enum store_mode mode)
{
	static struct store_error err;
	struct store_env env = { .rules = &queue_rules,
				 .mode = mode,
				 .opt.timeout_ms = 5000,
				 .opt.relaxed = true,
				 .err = &err };
	struct store *s = NULL;

	return store_open(&s, str_c(uri), &env) ? NULL : s;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct change c = { .fn = put_some };
	struct store *s;

	(void)argc, (void)argv;
	dir = fuzz_dir();
	snprintf(uri, sizeof(uri), "files:%s", dir);
	snprintf(state, sizeof(state), "%s/.pawl/state", dir);
	s = open_store(STORE_CREATE);
	CHECK(s && s->ops->modify(s, &c, 1) == 0);
	store_close(s);
	CHECK(fs_read(&forever, state, 1 << 20, &good) == 0);
	return 0;
}

static const char *const others[] = { "Cargo.lock", "t1.lock", "t.done", "t2.task" };

static void write_others(struct arena *a)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		fuzz_write(fs_join(a, str_c(dir), str_c(others[i])), STR("version = 3\n"));
}

static void check_others(struct arena *a)
{
	struct str kept;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		CHECK(fs_read(a, fs_join(a, str_c(dir), str_c(others[i])), 100, &kept) == 0 &&
		      str_is(kept, "version = 3\n"));
}

static void change(void)
{
	struct change c = { .fn = put_some };
	struct arena a = { 0 };
	struct store *s;

	write_others(&a);
	s = open_store(STORE_WRITE);
	if (s) {
		(void)s->ops->modify(s, &c, 1);
		store_close(s);
	}
	check_others(&a);
	arena_free(&a);
}

static int look(const struct record *r, void *ctx)
{
	*(size_t *)ctx += r->key.n + r->hot.n + r->body.n;
	return 0;
}

static int look_line(const struct entry *e, void *ctx)
{
	*(size_t *)ctx += e->key.n + e->data.n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = size ? good.n * data[0] / 256 : 0, n = 0;
	struct buf b = BUF_MAX(1 << 20);
	int64_t counts[16];
	struct store *s;

	if (!size)
		return 0;
	buf_add(&b, good.p, at);
	buf_add(&b, data + 1, size - 1);
	if (at + size - 1 < good.n)
		buf_add(&b, good.p + at + size - 1, good.n - at - size + 1);
	fuzz_write(state, buf_str(&b));
	s = open_store(STORE_READ);
	if (s) {
		(void)s->ops->scan(s, &(struct query){ .body = true }, look, &n);
		(void)s->ops->scan(s, &(struct query){ .pick = PICK_ELIGIBLE }, look, &n);
		(void)s->ops->entries(s, &(struct entry_query){ 0 }, look_line, &n);
		(void)s->ops->tally(s, counts);
		store_close(s);
	}
	change();
	buf_free(&b);
	return 0;
}
