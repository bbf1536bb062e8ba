/* Renderings of answers with many items: tables and the log. */
#include "cmd/view.h"

#include "base/when.h"
#include "core/lease.h"
#include "format/record_form.h"

static void put_id(struct view *v, struct str id)
{
	view_data(v, PLAIN, id);
	view_text(v, PLAIN, "\n");
}

static void ids_only(struct view *v, const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_tasks; i++)
		put_id(v, ans->tasks[i].id);
}

static struct cell number_cell(struct view *v, int64_t n)
{
	return (struct cell){ .text = arena_printf(v->arena, "%lld", (long long)n) };
}

static struct cell status_cell(struct view *v, int64_t status)
{
	return view_cell(v, view_status_paint(status), str_c(status_name(status)));
}

static struct cell left_cell(struct view *v, const struct lock *l, int64_t now)
{
	if (!lease_live(l, now))
		return (struct cell){ YELLOW, STR("expired") };
	return (struct cell){ PLAIN,
			      l->expires_at ? view_left(v, l->expires_at - now) : STR("no end") };
}

static void put_total(struct view *v, size_t count, int64_t total)
{
	if (total > (int64_t)count)
		view_text(v, DIM, "showing %zu of %lld; for all: --limit 0\n", count,
			  (long long)total);
}

void show_locks(const struct reply *r, struct view *v)
{
	static const char *const heads[] = { "TASK",       "HOLDER", "FENCE", "SINCE",
					     "LEASE LEFT", "STATUS", "TITLE" };
	const struct answer *ans = &r->ans;
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_tasks * 7);

	if (v->quiet) {
		ids_only(v, ans);
		return;
	}
	if (!ans->n_tasks) {
		view_text(v, DIM, "nothing is locked\n");
		return;
	}
	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];
		bool live = lease_live(&t->lock, ans->now);
		struct cell *c = cells + i * 7;

		c[0] = view_cell(v, BOLD, t->id);
		c[1] = view_cell(v, live ? CYAN : DIM, t->lock.holder);
		c[2] = number_cell(v, t->fence);
		c[3].text = view_age(v, t->lock.acquired_at);
		c[4] = left_cell(v, &t->lock, ans->now);
		c[5] = status_cell(v, t->status);
		c[6] = view_cell(v, PLAIN, t->title);
	}
	view_table(v, heads, 7, cells, ans->n_tasks);
	put_total(v, ans->n_tasks, ans->total);
}

void show_candidates(const struct reply *r, struct view *v)
{
	static const char *const heads[] = { "PLACE", "ID", "ELIGIBLE", "WHY", "TITLE" };
	const struct answer *ans = &r->ans;
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_candidates * 5);

	if (ans->paused && !v->quiet)
		show_paused(ans->paused, v);
	if (!ans->n_candidates && !v->quiet)
		view_text(v, DIM, "no tasks\n");
	for (size_t i = 0; i < ans->n_candidates; i++) {
		const struct candidate *t = &ans->candidates[i];
		struct cell *c = cells + i * 5;

		if (v->quiet) {
			put_id(v, t->id);
			continue;
		}
		if (t->place)
			c[0] = number_cell(v, t->place);
		c[1] = view_cell(v, BOLD, t->id);
		c[2] = view_cell(v, t->eligible ? GREEN : DIM,
				 t->eligible ? STR("yes") : STR("no"));
		c[3] = view_cell(v, PLAIN, t->why);
		c[4] = view_cell(v, DIM, t->title);
	}
	if (v->quiet || !ans->n_candidates)
		return;
	view_table(v, heads, 5, cells, ans->n_candidates);
	put_total(v, ans->n_candidates, ans->total);
}

/* --- the log ------------------------------------------------------------------------------------- */

void show_event(const struct event *e, struct view *v)
{
	struct str changes = changes_text(e->changes, v->arena);

	view_text(v, DIM, "%s  ",
		  arena_cstr(v->arena,
			     v->width ? when_local(v->arena, e->at) : when_text(v->arena, e->at)));
	view_data(v, BOLD, e->task);
	view_text(v, PLAIN, "  ");
	view_data(v, PLAIN, e->name);
	if (e->to && e->from != e->to) {
		view_text(v, PLAIN, e->from ? "  %s → " : "  %s→ ",
			  e->from ? status_name(e->from) : "");
		view_status(v, e->to, "");
	}
	if (e->agent.n) {
		view_text(v, PLAIN, str_is(e->name, "expired") ? "  held by " : "  by ");
		view_data(v, CYAN, e->agent);
	}
	if (e->fence)
		view_text(v, DIM, "  fence %lld", (long long)e->fence);
	if (changes.n) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, changes);
	}
	if (e->text.n) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, e->text);
	}
	view_text(v, PLAIN, "\n");
}

void show_events(const struct reply *r, struct view *v)
{
	if (!r->ans.n_events && !v->quiet)
		view_text(v, DIM, "the log is empty\n");
	for (size_t i = 0; i < r->ans.n_events; i++)
		show_event(&r->ans.events[i], v);
}

void show_each(const struct reply *r, struct view *v, const char *did, const char *none)
{
	for (size_t i = 0; i < r->ans.n_tasks; i++) {
		view_data(v, v->quiet ? PLAIN : BOLD, r->ans.tasks[i].id);
		view_text(v, PLAIN, "%s%s\n", v->quiet ? "" : " ", v->quiet ? "" : did);
	}
	if (!r->ans.n_tasks && !v->quiet)
		view_text(v, DIM, "%s\n", none);
}
