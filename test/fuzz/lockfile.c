/*
 * A .lock, .done, .failed or .task file that another program put into the folder. The first byte
 * chooses the kind, the rest is its content. The queue continues with any content: the file is a
 * task, or it is unusable. Reads do not touch the file, and the store can write and read again what
 * it made of it. A file without the words of the protocol is foreign, and no call changes it.
 */
#include <unistd.h>

#include "kit.h"
#include "base/fs.h"
#include "queue/queue.h"

/* start again after this number of runs: the log grows with each, and each reads it */
#define LOG_RUNS 30

static const char *const names[] = { "x.lock", "x.done", "x.failed", "x.task" };

static const char *dir;
static char uri[144];
static struct queue *queue;

static struct queue *open_queue(enum store_mode mode, struct arena *a)
{
	struct queue_config config = { .uri = str_c(uri),
				       .policy = policy_default,
				       .opt.timeout_ms = 5000,
				       .opt.relaxed = true,
				       .opt.who = STR("fuzz") };
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
	if (op == OP_REMOVE) {
		GIVE(&rq, force, 1);
		GIVE(&rq, reason, STR("why")); /* the file may be a lock of another agent */
	}
	queue_call(queue, &rq, &ans, a);
	return ans.code;
}

static bool has_words(struct str text)
{
	return str_has_nocase(text, STR("task_id")) || str_has_nocase(text, STR("agent")) ||
	       str_has_nocase(text, STR("description"));
}

/* Every call on the task fails, and the file stays as it is. `remove --force` may take away a record of our own. */
static void check_foreign(const char *path, struct str text, struct arena *a)
{
	static const enum op ops[] = { OP_CLAIM,  OP_CREATE,  OP_DONE,   OP_RELEASE,
				       OP_REMOVE, OP_ARCHIVE, OP_CANCEL, OP_UPDATE };
	struct str kept;

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (ops[i] != OP_REMOVE || !has_words(text))
			CHECK(ask(ops[i], "x", a) != SUCCESS);
	CHECK(fs_read(a, path, 1 << 24, &kept) == 0 && str_eq(kept, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned runs;
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size), kept;
	const char *path;
	enum result code, removed;

	if (!size)
		return 0;
	if (++runs % LOG_RUNS == 0)
		begin_anew(&a);
	path = fs_join(&a, str_c(dir), str_c(names[data[0] % 4]));
	text = str_n(text.p + 1, size - 1);
	fuzz_write(path, text);
	code = ask(OP_SHOW, "x", &a);
	CHECK(code == SUCCESS || code == MISCONFIGURED);
	CHECK(code == MISCONFIGURED || has_words(text));
	if (code == MISCONFIGURED)
		check_foreign(path, text, &a);
	CHECK(ask(OP_LIST, "", &a) == SUCCESS);
	CHECK(fs_read(&a, path, 1 << 24, &kept) == 0 && str_eq(kept, text));
	CHECK(ask(OP_CREATE, "good", &a) == SUCCESS);
	CHECK(ask(OP_SHOW, "x", &a) == code);
	CHECK(ask(OP_REMOVE, "good", &a) == SUCCESS);
	removed = ask(OP_REMOVE, "x", &a);
	CHECK(removed == code || (removed == SUCCESS && has_words(text)));
	unlink(path);
	CHECK(ask(OP_SHOW, "x", &a) == NOT_FOUND);
	arena_free(&a);
	return 0;
}
