/* Checks of an imported task that do not need the queue. */
#include "queue/transfer.h"

#include "core/validate.h"

static void give_str(struct request *rq, enum arg arg, struct str s)
{
	if (!s.n)
		return;
	*(struct str *)arg_at(rq, arg) = s;
	rq->has |= UINT64_C(1) << arg;
}

static void give_strs(struct request *rq, enum arg arg, struct strs list)
{
	if (!list.n)
		return;
	*(struct strs *)arg_at(rq, arg) = list;
	rq->has |= UINT64_C(1) << arg;
}

/* An imported field must pass the same checks as a call that sets it. */
static const char *fields_fault(const struct task *t, struct arena *a)
{
	struct request rq = { .op = OP_CREATE };
	static const struct policy none;

	give_str(&rq, ARG_id, t->id);
	give_str(&rq, ARG_title, t->title);
	give_str(&rq, ARG_description, t->description);
	give_str(&rq, ARG_acceptance, t->acceptance);
#define PLAIN(tag, part, name, limit, argument, help) give_str(&rq, ARG_##name, t->name);
#include "core/task.def"
	give_str(&rq, ARG_parent, t->parent);
	give_str(&rq, ARG_extra, t->extra);
	give_str(&rq, ARG_assignee, t->assignee);
	give_str(&rq, ARG_agent, t->last_holder.n ? t->last_holder : STR("x"));
	give_str(&rq, ARG_run, t->run);
	give_str(&rq, ARG_reason, t->blocker_reason);
	give_str(&rq, ARG_unblock_action, t->unblock_action);
	give_str(&rq, ARG_summary, t->summary);
	give_strs(&rq, ARG_labels, t->labels);
	give_strs(&rq, ARG_depends, t->depends);
	GIVE(&rq, priority, t->priority);
	return request_fault(&rq, &none, a);
}

const char *parcel_fault(const struct parcel *p, struct arena *a)
{
	const char *fault = p->task.id.n ? fields_fault(&p->task, a) : "it has no id";

	if (!fault)
		fault = task_fault(&p->task, STR(""), a);
	if (!fault)
		fault = room_fault(&p->task, a);
	for (size_t i = 0; !fault && i < p->n_comments; i++) {
		struct request rq = { .op = OP_COMMENT };
		const struct event *c = &p->comments[i];
		static const struct policy none;

		give_str(&rq, ARG_id, p->task.id);
		give_str(&rq, ARG_agent, c->agent.n ? c->agent : STR("x"));
		give_str(&rq, ARG_run, c->run);
		give_str(&rq, ARG_text, c->text);
		fault = request_fault(&rq, &none, a);
		if (!fault)
			fault = event_fault(c);
	}
	return fault;
}
