/*
 * A .lock, .done, .failed or .task that somebody else put into the folder: the first byte says which, the rest
 * is its content. The queue goes on, whatever it is: it is a task, or a file that cannot be used; the
 * file is not touched by those who read; and what the store makes of it can be written and read again.
 */
#include <unistd.h>

#include "kit.h"
#include "base/fs.h"
#include "queue/queue.h"

#define LOG_RUNS 30 /* the log grows with each run, and is read in each */

static const char *const names[] = { "x.lock", "x.done", "x.failed", "x.task" };

static const char *dir;
static char uri[144];
static struct queue *queue;

static struct queue *open_queue(enum store_mode mode, struct arena *a)
{
	struct queue_config config = { .uri = str_c(uri),
				       .policy = policy_default,
				       .timeout_ms = 5000,
				       .relaxed = true,
				       .who = STR("fuzz") };
	struct answer ans = { 0 };
	struct queue *q = NULL;

	CHECK(queue_open(&q, &config, mode, &ans, a) == SUCCESS);
	return q;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct arena a = { 0 };

	(void)argc, (void)argv;
	dir = fuzz_dir();
	snprintf(uri, sizeof(uri), "files:%s", dir);
	queue = open_queue(STORE_CREATE, &a);
	arena_free(&a);
	return 0;
}

static void begin_anew(struct arena *a)
{
	struct answer ans = { 0 };

	CHECK(queue_discard(queue, &ans, a) == SUCCESS);
	queue_close(queue);
	queue = open_queue(STORE_CREATE, a);
}

static enum result ask(enum op op, const char *id, struct arena *a)
{
	struct request rq = { .op = op };
	struct answer ans = { 0 };

	GIVE(&rq, agent, STR("ann"));
	if (*id)
		GIVE(&rq, id, str_c(id));
	if (op == OP_CREATE)
		GIVE(&rq, title, STR("good"));
	if (op == OP_REMOVE)
		GIVE(&rq, force, 1);
	queue_call(queue, &rq, &ans, a);
	return ans.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned runs;
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size), kept;
	const char *path;
	enum result code;

	if (!size)
		return 0;
	if (++runs % LOG_RUNS == 0)
		begin_anew(&a);
	path = fs_join(&a, str_c(dir), str_c(names[data[0] % 4]));
	text = str_n(text.p + 1, size - 1);
	fuzz_write(path, text);
	code = ask(OP_SHOW, "x", &a);
	CHECK(code == SUCCESS || code == MISCONFIGURED);
	CHECK(ask(OP_LIST, "", &a) == SUCCESS);
	CHECK(fs_read(&a, path, 1 << 24, &kept) == 0 && str_eq(kept, text));
	CHECK(ask(OP_CREATE, "good", &a) == SUCCESS);
	CHECK(ask(OP_SHOW, "x", &a) == code);
	CHECK(ask(OP_REMOVE, "good", &a) == SUCCESS);
	CHECK(ask(OP_REMOVE, "x", &a) == code);
	unlink(path);
	CHECK(ask(OP_SHOW, "x", &a) == NOT_FOUND);
	arena_free(&a);
	return 0;
}
