/* Compares an answer with the model's. A value that the history may omit is compared only if it is present. A partial world
 * models only some of the queue's tasks; tasks outside it are ignored. */
#include <stdarg.h>
#include <stdio.h>

#include "base/secret.h"
#include "proof/model/model_private.h"

struct view {
	const struct model_world *w;
	const struct model *m;
	const struct model_call *c;
	const struct model_answer *want;
	const struct answer *got;
	struct buf *why; /* may be NULL */
};

__attribute__((format(printf, 2, 3))) static bool model_agree_differs(const struct view *k,
								      const char *fmt, ...)
{
	char text[600];
	va_list args;

	if (!k->why)
		return false;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_adds(k->why, str_c(text));
	return false;
}

/* Is the value missing only because a history has no field for it? A queue that is asked directly shows it. */
static bool left_out(const struct view *k, bool empty)
{
	return empty && !k->w->whole;
}

static bool same_int(const struct view *k, struct str id, const char *what, int64_t want,
		     int64_t got)
{
	return want == got || model_agree_differs(k, "%.*s: %s is %lld, should be %lld", STRF(id),
						  what, (long long)got, (long long)want);
}

/* Compares a value that every task or lock has, unless a history leaves it out. */
static bool same_said(const struct view *k, struct str id, const char *what, int64_t want,
		      int64_t got)
{
	return left_out(k, !got) || same_int(k, id, what, want, got);
}

static bool same_str(const struct view *k, struct str id, const char *what, struct str want,
		     struct str got)
{
	return str_eq(want, got) || model_agree_differs(k, "%.*s: %s is '%.*s', should be '%.*s'",
							STRF(id), what, STRF(got), STRF(want));
}

static bool same_text(const struct view *k, struct str id, const char *what, uint32_t want,
		      struct str got)
{
	if (want == MODEL_SOME_TEXT)
		return got.n || left_out(k, true) ||
		       model_agree_differs(k, "%.*s: %s is empty", STRF(id), what);
	return left_out(k, !got.n) ||
	       same_str(k, id, what, model_text(k->w, MODEL_TEXT, want), got);
}

static bool same_list(const struct view *k, struct str id, const char *what, enum model_kind kind,
		      const uint32_t *want, size_t room, struct strs got)
{
	size_t n = 0;

	for (; n < room && want[n]; n++) {
		struct str text = model_text(k->w, kind, want[n]);

		if (n >= got.n ||
		    !(kind == MODEL_TASK ? str_eq_nocase(text, got.v[n]) : str_eq(text, got.v[n])))
			return model_agree_differs(k, "%.*s: %s lack '%.*s'", STRF(id), what,
						   STRF(text));
	}
	return n == got.n || model_agree_differs(k, "%.*s: there are %zu %s, should be %zu",
						 STRF(id), got.n, what, n);
}

/* --- a task -------------------------------------------------------------------------------------- */

static bool same_token(const struct view *k, uint32_t want, struct str hash)
{
	struct str token = model_text(k->w, MODEL_TOKEN, want);
	struct arena a = { 0 };
	bool same = left_out(k, !hash.n) || str_eq(hash, token) ||
		    str_eq(hash, token_hash(&a, token));

	arena_free(&a);
	return same;
}

static bool same_lock(const struct view *k, const struct model_lock *want, const struct task *got)
{
	const struct lock *l = &got->lock;
	struct str holder = model_text(k->w, MODEL_AGENT, want->holder);

	if (!str_eq(holder, l->holder))
		return model_agree_differs(k, "%.*s: held by '%.*s', should be '%.*s'",
					   STRF(got->id), STRF(l->holder), STRF(holder));
	if (!want->holder)
		return true;
	if (!same_token(k, want->token, l->token))
		return model_agree_differs(k, "%.*s: the lock has another token", STRF(got->id));
	return same_int(k, got->id, "lock.expires_at", want->expires_at, l->expires_at) &&
	       same_said(k, got->id, "lock.acquired_at", want->acquired_at, l->acquired_at) &&
	       same_said(k, got->id, "lock.ttl", want->ttl, l->ttl) &&
	       same_int(k, got->id, "lock.manual", want->manual, l->manual);
}

