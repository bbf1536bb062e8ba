/* Names, states and calls. Equal states must be equal bytes, because the search compares and hashes them: no struct in a state
 * may have padding that is not zero. */
#include <stdlib.h>

#include "format/request_form.h"
#include "proof/model/model.h"
#include "proof/model/model_private.h"

/* --- names --------------------------------------------------------------------------------------- */

struct model_world *model_world_new(struct arena *a, const struct policy *policy, bool whole)
{
	struct model_world *w = arena_new(a, struct model_world);

	w->arena = a;
	w->policy = *policy;
	w->whole = whole;
	for (int k = 0; k < MODEL_KINDS; k++)
		w->names[k] = (struct tally){ .fold = k == MODEL_TASK, .arena = a };
	return w;
}

uint32_t model_find(const struct model_world *w, enum model_kind kind, struct str text)
{
	return tally_find(&w->names[kind], text);
}

uint32_t model_name(struct model_world *w, enum model_kind kind, struct str text)
{
	uint32_t found = model_find(w, kind, text);

	if (found || !text.n)
		return found;
	found = tally_add(&w->names[kind], arena_str(w->arena, text));
	for (int i = 1; kind == MODEL_TASK && i < MODEL_GUARDS; i++)
		if (str_eq_nocase(text, model_guard(i)))
			w->guards[i] = found;
	return found;
}

struct str model_text(const struct model_world *w, enum model_kind kind, uint32_t name)
{
	return name < w->names[kind].n ? w->names[kind].v[name] : STR("");
}

uint32_t model_count(const struct model_world *w, enum model_kind kind)
{
	return w->names[kind].n ? w->names[kind].n - 1 : 0;
}

/* --- state --------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct model_task) % 8 == 0 && sizeof(struct model_kept) % 8 == 0 &&
		       sizeof(struct model) % 8 == 0,
	       "states are compared as bytes");

static size_t size_of(uint32_t tasks, uint32_t kept)
{
	return sizeof(struct model) + tasks * sizeof(struct model_task) +
	       kept * sizeof(struct model_kept);
}

size_t model_size(const struct model *m)
{
	return size_of(m->n_tasks, m->n_kept);
}

struct model *model_new(const struct model_world *w, struct arena *a, uint32_t tasks,
			uint32_t requests)
{
	uint32_t n_tasks = model_count(w, MODEL_TASK) + 1 + tasks;
	uint32_t n_kept = model_count(w, MODEL_REQUEST) + 1 + requests;
	struct model *m = arena_alloc(a, size_of(n_tasks, n_kept));

	m->n_tasks = n_tasks;
	m->n_kept = n_kept;
	return m;
}

struct model *model_copy(const struct model *m, struct arena *a)
{
	struct model *copy = arena_alloc(a, model_size(m));

	memcpy(copy, m, model_size(m));
	return copy;
}

uint64_t model_hash(const struct model *m)
{
	const char *p = (const char *)m;
	uint64_t h = 0, word;

	for (size_t i = 0; i < model_size(m); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return h;
}

/* --- calls --------------------------------------------------------------------------------------- */

#define CALL_MAX (16u << 20)

/* Two calls with one request id are the same call if all else is equal. Tokens, the run, the
 * host and the lock that the call is part of do not count. */
static uint32_t same_call(struct model_world *w, const struct request *rq)
{
	struct request plain = *rq;
	struct buf b = BUF_MAX(CALL_MAX);
	uint32_t same;

	plain.has &= ~(UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token |
		       UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_run |
		       UINT64_C(1) << ARG_host | UINT64_C(1) << ARG_mode |
		       UINT64_C(1) << ARG_part_of);
	if (plain.id.n)
		plain.id = model_text(w, MODEL_TASK, model_name(w, MODEL_TASK, plain.id));
	request_pack(&plain, &b);
	same = model_name(w, MODEL_TEXT, buf_str(&b));
	buf_free(&b);
	return same;
}

struct str model_about(const struct request *rq)
{
	bool emergency = rq->op == OP_EMERGENCY || rq->op == OP_EMERGENCY_ON ||
			 rq->op == OP_EMERGENCY_OFF;

	if (rq->op == OP_PAUSE || rq->op == OP_RESUME)
		return model_guard(MODEL_PAUSE);
	return emergency ? model_guard(MODEL_EMERGENCY) : rq->id;
}

struct model_call model_call_of(struct model_world *w, const struct request *rq)
{
	struct model_call c = {
		.rq = rq,
		.id = model_name(w, MODEL_TASK, model_about(rq)),
		.agent = model_name(w, MODEL_AGENT, rq->agent),
		.run = model_name(w, MODEL_TEXT, rq->run),
		.token = model_name(w, MODEL_TOKEN, rq->token),
		.new_token = model_name(w, MODEL_TOKEN, rq->new_token),
		.request = model_name(w, MODEL_REQUEST, rq->request_id),
		.parent = model_name(w, MODEL_TASK, rq->parent),
		.label = model_name(w, MODEL_TEXT, rq->label),
		.type = model_name(w, MODEL_TEXT, rq->type),
		.assignee = model_name(w, MODEL_AGENT, rq->assignee),
	};

