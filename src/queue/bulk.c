/* A change of any number of tasks, in many pieces: all of them or none. */
#include "base/os.h"
#include "queue/queue_private.h"

int bulk_refuse(struct bulk *b, enum result code, struct str text, struct str hint)
{
	b->refused = true;
	answer_fail(b->ans, code, arena_str(b->arena, text), arena_str(b->arena, hint));
	return STORE_UNSUPPORTED; /* a fault undoes the whole change */
}

struct act bulk_act(struct bulk *b, struct edit *e, struct request *rq, struct answer *said)
{
	struct act w = { .call = { .rq = rq, .policy = &b->q->config.policy, .arena = e->arena },
			 .ans = said };

	GIVE(rq, agent, b->agent);
	if (b->run.n)
		GIVE(rq, run, b->run);
	memcpy(w.pass, b->self.pass, sizeof(w.pass));
	act_begin(&w, e);
	return w;
}

int bulk_begin(struct bulk *b, struct act *w)
{
	int r;

	b->self.began_ns = os_monotonic_ns();
	b->refused = false;
	r = guard_check(w);
	if (r <= 0)
		return r;
	b->said = *w->ans;
	b->said.message = arena_str(b->arena, w->ans->message);
	b->said.hint = arena_str(b->arena, w->ans->hint);
	b->said.text = STR("");
	b->refused = true;
	return STORE_UNSUPPORTED;
}

enum result bulk_run(struct bulk *b, struct change *pieces, size_t n, int kind)
{
	struct queue *q = b->q;
	int64_t deadline = 0, asked = os_monotonic_ns();
	int r;

	b->self.ans = &b->said;
	b->self.call.arena = b->arena;
	do {
		*b->ans = b->said = (struct answer){ 0 };
		b->refused = false;
		q->err = (struct store_error){ 0 };
		store_trial(q->store, b->trial);
		r = q->store->ops->modify(q->store, pieces, n);
		store_trial(q->store, false);
	} while (b->said.barred && guard_wait(q, &b->self, &deadline));
	if (kind)
		health_count_bulk(q, &b->self, (enum health_kind)kind, asked, r < 0 && !b->refused);
	if (r >= 0)
		return SUCCESS;
	if (b->said.code != SUCCESS)
		*b->ans = b->said;
	return b->refused ? b->ans->code : read_fault_answer(q->store, r, b->ans, b->arena);
}
