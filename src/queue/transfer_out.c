/* Exports tasks with their comments from one snapshot, and checks the tasks of an import. An
 * imported field must pass the same checks as a call that sets it. A comment that the task's log
 * already has is dropped, so importing a file again does not repeat its comments. */
#include "core/validate.h"
#include "format/record_form.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"
#include "queue/transfer.h"

struct sending {
	struct queue *q;
	unsigned statuses;
	parcel_fn *fn;
	void *ctx;
	int stopped;
	bool too_long;       /* a task has more comments than the call may hold */
	size_t bad;          /* number of omitted records */
	struct arena *whole; /* use the call's arena, because its memory limit applies */
	/* the task that is being sent */
	struct arena arena;
	struct parcel parcel;
};

static int add_comment(const struct entry *en, void *ctx)
{
	struct sending *x = ctx;
	struct parcel *p = &x->parcel;
	struct event ev;

	if (event_of(en, &ev) || !str_is(ev.name, "comment"))
		return 0;
	p->comments = arena_grow(&x->arena, p->comments, p->n_comments, sizeof(ev));
	(void)event_keep(en, &p->comments[p->n_comments++], &x->arena);
	arena_count(x->whole, ev.text.n);
	x->too_long = arena_over(x->whole);
	return x->too_long;
}

static int send_task(const struct record *r, void *ctx)
{
	struct sending *x = ctx;
	const struct store_ops *ops = x->q->store->ops;
	struct entry_query of = { .key = r->key };
	int failed = 0;

	x->parcel = (struct parcel){ 0 };
	if (task_of(r, &x->parcel.task, &x->arena)) {
		x->bad++;
	} else {
		failed = ops->entries(x->q->store, &of, add_comment, x);
		if (!failed && !x->too_long)
			x->stopped = x->fn(x->ctx, &x->parcel);
	}
	arena_free(&x->arena);
	return failed < 0 ? failed : x->stopped || x->too_long;
}

static int send_all(void *ctx)
{
	struct sending *x = ctx;
	struct query q = { .statuses = x->statuses, .body = true };

	return x->q->store->ops->scan(x->q->store, &q, send_task, x);
}

enum result queue_export(struct queue *q, unsigned statuses, parcel_fn *fn, void *ctx, int *stopped,
			 struct answer *ans, struct arena *a)
{
	struct sending x = { .q = q, .statuses = statuses, .fn = fn, .ctx = ctx, .whole = a };
	int r;

	if (q->remote)
		return q->far->export(q->remote, statuses, fn, ctx, stopped, ans, a);
	q->err = (struct store_error){ 0 };
	r = q->store->ops->snapshot(q->store, true, send_all, &x);
	*stopped = x.stopped;
	if (r >= 0 && x.too_long)
		return answer_too_long(ans);
	if (x.bad)
		ans->warnings = arena_append(a, ans->warnings, bad_warning(x.bad, a));
	return r < 0 ? read_fault_answer(q->store, r, ans, a) : SUCCESS;
}

/* --- transfer check --------------------------------------------------------------------------- */

/* Checks an imported task without reading the queue. */

static void give_str(struct request *rq, enum arg arg, struct str s)
{
	if (!s.n)
		return;
	*(struct str *)arg_at(rq, arg) = s;
	rq->has |= UINT64_C(1) << arg;
}

static void give_strs(struct request *rq, enum arg arg, struct strs list)
{
	if (!list.n)
		return;
	*(struct strs *)arg_at(rq, arg) = list;
	rq->has |= UINT64_C(1) << arg;
}

