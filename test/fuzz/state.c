/*
 * .pawl/state of a files: queue. The input: a byte that says where in a good one the rest of the input goes. A reader
 * takes it, in part or not at all, or says that it is damaged.
 */
#include <sys/stat.h>

#include "kit.h"
#include "base/fs.h"
#include "store/store.h"

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
	struct store_env env = { .mode = mode, .timeout_ms = 5000, .relaxed = true, .err = &err };
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
	buf_free(&b);
	return 0;
}
