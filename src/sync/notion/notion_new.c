/*
 * New pages become tasks, and new tasks get pages. The link notes what is being made before the
 * request, so that a killed sync leaves no second task and no second page.
 */
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "sync/notion/notion.h"

#define ATTEMPTS 5 /* requests to make one page, if their answers are lost */

/* --- a task from a page -------------------------------------------------------------------------------------- */

/* Leaves a page that cannot become a task alone, until somebody edits it. */
static enum result pass_over(struct round *r, const struct page *p)
{
	struct link *l = notion_link_of_page(r->state, p->id);

	if (!l)
		l = notion_link_new(r->state, STR(""), p->id);
	l->refused = true;
	l->making = l->saying = STR("");
	l->p = p->is;
	l->edited = p->edited;
	l->at = os_wall_ms();
	return notion_link_save(r->state, l);
}

bool notion_is_refused(const struct link *l, const struct page *p)
{
	bool same = l->refused && l->edited == p->edited;

	/* an edit in the same minute does not change `edited`, so compare the values, too */
	for (int f = 0; same && f < F_END; f++)
		same = f == F_BODY || str_eq(l->p.v[f], p->is.v[f]);
	return same;
}

/* Explains the refusal on the page. Only a killed sync can have done so already. */
static enum result say_why(struct round *r, const struct page *p, struct str why)
{
	struct str text = arena_printf(r->arena, "pawl cannot make a task of this page.\n%.*s",
				       STRF(why));
	struct str hash = hash_hex(r->arena, text);
	struct link *l = notion_link_of_page(r->state, p->id);
	bool again;
	enum result code = SUCCESS;

	if (!l)
		l = notion_link_new(r->state, STR(""), p->id);
	again = str_eq(l->saying, hash);
	if (!again) {
		l->saying = hash;
		l->at = os_wall_ms();
		code = notion_link_save(r->state, l);
	}
	return code == SUCCESS ? notion_comment(r->n, p->id, text, again, r->arena) : code;
}

static enum result refuse_page(struct round *r, const struct page *p, struct str why)
{
	enum result code;

	r->n->done->refused++;
	notion_change(r->n, p->id, "this page cannot become a task: ", why);
	if (r->n->job->check)
		return SUCCESS;
	code = say_why(r, p, why);
	return code == SUCCESS ? pass_over(r, p) : code;
}

/* Leaves out invalid fields; the merge that follows takes them back on the page. */
static void set_fields(const struct round *r, const struct page *p, struct request *rq)
{
	int64_t number;
	enum status status = status_parse(p->is.v[F_STATUS]);

	GIVE(rq, title, str_trim(p->is.v[F_TITLE]));
	if (p->body.n && p->body.n <= TEXT_MAX && text_valid(p->body))
		GIVE(rq, description, p->body);
	if (str_to_i64(p->is.v[F_PRIORITY], &number) && number >= 0 && number <= PRIORITY_MAX)
		GIVE(rq, priority, number);
	if (class_parse(p->is.v[F_CLASS]))
		GIVE(rq, class_rank, class_parse(p->is.v[F_CLASS]));
	if (when_parse_date(p->is.v[F_DUE], r->now, &number, r->arena))
		GIVE(rq, due, number);
	GIVE(rq, status, status == READY || status == IN_PROGRESS ? READY : BACKLOG);
}

/* Notes the values of the new task before the queue makes it. */
static enum result begin_task(struct round *r, const struct page *p, const struct request *rq,
			      struct link **out)
{
	struct link *l = notion_link_of_page(r->state, p->id);

	if (!l || l->task.n)
		l = notion_link_new(r->state, STR(""), p->id);
	*out = l;
	l->making = STR("task");
	l->refused = false;
	l->at = os_wall_ms();
	l->p = (struct values){ 0 };
	l->p.has[F_TITLE] = l->p.has[F_STATUS] = true;
	l->p.has[F_BODY] = HAS(rq, description) || !p->body.n;
	l->p.has[F_PRIORITY] = HAS(rq, priority);
	l->p.has[F_CLASS] = HAS(rq, class_rank);
	l->p.has[F_DUE] = HAS(rq, due);
	for (int f = 0; f < F_END; f++)
		l->p.v[f] = p->is.v[f];
	return notion_link_save(r->state, l);
}

void notion_complete(struct state *s, struct link *l, struct str task)
{
	if (str_is(l->making, "page"))
		l->p = l->t;
	else
		l->t = l->p;
	if (!l->task.n)
		notion_link_task(s, l, task);
	l->making = STR("");
}

/* Both sides have the values that the task was made with. The merge takes the other values back. */
static enum result link_task(struct round *r, const struct task *t, struct link *l)
{
	struct item x = { .r = r, .n = r->n, .t = t, .l = l };

	notion_complete(r->state, l, t->id);
	notion_task_values(&x);
	/* except the status: if it is neither Ready nor Backlog, the page gets the task's status */
	for (int f = 0; f < F_END; f++)
		l->t.v[f] = f == F_STATUS ? l->t.v[f] : x.tv.v[f];
	return notion_link_save(r->state, l);
}

static enum result make_task(struct round *r, struct page *p)
{
	struct request rq = { .op = OP_CREATE };
	struct link *l;
	struct answer ans;
	enum result code;

