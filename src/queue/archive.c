#include "base/when.h"
#include "queue/queue_private.h"

static void op_archive_run(struct act *w, struct loaded *l)
{
	rules_apply(OP_ARCHIVE, &l->task, &w->call);
	if (!w->call.changed)
		return;
	l->dirty = true;
	act_log(w, l, "archived", STR(""));
	w->ans->tasks[w->ans->n_tasks++] = l->task;
}

static int archive_one(struct act *w)
{
	struct loaded *l;
	int r = act_load(w, w->call.rq->id, &l);

	if (r)
		return r;
	w->ans->tasks = arena_array(w->call.arena, struct task, 1);
	op_archive_run(w, l);
	return w->call.code == SUCCESS ? 0 : act_decided(w, l);
}

static int archive_all(struct act *w)
{
	struct query q = { .statuses = STATUS_ENDED };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	w->ans->tasks = arena_array(w->call.arena, struct task, keys.n);
	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD)
			r = 0;
		else if (!r)
			op_archive_run(w, l);
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
	struct entry_query q = { .until = w->call.rq->since, .unordered = true };
	struct event ev = { .name = STR("log_cut"),
			    .agent = w->call.rq->agent,
			    .run = w->call.rq->run };
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
	w->ans->text = when_text(w->call.arena, q.until);
	ev.text = arena_printf(w->call.arena, "events of ended tasks before %.*s",
			       STRF(w->ans->text));
	act_event(w, &ev);
	return 0;
}

int do_archive(struct act *w)
{
	int r = HAS(w->call.rq, id) ? archive_one(w) : archive_all(w);

	if (!r && HAS(w->call.rq, since))
		r = cut_log(w);
	if (r)
		return r;
	w->ans->kind = ANSWER_TASKS;
	w->ans->total = (int64_t)w->ans->n_tasks;
	return 0;
}
