/* Finds the families: tasks that are linked by parent, by depends or by one call. */
#include "proof/check/split.h"
#include "proof/model/model.h"

static uint32_t boss_of(struct split *s, uint32_t t)
{
	while (s->boss[t] != t)
		t = s->boss[t] = s->boss[s->boss[t]];
	return t;
}

static void check_family_unite(struct split *s, uint32_t a, uint32_t b)
{
	if (a && b)
		s->boss[boss_of(s, a)] = boss_of(s, b);
}

static void unite_links(struct split *s, uint32_t task, struct str parent, struct strs depends)
{
	check_family_unite(s, task, task_number(s->x, parent));
	for (size_t i = 0; i < depends.n; i++)
		check_family_unite(s, task, task_number(s->x, depends.v[i]));
}

/* One request id on two tasks: the second call may get the first one's answer, so both tasks are
 * one family. */
static void unite_users(struct split *s, uint32_t task, struct str request_id)
{
	uint32_t id = tally_find(&s->ids, request_id);

	if (!task || !id || s->uses[id] < 2)
		return;
	check_family_unite(s, task, s->user[id]);
	s->user[id] = task;
}

/* One token on two tasks: a caller repeated a claim and got two tasks. */
static void unite_holds(struct split *s, uint32_t *holder, uint32_t task, const struct task *t)
{
	uint32_t token = t ? tally_find(&s->tokens, t->lock.token) : 0;

	if (!token)
		return;
	check_family_unite(s, task, holder[token]);
	holder[token] = task;
}

static void unite_tokens(struct split *s)
{
	struct checking *x = s->x;
	uint32_t *holder;

	for (size_t i = 0; i < x->log->n_calls; i++)
		tally_add(&s->tokens, x->calls[i]->rq->new_token);
	holder = arena_array(x->arena, uint32_t, s->tokens.n + 1);
	for (uint32_t t = 1; t < x->tasks.n; t++) {
		for (size_t i = x->first[t]; i < x->first[t + 1]; i++)
			unite_holds(s, holder, t, x->touches[i].task);
		if (x->ends[t])
			unite_holds(s, holder, t, x->ends[t]->task);
	}
}

static void unite_call(struct split *s, const struct history_call *c)
{
	uint32_t task = call_about(s, c);
	bool links = c->rq->op == OP_CREATE || c->rq->op == OP_UPDATE || c->rq->op == OP_DEPEND ||
		     c->rq->op == OP_UNDEPEND;

	if (links)
		unite_links(s, task, c->rq->parent, c->rq->depends);
	for (size_t i = 0; call_unanswered(c) && makes_id(c) && i < s->n_orphans; i++) {
		unite_links(s, s->orphans[i], c->rq->parent, c->rq->depends);
		unite_users(s, s->orphans[i], c->rq->request_id);
	}
	unite_users(s, task, c->rq->request_id);
	if (c->ans && c->ans->task)
		unite_links(s, task, c->ans->task->parent, c->ans->task->depends);
	if (c->ans && c->ans->next)
		unite_links(s, task_number(s->x, c->ans->next->id), c->ans->next->parent,
			    c->ans->next->depends);
}

static void find_orphans(struct split *s)
{
	struct checking *x = s->x;

	s->orphans = arena_array(x->arena, uint32_t, x->tasks.n);
	for (uint32_t t = 1; t < x->tasks.n; t++) {
		bool made = false;

		for (size_t i = x->first[t]; !made && i < x->first[t + 1]; i++)
			made = makes_id(x->touches[i].call) && call_accepted(x->touches[i].call);
		if (!made && model_makes(x->tasks.v[t]))
			s->orphans[s->n_orphans++] = t;
	}
}

static void join_families(struct split *s)
{
	struct checking *x = s->x;
	uint32_t *number = arena_array(x->arena, uint32_t, x->tasks.n + 1);

	s->boss = arena_array(x->arena, uint32_t, x->tasks.n + 1);
	for (uint32_t t = 0; t < x->tasks.n; t++)
		s->boss[t] = t;
	find_orphans(s);
	for (size_t i = 0; i < x->log->n_calls; i++)
		unite_call(s, x->calls[i]);
	unite_tokens(s);
	for (int i = 2; i < MODEL_GUARDS; i++)
		check_family_unite(s, task_number(x, model_guard(1)),
				   task_number(x, model_guard(i)));
	for (size_t i = 0; i < x->log->n_ends; i++)
		if (x->log->ends[i].task)
			unite_links(s, task_number(x, x->log->ends[i].id),
				    x->log->ends[i].task->parent, x->log->ends[i].task->depends);
	for (uint32_t t = 1; t < x->tasks.n; t++) {
		uint32_t boss = boss_of(s, t);

		if (!number[boss])
			number[boss] = (uint32_t)++s->n_families;
	}
	for (uint32_t t = 1; t < x->tasks.n; t++)
		s->boss[t] = boss_of(s, t);
	for (uint32_t t = 1; t < x->tasks.n; t++)
		s->boss[t] = number[s->boss[t]] - 1;
}

static void name_families(struct split *s)
{
	struct checking *x = s->x;

	s->families = arena_array(x->arena, struct family, s->n_families);
	for (uint32_t t = 1; t < x->tasks.n; t++)
		s->families[s->boss[t]].n_tasks++;
	for (size_t i = 0; i < s->n_families; i++) {
		struct family *f = &s->families[i];

		f->policy = &x->log->head.policy;
		f->skewed = x->skewed;
		f->late = str_is(x->log->head.store, "git");
		f->tasks = arena_array(x->arena, struct str, f->n_tasks);
		f->n_tasks = 0;
	}
	for (uint32_t t = 1; t < x->tasks.n; t++) {
		struct family *f = &s->families[s->boss[t]];

		f->tasks[f->n_tasks++] = x->tasks.v[t];
	}
}

/* --- traces -------------------------------------------------------------------------------------- */

static void count_ids(struct split *s)
{
	struct checking *x = s->x;

	for (size_t i = 0; i < x->log->n_calls; i++)
		tally_add(&s->ids, x->calls[i]->rq->request_id);
	s->uses = arena_array(x->arena, uint32_t, s->ids.n + 1);
	s->user = arena_array(x->arena, uint32_t, s->ids.n + 1);
	s->untold = arena_array(x->arena, bool, s->ids.n + 1);
	for (size_t i = 0; i < x->log->n_calls; i++) {
		uint32_t id = tally_find(&s->ids, x->calls[i]->rq->request_id);

		s->uses[id]++;
		s->untold[id] |= !call_about(s, x->calls[i]);
	}
}

static void find_evidence(struct split *s)
{
	struct checking *x = s->x;

	s->evidence = arena_array(x->arena, uint32_t, x->open_tokens.n + 1);
	for (uint32_t t = 1; t < x->tasks.n; t++)
		for (size_t i = x->first[t]; i < x->first[t + 1]; i++) {
			const struct touch *to = &x->touches[i];

			if (!to->next)
				s->evidence[tally_find(&x->open_tokens, to->call->rq->token)] = t;
			if (to->task)
				s->evidence[tally_find(&x->open_tokens, to->task->lock.token)] = t;
		}
	for (uint32_t t = 1; t < x->tasks.n; t++)
		if (x->ends[t] && x->ends[t]->task)
			s->evidence[tally_find(&x->open_tokens, x->ends[t]->task->lock.token)] = t;
	s->evidence[0] = 0;
}

void split_families(struct split *s)
{
	count_ids(s);
	join_families(s);
	name_families(s);
	find_evidence(s);
}
