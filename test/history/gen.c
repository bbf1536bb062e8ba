#include "gen.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "base/seeded.h"
#include "proof/model/model.h"
#include "queue/queue.h"

#define START INT64_C(1700000000000)
#define MS INT64_C(1000000)
#define MADE_MAX 4 /* how many ids the queue creates */

const struct gen gen_default = {
	.agents = 6,
	.tasks = 5,
	.calls = 500,
	.kills = 20,
	.faults = 10,
	.links = 30,
	.removes = true,
	.next = true,
	.makes = true,
	.slow_ns = 40 * MS,
	.max_abandoned = 3,
};

static int64_t clock_ns;

static int64_t wall_ms(void)
{
	return START + clock_ns / MS;
}

static int64_t boot_ms(void)
{
	return 1000000 + clock_ns / MS;
}

struct agent {
	struct str name, task, token, old_token;
	struct str guard, guard_token; /* a lock of the whole queue */
	int64_t fence;
	int64_t at; /* when the agent makes its next move */
	enum { IDLE, SENT, DONE_CALL } state;
	struct history_call *call;
	struct request *rq; /* with the real tokens */
	struct answer *ans;
	bool dies, fails, again; /* again: the last call is sent once more */
	unsigned lives;
};

struct run {
	const struct gen *g;
	uint64_t random;
	struct queue *q;
	struct history_log *log;
	struct agent *agents;
	struct str *ids;
	unsigned request_ids, made;
};

static uint32_t below(struct run *r, uint32_t n)
{
	return seeded_below(&r->random, n);
}

static bool chance(struct run *r, uint32_t of_1000)
{
	return below(r, 1000) < of_1000;
}

/* --- tokens as a history shows them -------------------------------------------------------------- */

static struct str digits(struct arena *a, struct str hash)
{
	char hex[17];

	for (int i = 0; i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)hash.p[i]);
	return arena_str(a, str_n(hex, 16));
}

static struct str mark(struct arena *a, struct str token)
{
	return token.n ? digits(a, token_hash(a, token)) : token;
}

static struct task *seen(struct arena *a, const struct task *t)
{
	struct task *out;

	if (!t)
		return NULL;
	out = arena_new(a, struct task);
	*out = *t;
	if (t->lock.token.n)
		out->lock.token = digits(a, t->lock.token);
	/* fields that the format does not have */
	out->title = out->run = out->summary = out->blocker_reason = out->unblock_action = STR("");
	out->started_at = out->first_started_at = out->free_at = 0;
	return out;
}

static struct grant *seen_grant(struct arena *a, const struct grant *g)
{
	struct grant *out;

	if (!g)
		return NULL;
	out = arena_new(a, struct grant);
	*out = *g;
	out->token = mark(a, g->token);
	return out;
}

static struct answer *seen_answer(struct arena *a, const struct answer *ans)
{
	struct answer *out = arena_new(a, struct answer);

	*out = *ans;
	out->task = seen(a, ans->task);
	out->next = seen(a, ans->next);
	out->lock = seen_grant(a, ans->lock);
	out->next_lock = seen_grant(a, ans->next_lock);
	out->tasks = arena_array(a, struct task, ans->n_tasks);
	for (size_t i = 0; i < ans->n_tasks; i++)
		out->tasks[i] = *seen(a, &ans->tasks[i]);
	return out;
}

/* --- the agents' requests ------------------------------------------------------------------------ */

static struct request *ask(struct run *r, struct agent *g, enum op op, struct str id)
{
	struct request *rq = arena_new(&r->log->arena, struct request);

	rq->op = op;
	GIVE(rq, agent, g->name);
	if (id.n)
		GIVE(rq, id, id);
	return rq;
}

static struct request *acquire(struct run *r, struct agent *g, enum op op, struct str id)
{
	struct request *rq = ask(r, g, op, id);

	GIVE(rq, new_token, token_make(&r->log->arena));
	GIVE(rq, ttl, 100 + 100 * (int64_t)below(r, 4));
	return rq;
}

static struct str any_id(struct run *r)
{
	uint32_t i = below(r, (uint32_t)r->g->tasks + r->made);

	if (i < r->g->tasks)
		return r->ids[i];
	return arena_printf(&r->log->arena, "%c%u", chance(r, 900) ? 't' : 'T',
			    1 + i - (uint32_t)r->g->tasks);
}

static void give_status(struct run *r, struct request *rq)
{
	GIVE(rq, status, BACKLOG + below(r, STATUS_END - BACKLOG));
	GIVE(rq, reason, STR("so"));
	GIVE(rq, unblock_action, STR("wait"));
	if (rq->status != IN_PROGRESS)
		return;
	GIVE(rq, new_token, token_make(&r->log->arena));
	GIVE(rq, ttl, 200);
}

