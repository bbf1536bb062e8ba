/* Gives each family of tasks the calls that concern it. Two passes: the first only counts. A call that could have changed a
 * family must reach it, or the search would report a violation that is none. */
#include <stdlib.h>

#include "proof/check/checker_private.h"
#include "proof/model/model.h"

static void check_calls_emit(struct split *s, uint32_t task, const struct part *p)
{
	struct family *f = &s->families[s->boss[task]];

	if (!s->fill)
		s->count[s->boss[task]]++;
	else
		f->parts[f->n_parts++] = *p;
}

static struct part whole_part(const struct history_call *c)
{
	bool known = c->ans && !call_unanswered(c);

	return (struct part){ .call = c,
			      .rq = c->rq,
			      .ans = known ? c->ans : NULL,
			      .sent = c->sent,
			      .answered = known ? c->answered : HISTORY_NEVER,
			      .now = known ? c->ans->now : 0 };
}

/* A request id that only one call uses has no effect. Keeping it would only enlarge the states. */
static const struct request *without_id(struct split *s, const struct request *rq)
{
	struct request *copy;

	if (!s->fill || !HAS(rq, request_id) || s->uses[tally_find(&s->ids, rq->request_id)] > 1)
		return rq;
	copy = arena_new(s->x->arena, struct request);
	*copy = *rq;
	copy->request_id = STR("");
	copy->has &= ~(UINT64_C(1) << ARG_request_id);
	return copy;
}

/* The second half of `done --claim-next`, for the family of the task that the call took. */
static struct part next_part(struct split *s, const struct history_call *c)
{
	struct part p = whole_part(c);
	struct request *rq = arena_new(s->x->arena, struct request);

	*rq = *c->rq;
	rq->op = OP_TAKE;
	rq->has &= ~(UINT64_C(1) << ARG_id | UINT64_C(1) << ARG_token |
		     UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_request_id);
	rq->id = rq->token = rq->request_id = STR("");
	rq->explicit = rq->claim_next = 0;
	p.rq = rq;
	return p;
}

static void emit_next(struct split *s, const struct history_call *c)
{
	struct answer *ans = arena_new(s->x->arena, struct answer);
	struct part p = next_part(s, c);
	struct request *view;

	/* a repeat by request id shows the task as it was at the first call */
	if (c->ans->repeated && c->rq->request_id.n)
		return;
	*ans = (struct answer){ .now = c->ans->now,
				.task = c->ans->next,
				.lock = c->ans->next_lock };
	p.ans = ans;
	p.took = c->ans->next->id;
	if (c->ans->repeated) {
		view = arena_new(s->x->arena, struct request);
		view->op = OP_SHOW;
		GIVE(view, id, p.took);
		ans->lock = NULL;
		p.rq = view;
		p.took = STR("");
	}
	check_calls_emit(s, task_number(s->x, c->ans->next->id), &p);
}

/* Calls emit() with `p` once for each family that has one of these tasks. */
static void emit_to_each(struct split *s, const uint32_t *tasks, size_t n, const struct part *p)
{
	for (size_t i = 0; i < n; i++) {
		bool seen = false;

		for (size_t k = 0; !seen && k < i; k++)
			seen = s->boss[tasks[k]] == s->boss[tasks[i]];
		if (!seen)
			check_calls_emit(s, tasks[i], p);
	}
}

/* A call about all tasks goes to the families of the tasks that it changed. */
static void emit_sweep(struct split *s, const struct history_call *c)
{
	uint32_t *tasks = arena_array(s->x->arena, uint32_t, c->ans->n_tasks);
	struct part p = whole_part(c);

	p.rq = without_id(s, c->rq);
	for (size_t i = 0; i < c->ans->n_tasks; i++)
		tasks[i] = task_number(s->x, c->ans->tasks[i].id);
	emit_to_each(s, tasks, c->ans->n_tasks, &p);
}

