/*
 * A file of another program: the first byte chooses the program, the rest is the file. It is refused with a line
 * number, or its tasks can be written for every program that pawl writes for, and the JSON of that can be read again.
 */
#include <unistd.h>

#include "kit.h"
#include "core/validate.h"
#include "transfer/foreign_out.h"

static const char *const programs[] = { "beads",   "task-master", "taskwarrior", "github",
					"backlog", "aitasks",     "kanban-md",   "todo-txt",
					"jira",    "linear",      "markdown" };
static const char *const targets[] = { "beads",   "task-master", "taskwarrior", "github",
				       "backlog", "todo-txt",    "markdown" };

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static struct spool spools[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	setenv("TMPDIR", fuzz_dir(), 1);
	for (size_t i = 0; i < COUNT(spools); i++)
		CHECK(spool_open(&spools[i]) == 0);
	return 0;
}

static enum result exists(void *ctx, struct str id, struct answer *ans)
{
	(void)ctx;
	(void)ans;
	return str_is(id, "t1") ? SUCCESS : NOT_FOUND;
}

static enum result parse(struct port_in *in, struct str text)
{
	switch (in->foreign->from->shape) {
	case OBJECTS:
		return port_read_json(in);
	case ROWS:
		return port_read_csv(in);
	case LINES:
		return foreign_lines(in);
	case CHECKLIST:
		return foreign_checklist(in);
	case FOLDER:
		break;
	}
	return foreign_md(in, text, STR("t7_2_some_words.md"));
}

static void empty(struct spool *s)
{
	rewind(s->file);
	CHECK(ftruncate(fileno(s->file), 0) == 0);
	s->n = 0;
}

/* Reads the text; the tasks are then in *to. */
static enum result read_text(const char *program, struct str text, struct spool *to,
			     struct arena *a)
{
	struct answer ans = { 0 };
	struct foreign_in foreign = { .from = foreign_find(str_c(program)), .all = true };
	struct port_in in = { .path = "x/tasks/f",
			      .line = 1,
			      .spool = &spools[0],
			      .ans = &ans,
			      .arena = a,
			      .foreign = &foreign };
	enum result code;

	empty(&spools[0]);
	in.file = text.n ? fmemopen((char *)text.p, text.n, "r") : fopen("/dev/null", "re");
	CHECK(in.file);
	code = parse(&in, text);
	fclose(in.file);
	CHECK(code == SUCCESS ||
	      (code == MISCONFIGURED && ans.message.n && fuzz_harmless(ans.message)));
	CHECK(fflush(spools[0].file) == 0);
	if (code == SUCCESS) {
		spool_close(to);
		CHECK(foreign_links(&in, to, false, exists, NULL) == SUCCESS);
		for (size_t i = 0; i < foreign.warnings.n; i++)
			CHECK(fuzz_harmless(foreign.warnings.v[i]));
	}
	foreign_end(&foreign);
	arena_free(&in.piece);
	return code;
}

static void write_for(const char *target, struct arena *a)
{
	struct foreign_out out = { .to = foreign_find(str_c(target)) };
	struct buf b = BUF_MAX(1 << 26);
	struct parcel p = { 0 };
	bool json = out.to->shape == OBJECTS && strcmp(target, "github");

	spool_rewind(&spools[1]);
	while (!spool_next(&spools[1], &p, a)) {
		CHECK(!parcel_fault(&p, a));
		foreign_out_add(&out, &p);
		p = (struct parcel){ 0 };
	}
	foreign_out_settle(&out);
	foreign_out_text(&out, &b);
	if (json)
		CHECK(read_text(target, buf_str(&b), &spools[2], a) == SUCCESS);
	for (size_t i = 0; out.to->shape == FOLDER && i < out.n; i++) {
		b.n = 0;
		foreign_backlog_file(&out, &out.tasks[i], &b);
		CHECK(b.n && !memchr(foreign_backlog_name(&out.tasks[i], a).p, '/',
				     foreign_backlog_name(&out.tasks[i], a).n));
	}
	buf_free(&b);
	foreign_out_end(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };

	if (!size)
		return 0;
	if (read_text(programs[data[0] % COUNT(programs)], str_n((const char *)data + 1, size - 1),
		      &spools[1], &a) == SUCCESS)
		for (size_t i = 0; i < COUNT(targets); i++)
			write_for(targets[i], &a);
	arena_free(&a);
	return 0;
}
