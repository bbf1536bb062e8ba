/*
 * One round: every page that changed, then every task that changed. The mark moves only after a
 * complete round, so an edit that a failed round did not reach is read again.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/lease.h"
#include "format/json.h"
#include "sync/notion/notion.h"

#define MINUTE 60000
#define SKEW (5 * MINUTE) /* of our clock, if the server sends no time */
#define TALKS 10          /* unchanged pages whose comments one round reads */
#define CHECKS 10         /* deleted pages that one round checks again */

/* --- the tasks ---------------------------------------------------------------------------------------------- */

static void index_task(struct round *r, size_t i)
{
	const struct task *t = &r->tasks[i];
	struct str key = task_key(r->arena, t->id);
	json_t *extra = t->extra.n ? json_loadb(t->extra.p, t->extra.n, 0, NULL) : NULL;
	const char *page = json_string_value(json_object_get(extra, "notion"));

	(void)str_cut(&key, '/');
	json_object_set_new(r->ids, arena_cstr(r->arena, key), json_integer((json_int_t)i));
	if (page)
		json_object_set_new(r->made, page, json_stringn(t->id.p, t->id.n));
	json_decref(extra);
}

static enum result read_tasks(struct round *r)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans;
	enum result code = notion_queue(r, &rq, &ans);

	if (code != SUCCESS)
		return code;
	if (ans.code != SUCCESS)
		return notion_fail(r->n, ans.code, ans.message, ans.hint);
	r->tasks = ans.tasks;
	r->n_tasks = ans.n_tasks;
	r->now = ans.now;
	r->seen = arena_array(r->arena, bool, ans.n_tasks + 1);
	for (size_t i = 0; i < r->n_tasks; i++)
		index_task(r, i);
	return SUCCESS;
}

/* Turns the error into a warning: one page that Notion refuses to show or to change must not stop
 * the others. */
static enum result notion_round_clear_error(struct round *r, enum result code, struct str what)
{
	if (code != MISCONFIGURED || (r->n->status != 400 && r->n->status != 404))
		return code;
	notion_warn(r->n,
		    arena_printf(r->arena, "%.*s: %.*s", STRF(what), STRF(r->n->ans->message)));
	*r->n->ans = (struct answer){ 0 };
	return SUCCESS;
}

/* --- the pages ----------------------------------------------------------------------------------------------- */

/* The task was removed, so its page becomes Canceled and is left alone from now on. */
static enum result notion_round_delete(struct round *r, struct link *l, struct page *p)
{
	struct values v = { .v[F_STATUS] = STR("Canceled") };
	bool which[F_END] = { [F_STATUS] = true };
	struct request read = { .op = OP_SHOW };
	enum result code;
	struct answer ans;

	GIVE(&read, id, l->task);
	code = notion_queue(r, &read, &ans);
	if (code != SUCCESS)
		return code;
	if (ans.code != NOT_FOUND) /* not removed: a list leaves out records that cannot be read */
		return SUCCESS;
	notion_change(r->n, l->task, "was removed from the queue: its page becomes Canceled",
		      STR(""));
	if (r->n->job->check)
		return SUCCESS;
	code = notion_patch(r->n, p, &v, which, STR(""), r->arena);
	if (code != SUCCESS)
		return code;
	l->gone = true;
	return notion_link_save(r->state, l);
}

/* Handles a second page of the same task: if a killed sync made it, it goes to the trash; a
 * person's copy becomes a new task. */
static enum result second_page(struct round *r, const struct task *t, struct page *p)
{
	if (!p->by_us)
		return notion_new_task(r, p);
	notion_change(r->n, t->id, "its second page goes to the trash", STR(""));
	return r->n->job->check ? SUCCESS : notion_trash(r->n, p->id);
}

/* Finds the task of a page that has no link yet. */
static enum result notion_round_first_contact(struct round *r, struct page *p, struct link **l)
{
	const char *made = json_string_value(json_object_get(r->made, arena_cstr(r->arena, p->id)));
	struct str id = made ? str_c(made) : str_trim(p->is.v[F_ID]);
	const struct task *t = id.n ? notion_task(r, id) : NULL;
	struct link *other = t ? notion_link_of_task(r->state, t->id) : NULL;