static struct request *by_holder(struct run *r, struct agent *g)
{
	static const enum op ops[] = { OP_HEARTBEAT, OP_HEARTBEAT, OP_DONE,     OP_DONE,
				       OP_RELEASE,   OP_FAIL,      OP_BLOCK,    OP_REVIEW,
				       OP_UPDATE,    OP_STATUS,    OP_ESCALATE, OP_LOCK_RELEASE };
	enum op op = ops[below(r, sizeof(ops) / sizeof(*ops))];
	struct request *rq = ask(r, g, op, g->task);

	GIVE(rq, token, chance(r, 50) && g->old_token.n ? g->old_token : g->token);
	if (op == OP_STATUS)
		give_status(r, rq);
	if (op == OP_FAIL || op == OP_BLOCK || op == OP_ESCALATE)
		GIVE(rq, reason, STR("why not"));
	if (op == OP_BLOCK)
		GIVE(rq, unblock_action, STR("wait"));
	if (op == OP_REVIEW)
		GIVE(rq, summary, STR("all of it"));
	if (op == OP_UPDATE)
		GIVE(rq, priority, below(r, 4));
	if (op == OP_DONE && r->g->next && chance(r, 500)) {
		GIVE(rq, claim_next, 1);
		GIVE(rq, new_token, token_make(&r->log->arena));
		GIVE(rq, ttl, 200);
	}
	if (op != OP_HEARTBEAT && !rq->claim_next && chance(r, 50))
		GIVE(rq, request_id,
		     arena_printf(&r->log->arena, "%.*s-%u", STRF(g->task), r->request_ids++ / 4));
	return rq;
}

static struct request *create(struct run *r, struct agent *g, struct str id)
{
	struct request *rq = ask(r, g, OP_CREATE, id);

	GIVE(rq, title, STR("something"));
	GIVE(rq, priority, below(r, 3));
	if (chance(r, 300))
		GIVE(rq, due, 1000 + below(r, 3));
	if (below(r, 100) >= r->g->links)
		return rq;
	if (chance(r, 500)) {
		GIVE(rq, parent, any_id(r));
		return rq;
	}
	GIVE(rq, depends, arena_append(&r->log->arena, (struct strs){ 0 }, any_id(r)));
	return rq;
}

static struct request *create_any(struct run *r, struct agent *g)
{
	struct request *rq;

	if (!r->g->makes || r->made == MADE_MAX || chance(r, 700))
		return create(r, g, any_id(r));
	rq = create(r, g, STR(""));
	GIVE(rq, request_id, arena_printf(&r->log->arena, "make-%u", ++r->made));
	return rq;
}

static struct request *by_person(struct run *r, struct agent *g)
{
	static const enum op ops[] = { OP_SHOW,   OP_LOCK_STATUS, OP_UNBLOCK, OP_APPROVE,
				       OP_REWORK, OP_RETRY,       OP_REOPEN,  OP_CANCEL,
				       OP_UPDATE, OP_LOCK_BREAK,  OP_NEXT,    OP_LOCK_CLEANUP,
				       OP_CREATE, OP_SHOW,        OP_REMOVE,  OP_COMMENT,
				       OP_DEPEND, OP_UNDEPEND,    OP_STATUS,  OP_ARCHIVE };
	enum op op = ops[below(r, sizeof(ops) / sizeof(*ops))];
	bool none = op == OP_NEXT || op == OP_LOCK_CLEANUP || (op == OP_ARCHIVE && chance(r, 400));
	struct request *rq;

	if (op == OP_CREATE)
		return create_any(r, g);
	if ((op == OP_REMOVE && !r->g->removes) ||
	    ((op == OP_DEPEND || op == OP_UNDEPEND) && !r->g->links))
		op = OP_SHOW;
	rq = ask(r, g, op, none ? STR("") : any_id(r));
	if (op == OP_REWORK || op == OP_REOPEN || op == OP_CANCEL || op == OP_LOCK_BREAK)
		GIVE(rq, reason, STR("so it is"));
	if (op == OP_UPDATE && chance(r, 500))
		GIVE(rq, status, READY);
	else if (op == OP_UPDATE)
		GIVE(rq, delay, 50);
	if (op == OP_REMOVE) {
		GIVE(rq, force, chance(r, 500));
		GIVE(rq, reason, STR("gone"));
	}
	if (op == OP_COMMENT)
		GIVE(rq, text, STR("hm"));
	if (op == OP_DEPEND || op == OP_UNDEPEND)
		GIVE(rq, depends, arena_append(&r->log->arena, (struct strs){ 0 }, any_id(r)));
	if (op == OP_STATUS)
		give_status(r, rq);
	return rq;
}

