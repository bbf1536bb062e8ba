#include "base/when.h"
#include "core/override.h"
#include "queue/act.h"

#define ARCHIVABLE (STATUS_BIT(DONE) | STATUS_BIT(FAILED) | STATUS_BIT(CANCELED))

static void archive(struct act *w, struct loaded *l)
{
	/* a task that another program ended may be Done at a later time of that program's clock */
	l->task.archived_at = w->e->now > l->task.done_at ? w->e->now : l->task.done_at;
	l->task.version++;
	l->dirty = true;
	act_log(w, l, "archived", STR(""));
	w->ans->tasks[w->ans->n_tasks++] = l->task;
}

static int64_t ended_at(const struct task *t)
{
	return t->done_at ? t->done_at : t->updated_at;
}

/* A locked task still has a holder: `lock cleanup` must clear a stale lock first. */
static bool may_go(const struct act *w, const struct task *t)
{
	return !t->archived_at && !t->lock.holder.n && w->e->now - ended_at(t) >= w->rq->older_than;
}

static int archive_one(struct act *w)
{
	struct verdict v = { 0 };
	struct loaded *l;
	int r = act_load(w, w->rq->id, &l);

	if (r)
		return r;
	if (!override_version(&l->task, &w->call, &v))
		return act_verdict(w, l, &v);
	w->ans->tasks = arena_array(w->arena, struct task, 1);
	if (!(ARCHIVABLE & STATUS_BIT(l->task.status))) {
		act_answer(w, l);
		return act_refuse(
			w, MISCONFIGURED,
			arena_printf(w->arena, "%.*s is %s and has not ended", STRF(l->task.id),
				     status_name(l->task.status)),
			STR("only tasks that are Done, Failed or Canceled can be archived"));
	}
	if (may_go(w, &l->task))
		archive(w, l);
	return 0;
}

static int archive_all(struct act *w)
{
	struct query q = { .statuses = ARCHIVABLE };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	w->ans->tasks = arena_array(w->arena, struct task, keys.n);
	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD)
			r = 0;
		else if (!r && may_go(w, &l->task))
			archive(w, l);
	}
	return r;
}

/* --- the log -------------------------------------------------------------------------------------- */

static int found_entry(const struct entry *en, void *ctx)
{
	(void)en;
	*(bool *)ctx = true;
	return 1;
}

/* Forgets the events of ended and removed tasks before rq->since. Fences and attempts are in the records. The commit
 * has an event of its own, so the log says where it was cut, and it is never empty afterwards. */
static int cut_log(struct act *w)
{
	struct store *s = w->e->store;
	struct entry_query q = { .until = w->rq->since, .unordered = true };
	struct event ev = { .name = STR("log_cut"), .agent = w->rq->agent, .run = w->rq->run };
	bool found = false;
	int r = number_get(w, LOG_FROM_KEY, &q.since);

	if (r == BAD)
		q.since = 0;
	else if (r)
		return r;
	if (q.until <= q.since)
		return 0;
	r = s->ops->entries(s, &q, found_entry, &found);
	if (r || !found)
		return r;
	number_put(w, LOG_FROM_KEY, q.until);
	edit_forget(w->e, q.until, LOG_KEPT_FOR);
	w->ans->text = when_text(w->arena, q.until);
	ev.text = arena_printf(w->arena, "events of ended tasks before %.*s", STRF(w->ans->text));
	act_event(w, &ev);
	return 0;
}

int do_archive(struct act *w)
{
	int r = HAS(w->rq, id) ? archive_one(w) : archive_all(w);

	if (!r && HAS(w->rq, since))
		r = cut_log(w);
	if (r)
		return r;
	w->ans->kind = ANSWER_TASKS;
	w->ans->total = (int64_t)w->ans->n_tasks;
	return 0;
}
