/* The brief of a claim (VIEW_BRIEF): the tasks around the task, its last comments, its earlier
 * attempts, and the other tasks that the caller holds. The edit that grants the lock reads all
 * of it, so the parts of an answer cannot contradict each other. */
#include "base/text.h"
#include "core/lease.h"
#include "format/task_form.h"
#include "queue/queue_private.h"

#define DEPENDS_SHOWN 5
#define HELD_MOST 200 /* read at most this many of the agent's locks */

struct brief {
	struct store *store;
	struct edit *edit; /* NULL: a read */
	struct answer *ans;
	struct arena *arena;
	const struct task *task; /* NULL: the answer grants no lock */
};

/* --- the tasks around it ---------------------------------------------------------------------------- */

static int brief_get(const struct brief *b, struct str id, struct task *out)
{
	struct str key = task_key(b->arena, id);
	struct record stored, *rec = &stored;
	int r = b->edit ? edit_get(b->edit, key, &rec)
			: b->store->ops->get(b->store, key, rec, b->arena);

	return r ? r : task_of(rec, out, b->arena);
}

/* Skips a task that is missing or cannot be used, and a dependency that is Done. */
static int brief_link(const struct brief *b, enum link_kind kind, struct str id)
{
	struct related *rel = b->ans->related;
	struct task t;
	int r = brief_get(b, id, &t);

	if (r || (kind == LINK_DEPENDS && t.status == DONE))
		return r < 0 ? r : 0;
	rel->links = arena_grow(b->arena, rel->links, rel->n_links, sizeof(*rel->links));
	rel->links[rel->n_links++] = (struct task_link){
		.kind = kind, .id = t.id, .title = t.title, .status = t.status
	};
	return 0;
}

static int brief_links(const struct brief *b)
{
	const struct task *t = b->task;
	const struct related *rel = b->ans->related = arena_new(b->arena, struct related);
	size_t most;
	int r = t->parent.n ? brief_link(b, LINK_PARENT, t->parent) : 0;

	most = rel->n_links + DEPENDS_SHOWN;
	for (size_t i = 0; !r && t->open_deps && i < t->depends.n && rel->n_links < most; i++)
		r = brief_link(b, LINK_DEPENDS, t->depends.v[i]);
	return r;
}

/* --- the tasks that the caller holds ---------------------------------------------------------------- */

struct query brief_held_query(const struct request *rq)
{
	return (struct query){
		.held = true, .holder = rq->agent, .body = true, .limit = HELD_MOST
	};
}

/* Adds the task without its texts, which may be long. */
static int keep_held(const struct brief *b, struct task *t)
{
	struct answer *ans = b->ans;
	int r;

	task_drop_texts(t);
	ans->tasks = arena_grow(b->arena, ans->tasks, ans->n_tasks, sizeof(*t));
	ans->tasks[ans->n_tasks] = (struct task){ 0 };
	r = task_unpack(task_part(t, HOT | BODY, b->arena), &ans->tasks[ans->n_tasks], b->arena);
	ans->n_tasks += r == 0;
	return arena_over(b->arena);
}

static int add_held(const struct record *r, void *ctx)
{
	const struct brief *b = ctx;
	struct arena scratch = { 0 };
	struct task t;
	int rc = 0;

	if (!task_of(r, &t, &scratch) && lease_live(&t.lock, b->ans->now) &&
	    !(b->ans->task && str_eq(t.id, b->ans->task->id)))
		rc = keep_held(b, &t);
	arena_free(&scratch);
	return rc;
}

static int brief_held(struct brief *b, const struct request *rq)
{
	struct query q = brief_held_query(rq);

	return b->edit ? edit_scan(b->edit, &q, add_held, b)
		       : b->store->ops->scan(b->store, &q, add_held, b);
}

/* --- all of it --------------------------------------------------------------------------------------- */

static const struct task *task_brief_granted(const struct request *rq, const struct answer *ans)
{
	if (ans->next || rq->op == OP_NEXT)
		return ans->next;
	return ans->lock || rq->op == OP_SHOW ? ans->task : NULL;
}

int read_brief(struct store *s, struct edit *e, const struct request *rq, struct answer *ans,
	       struct arena *a)
{
	struct brief b = { s, e, ans, a, task_brief_granted(rq, ans) };
	int r = 0;