static bool same_numbers(const struct view *k, const struct model_task *want,
			 const struct task *got)
{
	struct str id = got->id;

	if (want->status != got->status)
		return model_agree_differs(k, "%.*s: it is %s, should be %s", STRF(id),
					   status_name(got->status), status_name(want->status));
	return same_int(k, id, "fence", want->fence, got->fence) &&
	       same_int(k, id, "version", want->version, got->version) &&
	       same_int(k, id, "attempts", want->attempts, got->attempts) &&
	       same_int(k, id, "abandoned", want->abandoned, got->abandoned) &&
	       same_said(k, id, "class", want->class_rank, got->class_rank) &&
	       same_int(k, id, "priority", want->priority, got->priority) &&
	       same_int(k, id, "due", want->due, got->due) &&
	       same_int(k, id, "not_before", want->not_before, got->not_before);
}

static bool same_times(const struct view *k, const struct model_task *want, const struct task *got)
{
	struct str id = got->id;
	bool kept = want->status == IN_PROGRESS && !want->lock.holder;

	return same_said(k, id, "created_at", want->created_at, got->created_at) &&
	       same_said(k, id, "updated_at", want->updated_at, got->updated_at) &&
	       same_said(k, id, "started_at", want->started_at, got->started_at) &&
	       same_said(k, id, "first_started_at", want->first_started_at,
			 got->first_started_at) &&
	       same_int(k, id, "done_at", want->done_at, got->done_at) &&
	       same_int(k, id, "archived_at", want->archived_at, got->archived_at) &&
	       (!kept || same_said(k, id, "free_at", want->free_at, got->free_at));
}

static bool same_words(const struct view *k, const struct model_task *want, const struct task *got)
{
	struct str id = got->id;

	return same_str(k, id, "assignee", model_text(k->w, MODEL_AGENT, want->assignee),
			got->assignee) &&
	       (left_out(k, !got->last_holder.n) ||
		same_str(k, id, "last_holder", model_text(k->w, MODEL_AGENT, want->last_holder),
			 got->last_holder)) &&
	       same_text(k, id, "agent_run", want->run, got->run) &&
	       same_text(k, id, "title", want->title, got->title) &&
	       same_str(k, id, "type", model_text(k->w, MODEL_TEXT, want->type), got->type) &&
	       same_text(k, id, "summary", want->summary, got->summary) &&
	       same_text(k, id, "blocker_reason", want->reason, got->blocker_reason) &&
	       same_text(k, id, "unblock_action", want->unblock_action, got->unblock_action);
}

static bool same_links(const struct view *k, const struct model_task *want, const int64_t counts[4],
		       const struct task *got)
{
	struct str id = got->id, parent = model_text(k->w, MODEL_TASK, want->parent);

	if (!str_eq_nocase(parent, got->parent))
		return model_agree_differs(k, "%.*s: its parent is '%.*s', should be '%.*s'",
					   STRF(id), STRF(got->parent), STRF(parent));
	return same_list(k, id, "depends", MODEL_TASK, want->depends, MODEL_DEPENDS,
			 got->depends) &&
	       same_list(k, id, "labels", MODEL_TEXT, want->labels, MODEL_LABELS, got->labels) &&
	       same_int(k, id, "open_depends", counts[0], got->open_deps) &&
	       same_int(k, id, "canceled_depends", counts[1], got->canceled_deps) &&
	       same_int(k, id, "open_subtasks", counts[2], got->open_subs);
}

static bool same_task(const struct view *k, const struct model_task *want, const int64_t counts[4],
		      const struct task *got)
{
	struct str id = model_text(k->w, MODEL_TEXT, want->spelled);

	if (want->spelled && !str_eq(id, got->id))
		return model_agree_differs(k, "the task is '%.*s', should be '%.*s'", STRF(got->id),
					   STRF(id));
	return same_numbers(k, want, got) && same_lock(k, &want->lock, got) &&
	       same_times(k, want, got) && same_words(k, want, got) &&
	       same_links(k, want, counts, got);
}

