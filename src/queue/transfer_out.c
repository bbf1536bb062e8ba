#include "queue/transfer.h"

#include "queue/queue_private.h"
#include "queue/remote_queue.h"

struct sending {
	struct queue *q;
	unsigned statuses;
	parcel_fn *fn;
	void *ctx;
	int stopped;
	bool too_long;       /* a task has more comments than the call may hold */
	size_t bad;          /* number of omitted records */
	struct arena *whole; /* of the call */
	/* of one task */
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
