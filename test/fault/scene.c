#include "scene.h"

#include <time.h>

#include "base/os.h"
#include "format/answer_form.h"

#define MINUTE INT64_C(60000)
#define BEGIN INT64_C(1700000000000)

static char uri[200];
static const char *folder;
static int64_t now_ms = BEGIN;
static bool on_files;

int64_t __wrap_os_wall_ms(void);
int64_t __wrap_os_boot_ms(void);

int64_t __wrap_os_wall_ms(void)
{
	return now_ms;
}

int64_t __wrap_os_boot_ms(void)
{
	return now_ms;
}

static const char *boot = "now";

struct str __wrap_os_boot_id(struct arena *a);
struct str __wrap_os_boot_id(struct arena *a)
{
	return arena_str(a, str_c(boot));
}

void scene_boot(const char *name)
{
	boot = name;
}

void scene_clock(int64_t ms)
{
	now_ms = ms;
}

/* --- the operations ------------------------------------------------------------------------------ */

#define TOKEN(digit) STR(digit "1111111-1111-4111-8111-111111111111")
#define HELD TOKEN("a")
#define RAN_OUT TOKEN("b")
#define FRESH TOKEN("c")
#define NEXT TOKEN("d")

static void fill_create(struct request *rq)
{
	*rq = kit_request(OP_CREATE, STR(""), STR("ann"));
	GIVE(rq, title, STR("one more"));
	GIVE(rq, description, STR("with a text"));
	GIVE(rq, request_id, STR("r-create"));
}

static void fill_claim(struct request *rq)
{
	*rq = kit_request(OP_CLAIM, STR("t1"), STR("ann"));
	GIVE(rq, new_token, FRESH);
}

static void fill_take(struct request *rq)
{
	*rq = kit_request(OP_TAKE, STR(""), STR("ann"));
	GIVE(rq, new_token, FRESH);
}

static void fill_heartbeat(struct request *rq)
{
	*rq = kit_request(OP_HEARTBEAT, STR("t2"), STR("bob"));
	GIVE(rq, token, HELD);
	GIVE(rq, request_id, STR("r-heartbeat"));
}

static void fill_done(struct request *rq)
{
	*rq = kit_request(OP_DONE, STR("t2"), STR("bob"));
	GIVE(rq, token, HELD);
	GIVE(rq, summary, STR("made"));
}

static void fill_done_next(struct request *rq)
{
	fill_done(rq);
	GIVE(rq, claim_next, 1);
	GIVE(rq, new_token, NEXT);
}

static void fill_update(struct request *rq)
{
	*rq = kit_request(OP_UPDATE, STR("t4"), STR("ann"));
	GIVE(rq, title, STR("another title"));
	GIVE(rq, priority, 9);
	GIVE(rq, request_id, STR("r-update"));
}

static void fill_comment(struct request *rq)
{
	*rq = kit_request(OP_COMMENT, STR("t4"), STR("ann"));
	GIVE(rq, text, STR("a remark"));
	GIVE(rq, request_id, STR("r-comment"));
}

static void fill_remove(struct request *rq)
{
	*rq = kit_request(OP_REMOVE, STR("t5"), STR("ann"));
	GIVE(rq, request_id, STR("r-remove"));
}

static void fill_cleanup(struct request *rq)
{
	*rq = kit_request(OP_LOCK_CLEANUP, STR(""), STR("ann"));
	GIVE(rq, request_id, STR("r-cleanup"));
}

static void fill_list(struct request *rq)
{
	*rq = kit_request(OP_LIST, STR(""), STR("ann"));
}

static void fill_log(struct request *rq)
{
	*rq = kit_request(OP_LOG, STR(""), STR("ann"));
}

static void fill_next(struct request *rq)
{
	*rq = kit_request(OP_NEXT, STR(""), STR("ann"));
}

