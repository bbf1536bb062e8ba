/*
 * undo, as doc/contract.md defines it. The model stores the bytes of a struct model_undo as a text, and each task has the
 * text's number. So two equal states have equal bytes. The model keeps no log, so it cannot tell whose call was
 * the last one: some refusals may have one of two codes.
 */
#include <stdlib.h>

#include "proof/model/model_private.h"

#define KEPT_MS (30 * 24 * 3600 * INT64_C(1000))

enum { CUT_NONE, CUT_DEPENDS, CUT_PARENT };

struct model_undo_other {
	int64_t status, updated_at;
	uint32_t task, reason, after, link;
};

/* Followed by the other tasks that the change touched. */
struct model_undo {
	struct model_task was;
	int64_t op, at;
	uint32_t agent, after, n, pad;
};

/* --- noting ---------------------------------------------------------------------------------------- */

static uint32_t undo_compared_of(const struct step *s, const struct model_task *t)
{
	struct model_task plain = *t;

	plain.version = plain.lock.expires_at = 0;
	plain.undo = 0;
	return model_name(s->w, MODEL_TEXT, str_n((const char *)&plain, sizeof(plain)));
}

enum op step_undoable(const struct step *s, int64_t status)
{
	const struct request *rq = s->rq;

	switch (rq->op) {
	case OP_UNBLOCK:
	case OP_APPROVE:
	case OP_REWORK:
	case OP_RETRY:
	case OP_REOPEN:
	case OP_CANCEL:
	case OP_REMOVE:
	case OP_UPDATE:
	case OP_DEPEND:
	case OP_UNDEPEND:
	case OP_ARCHIVE:
		return rq->op;
	case OP_STATUS:
		break;
	default:
		return OP_NONE;
	}
	if (rq->status == DONE)
		return status == REVIEW ? OP_APPROVE : OP_NONE;
	if (rq->status == CANCELED)
		return OP_CANCEL;
	if (rq->status == READY && status == IN_PROGRESS)
		return OP_NONE;
	if (rq->status == READY && status == FAILED)
		return OP_RETRY;
	return rq->status == READY || rq->status == BACKLOG ? OP_UPDATE : OP_NONE;
}

static int link_cut(const struct model_task *old, const struct model_task *now, uint32_t task)
{
	if (step_depends_at(old, task) < MODEL_DEPENDS &&
	    step_depends_at(now, task) == MODEL_DEPENDS)
		return CUT_DEPENDS;
	return old->parent == task && !now->parent ? CUT_PARENT : CUT_NONE;
}

static void note_one(const struct step *s, const struct model *before, uint32_t task)
{
	const struct model_task *old = model_task(before, task);
	struct model_task *t = model_task(s->m, task);
	struct buf b = BUF_MAX(1 << 20);
	struct model_undo u = {
		.was = *old, .op = step_undoable(s, old->status), .at = s->now, .agent = s->c->agent
	};
	struct str others;

	for (uint32_t i = 1; i < before->n_tasks; i++) {
		const struct model_task *was = model_task(before, i), *is = model_task(s->m, i);
		int link = link_cut(was, is, task);
		struct model_undo_other o = {
			was->status, was->updated_at,         i,
			was->reason, undo_compared_of(s, is), (uint32_t)link
		};

		if (i == task || !was->status || (was->status == is->status && !link))
			continue;
		buf_add(&b, &o, sizeof(o));
		u.n++;
	}
	u.was.undo = 0;
	u.after = t->status ? undo_compared_of(s, t) : 0;
	others = arena_str(s->w->arena, buf_str(&b));
	buf_free(&b);
	b = BUF_MAX(2 << 20);
	buf_add(&b, &u, sizeof(u));
	buf_adds(&b, others);
	t->undo = model_name(s->w, MODEL_TEXT, buf_str(&b));
	buf_free(&b);
}

void step_undo_note(const struct step *s, const struct model *before)
{
	for (uint32_t i = 1; i < before->n_tasks; i++) {
		const struct model_task *old = model_task(before, i), *t = model_task(s->m, i);
		bool about = s->rq->op == OP_ARCHIVE ? old->archived_at != t->archived_at
						     : i == s->c->id;

		if (about && old->status && old->version != t->version)
			note_one(s, before, i);
	}
}

/* --- checks ---------------------------------------------------------------------------------------- */

/* NULL: nothing is kept. */
static const struct model_undo *undo_of(const struct step *s, uint32_t task)
{
	struct str bytes = model_text(s->w, MODEL_TEXT, model_task(s->m, task)->undo);
	struct model_undo *u;

	if (!bytes.n)
		return NULL;
	u = arena_alloc(s->w->arena, bytes.n);
	memcpy(u, bytes.p, bytes.n);
	return s->now - u->at < KEPT_MS ? u : NULL;
}

static uint32_t undo_newest(const struct step *s)
{
	uint32_t found = 0;
	int64_t at = 0;

	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_undo *u = undo_of(s, i);

		if (!u || u->agent != s->c->agent || u->at < at ||
		    (found && u->at == at &&
		     model_id_cmp(model_text(s->w, MODEL_TASK, i),
				  model_text(s->w, MODEL_TASK, found)) < 0))
			continue;
		found = i;
		at = u->at;
	}
	return found;
}

static bool was_relied_on(const struct step *s, uint32_t task, const struct model_undo *u)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *d = model_task(s->m, i);
		bool waits = step_depends_at(d, task) < MODEL_DEPENDS ||
			     model_task(s->m, task)->parent == i;

		if (d->status && waits && (d->started_at >= u->at || d->done_at >= u->at))
			return true;
	}
	return false;
}