	set_fields(r, p, &rq);
	code = begin_task(r, p, &rq, &l);
	if (code != SUCCESS)
		return code;
	GIVE(&rq, extra, arena_printf(r->arena, "{\"notion\":\"%.*s\"}", STRF(p->id)));
	GIVE(&rq, request_id, arena_printf(r->arena, "notion-page-%.*s", STRF(p->id)));
	code = notion_queue(r, &rq, &ans);
	if (code != SUCCESS)
		return code;
	if (ans.code != SUCCESS)
		return refuse_page(r, p, ans.message);
	r->n->done->tasks_made++;
	notion_change(r->n, ans.task->id, "made of a new page: ", p->is.v[F_TITLE]);
	l->fresh = true;
	code = link_task(r, ans.task, l);
	return code == SUCCESS ? notion_reconcile(r, ans.task, l, p) : code;
}

enum result notion_new_task(struct round *r, struct page *p)
{
	enum result code;

	/* a person has just opened an empty page, or the work has ended */
	if (!str_trim(p->is.v[F_TITLE]).n || status_ended(status_parse(p->is.v[F_STATUS])))
		return SUCCESS;
	if (r->n->job->check) {
		r->n->done->tasks_made++;
		notion_change(r->n, STR("new"), "made of a new page: ", p->is.v[F_TITLE]);
		return SUCCESS;
	}
	code = notion_body(r->n, p, r->arena);
	return code == SUCCESS ? make_task(r, p) : code;
}

/* --- a page from a task --------------------------------------------------------------------------------------- */

/* Looks for the page that an earlier request may have made, until Notion's index must contain
 * it. */
static enum result search_for(struct item *x, bool *found)
{
	enum result code = notion_find(x->n, x->t->id, x->p, found, x->r->arena);

	while (code == SUCCESS && !*found && notion_young(x->n, x->l)) {
		notion_say(x->n, "waiting for Notion", 1);
		notion_sleep(1000);
		code = notion_find(x->n, x->t->id, x->p, found, x->r->arena);
	}
	return code;
}

/* Notes the page's values before the request, for the sync after a killed one. */
static enum result notion_new_begin(struct item *x)
{
	struct link *l = x->l;

	l->making = STR("page");
	l->at = os_wall_ms();
	for (int f = 0; f < F_END; f++) {
		l->t.has[f] = x->tv.has[f] && f != F_BODY && f != F_PARENT;
		l->t.v[f] = x->tv.v[f];
	}
	l->p = (struct values){ 0 };
	return notion_link_save(x->r->state, l);
}

/* Notion has certainly not made the page, so the next sync need not look for it. */
static void give_up(struct item *x)
{
	x->l->making = STR("");
	(void)notion_link_save(x->r->state, x->l);
}

static enum result not_made(struct item *x)
{
	return notion_fail(
		x->n, API_ERROR,
		arena_printf(
			x->r->arena,
			"Notion did not answer %d requests to make the page of %.*s, and has no such page",
			ATTEMPTS, STRF(x->t->id)),
		STR("run the same command again: it looks for the page before it makes one"));
}

static enum result make_page(struct item *x)
{
	const struct link *up = x->tv.v[F_PARENT].n
					? notion_link_of_task(x->r->state, x->tv.v[F_PARENT])
					: NULL;
	bool found = false;
	enum result code = x->l->making.n ? search_for(x, &found) : SUCCESS;

	for (int i = 0; code == SUCCESS && !found && i < ATTEMPTS; i++) {
		code = notion_new_begin(x);
		if (code != SUCCESS)
			return code;
		code = notion_make(x->n, &x->tv, up ? up->page : STR(""), STR(""), x->p,
				   x->r->arena);
		found = code == SUCCESS;
		if (!found && x->n->unknown)
			code = search_for(x, &found);
		else if (!found)
			give_up(x);
	}
	return code == SUCCESS && !found ? not_made(x) : code;
}

/* The page has the values that the task had when the page was made. The merge adds the text. */
static enum result link_page(struct item *x)
{
	struct link *l = x->l;

	notion_link_page(x->r->state, l, x->p->id);
	for (int f = 0; f < F_END; f++) {
		l->t.has[f] = l->p.has[f] = x->tv.has[f] && f != F_BODY && f != F_PARENT;
		l->t.v[f] = x->tv.v[f];
		l->p.v[f] = x->p->is.v[f];
	}
	l->making = STR("");
	l->edited = x->p->edited;
	l->at = os_wall_ms();
	return notion_link_save(x->r->state, l);
}

/* Takes over the page that a killed sync made. It may have older values, which the merge must
 * see. */
static enum result notion_new_adopt(struct item *x)
{
	notion_link_page(x->r->state, x->l, x->p->id);
	notion_complete(x->r->state, x->l, x->t->id);
	return notion_link_save(x->r->state, x->l);
}

enum result notion_new_page(struct round *r, const struct task *t)
{
	struct link *l = notion_link_of_task(r->state, t->id);
	struct page p = { 0 };
	struct item x = { .r = r, .n = r->n, .t = t, .p = &p };
	bool unsure;
	enum result code;

	r->n->done->pages_made++;
	notion_change(r->n, t->id, "gets a page: ", t->title);
	if (r->n->job->check)
		return SUCCESS;
	x.l = l = l ? l : notion_link_new(r->state, t->id, STR(""));
	unsure = l->making.n > 0;
	notion_task_values(&x);
	code = make_page(&x);
	if (code == SUCCESS)
		code = unsure ? notion_new_adopt(&x) : link_page(&x);
	if (code != SUCCESS)
		return code;
	/* nobody can have written to a new page yet */
	p.body_read = !unsure;
	p.is.has[F_BODY] = true;
	return notion_reconcile(r, t, l, &p);
}