static bool is_silent(enum op op)
{
	return op == OP_LIST || op == OP_LOG || op == OP_OVERVIEW || op == OP_LOCKS ||
	       op == OP_ID_PEEK || op == OP_ID_CLAIM || op == OP_TYPED;
}

/* Did the call change nothing, and does its answer show no state? */
static bool no_part(const struct history_call *c)
{
	if (is_silent(c->rq->op))
		return true;
	if (!c->ans)
		return op_flags(c->rq->op) & OP_READS;
	return c->ans->code == USAGE || (c->ans->code == API_ERROR && !call_unanswered(c));
}

/* An unanswered call that may concern any family goes only to the families that show a trace of
 * it. */
static void emit_open(struct split *s, const struct history_call *c)
{
	struct part p = whole_part(c);
	uint32_t token = tally_find(&s->x->open_tokens, c->rq->new_token);
	uint32_t seen = token ? s->evidence[token] : 0, task = call_about(s, c);

	p.rq = without_id(s, c->rq);
	if (c->rq->op == OP_TAKE) {
		if (seen)
			check_calls_emit(s, seen, &p);
		return;
	}
	if (makes_id(c)) {
		emit_to_each(s, s->orphans, s->n_orphans, &p);
		return;
	}
	if (!task)
		return;
	check_calls_emit(s, task, &p);
	if (c->rq->op == OP_DONE && c->rq->claim_next && seen && s->boss[seen] != s->boss[task]) {
		p = next_part(s, c);
		check_calls_emit(s, seen, &p);
	}
}

/* Did the request id belong to another call, which no family has? */
static bool id_was_taken(const struct split *s, const struct history_call *c)
{
	return c->ans && c->ans->code == CONFLICT && !c->ans->task && HAS(c->rq, request_id) &&
	       s->untold[tally_find(&s->ids, c->rq->request_id)];
}

static void emit_call(struct split *s, const struct history_call *c)
{
	uint32_t task = call_about(s, c), next;
	struct part p;

	if (no_part(c) || id_was_taken(s, c))
		return;
	if (call_unanswered(c)) {
		emit_open(s, c);
		return;
	}
	if (call_sweeps(c->rq)) {
		emit_sweep(s, c);
		return;
	}
	if (!task || (c->rq->op == OP_NEXT && (c->rq->explain || c->ans->code != SUCCESS)))
		return;
	p = whole_part(c);
	p.rq = without_id(s, c->rq);
	next = c->ans->next ? task_number(s->x, c->ans->next->id) : 0;
	if (c->rq->op == OP_TAKE || makes_id(c))
		p.took = c->ans->task->id;
	if (next && s->boss[next] == s->boss[task])
		p.took = c->ans->next->id;
	check_calls_emit(s, task, &p);
	if (next && s->boss[next] != s->boss[task])
		emit_next(s, c);
}

static void emit_end(struct split *s, const struct history_end *e)
{
	struct answer *ans = arena_new(s->x->arena, struct answer);
	struct request *rq = arena_new(s->x->arena, struct request);
	struct part p = { .rq = rq, .ans = ans, .sent = s->end, .answered = HISTORY_NEVER - 1 };
	uint32_t task = task_number(s->x, e->id);

	rq->op = OP_SHOW;
	GIVE(rq, id, e->id);
	*ans = (struct answer){ .code = e->task ? SUCCESS : NOT_FOUND,
				.now = e->now,
				.task = e->task };
	p.now = e->now;
	check_calls_emit(s, task, &p);
}

static void emit_all(struct split *s, bool fill)
{
	struct checking *x = s->x;
	bool *spoiled = arena_array(x->arena, bool, s->n_families);

	s->fill = fill;
	for (size_t i = 0; i < x->log->n_calls; i++)
		emit_call(s, x->calls[i]);
	for (uint32_t t = 1; t < x->tasks.n; t++)
		spoiled[s->boss[t]] |= x->spoiled[t];
	for (uint32_t t = 1; t < x->tasks.n; t++)
		if (x->ends[t] && !spoiled[s->boss[t]])
			emit_end(s, x->ends[t]);
}

