/* Calls go to the families of tasks that they are about, and each family is judged alone. */
#include <stdlib.h>

#include "history/check_part.h"
#include "history/linear.h"
#include "history/model.h"

#define DROP_MAX 150 /* parts of a failing family from which single ones are left out */
#define EXCERPT 24   /* calls shown */

struct split {
	struct checking *x;
	uint32_t *boss; /* by task: union-find, then the family's number */
	size_t n_families;
	struct family *families;
	struct tally tokens, ids; /* of acquisitions; request ids */
	uint32_t *uses, *user;    /* how often each is used, and a task that it is used on */
	uint32_t *evidence;       /* by open token: a task that it was seen on */
	uint32_t *orphans;        /* tasks that a call without an answer may have made */
	size_t n_orphans;
	struct part *rovers; /* what may have passed by any family */
	size_t n_rovers;
	bool fill; /* else: only counts */
	size_t *count;
	int64_t end; /* the time of the look at the end */
};

/* --- families ------------------------------------------------------------------------------------ */

static uint32_t boss_of(struct split *s, uint32_t t)
{
	while (s->boss[t] != t)
		t = s->boss[t] = s->boss[s->boss[t]];
	return t;
}

static void unite(struct split *s, uint32_t a, uint32_t b)
{
	if (a && b)
		s->boss[boss_of(s, a)] = boss_of(s, b);
}

static void unite_links(struct split *s, uint32_t task, struct str parent, struct strs depends)
{
	unite(s, task, task_number(s->x, parent));
	for (size_t i = 0; i < depends.n; i++)
		unite(s, task, task_number(s->x, depends.v[i]));
}

static bool sweeps(const struct request *rq)
{
	return rq->op == OP_LOCK_CLEANUP || (rq->op == OP_ARCHIVE && !HAS(rq, id));
}

static bool makes_id(const struct history_call *c)
{
	return c->rq->op == OP_CREATE && !HAS(c->rq, id);
}

/* The task that a call is about; 0: none, or nobody knows. */
static uint32_t about(const struct split *s, const struct history_call *c)
{
	if (c->rq->id.n)
		return task_number(s->x, c->rq->id);
	return c->ans && c->ans->task ? task_number(s->x, c->ans->task->id) : 0;
}

/* The same request id on two tasks: the second call gets the first one's answer, or none. */
static void unite_users(struct split *s, uint32_t task, struct str request_id)
{
	uint32_t id = tally_find(&s->ids, request_id);

	if (!task || !id || s->uses[id] < 2)
		return;
	unite(s, task, s->user[id]);
	s->user[id] = task;
}

/* The same token on two tasks: who asked for one twice has got two. */
static void unite_holds(struct split *s, uint32_t *holder, uint32_t task, const struct task *t)
{
	uint32_t token = t ? tally_find(&s->tokens, t->lock.token) : 0;

	if (!token)
		return;
	unite(s, task, holder[token]);
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
	uint32_t task = about(s, c);
	bool links = c->rq->op == OP_CREATE || c->rq->op == OP_UPDATE || c->rq->op == OP_DEPEND ||
		     c->rq->op == OP_UNDEPEND;

	if (links)
		unite_links(s, task, c->rq->parent, c->rq->depends);
	for (size_t i = 0; unanswered(c) && makes_id(c) && i < s->n_orphans; i++) {
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
			made = makes_id(x->touches[i].call) && accepted(x->touches[i].call);
		if (!made && model_makes(x->tasks.v[t]))
			s->orphans[s->n_orphans++] = t;
	}
}

static void find_families(struct split *s)
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
		f->tasks = arena_array(x->arena, struct str, f->n_tasks);
		f->n_tasks = 0;
	}
	for (uint32_t t = 1; t < x->tasks.n; t++) {
		struct family *f = &s->families[s->boss[t]];

		f->tasks[f->n_tasks++] = x->tasks.v[t];
	}
}