	if (rq->depends.n > MODEL_DEPENDS)
		abort();
	for (size_t i = 0; i < rq->depends.n; i++)
		c.depends[i] = model_name(w, MODEL_TASK, rq->depends.v[i]);
	if (c.request)
		c.same = same_call(w, rq);
	return c;
}

/* --- times --------------------------------------------------------------------------------------- */

struct times {
	int64_t from, to, *v;
	size_t n, room;
};

/* Inserts into the sorted v, without duplicates. */
static void add_time(struct times *x, int64_t at)
{
	size_t i = x->n;

	if (at < x->from || at > x->to || x->n == x->room)
		return;
	for (size_t k = 0; k < x->n; k++)
		if (x->v[k] == at)
			return;
	for (; i && x->v[i - 1] > at; i--)
		x->v[i] = x->v[i - 1];
	x->v[i] = at;
	x->n++;
}

size_t model_times(const struct model *m, int64_t from, int64_t to, int64_t *out, size_t room)
{
	struct times x = { from, to, out, 0, room };

	add_time(&x, from);
	for (uint32_t i = 1; i < m->n_tasks; i++) {
		const struct model_task *t = model_task(m, i);

		if (!t->status && !t->lock.holder)
			continue;
		if (t->lock.holder)
			add_time(&x, t->lock.expires_at);
		else if (t->status == IN_PROGRESS)
			add_time(&x, t->free_at);
		if (t->status == READY)
			add_time(&x, t->not_before);
	}
	for (uint32_t i = 1; i < m->n_kept; i++)
		add_time(&x, model_kept(m, i)->until);
	return x.n;
}

/* --- output for people --------------------------------------------------------------------------- */

void model_print(const struct model_world *w, const struct model *m, uint32_t task, int64_t now,
		 struct buf *out)
{
	const struct model_task *t = model_task(m, task);
	const struct model_lock *l = &t->lock;
	struct str holder = model_text(w, MODEL_AGENT, l->holder);

	buf_adds(out, model_text(w, MODEL_TASK, task));
	if (!t->status && !model_is_guard(model_text(w, MODEL_TASK, task))) {
		buf_addf(out, " is not there (fence %lld)", (long long)t->fence);
		return;
	}
	buf_addf(out, " %s, fence %lld, version %lld, attempts %lld, abandoned %lld",
		 status_name(t->status), (long long)t->fence, (long long)t->version,
		 (long long)t->attempts, (long long)t->abandoned);
	if (l->holder)
		buf_addf(out, ", %s%s %.*s (token #%u) until %+lld ms",
			 l->manual ? "manually " : "",
			 l->expires_at > now ? "held by" : "was held by", STRF(holder), l->token,
			 (long long)(l->expires_at - now));
	if (t->parent) {
		buf_adds(out, STR(", sub-task of "));
		buf_adds(out, model_text(w, MODEL_TASK, t->parent));
	}
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++) {
		buf_adds(out, i ? STR(" ") : STR(", depends on "));
		buf_adds(out, model_text(w, MODEL_TASK, t->depends[i]));
	}
}

/* --- step ------------------------------------------------------------------------------------- */

/* One call, and the answer that is kept for repeats. A refused call must leave the state's bytes unchanged, except for tasks
 * that were abandoned too often. */

/* A Ready task that depends on a canceled task goes to Needs Help. */
void step_settle(const struct step *s, uint32_t about)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		struct model_task *t = model_task(s->m, i);
		bool stuck = false;

		if (t->status != READY)
			continue;
		for (int k = 0; k < MODEL_DEPENDS && t->depends[k]; k++)
			stuck |= model_task(s->m, t->depends[k])->status == CANCELED;
		if (!stuck)
			continue;
		t->status = NEEDS_HELP;
		t->reason = MODEL_SOME_TEXT;
		t->updated_at = s->now;
		t->version += i != about;
	}
}

void step_show(const struct step *s, uint32_t task)
{
	s->want->id = task;
	s->want->task = *step_task(s, task);
	if (!s->want->task.spelled) /* a lock of the whole queue */
		s->want->task.spelled = model_name(s->w, MODEL_TEXT,
						   model_text(s->w, MODEL_TASK, task));
	model_count_links(s->m, task, s->want->counts);
	if (s->c->token && s->want->task.over_token == s->c->token &&
	    !(op_flags(s->rq->op) & OP_READS))
		s->want->changed = s->want->task.over_by;
}

static bool model_step_grants(const struct step *s)
{
	enum op op = s->rq->op;

	return op == OP_CLAIM || op == OP_LOCK_ACQUIRE || op == OP_HEARTBEAT ||
	       (op == OP_STATUS && s->rq->status == IN_PROGRESS);
}

/* A refused call changes nothing, unless the task went to Needs Help for being abandoned too
 * often. */
