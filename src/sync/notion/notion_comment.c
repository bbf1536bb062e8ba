/*
 * Comments: people's comments go to the task, and pawl's refusals go to the page. Each is added
 * once, even if an answer is lost or the sync is killed.
 */
#include "base/os.h"
#include "base/when.h"
#include "sync/notion/notion.h"

#define PAGES_MAX 100 /* requests for the comments of one page */
#define ATTEMPTS 5    /* requests to add one comment, if their answers are lost */
#define MINUTE 60000

/* Returns false to stop. */
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

static bool notion_comment_compare(void *ctx, const json_t *c)
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
	enum result code = each_comment(n, page, notion_comment_compare, &s, a);

	*found = s.found;
	return code;
}

/* Waits until the comment is on the page, or until it would certainly be visible. */
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

static enum result notion_comment_post(struct notion *n, struct str page, struct str text)
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
	for (int i = 0; code == SUCCESS && !found && i < ATTEMPTS; i++) {
		code = notion_comment_post(n, page, text);
		if (code == SUCCESS || !n->unknown)
			return code;
		code = wait_for(n, page, text, &found, a);
	}
	if (code == SUCCESS && !found)
		return notion_fail(
			n, API_ERROR,
			arena_printf(a, "Notion did not answer %d requests to add a comment",
				     ATTEMPTS),
			STR("run the same command again: it looks for the comment before it adds one"));
	return code;
}

/* --- to the task ----------------------------------------------------------------------------------------------
 * The link has the time of the newest comment that was seen, and the ids of those that are not much older. A comment that
 * is deleted changes nothing: older ones stay old. */

struct gather {
	struct round *r;
	struct link *l;
	struct strs ids, texts; /* of new comments, the oldest first */
	int64_t *ats;
	struct str known; /* ids of the link that are still needed */
	bool lost;        /* no comment was seen yet, perhaps because the state was lost */
	bool asked;       /* `told` was read */
	struct strs told; /* comments that the task has; a text that was matched becomes empty */
};

static struct str text_of(const json_t *o, const char *key, struct arena *a)
{
	const json_t *v = json_object_get(o, key);

	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

/* Comments before this time were seen. Notion gives times in whole minutes, and a read may be
 * behind. */
static int64_t notion_comment_horizon(const struct gather *g)
{
	return g->l->comment_at - 2 * MINUTE - g->r->n->settle_ms;
}

static struct str with_id(struct str list, struct str id, struct arena *a)
{
	return arena_printf(a, "%.*s%s%.*s", STRF(list), list.n ? " " : "", STRF(id));
}

static bool has_id(struct str list, struct str id)
{
	while (list.n)
		if (str_eq(str_cut(&list, ' '), id))
			return true;
	return false;
}

static bool notion_comment_gather(void *ctx, const json_t *c)
{
	struct gather *g = ctx;
	struct arena *a = g->r->arena;
	struct str id = text_of(c, "id", a);
	int64_t at = 0;

	if (is_ours(g->r->n, c, a) || !id.n || !when_parse(text_of(c, "created_time", a), &at))
		return true;
	if (g->l->comment_at && at < notion_comment_horizon(g))
		return true;
	if (has_id(g->l->comment, id)) {
		g->known = with_id(g->known, id, a);
		return true;
	}
	g->ats = arena_grow(a, g->ats, g->ids.n, sizeof(*g->ats));
	g->ats[g->ids.n] = at;
	g->ids = arena_append(a, g->ids, id);
	g->texts = arena_append(a, g->texts, notion_plain(json_object_get(c, "rich_text"), a));
	return true;
}

/* Reads the comments that the task has. */
static enum result read_told(struct gather *g)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans;
	enum result code;

	if (!g->lost || g->asked)
		return SUCCESS;
	g->asked = true;
	GIVE(&rq, id, g->l->task);
	GIVE(&rq, type, STR("comment"));
	code = notion_queue(g->r, &rq, &ans);
	for (size_t i = 0; code == SUCCESS && i < ans.n_events; i++)
		g->told = arena_append(g->r->arena, g->told, ans.events[i].text);
	return code;
}

/* Did an earlier sync, whose state was lost, add this comment? Each comment of the task matches one
 * comment of the page. */
static bool is_told(struct gather *g, struct str text)
{
	for (size_t i = 0; i < g->told.n; i++)
		if (str_eq(g->told.v[i], text)) {
			g->told.v[i] = STR("");
			return true;
		}
	return false;
}

static enum result notion_comment_note(struct gather *g, size_t i)
{
	g->known = with_id(g->known, g->ids.v[i], g->r->arena);
	g->l->comment = g->known;
	if (g->ats[i] > g->l->comment_at)
		g->l->comment_at = g->ats[i];
	return notion_link_save(g->r->state, g->l);
}

/* Adds the comment to the task. Its request id makes a repeat after a kill harmless. */
static enum result notion_comment_add(struct gather *g, size_t i)
{
	struct round *r = g->r;
	struct request rq = { .op = OP_COMMENT };
	struct answer ans;
	enum result code = read_told(g);
	struct str text = arena_printf(r->arena, "from Notion: %s",
				       arena_cstr(r->arena, str_trim(g->texts.v[i])));

	if (code != SUCCESS)
		return code;
	if (is_told(g, text))
		return notion_comment_note(g, i);
	notion_change(r->n, g->l->task, "a comment from the page", STR(""));
	r->n->done->comments++;
	if (r->n->job->check)
		return SUCCESS;
	GIVE(&rq, id, g->l->task);
	GIVE(&rq, text, text);
	GIVE(&rq, request_id, arena_printf(r->arena, "notion-comment-%.*s", STRF(g->ids.v[i])));
	code = notion_queue(r, &rq, &ans);
	if (code != SUCCESS)
		return code;
	if (ans.code != SUCCESS)
		notion_warn(r->n, arena_printf(r->arena, "a comment on the page of %.*s: %.*s",
					       STRF(g->l->task), STRF(ans.message)));
	return notion_comment_note(g, i);
}

enum result notion_comments(struct round *r, struct link *l)
{
	struct gather g = { .r = r, .l = l, .lost = !l->comment_at };
	enum result code = each_comment(r->n, l->page, notion_comment_gather, &g, r->arena);

	for (size_t i = 0; code == SUCCESS && i < g.ids.n; i++)
		if (str_trim(g.texts.v[i]).n)
			code = notion_comment_add(&g, i);
	return code;
}