static bool same_grant(const struct view *k, const struct model_grant *want,
		       const struct grant *got)
{
	static const struct str id = { "the grant", 9 };

	if (!want->given != !got)
		return model_agree_differs(k, got ? "a lock is granted that should not be"
						  : "there should be a lock in the answer");
	if (!got)
		return true;
	if (!str_eq(model_text(k->w, MODEL_TOKEN, want->token), got->token))
		return model_agree_differs(k, "the grant shows %s token",
					   !got->token.n ? "no"
					   : want->token ? "another"
							 : "a");
	return same_int(k, id, "fence", want->fence, got->fence) &&
	       same_int(k, id, "expires_at", want->expires_at, got->expires_at) &&
	       same_int(k, id, "ttl", want->ttl, got->ttl);
}

/* --- lists --------------------------------------------------------------------------------------- */

/* 0: the task belongs to another world. */
static uint32_t name_here(const struct view *k, struct str id)
{
	uint32_t name = model_find(k->w, MODEL_TASK, id);

	return name < k->m->n_tasks ? name : 0;
}

/* Compares a task in a list with the state. Tasks of another world are ignored. */
static bool same_as_state(const struct view *k, const struct task *got)
{
	uint32_t name = name_here(k, got->id);
	int64_t counts[4];

	if (!name || (!model_task(k->m, name)->status && !model_is_guard(got->id)))
		return (!name && !k->w->whole) ||
		       model_agree_differs(k, "%.*s is listed, but not there", STRF(got->id));
	model_count_links(k->m, name, counts);
	return same_task(k, model_task(k->m, name), counts, got);
}

static bool is_listed(const struct view *k, const struct model_task *t)
{
	const struct request *rq = k->c->rq;
	struct str holder = model_text(k->w, MODEL_AGENT, t->lock.holder);
	bool labelled = !k->c->label;

	for (int i = 0; i < MODEL_LABELS; i++)
		labelled |= t->labels[i] == k->c->label;
	if (!t->status || (rq->holder.n && !str_eq(holder, rq->holder)))
		return false;
	if (rq->op != OP_LIST)
		return t->lock.holder;
	return labelled && (!rq->statuses || rq->statuses & STATUS_BIT(t->status)) &&
	       (!rq->class_rank || rq->class_rank == t->class_rank) &&
	       (!k->c->type || k->c->type == t->type) &&
	       (!k->c->parent || k->c->parent == t->parent);
}

/* Are the tasks in order, by age and then by id? */
static bool in_order(const struct view *k, const struct task *a, const struct task *b)
{
	if (a->created_at < b->created_at ||
	    (a->created_at == b->created_at && model_id_cmp(a->id, b->id) < 0))
		return true;
	return model_agree_differs(k, "%.*s is listed before %.*s", STRF(a->id), STRF(b->id));
}

static bool same_listed(const struct view *k, int64_t default_limit)
{
	const struct answer *got = k->got;
	int64_t limit = k->c->rq->limit ? k->c->rq->limit : default_limit;
	int64_t total = 0;

	for (size_t i = 0; i < got->n_tasks; i++) {
		uint32_t name = name_here(k, got->tasks[i].id);

		if (!same_as_state(k, &got->tasks[i]))
			return false;
		if (name && !is_listed(k, model_task(k->m, name)))
			return model_agree_differs(k, "%.*s is listed, but was not asked for",
						   STRF(got->tasks[i].id));
		if (i && !in_order(k, &got->tasks[i - 1], &got->tasks[i]))
			return false;
	}
	for (uint32_t i = 1; i < k->m->n_tasks; i++)
		total += is_listed(k, model_task(k->m, i));
	if (!k->w->whole)
		return true;
	if ((int64_t)got->n_tasks != (limit && total > limit ? limit : total))
		return model_agree_differs(k, "%zu tasks are listed of %lld", got->n_tasks,
					   (long long)total);
	return same_int(k, STR("the list"), k->c->rq->op == OP_OVERVIEW ? "held" : "total", total,
			k->c->rq->op == OP_OVERVIEW ? got->held : got->total);
}