void split_calls(struct split *s)
{
	struct checking *x = s->x;

	s->count = arena_array(x->arena, size_t, s->n_families);
	emit_all(s, false);
	for (size_t i = 0; i < s->n_families; i++)
		s->families[i].parts = arena_array(x->arena, struct part, s->count[i]);
	emit_all(s, true);
}

/* --- calls that may have reached any family ------------------------------------------------------ */

static int by_sent(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->sent != y->sent)
		return x->sent < y->sent ? -1 : 1;
	return x->call && y->call
		       ? (x->call->number > y->call->number) - (x->call->number < y->call->number)
		       : (y->call != NULL) - (x->call != NULL);
}

static bool in_family(const struct split *s, const struct family *f, uint32_t task)
{
	return task && &s->families[s->boss[task]] == f;
}

/* A selecting call may have reached any family. An unanswered call may have taken a task or cleaned
 * up there. An answered call may have sent tasks that were abandoned too often to Needs Help before
 * it took its task. */
static bool check_calls_roves(struct split *s, const struct history_call *c, struct part *out)
{
	bool next = c->rq->op == OP_DONE && c->rq->claim_next;

	if (no_part(c) ||
	    !(next || c->rq->op == OP_TAKE || (call_sweeps(c->rq) && call_unanswered(c))))
		return false;
	*out = next ? next_part(s, c) : whole_part(c);
	if (call_unanswered(c))
		return true;
	out->spare = true;
	return s->x->log->head.policy.max_abandoned && !c->ans->repeated &&
	       (!next || c->ans->code == SUCCESS);
}

static void find_rovers(struct split *s)
{
	struct checking *x = s->x;
	struct part p;
	size_t n = 0;

	for (size_t i = 0; i < x->log->n_calls; i++)
		n += check_calls_roves(s, x->calls[i], &p);
	s->rovers = arena_array(x->arena, struct part, n);
	for (size_t i = 0; i < x->log->n_calls; i++)
		if (check_calls_roves(s, x->calls[i], &p))
			s->rovers[s->n_rovers++] = p;
}

/* Does the family have the call already? */
static bool is_ours(const struct split *s, const struct family *f, const struct history_call *c)
{
	uint32_t token = tally_find(&s->x->open_tokens, c->rq->new_token);

	if (in_family(s, f, call_about(s, c)))
		return true;
	if (call_unanswered(c))
		return in_family(s, f, token ? s->evidence[token] : 0);
	return c->ans->next && in_family(s, f, task_number(s->x, c->ans->next->id));
}

bool split_rovers(struct split *s, const struct family *f, bool spare, struct family *out,
		  struct arena *a)
{
	size_t n = 0;

	if (!s->rovers)
		find_rovers(s);
	for (size_t i = 0; i < s->n_rovers; i++)
		n += s->rovers[i].spare <= spare;
	*out = *f;
	out->parts = arena_array(a, struct part, f->n_parts + n);
	memcpy(out->parts, f->parts, f->n_parts * sizeof(*f->parts));
	for (size_t i = 0; i < s->n_rovers; i++)
		if (s->rovers[i].spare <= spare && !is_ours(s, f, s->rovers[i].call))
			out->parts[out->n_parts++] = s->rovers[i];
	qsort(out->parts, out->n_parts, sizeof(*out->parts), by_sent);
	return out->n_parts > f->n_parts;
}

/* --- family ----------------------------------------------------------------------------------- */

/* Finds the families: tasks that are linked by parent, by depends or by one call. Tasks that could influence each other's
 * answers must be in one family, since each family is checked alone. */

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

/* If two tasks share a request id, the second call may get the first one's answer. So both tasks are
 * in one family. */
static void unite_users(struct split *s, uint32_t task, struct str request_id)
{
	uint32_t id = tally_find(&s->ids, request_id);

	if (!task || !id || s->uses[id] < 2)
		return;
	check_family_unite(s, task, s->user[id]);
	s->user[id] = task;
}

/* If two tasks share a token, a caller repeated a claim and got both. So they are in one family. */
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
