/*
 * The board in one file, without a server: the page with its style, its modules and the tasks inside. The modules are in
 * an import map, because a file may not load others. The policy in the file forbids every connection.
 */
#include "face/serve/serve.h"
#include "face/serve/web.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "format/answer_form.h"
#include "transfer/port.h"

#define BEGINNING "<!DOCTYPE html>\n<!-- pawl board -->\n"
#define SNAPSHOT_POLICY                                                                \
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "  \
	"script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; " \
	"base-uri 'none'; form-action 'none'\">\n"
#define STYLE "<link rel=\"stylesheet\" href=\"/board.css\">"
#define PRELOADS "<!-- The browser need not wait" /* a file has nothing to load */
#define SCRIPT "<script type=\"module\" src=\"/main.js\"></script>"

static struct str text_of(const char *path)
{
	const struct web_file *f = web_find(str_c(path));

	return str_n(f->plain.begin, (size_t)(f->plain.end - f->plain.begin));
}

/* Adds `text` with each `from` replaced. */
static void add_replaced(struct buf *out, struct str text, struct str from, struct str to)
{
	const char *at;

	while ((at = memmem(str_p(text), text.n, from.p, from.n))) {
		size_t before = (size_t)(at - text.p);

		buf_adds(out, str_n(text.p, before));
		buf_adds(out, to);
		text = str_n(at + from.n, text.n - before - from.n);
	}
	buf_adds(out, text);
}

static void add_module(struct buf *out, const char *path)
{
	struct buf code = BUF_MAX(ANSWER_MAX);
	char *text;

	add_replaced(&code, text_of(path), STR("from \"./"), STR("from \"pawl/"));
	text = mem_alloc(code.n / 3 * 4 + 5);
	EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)code.p, (int)code.n);
	buf_addf(out, "\"pawl%s\":\"data:text/javascript;base64,", path);
	buf_adds(out, str_c(text));
	buf_addc(out, '"');
	free(text);
	buf_free(&code);
}

/* Inside a script element only '<' can end it. */
static void add_data(struct buf *out, json_t *data)
{
	char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(15));

	add_replaced(out, str_c(text), STR("<"), STR("\\u003c"));
	free(text);
}

static void add_scripts(struct buf *out, json_t *data)
{
	size_t n = 0;

	buf_adds(out, STR("<script type=\"importmap\">{\"imports\":{"));
	for (const struct web_file *f = web_files; f->path; f++) {
		if (!str_ends(str_c(f->path), STR(".js")))
			continue;
		buf_adds(out, n++ ? STR(",\n") : STR("\n"));
		add_module(out, f->path);
	}
	buf_adds(out, STR("}}</script>\n<script type=\"application/json\" id=\"snapshot\">"));
	add_data(out, data);
	buf_adds(out, STR("</script>\n<script type=\"module\">import \"pawl/main.js\";</script>"));
}

static struct str rest_after(struct str text, const char *mark, struct str *before)
{
	const char *at = memmem(text.p, text.n, mark, strlen(mark));

	*before = str_n(text.p, at ? (size_t)(at - text.p) : text.n);
	return at ? str_n(at + strlen(mark), text.n - before->n - strlen(mark)) : STR("");
}

static void add_page(struct buf *out, json_t *data)
{
	struct str page = text_of("/"), part;

	page = rest_after(page, "<!DOCTYPE html>\n", &part);
	buf_adds(out, STR(BEGINNING));
	page = rest_after(page, "<meta charset=\"utf-8\">\n", &part);
	buf_adds(out, part);
	buf_adds(out, STR("<meta charset=\"utf-8\">\n" SNAPSHOT_POLICY));
	page = rest_after(page, STYLE, &part);
	buf_adds(out, part);
	buf_adds(out, STR("<style>\n"));
	buf_adds(out, text_of("/board.css"));
	buf_adds(out, STR("</style>"));
	page = rest_after(page, PRELOADS, &part);
	buf_adds(out, part);
	page = rest_after(page, SCRIPT, &part);
	add_scripts(out, data);
	buf_adds(out, page);
}

static json_t *snapshot_run(const struct answer *ans, struct arena *a)
{
	json_t *tasks = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(tasks, answer_task_json(ans, &ans->tasks[i], a));
	return json_pack("{s:o, s:o}", "at", json_str(when_text(a, ans->now)), "tasks", tasks);
}

static enum result no_file(struct session *s, const char *path, int r, struct reply *out)
{
	return run_fail(r == -EEXIST || r == -ELOOP ? CONFLICT : API_ERROR,
			arena_printf(s->arena, "cannot write %s: %s", path,
				     r == -EEXIST  ? "the file is not a board that pawl wrote"
				     : r == -ELOOP ? "it is a link"
						   : strerror(-r)),
			r == -EEXIST || r == -ELOOP ? STR("choose another name, or remove the file")
						    : STR(""),
			out);
}

static int write_file(const char *path, struct str text)
{
	static const struct str beginnings[] = { { BEGINNING, sizeof(BEGINNING) - 1 }, { 0 } };
	int r;

	if (!strcmp(path, "-"))
		return tty_write(STDOUT_FILENO, text);
	r = target_check(path, beginnings);
	return r > 0 ? -EEXIST : r ? r : fs_write_atomic(path, text, 0600);
}

enum result snapshot_export(struct session *s, struct str file, struct reply *out)
{
	struct request rq = { .op = OP_LIST, .role = ROLE_READER }; /* nobody acts in a file */
	struct buf page = BUF_MAX((size_t)1 << 30);
	char *path = arena_cstr(s->arena, file);
	struct answer ans = { 0 };
	json_t *data;
	int r;

	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	GIVE(&rq, view, VIEW_CAN);
	queue_call(s->client.conn.queue, &rq, &ans, s->arena);
	if (ans.code != SUCCESS)
		return run_answer(&ans, out);
	data = snapshot_run(&ans, s->arena);
	add_page(&page, data);
	json_decref(data);
	r = page.full ? -EFBIG : write_file(path, buf_str(&page));
	buf_free(&page);
	if (r)
		return no_file(s, path, r, out);
	out->silent = true;
	return SUCCESS;
}