/* Compares the locks of the whole queue. */
static bool same_guards(const struct view *k)
{
	size_t held = 0;

	for (int i = 1; i < MODEL_EMERGENCY; i++) {
		uint32_t name = k->w->guards[i];

		held += name && model_task(k->m, name)->lock.holder;
	}
	for (size_t i = 0; i < k->got->n_tasks; i++)
		if (!same_as_state(k, &k->got->tasks[i]))
			return false;
	return held == k->got->n_tasks ||
	       model_agree_differs(k, "%zu locks of the whole queue, should be %zu",
				   k->got->n_tasks, held);
}

static bool same_overview(const struct view *k)
{
	int64_t counts[STATUS_END] = { 0 };

	for (uint32_t i = 1; i < k->m->n_tasks; i++)
		counts[model_task(k->m, i)->status]++;
	for (int s = BACKLOG; k->w->whole && s < STATUS_END; s++)
		if (counts[s] != k->got->counts[s])
			return model_agree_differs(
				k, "%lld tasks are counted as %s, should be %lld",
				(long long)k->got->counts[s], status_name(s), (long long)counts[s]);
	return same_listed(k, 50);
}

/* Compares the tasks that a cleanup or an archive call changed. */
static bool same_touched(const struct view *k)
{
	int64_t here = 0;

	for (size_t i = 0; i < k->got->n_tasks; i++) {
		here += name_here(k, k->got->tasks[i].id) != 0;
		if (!k->got->repeated && !same_as_state(k, &k->got->tasks[i]))
			return false;
	}
	return here == k->want->touched ||
	       model_agree_differs(k, "%lld tasks were changed, should be %lld", (long long)here,
				   (long long)k->want->touched);
}

/* Eligible tasks come first, in order; the order of the others is free. */
static bool same_candidates(const struct view *k)
{
	const struct answer *got = k->got;
	const struct model_task *last = NULL;
	size_t n = 0, offered = 0;

	for (size_t i = 0; i < got->n_candidates; i++) {
		const struct candidate *c = &got->candidates[i];
		uint32_t name = name_here(k, c->id);
		bool is = name && model_offered(k->w, k->m, k->c, name, got->now);

		if (!name && !k->w->whole)
			continue;
		if (is != (c->eligible != 0))
			return model_agree_differs(k, "%.*s is called %seligible (%.*s)",
						   STRF(c->id), is ? "not " : "", STRF(c->why));
		if (!is)
			continue;
		n++;
		if ((k->w->whole && c->place != (int64_t)n) ||
		    (last && !model_before(k->w, last, model_task(k->m, name))))
			return model_agree_differs(k, "%.*s has place %lld", STRF(c->id),
						   (long long)c->place);
		last = model_task(k->m, name);
	}
	for (uint32_t i = 1; i < k->m->n_tasks; i++)
		offered += model_offered(k->w, k->m, k->c, i, got->now);
	return k->c->rq->limit || n == offered ||
	       model_agree_differs(k, "%zu are called eligible, should be %zu", n, offered);
}

static bool same_id(const struct view *k)
{
	struct str id = model_text(k->w, MODEL_TEXT, k->want->made_id);

	return !k->w->whole || str_eq(id, k->got->text) ||
	       model_agree_differs(k, "the id is %.*s, should be %.*s", STRF(k->got->text),
				   STRF(id));
}

/* --- the whole answer ---------------------------------------------------------------------------- */

static bool model_agree_here(const struct view *k, const struct task *t)
{
	uint32_t name = t ? name_here(k, t->id) : 0;

	return name && model_task(k->m, name)->status;
}

static bool same_code(const struct view *k)
{
	const struct answer *got = k->got;

	if (k->want->code < 0)
		return model_agree_differs(
			k, "it took a task that was not eligible, or not the first");
	if (k->want->elsewhere && got->code == SUCCESS)
		return !model_agree_here(k, got->task) || k->want->id ||
		       model_agree_differs(k, "it took a task of this world");
	if (k->want->loose && got->code == MISCONFIGURED)
		return true;
	if ((int64_t)got->code != k->want->code)
		return model_agree_differs(k, "the answer is %s%s%.*s%s, should be %s",
					   result_name(got->code), got->message.n ? " (" : "",
					   STRF(got->message), got->message.n ? ")" : "",
					   result_name((enum result)k->want->code));
	return true;
}