static struct request *about_tasks(struct run *r, struct agent *g)
{
	uint32_t dice = below(r, 100);
	struct request *rq;

	if (g->token.n && dice < 70)
		return by_holder(r, g);
	if (dice < 45)
		return acquire(r, g, OP_TAKE, STR(""));
	if (dice < 65)
		return acquire(r, g, chance(r, 150) ? OP_LOCK_ACQUIRE : OP_CLAIM, any_id(r));
	if (dice < 70 && g->fence) {
		rq = acquire(r, g, OP_CLAIM, g->task);
		GIVE(rq, fence, g->fence);
		return rq;
	}
	return by_person(r, g);
}

/* A request about a lock of the whole queue. */
static struct request *by_guard(struct run *r, struct agent *g)
{
	static const enum op ops[] = { OP_LOCK_RELEASE, OP_LOCK_RELEASE, OP_HEARTBEAT,
				       OP_LOCK_BREAK,   OP_EMERGENCY_ON, OP_EMERGENCY_OFF,
				       OP_EMERGENCY,    OP_LOCK_STATUS };
	struct str id = g->guard_token.n ? g->guard : model_guard(1 + (int)below(r, 4));
	enum op op = ops[below(r, g->guard_token.n ? 3 : 8)];
	struct request *rq;

	if (!g->guard_token.n && chance(r, 600))
		return acquire(r, g, OP_LOCK_ACQUIRE, id);
	rq = ask(r, g, op, op_flags(op) & OP_TASK ? id : STR(""));
	if (op_flags(op) & OP_HELD)
		GIVE(rq, token, g->guard_token.n ? g->guard_token : STR("nobody's"));
	if (op == OP_LOCK_BREAK || op == OP_EMERGENCY_ON)
		GIVE(rq, reason, STR("so it is"));
	return rq;
}

static struct request *next_request(struct run *r, struct agent *g)
{
	if (r->g->guards && g->ans && g->ans->code == API_ERROR && g->ans->applied == 'n' &&
	    chance(r, 250))
		return ask(r, g, OP_EMERGENCY_OFF, STR(""));
	if (r->g->guards && chance(r, g->guard_token.n ? 400 : 15))
		return by_guard(r, g);
	return about_tasks(r, g);
}

/* --- the run ------------------------------------------------------------------------------------- */

static int64_t a_while(struct run *r, int64_t most)
{
	/* usually short, sometimes long */
	return 1 + (int64_t)below(r, (uint32_t)(chance(r, 700) ? most / 20 + 1 : most));
}

static void send(struct run *r, struct agent *g, size_t number)
{
	struct history_log *log = r->log;
	struct request *shown = arena_new(&log->arena, struct request);

	if (log->n_calls < r->g->tasks)
		g->rq = create(r, g, r->ids[log->n_calls]);
	else if (!g->again)
		g->rq = next_request(r, g);
	g->again = false;
	*shown = *g->rq;
	shown->token = mark(&log->arena, g->rq->token);
	shown->new_token = mark(&log->arena, g->rq->new_token);
	g->call = &log->calls[log->n_calls++];
	*g->call = (struct history_call){ .number = number,
					  .agent = g->name,
					  .pid = 100 + (int64_t)g->lives,
					  .sent = clock_ns,
					  .answered = HISTORY_NEVER,
					  .rq = shown };
	g->ans = NULL;
	g->dies = chance(r, r->g->kills);
	g->fails = !g->dies && chance(r, r->g->faults);
	g->state = SENT;
	g->at = clock_ns + a_while(r, r->g->slow_ns);
}

/* A call that dies or fails may take effect, now or much later, or not at all. */
static void do_it(struct run *r, struct agent *g)
{
	bool skipped = (g->dies || g->fails) && chance(r, 500);

	g->ans = arena_new(&r->log->arena, struct answer);
	if (!skipped)
		queue_call(r->q, g->rq, g->ans, &r->log->arena);
	if (g->fails)
		*g->ans = (struct answer){ .code = API_ERROR,
					   .applied = skipped && chance(r, 500) ? 'n' : '?' };
	g->state = DONE_CALL;
	g->at = clock_ns + a_while(r, r->g->slow_ns);
}

