/*
 * Validates answers from another process or a server. Callers dereference a successful answer's
 * task and lock, put its ids into commands and file names, and calculate with its numbers. So the
 * whole answer is refused unless pawl could have given it and it answers the request.
 */
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "core/typed.h"
#include "core/validate.h"

/* A message can quote a text and a reason, with pawl's own words around them. */
#define SAID_MAX (2 * (TEXT_MAX + 4096))

/* --- values ---------------------------------------------------------------------------------------- */

static bool count_good(int64_t n)
{
	return n >= 0 && n <= EXACT_MAX;
}

static bool time_good(int64_t n)
{
	return n >= 0 && n <= WHEN_MAX;
}

static bool said_good(struct str s)
{
	return s.n <= SAID_MAX && text_valid(s);
}

static bool name_good(struct str s)
{
	return s.n <= NAME_MAX_BYTES && text_valid(s);
}

static bool list_good(struct strs list, bool (*good)(struct str))
{
	for (size_t i = 0; i < list.n; i++)
		if (!good(list.v[i]))
			return false;
	return true;
}

bool word_valid(struct str s)
{
	if (!name_good(s))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return true;
}

bool fault_valid(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] < 'a' || s.p[i] > 'z') && s.p[i] != '-')
			return false;
	return s.n <= NAME_MAX_BYTES;
}

static bool id_good(struct str id)
{
	return !id_fault(id);
}

/* --- members --------------------------------------------------------------------------------------- */

static const char *tasks_fault(const struct answer *ans, struct arena *a)
{
	const char *fault = ans->task ? task_fault(ans->task, STR(""), a) : NULL;

	if (!fault && ans->next)
		fault = task_fault(ans->next, STR(""), a);
	for (size_t i = 0; !fault && i < ans->n_tasks; i++)
		fault = task_fault(&ans->tasks[i], STR(""), a);
	return fault;
}

static bool list_of_events_good(const struct event *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (event_fault(&list[i]) || !word_valid(list[i].cursor))
			return false;
	return true;
}

static bool events_good(const struct answer *ans)
{
	const struct related *r = ans->related;

	return list_of_events_good(ans->events, ans->n_events) &&
	       (!r || list_of_events_good(r->history, r->n_history));
}

static bool candidates_good(const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_candidates; i++) {
		const struct candidate *c = &ans->candidates[i];

		if (!id_good(c->id) || !said_good(c->title) || !said_good(c->why) ||
		    !count_good(c->place))
			return false;
	}
	return true;
}

static bool notice_good(const struct notice *n)
{
	return !n || (name_good(n->by) && said_good(n->reason) && time_good(n->at) &&
		      list_good(n->fields, name_good));
}

static bool grant_good(const struct grant *g)
{
	return !g || (name_good(g->token) && count_good(g->fence) && time_good(g->expires_at) &&
		      count_good(g->ttl));
}

static bool links_good(const struct related *r)
{
	for (size_t i = 0; i < r->n_links; i++) {
		const struct task_link *l = &r->links[i];

		if (!id_good(l->id) || !said_good(l->title) || !name_good(l->holder))
			return false;
	}
	for (int k = LINK_SUB; k <= LINK_DEPENDENT; k++)
		if (!count_good(r->more[k]))
			return false;
	return true;
}

static bool related_good(const struct related *r)
{
	for (size_t i = 0; r && i < r->n_attempts; i++) {
		const struct task_attempt *t = &r->attempts[i];

		if (!name_good(t->agent) || !name_good(t->outcome) || !said_good(t->text) ||
		    !time_good(t->at) || !time_good(t->ended_at) || !count_good(t->fence))
			return false;
	}
	return !r || links_good(r);
}

static bool standing_good(const struct answer *ans)
{
	for (size_t i = 0; ans->standing && i < ans->n_tasks; i++)
		if (!list_good(ans->standing[i].on, id_good))
			return false;
	return true;
}

static bool allowed_good(const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_allowed; i++)
		if (!count_good(ans->allowed[i].position) || !said_good(ans->allowed[i].why))
			return false;
	return true;
}

static bool words_good(const struct answer *ans)
{
	if (ans->kind == ANSWER_ID && ans->text.n && !id_good(ans->text))
		return false;
	return said_good(ans->message) && said_good(ans->hint) && said_good(ans->text) &&
	       fault_valid(ans->fault) && (!ans->queue_id.n || token_valid(ans->queue_id)) &&
	       list_good(ans->warnings, said_good) && notice_good(ans->changed) &&
	       notice_good(ans->paused) && notice_good(ans->came_back) && notice_good(ans->undone);
}

static bool numbers_good(const struct answer *ans)
{
	for (int s = BACKLOG; s < STATUS_END; s++)
		if (!count_good(ans->counts[s]) || !count_good(ans->archived[s]))
			return false;
	return time_good(ans->now) && count_good(ans->total) && count_good(ans->held) &&
	       count_good(ans->waiting) && count_good(ans->ended) && time_good(ans->wait_ms) &&
	       ans->barred >= TYPED_NONE && ans->barred < TYPED_END && ans->repeated >= 0 &&
	       ans->repeated <= REPEATED_MAYBE;
}