	*l = notion_link_of_page(r->state, p->id);
	if (*l && t && str_is((*l)->making, "task")) { /* a killed sync made the task */
		notion_complete(r->state, *l, t->id);
		return SUCCESS;
	}
	*l = NULL;
	if (!t && p->by_us && id.n) {
		notion_warn(r->n, arena_printf(r->arena,
					       "a page is about %.*s, which is not in this queue",
					       STRF(id)));
		return SUCCESS;
	}
	if (!t)
		return notion_new_task(r, p);
	if (other && other->page.n && !other->gone)
		return second_page(r, t, p);
	*l = other ? other : notion_link_new(r->state, t->id, p->id);
	if (other && other->making.n) { /* a killed sync made the page */
		notion_link_page(r->state, other, p->id);
		notion_complete(r->state, other, t->id);
	} else if (other) { /* this page replaces a deleted one */
		notion_link_page(r->state, other, p->id);
		other->gone = other->loose = false;
		other->t = other->p = other->was = (struct values){ 0 };
		other->doing = (struct doing){ 0 };
	}
	return SUCCESS;
}

/* A person has restored the page from the trash. */
static void notion_round_restore(struct round *r, struct link *l)
{
	notion_change(r->n, l->task, "its page is back from the trash", STR(""));
	l->gone = false;
	l->version = -1;
}

static enum result handle_page(struct round *r, struct page *p)
{
	struct link *l = notion_link_of_page(r->state, p->id);
	const struct task *t;
	enum result code = SUCCESS;

	r->n->done->pages++;
	if (p->trashed || (l && notion_is_refused(l, p)))
		return SUCCESS;
	if (l && l->gone && !notion_task(r, l->task)) /* notion_round_delete() has dealt with it */
		return SUCCESS;
	if (l && l->gone)
		notion_round_restore(r, l);
	if (!l || !l->task.n)
		code = notion_round_first_contact(r, p, &l);
	if (code != SUCCESS || !l || !l->task.n)
		return code;
	t = notion_task(r, l->task);
	if (!t)
		return notion_round_delete(r, l, p);
	r->seen[t - r->tasks] = true;
	l->touched = p->edited != l->edited;
	return notion_reconcile(r, t, l, p);
}

/* --- the query ------------------------------------------------------------------------------------------------- */

struct scan {
	struct round *r;
	int64_t from;       /* only pages created at this time or later */
	int64_t last;       /* creation time of the last page */
	const char *cursor; /* NULL: at the start */
	json_t *done;       /* pages of this scan */
	bool incomplete;
};

static json_t *notion_round_since(const char *what, int64_t ms, struct arena *a)
{
	struct str text = when_text(a, ms);

	return json_pack("{s:s,s:{s:s%}}", "timestamp", what, what, "on_or_after", text.p, text.n);
}

static json_t *notion_round_question(struct scan *s)
{
	struct round *r = s->r;
	int64_t mark = notion_mark(r->state);
	json_t *all = json_array(),
	       *o = json_pack("{s:[{s:s,s:s}],s:i}", "sorts", "timestamp", "created_time",
			      "direction", "ascending", "page_size", 100);

	if (s->from)
		json_array_append_new(all, notion_round_since("created_time", s->from, r->arena));
	if (mark)
		json_array_append_new(all, notion_round_since("last_edited_time",
							      mark - MINUTE - r->n->settle_ms,
							      r->arena));
	if (json_array_size(all))
		json_object_set_new(o, "filter", json_pack("{s:O}", "and", all));
	json_decref(all);
	if (s->cursor)
		json_object_set_new(o, "start_cursor", json_string(s->cursor));
	return o;
}

static enum result handle_all(struct scan *s, const json_t *results)
{
	struct round *r = s->r;
	struct arena *kept = r->arena;
	enum result code = SUCCESS;
	const json_t *o;
	size_t i;

	json_array_foreach(results, i, o) {
		struct arena a = { 0 };
		struct page p;

		r->arena = &a;
		if (code == SUCCESS && notion_page_read(r->n, o, &p, &a)) {
			const char *key = arena_cstr(&a, p.id);

			s->last = p.created;
			if (!json_object_get(s->done, key)) {
				json_object_set_new(s->done, key, json_true());
				code = notion_round_clear_error(r, handle_page(r, &p), p.id);
			}
		}
		r->arena = kept;
		arena_free(&a);
		notion_say(r->n, "pages", json_object_size(s->done));
	}
	return code;
}

