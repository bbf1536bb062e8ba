/*
 * Renderings of answers with many items: tables of locks and candidates, and the log. With --quiet
 * they print ids only, one per line.
 */
#include "base/when.h"
#include "cmd/view.h"
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
	if (e->unblock_action.n) {
		view_text(v, DIM, "  to unblock: ");
		view_data(v, PLAIN, e->unblock_action);
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

/* --- view related ----------------------------------------------------------------------------- */

/* The part of `show` about related tasks and attempts. */

static void put_links(struct view *v, const struct related *r, enum link_kind kind,
		      const char *name)
{
	struct cell *cells = arena_array(v->arena, struct cell, r->n_links * 3);
	size_t n = 0;

	for (size_t i = 0; i < r->n_links; i++) {
		const struct task_link *l = &r->links[i];
		struct cell *c = cells + n * 3;
		struct str is = l->status ? str_c(status_name(l->status)) : STR("not there");

		if (l->kind != kind)
			continue;
		n++;
		c[0] = view_cell(v, BOLD, l->id);
		if (l->holder.n)
			is = arena_printf(v->arena, "%.*s, %.*s", STRF(is), STRF(l->holder));
		c[1] = view_cell(v, view_status_paint(l->status), is);
		c[2] = view_cell(v, PLAIN, l->title);
	}
	if (!n)
		return;
	view_text(v, DIM, "%s\n", name);
	view_rows(v, 3, cells, n);
	if (r->more[kind])
		view_text(v, DIM, "  and %lld more\n", (long long)r->more[kind]);
}

void view_links(struct view *v, const struct related *r)
{
	put_links(v, r, LINK_SUB, "sub-tasks");
	put_links(v, r, LINK_DEPENDS, "depends on");
	put_links(v, r, LINK_DEPENDENT, "waiting for this task");
}

static struct str outcome_words(struct view *v, const struct task_attempt *t)
{
	static const char *const words[][2] = {
		{ "escalated", "needed help" },   { "needs_help", "needed help" },
		{ "review", "sent to review" },   { "rework", "sent back for rework" },
		{ "unlocked", "lock released" },  { "lock_broken", "lock broken" },
		{ "cleaned_up", "lock removed" },
	};

	if (!t->outcome.n)
		return STR("");
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_is(t->outcome, words[i][0]))
			return str_c(words[i][1]);
	return view_cell(v, PLAIN, t->outcome).text;
}

static enum paint outcome_paint(struct str outcome)
{
	if (str_is(outcome, "done") || str_is(outcome, "approved"))
		return GREEN;
	return str_is(outcome, "failed") || str_is(outcome, "abandoned") ? RED : PLAIN;
}

void view_attempts(struct view *v, const struct related *r, const struct task *t)
{
	struct cell *cells = arena_array(v->arena, struct cell, r->n_attempts * 4);

	if (!r->n_attempts)
		return;
	for (size_t i = 0; i < r->n_attempts; i++) {
		const struct task_attempt *at = &r->attempts[i];
		struct cell *c = cells + i * 4;
		struct str words = outcome_words(v, at);

		c[0] = view_cell(v, CYAN, at->agent);
		c[1] = (struct cell){ DIM, view_when(v, at->at) };
		c[2] = (struct cell){ outcome_paint(at->outcome), words.n ? words
								  : t->lock.holder.n
									  ? STR("holds it")
									  : STR("no outcome") };
		c[3] = view_cell(v, PLAIN, at->text);
	}
	view_text(v, DIM, "attempts\n");
	view_rows(v, 4, cells, r->n_attempts);
}