static bool same_next(const struct view *k)
{
	const struct model_answer *want = k->want;
	const struct answer *got = k->got;

	if (!want->has_next != !got->has_next)
		return model_agree_differs(k, "the answer %s `next`",
					   got->has_next ? "has a" : "lacks");
	if (!want->has_next)
		return true;
	if (want->elsewhere && got->next)
		return !model_agree_here(k, got->next) ||
		       model_agree_differs(k, "it took a task of this world as next");
	if (want->elsewhere && !want->none_left)
		return model_agree_differs(k, "there is no next, but tasks are eligible");
	if (!want->next_id != !got->next) {
		struct str is = got->next ? got->next->id : STR("none");
		struct str should = want->next_id ? model_text(k->w, MODEL_TASK, want->next_id)
						  : STR("none");

		return model_agree_differs(k, "the next task is %.*s, should be %.*s", STRF(is),
					   STRF(should));
	}
	return !got->next || (same_task(k, &want->next, want->next_counts, got->next) &&
			      same_grant(k, &want->next_lock, got->next_lock));
}

static bool same_repeated(const struct view *k)
{
	bool repeated = k->want->repeated && k->got->code == SUCCESS;

	return repeated == (k->got->repeated != 0) ||
	       model_agree_differs(k, "the answer is %s",
				   k->got->repeated ? "called repeated" : "not called repeated");
}

static bool same_notices(const struct view *k)
{
	struct str by = model_text(k->w, MODEL_AGENT, k->want->changed);
	struct str told = k->got->changed ? k->got->changed->by : STR("");

	if (k->want->elsewhere && k->got->next) /* a repeat: the pause did not matter */
		return true;
	if (!k->want->paused != !k->got->paused)
		return model_agree_differs(k, "the answer says that the queue is %spaused",
					   k->got->paused ? "" : "not ");
	/* some refusals do not show the task */
	return !k->w->whole || (!k->got->task && !told.n) ||
	       same_str(k, STR("the answer"), "changed.by", by, told);
}

static bool same_about_task(const struct view *k)
{
	const struct model_answer *want = k->want;
	const struct answer *got = k->got;

	if (want->id && !got->task && got->code == SUCCESS)
		return model_agree_differs(k, "the answer has no task");
	if (want->id && got->task && !same_task(k, &want->task, want->counts, got->task))
		return false;
	if (!same_repeated(k) || !same_notices(k))
		return false;
	if (!want->existed != !got->existed)
		return model_agree_differs(k, "`existed` is wrong: %d", got->existed != 0);
	if (k->w->whole && want->wait_ms != got->wait_ms)
		return model_agree_differs(k, "the wait is %lld ms, should be %lld",
					   (long long)got->wait_ms, (long long)want->wait_ms);
	return same_next(k) && (want->elsewhere || same_grant(k, &want->lock, got->lock));
}

bool model_agrees(const struct model_world *w, const struct model *m, const struct model_call *c,
		  const struct model_answer *want, const struct answer *got, struct buf *why)
{
	const struct view k = { w, m, c, want, got, why };

	if (!same_code(&k))
		return false;
	if (want->elsewhere && !want->has_next && got->code == SUCCESS &&
	    !model_agree_here(&k, got->task))
		return true;
	switch (c->rq->op) {
	case OP_LOG:
		return true;
	case OP_LIST:
	case OP_LOCKS:
		return same_listed(&k, 0);
	case OP_OVERVIEW:
		return same_overview(&k);
	case OP_TYPED:
		return same_guards(&k);
	case OP_ID_PEEK:
	case OP_ID_CLAIM:
		return got->code != SUCCESS || (same_id(&k) && same_repeated(&k));
	case OP_LOCK_CLEANUP:
	case OP_ARCHIVE:
		return got->code == SUCCESS ? same_touched(&k) && same_repeated(&k)
					    : same_about_task(&k);
	case OP_NEXT:
		if (c->rq->explain)
			return same_candidates(&k);
		return same_about_task(&k);
	default:
		return same_about_task(&k);
	}
}