const struct operation operations[] = {
	{ .name = "init", .what = DO_OPEN, .mode = STORE_CREATE, .from_nothing = true },
	{ .name = "open", .what = DO_OPEN, .mode = STORE_WRITE },
	{ .name = "open to read", .what = DO_OPEN, .mode = STORE_READ },
	{ .name = "create", .mode = STORE_WRITE, .fill = fill_create },
	{ .name = "claim", .mode = STORE_WRITE, .fill = fill_claim },
	{ .name = "claim, long log", .mode = STORE_WRITE, .fill = fill_claim, .long_log = true },
	{ .name = "take", .mode = STORE_WRITE, .fill = fill_take },
	{ .name = "heartbeat", .mode = STORE_WRITE, .fill = fill_heartbeat },
	{ .name = "done", .mode = STORE_WRITE, .fill = fill_done },
	{ .name = "done --claim-next", .mode = STORE_WRITE, .fill = fill_done_next },
	{ .name = "update", .mode = STORE_WRITE, .fill = fill_update },
	{ .name = "comment", .mode = STORE_WRITE, .fill = fill_comment },
	{ .name = "remove", .mode = STORE_WRITE, .fill = fill_remove },
	{ .name = "lock cleanup", .mode = STORE_WRITE, .fill = fill_cleanup },
	{ .name = "list", .mode = STORE_READ, .fill = fill_list },
	{ .name = "log", .mode = STORE_READ, .fill = fill_log },
	{ .name = "next", .mode = STORE_READ, .fill = fill_next },
	{ .name = "check", .what = DO_CHECK, .mode = STORE_READ },
	{ .name = "close", .what = DO_CLOSE, .mode = STORE_WRITE },
};
const size_t n_operations = sizeof(operations) / sizeof(*operations);

static void ignore(void *ctx, enum check_level level, const char *what, struct str text,
		   struct str fix)
{
	(void)ctx, (void)level, (void)what, (void)text, (void)fix;
}

void scene_do(const struct operation *op, struct queue **q, struct answer *ans, struct arena *a)
{
	struct request rq;

	*ans = (struct answer){ 0 };
	switch (op->what) {
	case DO_OPEN:
		scene_open(q, op->mode, ans, a);
		return;
	case DO_CLOSE:
		queue_close(*q);
		*q = NULL;
		return;
	case DO_CHECK:
		queue_check(*q, ignore, NULL, ans, a);
		return;
	default:
		op->fill(&rq);
		queue_call(*q, &rq, ans, a);
	}
}

/* --- the store ----------------------------------------------------------------------------------- */

void scene_begin(const char *dir)
{
	const char *from = getenv("PAWL_TEST_STORE"), *at;

	if (!from || !*from)
		from = "sqlite:{dir}/queue.db";
	at = strstr(from, "{dir}");
	CHECK(at, "the store must be in {dir}");
	snprintf(uri, sizeof(uri), "%.*s%s%s", (int)(at - from), from, dir, at + 5);
	on_files = str_starts(str_c(uri), STR("files:"));
	folder = dir;
	tzset(); /* libc reads a file for this once; that is not the store's call */
}

enum result scene_open(struct queue **q, enum store_mode mode, struct answer *ans, struct arena *a)
{
	struct queue_config config = { .uri = str_c(uri),
				       .policy = policy_default,
				       .opt.timeout_ms = 3000,
				       .opt.who = STR("fault test") };

	return queue_open(q, &config, mode, ans, a);
}

/* --- the queue ----------------------------------------------------------------------------------- */

static void must(struct queue *q, const struct request *rq)
{
	struct arena a = { 0 };
	struct answer ans;

	queue_call(q, rq, &ans, &a);
	CHECK(ans.code == SUCCESS, "%s: %.*s", op_name(rq->op), STRF(ans.message));
	arena_free(&a);
}