const char *answer_fault(const struct answer *ans, struct arena *a)
{
	const char *fault = tasks_fault(ans, a);

	if (fault)
		return fault;
	if (!events_good(ans))
		return "an event in it is not valid";
	if (!candidates_good(ans))
		return "a candidate in it is not a task";
	if (!related_good(ans->related) || !standing_good(ans))
		return "a link in it is not valid";
	if (!words_good(ans) || !allowed_good(ans))
		return "a text in it is not valid";
	if (!numbers_good(ans))
		return "a number in it is out of range";
	return grant_good(ans->lock) && grant_good(ans->next_lock) ? NULL
								   : "a lock in it is not valid";
}

/* --- the answer to a request ------------------------------------------------------------------------ */

static enum answer_kind kind_of(const struct request *rq)
{
	switch (rq->op) {
	case OP_LIST:
	case OP_ARCHIVE:
	case OP_LOCK_CLEANUP:
		return ANSWER_TASKS;
	case OP_LOG:
		return ANSWER_EVENTS;
	case OP_LOCKS:
		return ANSWER_LOCKS;
	case OP_LOCK_STATUS:
		return ANSWER_LOCK;
	case OP_NEXT:
		return rq->explain ? ANSWER_CANDIDATES : ANSWER_TASK;
	case OP_OVERVIEW:
		return ANSWER_OVERVIEW;
	case OP_ID_PEEK:
	case OP_ID_CLAIM:
	case OP_ID_INIT:
		return ANSWER_ID;
	case OP_TYPED:
		return ANSWER_TYPED;
	default:
		return ANSWER_TASK;
	}
}

static bool is_emergency(enum op op)
{
	return op == OP_EMERGENCY || op == OP_EMERGENCY_ON || op == OP_EMERGENCY_OFF;
}

/* Callers use a successful answer's task without checking that it is there. */
static bool needs_task(const struct request *rq)
{
	return op_flags(rq->op) & OP_TASK || is_emergency(rq->op) || rq->op == OP_CREATE ||
	       rq->op == OP_TAKE || rq->op == OP_UNDO || (rq->op == OP_NEXT && !rq->explain);
}

static bool needs_lock(const struct request *rq)
{
	return rq->op == OP_TAKE || rq->op == OP_CLAIM || rq->op == OP_LOCK_ACQUIRE ||
	       rq->op == OP_HEARTBEAT || (rq->op == OP_STATUS && rq->status == IN_PROGRESS);
}

static bool has_all(const struct request *rq, const struct answer *ans)
{
	return (ans->task || !needs_task(rq)) && (ans->lock || !needs_lock(rq)) &&
	       (ans->text.n || kind_of(rq) != ANSWER_ID);
}

/* Is it the task that the caller asked for? */
static bool is_asked_for(const struct request *rq, struct str id)
{
	if (is_emergency(rq->op))
		return str_eq_nocase(id, EMERGENCY_ID);
	if (HAS(rq, id) && (op_flags(rq->op) & OP_TASK || rq->op == OP_CREATE || rq->op == OP_UNDO))
		return str_eq_nocase(id, rq->id);
	return id_good(id);
}

static bool is_listed(const struct request *rq, struct str id)
{
	if (rq->op == OP_TYPED)
		return typed_of(id);
	return id_good(id) || (rq->op == OP_LOCK_CLEANUP && typed_of(id));
}

static bool ids_good(const struct request *rq, const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_tasks; i++)
		if (!is_listed(rq, ans->tasks[i].id))
			return false;
	return (!ans->task || is_asked_for(rq, ans->task->id)) &&
	       (!ans->next || id_good(ans->next->id));
}

/* A token in the answer must be the caller's own. Any other token would be saved and shown as if
 * it were the caller's. */
static bool token_good(const struct request *rq, const struct grant *g)
{
	return !g || !g->token.n || str_eq(g->token, rq->new_token);
}

static bool code_good(const struct request *rq, const struct answer *ans)
{
	if (ans->code == NO_TASKS)
		return rq->op == OP_TAKE || rq->op == OP_NEXT;
	return ans->code != LOCK_FREE; /* only commands return LOCK_FREE; the queue does not */
}

const char *reply_fault(const struct request *rq, const struct answer *ans, struct arena *a)
{
	const char *fault = answer_fault(ans, a);

	if (fault)
		return fault;
	if (!code_good(rq, ans) ||
	    (ans->kind != kind_of(rq) && (ans->code == SUCCESS || ans->kind != ANSWER_TASK)))
		return "it belongs to another kind of call";
	if ((ans->next && !ans->next_lock) || (ans->code == SUCCESS && !has_all(rq, ans)))
		return "it lacks a task or a lock";
	if (!ids_good(rq, ans))
		return "it is about another task";
	return token_good(rq, ans->lock) && token_good(rq, ans->next_lock)
		       ? NULL
		       : "its token belongs to another call";
}