static enum result may_undo(const struct step *s, uint32_t task, const struct model_undo *u)
{
	const struct model_task *t = step_task(s, task);
	int64_t counts[4];

	if (!t->status && (!u || u->op != OP_REMOVE))
		return NOT_FOUND;
	if (step_wrong_version(s, t->status ? t : &u->was))
		return CONFLICT;
	if (!u || u->agent != s->c->agent ||
	    (t->status && (u->op == OP_REMOVE || u->after != undo_compared_of(s, t)))) {
		s->want->loose = 1;
		return CONFLICT;
	}
	if (step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	model_count_links(s->m, task, counts);
	if ((u->op == OP_REOPEN || u->op == OP_REWORK) && counts[2])
		return INCOMPLETE_SUBTASKS;
	return u->op == OP_APPROVE && was_relied_on(s, task, u) ? CONFLICT : SUCCESS;
}

/* --- restoring ------------------------------------------------------------------------------------- */

static enum result undo_restore(const struct step *s, uint32_t task, const struct model_undo *u)
{
	struct model_task *t = step_task(s, task), now;

	if (step_overrides(s, t))
		step_override(s, t);
	now = *t;
	*t = u->was;
	t->version = now.version + 1;
	t->fence = now.fence;
	t->lock = now.lock;
	t->run = now.run;
	t->last_holder = now.last_holder;
	t->last_ttl = now.last_ttl;
	t->over_by = now.over_by;
	t->over_token = now.over_token;
	t->free_at = t->status == IN_PROGRESS && !t->lock.holder ? 0 : now.free_at;
	if (t->parent != now.parent && t->parent) {
		if (!step_there(s, t->parent))
			return NOT_FOUND;
		if (step_ended(step_task(s, t->parent)) || step_waits_for_itself(s, task))
			return MISCONFIGURED;
	}
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (step_depends_at(&now, t->depends[i]) == MODEL_DEPENDS &&
		    !step_there(s, t->depends[i]))
			return NOT_FOUND;
	return step_waits_for_itself(s, task) ? MISCONFIGURED : SUCCESS;
}

static enum result undo_restore_removed(const struct step *s, uint32_t task,
					const struct model_undo *u)
{
	struct model_task *t = step_task(s, task);
	int64_t fence = t->fence;

	*t = u->was;
	t->fence = fence > t->fence ? fence : t->fence;
	t->version++;
	t->lock = (struct model_lock){ 0 };
	t->last_op = t->last_token = t->last_next = t->run = t->over_by = t->over_token = 0;
	t->free_at = 0;
	for (int i = 0; i < MODEL_DEPENDS && u->was.depends[i]; i++) {
		uint32_t on = u->was.depends[i];
		const struct model_undo *gone = undo_of(s, on);

		if (step_there(s, on))
			continue;
		if (gone && gone->op == OP_REMOVE && gone->agent == s->c->agent)
			return MISCONFIGURED;
		step_depend_off(t, on);
		if (t->status == READY || t->status == BACKLOG) {
			t->status = NEEDS_HELP;
			t->reason = MODEL_SOME_TEXT;
		}
	}
	if (t->parent && !step_there(s, t->parent))
		t->parent = 0;
	return step_waits_for_itself(s, task) ? MISCONFIGURED : SUCCESS;
}

static enum result give_back(const struct step *s, uint32_t task, const struct model_undo_other *o)
{
	struct model_task *d = step_task(s, o->task);
	bool same = d->status && undo_compared_of(s, d) == o->after, links;

	if (!d->status)
		return SUCCESS;
	links = (same || !step_ended(d)) &&
		((o->link == CUT_PARENT && !d->parent) ||
		 (o->link == CUT_DEPENDS && step_depends_at(d, task) == MODEL_DEPENDS));
	if (!same && !links)
		return SUCCESS;
	if (links && o->link == CUT_PARENT)
		d->parent = task;
	else if (links)
		d->depends[step_depends_at(d, 0)] = task;
	if (same) {
		d->status = o->status;
		d->reason = o->reason;
		d->updated_at = o->updated_at;
		d->version++;
	} else {
		step_changed(s, d);
	}
	if (step_waits_for_itself(s, task))
		return MISCONFIGURED;
	step_settle(s, o->task);
	return SUCCESS;
}

static enum result undo_all(const struct step *s, uint32_t task, const struct model_undo *u)
{
	const struct model_undo_other *others = (const struct model_undo_other *)(u + 1);
	enum result r = step_task(s, task)->status ? undo_restore(s, task, u)
						   : undo_restore_removed(s, task, u);

	step_settle(s, task);
	for (int subs = 0; subs < 2; subs++)
		for (uint32_t i = 0; r == SUCCESS && i < u->n; i++)
			if ((others[i].link == CUT_PARENT) == subs)
				r = give_back(s, task, &others[i]);
	if (r == SUCCESS)
		step_task(s, task)->undo = 0;
	return r;
}

void step_undo(const struct step *s)
{
	uint32_t task = HAS(s->rq, id) ? s->c->id : undo_newest(s);
	const struct model_undo *u = task ? undo_of(s, task) : NULL;
	struct model *before;
	bool removed;

	s->want->code = task ? may_undo(s, task, u) : MISCONFIGURED;
	removed = task && !step_task(s, task)->status;
	if (s->want->code == SUCCESS) {
		before = malloc(model_size(s->m));
		if (!before)
			abort();
		memcpy(before, s->m, model_size(s->m));
		s->want->code = undo_all(s, task, u);
		if (s->want->code != SUCCESS)
			memcpy(s->m, before, model_size(s->m));
		free(before);
	}
	if (task && (s->want->code == SUCCESS || !removed) && s->want->code != NOT_FOUND)
		step_show(s, task);
}