static void about_task(const struct step *s)
{
	uint32_t task = s->c->id;
	struct model_task before;
	bool gave_up;

	before = *step_task(s, task);
	if (!before.status && !step_made_by_claim(s)) {
		s->want->code = NOT_FOUND;
		return;
	}
	s->want->code = step_one_task(s, task);
	gave_up = before.status == IN_PROGRESS && step_task(s, task)->status == NEEDS_HELP;
	if (s->want->code != SUCCESS && !gave_up)
		*step_task(s, task) = before;
	step_settle(s, task);
	if (s->want->code == SUCCESS && s->rq->op == OP_DONE && s->rq->claim_next)
		step_claim_next(s, task);
	step_show(s, task);
	if (s->want->code == SUCCESS && model_step_grants(s))
		step_grant(s, step_task(s, task), &s->want->lock);
}

/* --- the whole step ------------------------------------------------------------------------------ */

/* Shows the id that would be created next; returns the counter after it. */
static int64_t show_id(const struct step *s)
{
	int64_t counter = s->m->counter;

	if (s->w->whole)
		s->want->made_id = model_name(s->w, MODEL_TEXT,
					      model_next_id(s->w, s->m, &counter, s->w->arena));
	return counter;
}

static void read_only(const struct step *s)
{
	uint32_t first;

	switch (s->rq->op) {
	case OP_EMERGENCY:
		step_show(s, s->c->id);
		return;
	case OP_SHOW:
	case OP_LOCK_STATUS:
		if (model_is_guard(s->rq->id) || step_there(s, s->c->id))
			step_show(s, s->c->id);
		else
			s->want->code = NOT_FOUND;
		return;
	case OP_ID_PEEK:
		(void)show_id(s);
		return;
	case OP_NEXT:
		if (s->rq->explain)
			return;
		if (step_paused(s)) {
			s->want->code = NO_TASKS;
			s->want->paused = 1;
			return;
		}
		first = model_first(s->w, s->m, s->c, s->now);
		s->want->elsewhere = !s->w->whole;
		s->want->none_left = !first;
		if (first) {
			step_show(s, first);
		} else {
			s->want->code = NO_TASKS;
			s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
		}
		return;
	default:
		return;
	}
}

static void model_step_change(const struct step *s)
{
	if (model_is_guard(model_text(s->w, MODEL_TASK, s->c->id))) {
		step_about_guard(s);
		return;
	}
	switch (s->rq->op) {
	case OP_CREATE:
		step_create(s);
		return;
	case OP_TAKE:
		step_take(s);
		return;
	case OP_REMOVE:
		step_drop(s);
		return;
	case OP_UNDO:
		step_undo(s);
		return;
	case OP_LOCK_CLEANUP:
		step_cleanup(s);
		return;
	case OP_ARCHIVE:
		step_archive(s);
		return;
	case OP_ID_CLAIM:
		s->m->counter = show_id(s);
		return;
	default:
		about_task(s);
	}
}

/* If undo can take a change back, the model needs the state before that change. */
static void change_and_note(const struct step *s)
{
	bool about = s->c->id && !model_is_guard(model_text(s->w, MODEL_TASK, s->c->id));
	bool kept = (about && step_undoable(s, step_task(s, s->c->id)->status)) ||
		    s->rq->op == OP_ARCHIVE;
	struct model *before = kept ? malloc(model_size(s->m)) : NULL;

	if (kept && !before)
		abort();
	if (before)
		memcpy(before, s->m, model_size(s->m));
	model_step_change(s);
	if (before && s->want->code == SUCCESS)
		step_undo_note(s, before);
	free(before);
}

/* A repeat within a day gets the first answer. */
static bool answered_before(const struct step *s)
{
	const struct model_kept *k = model_kept(s->m, s->c->request);
	struct model_answer *want = s->want;

	if (!s->c->request || s->now >= k->until)
		return false;
	if (k->call != s->c->same) {
		want->code = CONFLICT;
		return true;
	}
	memcpy(want, model_text(s->w, MODEL_TEXT, k->answer).p, sizeof(*want));
	want->repeated = 1;
	want->now = s->now;
	want->next_lock.token = want->next_lock.given && want->next.lock.token == s->c->new_token
					? s->c->new_token
					: 0;
	return true;
}

static void keep_answer(const struct step *s)
{
	if (!s->c->request || s->want->code != SUCCESS)
		return;
	*model_kept(s->m, s->c->request) = (struct model_kept){
		.until = s->now + MODEL_KEPT,
		.call = s->c->same,
		.answer = model_name(s->w, MODEL_TEXT,
				     str_n((const char *)s->want, sizeof(*s->want))),
	};
}

void model_step(struct model_world *w, struct model *m, const struct model_call *c, int64_t now,
		struct model_choice choice, struct model_answer *want)
{
	struct step s;

	memset(want, 0, sizeof(*want));
	want->now = now;
	s = (struct step){ w, m, c, c->rq, now, choice, want };
	if (c->request >= m->n_kept)
		abort(); /* model_new() was given no room for it */
	if (op_flags(c->rq->op) & OP_READS) {
		read_only(&s);
	} else if (!answered_before(&s) && !step_kept_out(&s)) {
		change_and_note(&s);
		keep_answer(&s);
	}
}