	if (!(rq->view & VIEW_BRIEF) || (ans->code != SUCCESS && ans->code != NO_TASKS))
		return 0;
	if (rq->op == OP_TAKE || rq->op == OP_NEXT || rq->op == OP_SHOW)
		r = brief_held(&b, rq);
	if (r || !b.task || !b.task->status) /* a lock of the whole queue has no brief */
		return r;
	r = brief_links(&b);
	if (!r)
		brief_past(s, e, b.task, ans, a);
	return r;
}

/* --- came back -------------------------------------------------------------------------------- */

/* Why a task came back: the event that made it claimable again after an earlier agent had it. */

#define LAST_LINES 50    /* log entries to search */
#define TEXT_COLUMNS 400 /* a reason is cut here */

/* The last events that explain why the task came back. */
struct return_path {
	struct arena *arena;
	struct event stop, handed;    /* an agent stopped; somebody handed the task back */
	struct event back_stop, back; /* both events before the last claim */
};

static bool came_back_among(struct str name, const char *const *list)
{
	for (; *list; list++)
		if (str_is(name, *list))
			return true;
	return false;
}

static bool is_update_to_ready(const struct event *ev)
{
	return str_is(ev->name, "updated") && ev->to == READY && ev->from != BACKLOG;
}

static bool hands_back(const struct event *ev)
{
	static const char *const names[] = { "released", "abandoned", "cleaned_up", "lock_broken",
					     "unlocked", "unblocked", "rework",     "retried",
					     "reopened", NULL };

	return came_back_among(ev->name, names) || is_update_to_ready(ev);
}

static struct event came_back_copy(const struct event *ev, struct arena *a)
{
	return (struct event){ .name = arena_str(a, ev->name),
			       .agent = arena_str(a, ev->agent),
			       .text = text_cut(a, ev->text, TEXT_COLUMNS),
			       .at = ev->at };
}

static void came_back_follow(struct return_path *w, const struct event *ev)
{
	static const char *const stops[] = { "failed", "blocked", "escalated", "needs_help", NULL };
	static const char *const ends[] = { "review", "done", "approved", "canceled", NULL };
	struct arena *a = w->arena;
	bool known = str_is(w->handed.name, "abandoned") || str_is(w->handed.name, "lock_broken");

	if (str_is(ev->name, "claimed")) {
		w->back = w->handed;
		w->back_stop = w->stop;
		w->handed = w->stop = (struct event){ 0 };
	} else if (came_back_among(ev->name, stops)) {
		w->stop = came_back_copy(ev, a);
	} else if (came_back_among(ev->name, ends)) {
		w->stop = (struct event){ 0 }; /* the agent or a person got past it */
	} else if (hands_back(ev) && !(known && str_is(ev->name, "cleaned_up"))) {
		w->handed = came_back_copy(ev, a);
	} else if (str_is(ev->name, "comment") && str_is(w->handed.name, "rework") &&
		   !w->handed.text.n && str_eq(ev->agent, w->handed.agent)) {
		w->handed.text = text_cut(a, ev->text,
					  TEXT_COLUMNS); /* the reason for the rework */
	}
}

static struct str verb_of(const struct event *ev)
{
	static const struct {
		const char *name, *verb;
	} words[] = {
		{ "released", "released it" },
		{ "lock_broken", "broke the lock" },
		{ "cleaned_up", "removed the lock" },
		{ "unlocked", "released the lock" },
		{ "unblocked", "unblocked it" },
		{ "rework", "sent it back for rework" },
		{ "retried", "ordered another attempt" },
		{ "reopened", "reopened it" },
		{ "updated", "made it Ready" },
		{ "failed", "failed" },
		{ "blocked", "was blocked" },
		{ "escalated", "needed help" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_is(ev->name, words[i].name))
			return str_c(words[i].verb);
	return STR("stopped");
}

/* "bob failed: exit code 1" */
static struct str came_back_clause(const struct event *ev, struct arena *a)
{
	struct str text = ev->text, lock = STR("the lock of ");

