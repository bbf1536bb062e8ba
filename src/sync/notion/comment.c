/* Comments: those of people go to the task, the refusals of pawl go to the page. */
#include "base/os.h"
#include "sync/notion/part.h"

#define PAGES_MAX 100 /* answers about the comments of one page */

/* false: stop */
typedef bool comment_fn(void *ctx, const json_t *comment);

/* Calls fn for every comment of the page, the oldest first. */
static enum result each_comment(struct notion *n, struct str page, comment_fn *fn, void *ctx,
				struct arena *a)
{
	const char *cursor = "";
	enum result code;

	for (int i = 0; cursor && i < PAGES_MAX; i++) {
		const char *target = arena_printf(a, "/v1/comments?block_id=%.*s&page_size=100%s%s",
						  STRF(page), *cursor ? "&start_cursor=" : "",
						  cursor)
					     .p;
		const json_t *c;
		json_t *o;
		size_t at;
		bool go_on = true;

		code = notion_ask(n, "GET", target, NULL, false, &o);
		if (code != SUCCESS)
			return code;
		json_array_foreach(json_object_get(o, "results"), at, c) {
			go_on = go_on && fn(ctx, c);
		}
		cursor = json_string_value(json_object_get(o, "next_cursor"));
		cursor = cursor && go_on ? arena_cstr(a, str_c(cursor)) : NULL;
		json_decref(o);
	}
	return SUCCESS;
}

static bool is_ours(const struct notion *n, const json_t *c, struct arena *a)
{
	const char *by = json_string_value(json_object_get(json_object_get(c, "created_by"), "id"));

	return by && str_eq(notion_id(a, str_c(by)), n->bot);
}

/* --- to the page ------------------------------------------------------------------------------------------ */

struct search {
	struct notion *n;
	struct str text;
	struct arena *arena;
	bool found;
};

static bool compare(void *ctx, const json_t *c)
{
	struct search *s = ctx;

	if (is_ours(s->n, c, s->arena) &&
	    str_eq(notion_plain(json_object_get(c, "rich_text"), s->arena), s->text))
		s->found = true;
	return !s->found;
}

static enum result is_said(struct notion *n, struct str page, struct str text, bool *found,
			   struct arena *a)
{
	struct search s = { n, text, a, false };
	enum result code = each_comment(n, page, compare, &s, a);

	*found = s.found;
	return code;
}

/* Waits until the comment is there, or until it would have to be. */
static enum result wait_for(struct notion *n, struct str page, struct str text, bool *found,
			    struct arena *a)
{
	int64_t end = os_boot_ms() + n->settle_ms;
	enum result code = is_said(n, page, text, found, a);

	while (code == SUCCESS && !*found && os_boot_ms() < end) {
		notion_sleep(1000);
		code = is_said(n, page, text, found, a);
	}
	return code;
}

static enum result post(struct notion *n, struct str page, struct str text)
{
	json_t *body = json_pack("{s:{s:s%},s:o}", "parent", "page_id", page.p, page.n, "rich_text",
				 notion_rich(text));

	return notion_ask(n, "POST", "/v1/comments", body, true, NULL);
}

enum result notion_comment(struct notion *n, struct str page, struct str text, bool again,
			   struct arena *a)
{
	bool found = false;
	enum result code = SUCCESS;

	text = notion_fit(text);
	if (again)
		code = wait_for(n, page, text, &found, a);
	for (int i = 0; code == SUCCESS && !found && i < 5; i++) {
		code = post(n, page, text);
		if (code == SUCCESS || !n->unknown)
			return code;
		code = wait_for(n, page, text, &found, a);
	}
	return code;
}

/* --- to the task ---------------------------------------------------------------------------------------------- */

struct gather {
	struct round *r;
	struct link *l;
	struct strs ids, texts;
	bool after; /* the last comment that was seen has passed by */
};

static struct str text_of(const json_t *o, const char *key, struct arena *a)
{
	const json_t *v = json_object_get(o, key);

	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

static bool gather(void *ctx, const json_t *c)
{
	struct gather *g = ctx;
	struct arena *a = g->r->arena;
	struct str id = text_of(c, "id", a);

	/* only what comes after the last one that was seen; if that was deleted, the request id recognises repeats */
	if (str_eq(id, g->l->comment)) {
		g->ids.n = g->texts.n = 0;
		return true;
	}
	if (is_ours(g->r->n, c, a))
		return true;
	g->ids = arena_append(a, g->ids, id);
	g->texts = arena_append(a, g->texts, notion_plain(json_object_get(c, "rich_text"), a));
	return true;
}

static enum result add(struct gather *g, size_t i)
{
	struct round *r = g->r;
	struct request rq = { .op = OP_COMMENT };
	struct answer ans;
	struct str text = str_trim(g->texts.v[i]);

	notion_change(r->n, g->l->task, "a comment from the page", STR(""));
	r->n->done->comments++;
	if (r->n->job->check)
		return SUCCESS;
	GIVE(&rq, id, g->l->task);
	GIVE(&rq, text, arena_printf(r->arena, "from Notion: %.*s", STRF(text)));
	GIVE(&rq, request_id, arena_printf(r->arena, "notion-comment-%.*s", STRF(g->ids.v[i])));
	if (notion_queue(r, &rq, &ans) == API_ERROR)
		return API_ERROR;
	if (ans.code != SUCCESS)
		notion_warn(r->n, arena_printf(r->arena, "a comment on the page of %.*s: %.*s",
					       STRF(g->l->task), STRF(ans.message)));
	g->l->comment = g->ids.v[i];
	return notion_link_save(r->state, g->l);
}

enum result notion_comments(struct round *r, struct link *l)
{
	struct gather g = { .r = r, .l = l };
	enum result code = each_comment(r->n, l->page, gather, &g, r->arena);

	for (size_t i = 0; code == SUCCESS && i < g.ids.n; i++)
		if (str_trim(g.texts.v[i]).n)
			code = add(&g, i);
	return code;
}