/* Makes one request of the query and handles its pages. */
static enum result notion_round_step(struct scan *s)
{
	struct round *r = s->r;
	const char *next,
		*target =
			arena_printf(r->arena, "/v1/data_sources/%.*s/query", STRF(r->n->source)).p;
	json_t *o;
	enum result code = notion_ask(r->n, "POST", target, notion_round_question(s), false, &o);

	if (code != SUCCESS)
		return code;
	if (!r->began)
		r->began = r->n->server_now ? r->n->server_now : os_wall_ms() - SKEW;
	if (!json_is_array(json_object_get(o, "results")))
		code = notion_fail(r->n, API_ERROR, STR("Notion's answer has no pages"),
				   STR("run the same command again"));
	else
		code = handle_all(s, json_object_get(o, "results"));
	next = json_string_value(json_object_get(o, "next_cursor"));
	s->cursor = next ? arena_cstr(r->arena, str_c(next)) : NULL;
	s->incomplete = str_is(json_get(json_object_get(o, "request_status"), "type"),
			       "incomplete");
	json_decref(o);
	return code;
}

/* A query ends silently after 10,000 pages, so the next one starts with the creation time of the
 * last page. */
static enum result notion_round_scan(struct round *r)
{
	struct scan s = { .r = r, .done = json_object() };
	enum result code;

	do {
		code = notion_round_step(&s);
		if (code == SUCCESS && !s.cursor && s.incomplete && s.last <= s.from)
			code = notion_fail(
				r->n, MISCONFIGURED,
				STR("the database has more pages of one minute than Notion shows"),
				STR("move some of them to another database"));
		if (!s.cursor && s.incomplete)
			s.from = s.last;
	} while (code == SUCCESS && (s.cursor || s.incomplete));
	json_decref(s.done);
	return code;
}

/* --- the tasks that the query did not bring ------------------------------------------------------------------ */

static bool has_changed(const struct round *r, const struct task *t, const struct link *l)
{
	return t->version != l->version || l->foreign.n || l->saying.n || l->doing.id.n ||
	       (l->t.v[F_TOKEN].n && !lease_live(&t->lock, r->now));
}

static enum result notion_round_walk(struct round *r, const struct task *t, struct link *l)
{
	struct page p;
	enum result code = notion_get(r->n, l->page, &p, r->arena);

	if (code == SUCCESS && !p.trashed)
		return notion_reconcile(r, t, l, &p);
	if (code != SUCCESS && r->n->status != 404)
		return code;
	if (notion_young(r->n, l)) { /* the page may not be visible yet */
		r->n->later++;
		return SUCCESS;
	}
	notion_warn(r->n,
		    arena_printf(r->arena, "the page of %.*s was deleted in Notion; the task stays",
				 STRF(t->id)));
	l->gone = true;
	return r->n->job->check ? SUCCESS : notion_link_save(r->state, l);
}

/* Checks whether a deleted page is back. */
static enum result check_again(struct round *r, const struct task *t, struct link *l)
{
	struct page p;
	enum result code = notion_get(r->n, l->page, &p, r->arena);

	if (code == SUCCESS && !p.trashed) {
		notion_round_restore(r, l);
		return notion_reconcile(r, t, l, &p);
	}
	if (code != SUCCESS && r->n->status != 404)
		return code;
	if (l->version == t->version)
		return SUCCESS;
	l->version = t->version;
	return notion_link_save(r->state, l);
}

static enum result handle_task(struct round *r, const struct task *t)
{
	struct link *l = notion_link_of_task(r->state, t->id);

	if (l && l->gone)
		return l->version == t->version ? SUCCESS : check_again(r, t, l);
	if (l && l->page.n)
		return has_changed(r, t, l) ? notion_round_walk(r, t, l) : SUCCESS;
	if (status_ended(t->status) || t->archived_at)
		return SUCCESS;
	return notion_new_page(r, t);
}

static enum result handle_tasks(struct round *r)
{
	struct arena *kept = r->arena;
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < r->n_tasks; i++) {
		struct arena a = { 0 };

		if (r->seen[i])
			continue;
		r->arena = &a;
		code = notion_round_clear_error(r, handle_task(r, &r->tasks[i]), r->tasks[i].id);
		r->arena = kept;
		arena_free(&a);
		notion_say(r->n, "tasks", i + 1);
	}
	return code;
}

