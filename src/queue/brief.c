/*
 * The brief of a claim (VIEW_BRIEF): the tasks around the task, its last comments, its earlier attempts, and the other
 * tasks that the caller holds. The edit that grants the lock reads all of it, so the parts of an answer cannot
 * contradict each other.
 */
#include "core/lease.h"
#include "format/task_form.h"
#include "queue/queue_private.h"

#define DEPENDS_SHOWN 5
#define HELD_MOST 200 /* at most this many locks of the agent are read */

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

/* Leaves out a task that is missing or cannot be used, and a dependency that is Done. */
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
