/*
 * The board's files. They need no token: they are the same for everybody, and the page asks for the
 * token itself. The page runs only its own scripts and never turns text into HTML, so a task's text
 * cannot become a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "core/role.h"
#include "face/serve/serve.h"
#include "format/answer_form.h"
#include "transfer/port.h"

#define POLICY                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "       \
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'"

static struct http_header web_header(const char *name, const char *value)
{
	return (struct http_header){ str_c(name), str_c(value) };
}

const struct web_file *web_find(struct str path)
{
	for (const struct web_file *f = web_files; f->path; f++)
		if (str_is(path, f->path))
			return f;
	return NULL;
}

/* Is the word in the comma-separated list? `;q=0` refuses a word; other weights do not matter
 * here. */
static bool web_lists(struct str list, struct str word, bool weights)
{
	while (list.n) {
		struct str rest = str_trim(str_cut(&list, ',')), item = rest;

		if (weights)
			item = str_trim(str_cut(&rest, ';'));
		if (str_eq_nocase(item, word))
			return !weights || !str_is(str_trim(rest), "q=0");
	}
	return false;
}

static bool same_etag(struct str seen, const char *etag)
{
	return str_is(str_trim(seen), "*") || web_lists(seen, str_c(etag), false);
}

void web_serve(struct http_exchange *x, const struct web_file *f)
{
	const struct http_request *r = http_request_of(x);
	bool gzip = web_lists(http_header(r->headers, "accept-encoding"), STR("gzip"), true);
	const struct web_form *form = gzip ? &f->gzip : &f->plain;
	bool known = same_etag(http_header(r->headers, "if-none-match"), form->etag);
	struct http_header extra[] = {
		web_header("ETag", form->etag),
		web_header("Cache-Control", "no-cache"),
		web_header("Vary", "Accept-Encoding"),
		web_header("Content-Security-Policy", POLICY),
		web_header("X-Content-Type-Options", "nosniff"),
		web_header("Referrer-Policy", "no-referrer"),
		web_header("Cross-Origin-Opener-Policy", "same-origin"),
		web_header("Cross-Origin-Resource-Policy", "same-origin"),
		web_header("Content-Encoding", "gzip"),
	};
	size_t n = sizeof(extra) / sizeof(*extra) - !gzip;

	http_reply(x, known ? 304 : 200, known ? NULL : f->type,
		   (struct http_headers){ extra, known ? 8 : n },
		   known ? STR("") : str_n(form->begin, (size_t)(form->end - form->begin)));
}

/* The calls on the queue itself that the role may make. Each task has its own list (struct
 * allowed). */
static json_t *can_json(enum role role)
{
	json_t *list = json_array();
	struct arena a = { 0 };

	for (int op = OP_NONE + 1; op < OP_END; op++)
		if (!(op_flags((enum op)op) & (OP_TASK | OP_READS)) &&
		    role_allows(role, role_for_op((enum op)op)))
			json_array_append_new(list, json_string(op_words((enum op)op, &a)));
	arena_free(&a);
	return list;
}

/* The status that each change of a task leads to. */
static json_t *moves_json(void)
{
	json_t *o = json_object();

	for (int action = 1; action < ACTION_END; action++)
		if (action_to(action))
			json_object_set_new(o, action_name(action),
					    json_string(status_name(action_to(action))));
	return o;
}

/* The page shows only the actions that the caller may take. The server still checks each call. */
void web_whoami(struct serve *s, struct http_exchange *x, const struct http_caller *c)
{
	struct str token = serve_login_exchange(&s->login, c);
	struct http_header extra = web_header("Cache-Control", "no-store");
	enum role role = s->read_only ? ROLE_READER : c->role ? c->role : ROLE_ADMIN;
	struct str agent;
	const char *why;
	bool one = caller_agent(s, c, STR(""), &agent, &why);
	json_t *o = json_pack("{s:b, s:s, s:s, s:s?, s:s?, s:s?, s:b}", "ok", 1, "code", "SUCCESS",
			      "role", role_name(role), "name", c->name, "agents", c->agents,
			      "queue", c->queue, "read_only", s->read_only);
	char *text;

	json_object_set_new(o, "can", can_json(role));
	json_object_set_new(o, "moves", moves_json());
	json_object_set_new(o, "agent", one ? json_str(agent) : json_null());
	if (token.n) {
		json_object_set_new(o, "token", json_str(token));
		browser_forget(s);
	}
	text = json_dumps(o, JSON_COMPACT);
	http_reply(x, 200, "application/json", (struct http_headers){ &extra, 1 }, str_c(text));
	free(text);
	json_decref(o);
}

/* --- browser ---------------------------------------------------------------------------------- */

/*
 * Opens one person's board in the desktop's browser. Every local user can read a process's command
 * line, so the token is in a page that only this user can read. The browser opens that page, which
 * leads to the board.
 */

#define PAGE                                                                           \
	"<!doctype html>\n<meta charset=\"utf-8\">\n<title>pawl board</title>\n"       \
	"<meta name=\"referrer\" content=\"no-referrer\">\n"                           \
	"<meta http-equiv=\"refresh\" content=\"0; url=%s/#token=%.*s\">\n"            \
	"<p><a href=\"%s/#token=%.*s\">Open the board</a>. This link is good for one " \
	"login.</p>\n"

/* The file of the page. There is one for each port, so a page that a killed server left behind is
 * replaced. */
static char *page_file(const char *url, struct arena *a)
{
	char *top = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");
	const char *port = strrchr(url, ':');

	return top && port ? fs_join(a, str_c(top), arena_printf(a, "board-%s.html", port + 1))
			   : NULL;
}

static char *write_page(struct serve *s, struct str once)
{
	struct arena *a = s->session->arena;
	const char *url = http_server_url(s->http, 0);
	char *file = page_file(url, a);
	struct str page = arena_printf(a, PAGE, url, STRF(once), url, STRF(once));

	if (!file || fs_make_dirs(arena_cstr(a, fs_dirname(str_c(file))), 0700) ||
	    fs_write_atomic(file, page, 0600))
		return NULL;
	return file;
}

static char *file_url(const char *path, struct arena *a)
{
	struct buf b = BUF_MAX(64u << 10);
	char *out;

	buf_adds(&b, STR("file://"));
	for (; *path; path++)
		if ((*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
		    (*path >= '0' && *path <= '9') || strchr("/-_.~", *path))
			buf_addc(&b, *path);
		else
			buf_addf(&b, "%%%02X", (unsigned char)*path);
	out = arena_cstr(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void browser_open(struct serve *s, struct str once)
{
	char *argv[] = { "xdg-open", NULL, NULL };
	posix_spawn_file_actions_t quiet;
	pid_t pid;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) || !isatty(STDOUT_FILENO))
		return;
	s->page = write_page(s, once);
	if (!s->page)
		return; /* the person opens the address that was printed */
	argv[1] = file_url(s->page, s->session->arena);
	posix_spawn_file_actions_init(&quiet);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
	(void)posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
}

void browser_forget(struct serve *s)
{
	if (s->page)
		(void)unlink(s->page);
	s->page = NULL;
}

/* --- snapshot --------------------------------------------------------------------------------- */

/*
 * The board in one file, without a server: the page with its style, its modules and the tasks. The
 * modules are in an import map, because a file may not load others. The content security policy in
 * the file forbids every connection.
 */

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

/* Writes the data into a script element, which only '<' could end. */
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