	/* "its lease expired" */
	if (str_is(ev->name, "abandoned") && str_cut_prefix(&text, STR("its "))) {
		struct str what = str_cut(&text, ' ');

		return arena_printf(a, "the %.*s of %.*s %.*s", STRF(what), STRF(ev->agent),
				    STRF(text));
	}
	if (str_is(ev->name, "abandoned") && str_starts(text, STR("process ")))
		return arena_printf(a, "%.*s's %.*s", STRF(ev->agent), STRF(text));
	if (str_is(ev->name, "lock_broken") && str_starts(text, lock))
		return arena_printf(a, "%.*s broke %.*s", STRF(ev->agent), STRF(text));
	if (str_is(ev->name, "cleaned_up") && str_starts(text, lock))
		return arena_printf(a, "%.*s removed %.*s", STRF(ev->agent), STRF(text));
	return arena_printf(a, "%.*s %s%s%.*s", STRF(ev->agent), arena_cstr(a, verb_of(ev)),
			    text.n ? ": " : "", STRF(text));
}

static struct notice *notice_of(const struct return_path *w, bool claimed, struct arena *a)
{
	const struct event *back = claimed ? &w->back : &w->handed,
			   *stop = claimed ? &w->back_stop : &w->stop;
	const struct event none = { 0 };
	struct notice *n;
	struct str why;

	if (!back->name.n) { /* a Failed task may be claimed as it is */
		back = stop;
		stop = &none;
	}
	if (!back->name.n)
		return NULL;
	why = came_back_clause(back, a);
	if (stop->name.n)
		why = arena_printf(a, "%.*s (before, %s)", STRF(why),
				   arena_cstr(a, came_back_clause(stop, a)));
	n = arena_new(a, struct notice);
	*n = (struct notice){ .by = back->agent, .reason = why, .at = back->at };
	n->fields = arena_append(a, n->fields, back->name);
	return n;
}

static int follow_entry(const struct entry *en, void *ctx)
{
	struct event ev;

	if (!event_of(en, &ev))
		came_back_follow(ctx, &ev);
	return 0;
}

static bool may_come_back(const struct task *t)
{
	return t->attempts && (t->status == READY || t->status == IN_PROGRESS);
}

static void came_back_tell(const struct return_path *w, const struct task *t, struct answer *ans)
{
	bool held = lease_live(&t->lock, ans->now);

	ans->came_back = notice_of(w, held || !w->handed.name.n, w->arena);
}

void read_came_back(struct store *s, const struct task *t, struct answer *ans, struct arena *a)
{
	struct return_path w = { .arena = a };
	struct entry_query q = { .key = task_key(a, t->id), .last = LAST_LINES };

	/* a failed read is ignored: the answer is valid without it */
	if (may_come_back(t) && !s->ops->entries(s, &q, follow_entry, &w))
		came_back_tell(&w, t, ans);
}

/* --- with the last comments ------------------------------------------------------------------------ */

#define COMMENT_LINES 30 /* entries that are searched for comments, of LAST_LINES */
#define COMMENTS 5
#define COMMENT_MAX (16u << 20)

struct comment {
	struct buf data, cursor;
	int64_t at;
	size_t line;
};

#define OLDER_LINES 1000 /* entries that a brief searches for comments: the claim waits for it */
#define HISTORY_LINES 32 /* entries that are searched for a brief's history */
#define HISTORY 8
#define RING (HISTORY + 1) /* the last one may be the claim itself */

/* Collects everything in one pass, because reading an entry costs more than checking it. */
struct past {
	struct return_path action;
	struct comment comments[COMMENTS]; /* the newest, in a ring: each may be large */
	size_t n_comments, lines;
	bool keeps_history;
	struct event history[RING]; /* the newest, in a ring */
	size_t history_lines[RING], n_history;
};

static void came_back_replace(struct buf *b, struct str s)
{
	b->n = 0;
	b->max = COMMENT_MAX;
	b->full = false;
	buf_adds(b, s);
}

static void note_comment(struct past *p, const struct entry *en)
{
	struct comment *c = &p->comments[p->n_comments++ % COMMENTS];

	came_back_replace(&c->data, en->data);
	came_back_replace(&c->cursor, en->cursor);
	c->at = en->at;
	c->line = p->lines;
}

static void note_history(struct past *p, const struct entry *en)
{
	size_t i = p->n_history++ % RING;

	(void)event_keep(en, &p->history[i], p->action.arena);
	p->history_lines[i] = p->lines;
}

static int past_entry(const struct entry *en, void *ctx)
{
	struct past *p = ctx;
	struct event ev;

	p->lines++;
	if (event_of(en, &ev))
		return 0;
	came_back_follow(&p->action, &ev);
	if (str_is(ev.name, "comment"))
		note_comment(p, en);
	else if (p->keeps_history && !str_is(ev.name, "created"))
		note_history(p, en);
	return 0;
}

static void add_comment(const struct comment *c, struct answer *ans, struct arena *a)
{
	struct entry en = { .at = c->at, .data = buf_str(&c->data), .cursor = buf_str(&c->cursor) };

	ans->events = arena_grow(a, ans->events, ans->n_events, sizeof(*ans->events));
	ans->n_events += event_keep(&en, &ans->events[ans->n_events], a) == 0;
}

/* lines: search only this many of the last entries. */
static void add_comments(const struct past *p, size_t lines, struct answer *ans, struct arena *a)
{
	size_t from = p->n_comments > COMMENTS ? p->n_comments - COMMENTS : 0;

	for (size_t i = from; i < p->n_comments; i++) {
		const struct comment *c = &p->comments[i % COMMENTS];

		if (c->line + lines > p->lines)
			add_comment(c, ans, a);
	}
}

static void past_free(struct past *p)
{
	for (size_t i = 0; i < COMMENTS; i++) {
		buf_free(&p->comments[i].data);
		buf_free(&p->comments[i].cursor);
	}
}

/* A failed read is ignored, because the answer is valid without the past. */
void read_past(struct store *s, const struct task *t, struct answer *ans, struct arena *a)
{
	struct past p = { .action.arena = a };
	struct entry_query q = { .key = task_key(a, t->id), .last = LAST_LINES };

	if (!s->ops->entries(s, &q, past_entry, &p)) {
		add_comments(&p, COMMENT_LINES, ans, a);
		if (may_come_back(t))
			came_back_tell(&p.action, t, ans);
	}
	past_free(&p);
}

/* --- the brief of a claim --------------------------------------------------------------------------- */

static int only_comments(const struct entry *en, void *ctx)
{
	struct past *p = ctx;
	struct event ev;

	p->lines++;
	if (!event_of(en, &ev) && str_is(ev.name, "comment"))
		note_comment(p, en);
	return 0;
}

static int read_entries(struct store *s, struct edit *e, const struct entry_query *q, entry_fn *fn,
			struct past *p)
{
	return e ? edit_entries(e, q, fn, p) : s->ops->entries(s, q, fn, p);
}

/* Is this the event by which the current holder took the task? */
static bool is_own_claim(const struct event *ev, const struct task *t)
{
	return ev->fence == t->fence &&
	       (str_is(ev->name, "claimed") || str_is(ev->name, "resumed"));
}

static void add_history(const struct past *p, const struct task *t, struct related *rel,
			struct arena *a)
{
	size_t from = p->n_history > RING ? p->n_history - RING : 0;

