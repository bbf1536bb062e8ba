/* A server below `pawl run`: the agent that `pawl run` started has one task already. `next` gives it that task, as often as
 * it asks, and never a second one. The lock stays with `pawl run`, which renews it and reports the task. */
#include "face/mcp/mcp.h"

#include <stdlib.h>

#include "base/secret.h"
#include "core/lease.h"

static struct str mcp_under_run_variable(const char *name)
{
	const char *text = getenv(name);

	return str_c(text ? text : "");
}

bool under_run(const struct mcp *m, struct run_task *out)
{
	const struct queue_config *c = &m->session.client.conn.config;

	*out = (struct run_task){ .id = mcp_under_run_variable("PAWL_TASK"),
				  .token = mcp_under_run_variable("PAWL_TOKEN") };
	return !m->options.host && !id_fault(out->id) && token_valid(out->token) &&
	       str_to_i64(mcp_under_run_variable("PAWL_FENCE"), &out->fence) && c->uri.n &&
	       str_eq(mcp_under_run_variable("PAWL_STORE"), c->uri) &&
	       str_eq(mcp_under_run_variable("PAWL_QUEUE"), c->opt.queue);
}

bool under_run_holds(const struct mcp *m, struct str id, int64_t fence)
{
	struct run_task t;

	return under_run(m, &t) && str_eq_nocase(t.id, id) && (!fence || t.fence == fence);
}

/* If a store does not show the hash of the token, the fence must suffice. */
static bool mcp_under_run_held(const struct run_task *t, const struct answer *ans, struct arena *a)
{
	const struct lock *l = ans->task ? &ans->task->lock : NULL;

	return l && ans->task->fence == t->fence && lease_live(l, ans->now) &&
	       ans->task->status != BLOCKED &&
	       (!l->token.n || secret_eq(l->token, token_hash(a, t->token)));
}

static void mcp_under_run_over(const struct run_task *t, struct reply *out, struct arena *a)
{
	*out = (struct reply){ .ans = { .code = NO_TASKS,
					.now = out->ans.now,
					.tasks = out->ans.tasks,
					.n_tasks = out->ans.n_tasks } };
	reply_warn(out,
		   arena_printf(
			   a,
			   "%.*s was the task of this session, and its lock has ended. Stop here: "
			   "the next task gets a new session",
			   STRF(t->id)),
		   a);
}

bool under_run_next(struct mcp *m, const struct request *rq, struct reply *out, struct arena *a)
{
	struct answer *ans = &out->ans;
	struct run_task t;

	if (rq->explain || HAS(rq, agent) || !under_run(m, &t))
		return false;
	*out = (struct reply){ 0 };
	if (!mcp_show(m, t.id, VIEW_BRIEF, ans, a) && ans->code != NOT_FOUND)
		return true; /* the store is out of reach: no second task either */
	if (!mcp_under_run_held(&t, ans, a)) {
		mcp_under_run_over(&t, out, a);
		return true;
	}
	ans->lock = arena_new(a, struct grant);
	*ans->lock = (struct grant){ .token = arena_str(a, t.token),
				     .fence = ans->task->fence,
				     .expires_at = ans->task->lock.expires_at,
				     .ttl = ans->task->lock.ttl };
	return true;
}

bool under_run_done(struct mcp *m, struct request *rq)
{
	if (rq->op != OP_DONE || !rq->claim_next || !under_run_holds(m, rq->id, 0))
		return false;
	rq->claim_next = 0;
	rq->has &= ~(UINT64_C(1) << ARG_claim_next);
	return true;
}