static void remember(struct agent *g)
{
	const struct answer *ans = g->ans;

	if (model_is_guard(g->rq->id)) {
		bool has = g->rq->op == OP_LOCK_ACQUIRE && ans->code == SUCCESS;

		g->guard = g->rq->id;
		g->guard_token = has ? g->rq->new_token
				 : g->rq->op == OP_HEARTBEAT && ans->code == SUCCESS
					 ? g->guard_token
					 : STR("");
		return;
	}
	if (ans->code == API_ERROR && g->rq->new_token.n && g->rq->id.n) {
		/* the agent may hold it */
		g->task = g->rq->id;
		g->token = g->rq->new_token;
	}
	if (ans->code == SUCCESS && ans->lock && ans->lock->token.n) {
		g->old_token = g->token;
		g->task = ans->task->id;
		g->token = ans->lock->token;
		g->fence = ans->lock->fence;
	} else if (ans->code == SUCCESS && ans->next_lock && ans->next_lock->token.n) {
		g->old_token = g->token;
		g->task = ans->next->id;
		g->token = ans->next_lock->token;
		g->fence = ans->next_lock->fence;
	} else if (ans->code == LOST_LOCK) {
		g->old_token = g->token;
		g->token = STR("");
	}
}

static void answer(struct run *r, struct agent *g)
{
	if (g->dies) {
		g->lives++;
		g->token = STR("");
	} else {
		g->call->answered = clock_ns;
		g->call->ans = seen_answer(&r->log->arena, g->ans);
		remember(g);
	}
	g->again = (g->dies || g->fails) && chance(r, 400);
	g->state = IDLE;
	g->at = clock_ns + a_while(r, 2 * r->g->slow_ns);
}

static struct agent *next_agent(struct run *r)
{
	struct agent *first = &r->agents[0];

	for (size_t i = 1; i < r->g->agents; i++)
		if (r->agents[i].at < first->at)
			first = &r->agents[i];
	return first;
}

static void final(struct run *r, struct str id)
{
	struct history_log *log = r->log;
	struct request rq = { .op = OP_SHOW };
	struct answer ans;

	GIVE(&rq, id, id);
	queue_call(r->q, &rq, &ans, &log->arena);
	log->ends[log->n_ends++] = (struct history_end){ id, clock_ns, ans.now,
							 seen(&log->arena, ans.task) };
}

static void finals(struct run *r)
{
	r->log->ends = mem_alloc((r->g->tasks + 2 * MADE_MAX) * sizeof(*r->log->ends));
	for (size_t i = 0; i < r->g->tasks; i++)
		final(r, r->ids[i]);
	/* the queue skips ids that were given by name */
	for (unsigned i = 1; i <= 2 * r->made; i++)
		final(r, arena_printf(&r->log->arena, "t%u", i));
}

static void open_queue(struct run *r)
{
	static unsigned runs;
	char name[40];
	struct queue_config config = { .uri = STR("mem:"),
				       .policy = r->log->head.policy,
				       .opt.timeout_ms = 1000,
				       .opt.wall = wall_ms,
				       .opt.boot = boot_ms,
				       .opt.own_time = true,
				       .impatient = true };
	struct answer ans = { 0 };

	snprintf(name, sizeof(name), "gen%u", runs++);
	config.opt.queue = arena_str(&r->log->arena, str_c(name));
	if (queue_open(&r->q, &config, STORE_CREATE, &ans, &r->log->arena) != SUCCESS) {
		fprintf(stderr, "gen: %.*s\n", STRF(ans.message));
		exit(1);
	}
}

void gen_run(const struct gen *g, struct history_log *out)
{
	struct run r = { .g = g, .random = g->seed, .log = out };

	*out = (struct history_log){ .head = { .pawl = STR("test"),
					       .store = STR("mem"),
					       .seed = g->seed,
					       .agents = (int64_t)g->agents,
					       .tasks = (int64_t)g->tasks,
					       .policy = policy_default } };
	out->head.policy.lease_min = 1;
	out->head.policy.lease = 300;
	out->head.policy.lock_ttl = 200;
	out->head.policy.max_abandoned = g->max_abandoned;
	clock_ns = 0;
	open_queue(&r);
	out->calls = mem_alloc(g->calls * sizeof(*out->calls));
	r.ids = arena_array(&out->arena, struct str, g->tasks);
	for (size_t i = 0; i < g->tasks; i++)
		r.ids[i] = arena_printf(&out->arena, "Task-%zu", i + 1);
	r.agents = arena_array(&out->arena, struct agent, g->agents);
	for (size_t i = 0; i < g->agents; i++) {
		r.agents[i].name = arena_printf(&out->arena, "a%zu", i + 1);
		r.agents[i].at = a_while(&r, g->slow_ns);
	}
	for (;;) {
		struct agent *who = next_agent(&r);

		clock_ns = who->at;
		if (who->state == IDLE && out->n_calls == g->calls)
			break;
		if (who->state == IDLE)
			send(&r, who, out->n_calls + 1);
		else if (who->state == SENT)
			do_it(&r, who);
		else
			answer(&r, who);
	}
	/* calls that are still under way never get an answer */
	finals(&r);
	queue_close(r.q);
}