/* --- a call, as a family sees it ----------------------------------------------------------------- */

static void emit(struct split *s, uint32_t task, const struct part *p)
{
	struct family *f = &s->families[s->boss[task]];

	if (!s->fill)
		s->count[s->boss[task]]++;
	else
		f->parts[f->n_parts++] = *p;
}

static struct part whole_part(const struct history_call *c)
{
	bool known = c->ans && !unanswered(c);

	return (struct part){ .call = c,
			      .rq = c->rq,
			      .ans = known ? c->ans : NULL,
			      .sent = c->sent,
			      .answered = known ? c->answered : HISTORY_NEVER,
			      .now = known ? c->ans->now : 0 };
}

/* A request id that is used once leads nowhere, and would only make states large. */
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

/* The second half of done --claim-next, for the family of the task that it took. */
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
	struct request *look;

	/* by request id it is shown as it was */
	if (c->ans->repeated && c->rq->request_id.n)
		return;
	*ans = (struct answer){ .now = c->ans->now,
				.task = c->ans->next,
				.lock = c->ans->next_lock };
	p.ans = ans;
	p.took = c->ans->next->id;
	if (c->ans->repeated) {
		look = arena_new(s->x->arena, struct request);
		look->op = OP_SHOW;
		GIVE(look, id, p.took);
		ans->lock = NULL;
		p.rq = look;
		p.took = STR("");
	}
	emit(s, task_number(s->x, c->ans->next->id), &p);
}

/* Once for each family that has one of the tasks. */
static void emit_to_each(struct split *s, const uint32_t *tasks, size_t n, const struct part *p)
{
	for (size_t i = 0; i < n; i++) {
		bool seen = false;

		for (size_t k = 0; !seen && k < i; k++)
			seen = s->boss[tasks[k]] == s->boss[tasks[i]];
		if (!seen)
			emit(s, tasks[i], p);
	}
}

/* A call about all tasks, for those that it changed. */
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
	       op == OP_ID_PEEK || op == OP_ID_CLAIM;
}

/* The answer says that nothing was done, and of no state. */
static bool no_part(const struct history_call *c)
{
	if (is_silent(c->rq->op))
		return true;
	if (!c->ans)
		return op_flags(c->rq->op) & OP_READS;
	return c->ans->code == USAGE || (c->ans->code == API_ERROR && !unanswered(c));
}

/* Calls without an answer that may concern any family are left to those that show a trace of them. */
static void emit_open(struct split *s, const struct history_call *c)
{
	struct part p = whole_part(c);
	uint32_t token = tally_find(&s->x->open_tokens, c->rq->new_token);
	uint32_t seen = token ? s->evidence[token] : 0, task = about(s, c);

	p.rq = without_id(s, c->rq);
	if (c->rq->op == OP_TAKE) {
		if (seen)
			emit(s, seen, &p);
		return;
	}
	if (makes_id(c)) {
		emit_to_each(s, s->orphans, s->n_orphans, &p);
		return;
	}
	if (!task)
		return;
	emit(s, task, &p);
	if (c->rq->op == OP_DONE && c->rq->claim_next && seen && s->boss[seen] != s->boss[task]) {
		p = next_part(s, c);
		emit(s, seen, &p);
	}
}