static void add_task(struct queue *q, int i)
{
	struct request rq = kit_request(OP_CREATE, STR(""), STR("ann"));
	struct str labels[] = { STR("x"), STR("y") };
	struct str depends[] = { STR("t2") };
	char text[6000];

	memset(text, 'a' + i, sizeof(text));
	GIVE(&rq, title, STR("a task"));
	GIVE(&rq, description, str_n(text, i == 4 ? sizeof(text) : 20));
	GIVE(&rq, priority, i);
	GIVE(&rq, labels, ((struct strs){ labels, (size_t)i % 3 }));
	if (i == 6)
		GIVE(&rq, depends, ((struct strs){ depends, 1 }));
	if (i == 7)
		GIVE(&rq, parent, STR("t1"));
	must(q, &rq);
}

static void hold(struct queue *q, struct str id, struct str token, int64_t ttl)
{
	struct request rq = kit_request(OP_CLAIM, id, STR("bob"));

	GIVE(&rq, new_token, token);
	GIVE(&rq, ttl, ttl);
	must(q, &rq);
}

/* Enough for the next writer to find a long WAL, or many frames. */
static void write_much(struct queue *q)
{
	static char text[8000];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 40; i++) {
		struct request rq = kit_request(OP_COMMENT, STR("t4"), STR("ann"));

		GIVE(&rq, text, str_n(text, sizeof(text)));
		must(q, &rq);
	}
}

static void make(const struct operation *op)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;

	now_ms = BEGIN;
	tree_clear(folder);
	if (!op->from_nothing) {
		scene_boot("earlier");
		CHECK(scene_open(&q, STORE_CREATE, &ans, &a) == SUCCESS, "%.*s", STRF(ans.message));
		for (int i = 1; i <= 8; i++)
			add_task(q, i);
		queue_close(q);
		scene_boot("now"); /* on files: the first writer of a boot makes a snapshot */
		CHECK(scene_open(&q, STORE_WRITE, &ans, &a) == SUCCESS, "%.*s", STRF(ans.message));
		hold(q, STR("t3"), RAN_OUT, MINUTE);
		now_ms += 2 * MINUTE;
		hold(q, STR("t2"), HELD, 60 * MINUTE);
		if (op->long_log)
			write_much(q);
		queue_close(q);
	}
	now_ms = BEGIN + 3 * MINUTE;
	arena_free(&a);
}

void scene_make(const struct operation *op, struct tree *out)
{
	make(op);
	tree_load(out, folder);
}

/* files: relies on the inode and times of a file, and a copy has others. */
void scene_restore(const struct operation *op, const struct tree *t)
{
	if (on_files)
		make(op);
	else
		tree_store(t, folder);
}

/* --- reading the result -------------------------------------------------------------------------- */

struct str scene_json(const struct answer *ans, struct arena *a)
{
	json_t *o = answer_json(ans, a);
	struct str out;
	char *text;

	json_object_del(o, "repeated");
	text = json_dumps(o, JSON_SORT_KEYS);
	out = arena_str(a, str_c(text));
	free(text);
	json_decref(o);
	return out;
}

struct str scene_dump(struct queue *q, struct arena *a)
{
	static const enum op reads[] = { OP_LIST, OP_LOG, OP_LOCKS, OP_OVERVIEW, OP_ID_PEEK };
	struct buf b = BUF_MAX(16 << 20);
	struct str out;

	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		struct request rq = kit_request(reads[i], STR(""), STR("judge"));
		struct answer ans;

		queue_call(q, &rq, &ans, a);
		if (ans.code != SUCCESS) {
			buf_free(&b);
			return STR("");
		}
		buf_adds(&b, scene_json(&ans, a));
		buf_addc(&b, '\n');
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

struct worst {
	struct arena *a;
	struct str text;
};

static void keep_bad(void *ctx, enum check_level level, const char *what, struct str text,
		     struct str fix)
{
	struct worst *w = ctx;

	(void)fix;
	if (level == CHECK_BAD && !w->text.n)
		w->text = arena_printf(w->a, "%s: %.*s", what, STRF(text));
}

struct str scene_check(struct queue *q, struct arena *a)
{
	struct worst w = { .a = a };
	struct answer ans = { 0 };

	if (queue_check(q, keep_bad, &w, &ans, a) != SUCCESS)
		return ans.message;
	return w.text;
}
