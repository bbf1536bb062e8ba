/*
 * A backup: the first byte says how it is restored, and whether the checksum is corrected after the
 * change. A refused backup changes nothing. An accepted one is usable, and a new backup of it is
 * equally good.
 */
#include <unistd.h>

#include "queue.h"
#include "base/fs.h"
#include "base/secret.h"
#include "transfer/backup_file.h"

enum { SUMMED = 1, RESTORE = 2, FORCE = 4 };

static const char *from, *to;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct arena a;

	(void)argc, (void)argv;
	from = fs_join(&a, str_c(fuzz_dir()), STR("from"));
	to = fs_join(&a, str_c(fuzz_dir()), STR("to"));
	return 0;
}

static void write_input(struct str bytes, bool summed)
{
	unsigned char hash[HASH_LEN];
	struct buf b = BUF_MAX(1 << 20);
	struct digest d;

	buf_adds(&b, bytes);
	digest_start(&d);
	digest_add(&d, bytes.p, bytes.n);
	digest_end(&d, hash);
	if (summed)
		buf_adds(&b, str_n((const char *)hash, HASH_LEN));
	fuzz_write(from, buf_str(&b));
	buf_free(&b);
}

static struct load load_of(struct backup *b, unsigned how)
{
	return (struct load){ .records = b->records,
			      .lines = b->lines,
			      .made_at = b->made_at,
			      .next = backup_next,
			      .rewind = backup_rewind,
			      .ctx = b,
			      .restore = how & RESTORE,
			      .force = how & FORCE,
			      .agent = STR("ann") };
}

static void no_bad_record(void *ctx, enum check_level level, const char *what, struct str text,
			  struct str fix)
{
	(void)ctx, (void)text, (void)fix;
	CHECK(level != CHECK_BAD || strcmp(what, "record"));
}

static void check_readable(struct queue *q, struct arena *a)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };
	struct backup again;

	queue_call(q, &rq, &ans, a);
	CHECK(ans.code == SUCCESS && !ans.warnings.n);
	CHECK(queue_check(q, no_bad_record, NULL, &ans, a) == SUCCESS);
	CHECK(backup_write(q, to, &again, &ans, a) == SUCCESS);
	CHECK(backup_open(&again, to, &ans, a) == SUCCESS);
	backup_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct backup b;

	if (!size)
		return 0;
	write_input(str_n((const char *)data + 1, size - 1), data[0] & SUMMED);
	if (backup_open(&b, from, &ans, &a) == SUCCESS) {
		struct load l = load_of(&b, data[0]);
		struct queue *q = fuzz_queue(&a);
		enum result code = queue_load(q, &l, &ans, &a);

		CHECK(code == SUCCESS || ans.message.n);
		if (code == SUCCESS)
			check_readable(q, &a);
		queue_close(q);
	} else {
		CHECK(ans.message.n);
	}
	backup_close(&b);
	arena_free(&a);
	return 0;
}