static void emit_call(struct split *s, const struct history_call *c)
{
	uint32_t task = about(s, c), next;
	struct part p;

	if (no_part(c))
		return;
	if (unanswered(c)) {
		emit_open(s, c);
		return;
	}
	if (sweeps(c->rq)) {
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
	emit(s, task, &p);
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
	emit(s, task, &p);
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

static void split_up(struct split *s)
{
	struct checking *x = s->x;

	s->count = arena_array(x->arena, size_t, s->n_families);
	emit_all(s, false);
	for (size_t i = 0; i < s->n_families; i++)
		s->families[i].parts = arena_array(x->arena, struct part, s->count[i]);
	emit_all(s, true);
}

/* --- traces -------------------------------------------------------------------------------------- */

static void count_ids(struct split *s)
{
	struct checking *x = s->x;

	for (size_t i = 0; i < x->log->n_calls; i++)
		tally_add(&s->ids, x->calls[i]->rq->request_id);
	s->uses = arena_array(x->arena, uint32_t, s->ids.n + 1);
	s->user = arena_array(x->arena, uint32_t, s->ids.n + 1);
	for (size_t i = 0; i < x->log->n_calls; i++)
		s->uses[tally_find(&s->ids, x->calls[i]->rq->request_id)]++;
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

/* --- what else may have happened to a family ----------------------------------------------------- */

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

/* Calls that select may have passed by any family: one without an answer may have taken a task or cleaned up
 * there, any other may have sent worn tasks to a person on its way. */
static bool roves(struct split *s, const struct history_call *c, struct part *out)
{
	bool next = c->rq->op == OP_DONE && c->rq->claim_next;

	if (no_part(c) || !(next || c->rq->op == OP_TAKE || (sweeps(c->rq) && unanswered(c))))
		return false;
	*out = next ? next_part(s, c) : whole_part(c);
	if (unanswered(c))
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
		n += roves(s, x->calls[i], &p);
	s->rovers = arena_array(x->arena, struct part, n);
	for (size_t i = 0; i < x->log->n_calls; i++)
		if (roves(s, x->calls[i], &p))
			s->rovers[s->n_rovers++] = p;
}

/* Is the call among the family's own already? */
static bool is_ours(const struct split *s, const struct family *f, const struct history_call *c)
{
	uint32_t token = tally_find(&s->x->open_tokens, c->rq->new_token);

	if (in_family(s, f, about(s, c)))
		return true;
	if (unanswered(c))
		return in_family(s, f, token ? s->evidence[token] : 0);
	return c->ans->next && in_family(s, f, task_number(s->x, c->ans->next->id));
}

/* false: nothing else. */
static bool with_rovers(struct split *s, const struct family *f, bool spare, struct family *out,
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

/* --- the smallest part of it that fails ---------------------------------------------------------- */

/* As it was known at the time t: what was sent until then, and answered until then. */
static void cut_at(const struct family *f, int64_t t, struct family *out)
{
	out->n_parts = 0;
	for (size_t i = 0; i < f->n_parts; i++) {
		struct part p = f->parts[i];

		if (p.sent > t)
			continue;
		if (p.ans && p.answered > t) {
			if (op_flags(p.rq->op) & OP_READS || p.spare)
				continue;
			p.ans = NULL;
			p.answered = HISTORY_NEVER;
		}
		out->parts[out->n_parts++] = p;
	}
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A prefix of a history that can be explained can be explained: the first cut that cannot is found by halves. */
static int64_t first_failing(const struct family *f, struct family *out, struct arena *a)
{
	int64_t *times = arena_array(a, int64_t, f->n_parts);
	size_t n = 0, low = 0, high;

	for (size_t i = 0; i < f->n_parts; i++)
		if (f->parts[i].ans && !f->parts[i].spare)
			times[n++] = f->parts[i].answered;
	qsort(times, n, sizeof(*times), by_time);
	high = n - 1;
	while (low < high) {
		size_t mid = (low + high) / 2;

		cut_at(f, times[mid], out);
		if (linear_check(out, NULL, NULL) == LINEAR_NO)
			high = mid;
		else
			low = mid + 1;
	}
	cut_at(f, times[low], out);
	return times[low];
}

/* Changes that were accepted explain the state, and stay. */
static bool may_drop(const struct part *p, int64_t last)
{
	return !p->ans || p->spare ||
	       (p->answered != last &&
		!(p->call && accepted(p->call) && !(op_flags(p->rq->op) & OP_READS)));
}

static void drop_others(struct family *f, int64_t last, struct arena *a)
{
	struct family less = *f;

	if (f->n_parts > DROP_MAX)
		return;
	less.parts = arena_array(a, struct part, f->n_parts);
	for (size_t i = f->n_parts; i-- > 0;) {
		if (!may_drop(&f->parts[i], last))
			continue;
		memcpy(less.parts, f->parts, i * sizeof(*f->parts));
		memcpy(less.parts + i, f->parts + i + 1, (f->n_parts - i - 1) * sizeof(*f->parts));
		less.n_parts = f->n_parts - 1;
		if (linear_check(&less, NULL, NULL) != LINEAR_NO)
			continue;
		memcpy(f->parts, less.parts, less.n_parts * sizeof(*f->parts));
		f->n_parts = less.n_parts;
	}
}

static size_t add_calls(const struct history_call **calls, size_t n,
			const struct part *const *parts, size_t more)
{
	for (size_t i = 0; i < more; i++) {
		size_t k = 0;

		while (k < n && calls[k] != parts[i]->call)
			k++;
		if (k == n && parts[i]->call)
			calls[n++] = parts[i]->call;
	}
	return n;
}

static void report(struct checking *x, const struct family *f, struct arena *a)
{
	struct family less = *f;
	struct dead_end end = { 0 };
	const struct part **all;
	const struct history_call **calls;
	size_t n = 0, so_far = x->out->n_findings;
	int64_t last;

	if (x->out->counts[CHECK_LINEAR] >= CHECK_SHOWN) {
		x->out->counts[CHECK_LINEAR]++;
		return;
	}
	less.parts = arena_array(a, struct part, f->n_parts);
	last = first_failing(f, &less, a);
	drop_others(&less, last, a);
	(void)linear_check(&less, &end, a);
	all = arena_array(a, const struct part *, less.n_parts);
	for (size_t i = 0; i < less.n_parts; i++)
		all[i] = &less.parts[i];
	calls = arena_array(a, const struct history_call *, less.n_parts + EXCERPT);
	if (less.n_parts <= EXCERPT) {
		n = add_calls(calls, n, all, less.n_parts);
	} else {
		n = add_calls(calls, n, end.done, end.n_done);
		n = add_calls(calls, n, end.stuck, end.n_stuck);
	}
	check_add(x, CHECK_LINEAR, f->tasks[0], calls, n,
		  "%.*s: no order of these calls%s explains: %.*s", STRF(f->tasks[0]),
		  last == HISTORY_NEVER - 1 ? " and the look at the end" : "", STRF(end.why));
	if (x->out->n_findings > so_far)
		x->out->findings[so_far].state = arena_str(x->arena, end.state);
}

/* --- all ----------------------------------------------------------------------------------------- */

static void check_family(struct split *s, const struct family *f)
{
	struct arena a = { 0 };
	struct family more[2];
	enum linear r = linear_check(f, NULL, NULL);

	/* what passed by is looked at only if it is needed: it is much */
	for (int i = 0; i < 2 && r == LINEAR_NO; i++) {
		if (!with_rovers(s, f, i, &more[i], &a))
			continue;
		r = linear_check(&more[i], NULL, NULL);
		if (i)
			f = &more[i];
	}
	s->x->out->undecided += r == LINEAR_UNDECIDED;
	if (r == LINEAR_NO)
		report(s->x, f, &a);
	arena_free(&a);
}

void check_linear(struct checking *x)
{
	struct split s = { .x = x };

	for (size_t i = 0; i < x->log->n_calls; i++) {
		const struct history_call *c = x->calls[i];
		int64_t t = c->answered != HISTORY_NEVER ? c->answered : c->sent;

		s.end = t >= s.end ? t + 1 : s.end;
	}
	count_ids(&s);
	find_families(&s);
	name_families(&s);
	find_evidence(&s);
	split_up(&s);
	x->out->families = s.n_families;
	for (size_t i = 0; i < s.n_families; i++)
		check_family(&s, &s.families[i]);
	tally_free(&s.ids);
	tally_free(&s.tokens);
}
