/*
 * The files of the board. They need no token: they are the same for everybody, and the page asks for the token itself.
 * The page runs only its own scripts and never turns text into HTML, so the text of a task cannot become a program.
 */
#include "face/serve/web.h"
#include "face/serve/serve.h"

#include <stdlib.h>

#include "core/role.h"

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

/* Is the word one of a list with commas? `;q=0` refuses a word; other weights do not matter here. */
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

/* The calls on the queue itself that the role may make. A task has its own (struct allowed). */
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

/* The status that each way to change a task leads to. */
static json_t *moves_json(void)
{
	json_t *o = json_object();

	for (int action = 1; action < ACTION_END; action++)
		if (action_to(action))
			json_object_set_new(o, action_name(action),
					    json_string(status_name(action_to(action))));
	return o;
}

/* The page shows only the actions that the caller may take. The server still judges each call. */
void web_whoami(struct serve *s, struct http_exchange *x, const struct http_caller *c)
{
	struct str token = access_exchange(&s->access, c);
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