/* An imported field must pass the same checks as a call that sets it. */
static const char *fields_fault(const struct task *t, struct arena *a)
{
	struct request rq = { .op = OP_CREATE };
	static const struct policy none;

	give_str(&rq, ARG_id, t->id);
	give_str(&rq, ARG_title, t->title);
	give_str(&rq, ARG_description, t->description);
	give_str(&rq, ARG_acceptance, t->acceptance);
#define PLAIN(tag, part, name, limit, argument, help) give_str(&rq, ARG_##name, t->name);
#include "core/task.def"
	give_str(&rq, ARG_parent, t->parent);
	give_str(&rq, ARG_extra, t->extra);
	give_str(&rq, ARG_assignee, t->assignee);
	give_str(&rq, ARG_agent, t->last_holder.n ? t->last_holder : STR("x"));
	give_str(&rq, ARG_run, t->run);
	give_str(&rq, ARG_reason, t->blocker_reason);
	give_str(&rq, ARG_unblock_action, t->unblock_action);
	give_str(&rq, ARG_summary, t->summary);
	give_strs(&rq, ARG_labels, t->labels);
	give_strs(&rq, ARG_depends, t->depends);
	GIVE(&rq, priority, t->priority);
	return request_fault(&rq, &none, a);
}

const char *parcel_fault(const struct parcel *p, struct arena *a)
{
	const char *fault = p->task.id.n ? fields_fault(&p->task, a) : "it has no id";

	if (!fault)
		fault = task_fault(&p->task, STR(""), a);
	if (!fault)
		fault = room_fault(&p->task, a);
	for (size_t i = 0; !fault && i < p->n_comments; i++) {
		struct request rq = { .op = OP_COMMENT };
		const struct event *c = &p->comments[i];
		static const struct policy none;

		give_str(&rq, ARG_id, p->task.id);
		give_str(&rq, ARG_agent, c->agent.n ? c->agent : STR("x"));
		give_str(&rq, ARG_run, c->run);
		give_str(&rq, ARG_text, c->text);
		fault = request_fault(&rq, &none, a);
		if (!fault)
			fault = event_fault(c);
	}
	return fault;
}

/* --- transfer known --------------------------------------------------------------------------- */

/* Drops the comments of an imported task that the queue already has. */

/* A hash table of the parcel's comments, so many comments do not take quadratic time. */
struct comment_filter {
	const struct event *comments;
	size_t *slots, *next; /* 1 + the place of a comment; 0: none */
	size_t room;
	bool *known;
};

static size_t comment_slot(const struct comment_filter *f, struct str text, struct str agent)
{
	return (str_hash(text) + str_hash(agent)) % f->room;
}

static void index_comments(struct comment_filter *f, const struct parcel *p, struct arena *a)
{
	size_t n = p->n_comments;

	*f = (struct comment_filter){ .comments = p->comments, .room = n + 1 };
	f->slots = arena_array(a, size_t, f->room);
	f->next = arena_array(a, size_t, n);
	f->known = arena_array(a, bool, n);
	for (size_t i = n; i > 0; i--) {
		size_t at = comment_slot(f, p->comments[i - 1].text, p->comments[i - 1].agent);

		f->next[i - 1] = f->slots[at];
		f->slots[at] = i;
	}
}

/* Each comment in the log matches at most one comment of the parcel. */
static int find_known(const struct entry *en, void *ctx)
{
	struct comment_filter *f = ctx;
	struct event ev;

	if (event_of(en, &ev) || !str_is(ev.name, "comment"))
		return 0;
	for (size_t *at = &f->slots[comment_slot(f, ev.text, ev.agent)]; *at;
	     at = &f->next[*at - 1]) {
		const struct event *c = &f->comments[*at - 1];

		if ((c->at && en->at != c->at) || !str_eq(ev.text, c->text) ||
		    !str_eq(ev.agent, c->agent))
			continue;
		f->known[*at - 1] = true;
		*at = f->next[*at - 1];
		break;
	}
	return 0;
}

int parcel_drop_known(struct act *w, struct str key, struct parcel *p)
{
	struct entry_query of = { .key = key };
	struct comment_filter f;
	size_t kept = 0;
	int r;

	if (!p->n_comments)
		return 0;
	index_comments(&f, p, w->call.arena);
	r = w->e->store->ops->entries(w->e->store, &of, find_known, &f);
	for (size_t i = 0; !r && i < p->n_comments; i++)
		if (!f.known[i])
			p->comments[kept++] = p->comments[i];
	if (!r)
		p->n_comments = kept;
	return r;
}