	rel->history = arena_array(a, struct event, RING);
	for (size_t i = from; i < p->n_history; i++)
		if (!is_own_claim(&p->history[i % RING], t) &&
		    p->history_lines[i % RING] + HISTORY_LINES > p->lines)
			rel->history[rel->n_history++] = p->history[i % RING];
	if (rel->n_history > HISTORY) {
		rel->history++;
		rel->n_history--;
	}
}

void brief_past(struct store *s, struct edit *e, const struct task *t, struct answer *ans,
		struct arena *a)
{
	struct past p = { .action.arena = a, .keeps_history = t->attempts > 1 };
	struct entry_query q = { .key = task_key(a, t->id), .last = LAST_LINES };
	bool read = !read_entries(s, e, &q, past_entry, &p);

	if (read && p.keeps_history)
		add_history(&p, t, ans->related, a);
	if (read && p.keeps_history && may_come_back(t))
		came_back_tell(&p.action, t, ans);
	if (read && p.lines == LAST_LINES &&
	    p.n_comments < COMMENTS) { /* there may be older ones */
		p.n_comments = p.lines = 0;
		q.last = OLDER_LINES;
		read = !read_entries(s, e, &q, only_comments, &p);
	}
	if (read)
		add_comments(&p, p.lines, ans, a);
	past_free(&p);
}