/* Checks some deleted pages, because a restored page may keep its time of editing, and then the
 * query does not return it. */
static enum result handle_deleted(struct round *r)
{
	size_t n = notion_links(r->state), checks = 0, start = n ? random_below((uint32_t)n) : 0;
	struct arena *kept = r->arena;
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < n && checks < CHECKS; i++) {
		struct link *l = notion_link_at(r->state, (start + i) % n);
		const struct task *t = l->gone && l->task.n ? notion_task(r, l->task) : NULL;
		struct arena a = { 0 };

		if (!t || l->version != t->version)
			continue;
		checks++;
		r->arena = &a;
		code = notion_round_clear_error(r, check_again(r, t, l), t->id);
		r->arena = kept;
		arena_free(&a);
	}
	return code;
}

/* Neither the task nor its page exists any more, so later syncs skip them. */
static enum result delete_both(struct round *r, struct link *l)
{
	if (notion_young(r->n, l)) /* the page cannot be seen yet */
		return SUCCESS;
	l->gone = true;
	return notion_link_save(r->state, l);
}

static enum result handle_one_removed(struct round *r, struct link *l)
{
	struct page p;
	enum result code = notion_get(r->n, l->page, &p, r->arena);

	if (code == SUCCESS && !p.trashed)
		return notion_round_delete(r, l, &p);
	return code == SUCCESS || r->n->status == 404 ? delete_both(r, l) : code;
}

/* Handles removed tasks, because the query returns their pages only if somebody edits them. */
static enum result handle_removed(struct round *r)
{
	struct arena *kept = r->arena;
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < notion_links(r->state); i++) {
		struct link *l = notion_link_at(r->state, i);
		struct arena a = { 0 };

		if (!l->task.n || !l->page.n || l->gone || notion_task(r, l->task) || l->fresh)
			continue;
		r->arena = &a;
		code = notion_round_clear_error(r, handle_one_removed(r, l), l->task);
		r->arena = kept;
		arena_free(&a);
	}
	return code;
}

/* --- comments -------------------------------------------------------------------------------------------------- */

/* Are new comments likely? People comment on work that waits for them. A comment does not change
 * the time of editing. *open: the task has not ended. */
static bool is_talk(const struct round *r, const struct link *l, bool *open)
{
	const struct task *t = l->page.n && l->task.n && !l->gone ? notion_task(r, l->task) : NULL;

	*open = t && !status_ended(t->status);
	return t && (t->status == REVIEW || t->status == BLOCKED || t->status == NEEDS_HELP ||
		     t->status == IN_PROGRESS || l->touched);
}

/* Of the other open pages, each round reads a few more. */
static enum result handle_comments(struct round *r)
{
	size_t n = notion_links(r->state), extra = 0, start = notion_talk(r->state), next = start;
	struct arena *kept = r->arena;
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < n; i++) {
		struct link *l = notion_link_at(r->state, (start + i) % n);
		struct arena a = { 0 };
		bool open;

		if (!is_talk(r, l, &open)) {
			if (!open || extra++ >= TALKS)
				continue;
			next = l->place + 1;
		}
		r->arena = &a;
		code = notion_comments(r, l);
		r->arena = kept;
		arena_free(&a);
		notion_say(r->n, "comments", i + 1);
		if (r->n->status == 404) /* the page is not visible yet, or deleted */
			code = SUCCESS;
	}
	return code == SUCCESS ? notion_talk_set(r->state, extra > TALKS ? next : start) : code;
}

enum result notion_round(struct notion *n, struct state *s)
{
	struct arena a = { 0 };
	struct round r = { .n = n, .state = s, .arena = &a };
	enum result code;

	n->later = 0;
	r.ids = json_object();
	r.made = json_object();
	code = read_tasks(&r);
	if (code == SUCCESS)
		code = notion_round_scan(&r);
	if (code == SUCCESS)
		code = handle_tasks(&r);
	if (code == SUCCESS)
		code = handle_deleted(&r);
	if (code == SUCCESS)
		code = handle_removed(&r);
	if (code == SUCCESS)
		code = handle_comments(&r);
	if (code == SUCCESS)
		code = notion_mark_set(s, r.began);
	json_decref(r.ids);
	json_decref(r.made);
	arena_free(&a);
	return code;
}
