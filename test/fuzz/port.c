/*
 * A file to import: the first byte chooses CSV or JSON, the rest is the file. It is refused with a
 * line number, or its tasks survive being written and read again, in either format.
 */
#include <unistd.h>

#include "kit.h"
#include "record.h"
#include "transfer/port.h"

static struct spool spools[2];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	setenv("TMPDIR", fuzz_dir(), 1);
	for (int i = 0; i < 2; i++)
		CHECK(spool_open(&spools[i]) == 0);
	return 0;
}

static enum result read_text(struct str text, bool csv, struct spool *s, struct arena *a)
{
	struct answer ans = { 0 };
	struct port_in in = { .path = "f", .line = 1, .spool = s, .ans = &ans, .arena = a };
	enum result code;

	rewind(s->file);
	CHECK(ftruncate(fileno(s->file), 0) == 0);
	s->n = 0;
	in.file = text.n ? fmemopen((char *)text.p, text.n, "r") : fopen("/dev/null", "re");
	CHECK(in.file);
	code = csv ? port_read_csv(&in) : port_read_json(&in);
	fclose(in.file);
	arena_free(&in.piece);
	CHECK(code == SUCCESS || (code == MISCONFIGURED && ans.message.n));
	CHECK(fflush(s->file) == 0);
	spool_rewind(s);
	return code;
}

/* The next task, with the times that the queue gives to a task without any. false: no more. */
static bool next(struct spool *s, struct parcel *p, struct arena *a)
{
	*p = (struct parcel){ 0 };
	if (spool_next(s, p, a))
		return false;
	if (!p->task.created_at)
		p->task.created_at = 1000;
	if (!p->task.updated_at)
		p->task.updated_at = 1000;
	for (size_t i = 0; i < p->n_comments; i++)
		if (!p->comments[i].at)
			p->comments[i].at = 1000;
	return true;
}

static void write_all(struct spool *s, bool csv, struct buf *out, struct arena *a)
{
	struct parcel p;

	if (csv)
		port_csv_head(out);
	while (next(s, &p, a)) {
		if (csv)
			port_csv(&p, out, a);
		else
			port_json(&p, out, a);
		buf_adds(out, csv ? STR("") : STR("\n"));
	}
	spool_rewind(s);
}

static void check_same(struct arena *a)
{
	struct parcel x, y;

	while (next(&spools[0], &x, a)) {
		CHECK(next(&spools[1], &y, a));
		CHECK(same_task(&x.task, &y.task) && x.n_comments == y.n_comments);
		for (size_t i = 0; i < x.n_comments; i++)
			CHECK(same_event(&x.comments[i], &y.comments[i]) &&
			      x.comments[i].at == y.comments[i].at);
	}
	CHECK(!next(&spools[1], &y, a));
	spool_rewind(&spools[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size);

	if (!size)
		return 0;
	text = str_n(text.p + 1, text.n - 1);
	if (read_text(text, data[0] & 1, &spools[0], &a) == SUCCESS)
		for (int csv = 0; csv < 2; csv++) {
			struct buf b = BUF_MAX(1 << 24);

			write_all(&spools[0], csv, &b, &a);
			CHECK(!b.full);
			CHECK(read_text(buf_str(&b), csv, &spools[1], &a) == SUCCESS);
			check_same(&a);
			buf_free(&b);
		}
	arena_free(&a);
	return 0;
}
