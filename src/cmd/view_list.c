/* Renderings of answers with many items: tables and the log. */
#include "cmd/view.h"

#include "base/when.h"
#include "core/lease.h"
#include "format/changes.h"

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

	view_text(v, DIM, "%.*s  ",
		  STRF(v->width ? when_local(v->arena, e->at) : when_text(v->arena, e->at)));
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

/* --- the overview -------------------------------------------------------------------------------- */

int64_t view_count_of(const struct answer *ans, int64_t status)
{
	return ans->counts[status] - (status == READY ? ans->waiting : ans->archived[status]);
}

static const enum status for_people[] = { REVIEW, BLOCKED, NEEDS_HELP, FAILED };

int64_t view_for_people(const struct answer *ans)
{
	int64_t n = 0;

	for (size_t i = 0; i < sizeof(for_people) / sizeof(*for_people); i++)
		n += view_count_of(ans, for_people[i]);
	return n;
}

static void put_number(struct view *v, enum paint p, bool *any, int64_t n, const char *before,
		       const char *what)
{
	if (!n)
		return;
	view_text(v, PLAIN, *any ? " · " : "");
	view_text(v, p, "%s%lld %s", before, (long long)n, what);
	*any = true;
}

static int64_t count_archived(const struct answer *ans)
{
	int64_t n = 0;

	for (int s = BACKLOG; s < STATUS_END; s++)
		n += ans->archived[s];
	return n;
}

/* Ready tasks that wait are not counted as Ready: nobody can take them. */
static void put_counts(struct view *v, const struct answer *ans)
{
	int64_t archived = count_archived(ans);
	bool any = false;

	for (int s = BACKLOG; s < STATUS_END; s++) {
		put_number(v, view_status_paint(s), &any, view_count_of(ans, s),
			   s == READY && ans->waiting_more ? "up to " : "", status_name(s));
		if (s == READY)
			put_number(v, YELLOW, &any, ans->waiting, "",
				   ans->waiting_more ? "or more waiting" : "waiting");
	}
	if (!ans->total) {
		view_text(v, DIM, "the queue is empty\n");
		return;
	}
	view_text(v, DIM, any ? "  (" : "(");
	view_count(v, DIM, ans->total, "task");
	if (archived)
		view_text(v, DIM, ", %lld archived", (long long)archived);
	view_text(v, DIM, ")\n");
}

static void put_held(struct view *v, const struct answer *ans)
{
	static const char *const heads[] = { "AGENT",      "TASK",   "SINCE",
					     "LEASE LEFT", "STATUS", "TITLE" };
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_tasks * 6);

	if (!ans->n_tasks)
		return;
	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];
		struct cell *c = cells + i * 6;

		c[0] = view_cell(v, lease_live(&t->lock, ans->now) ? CYAN : DIM, t->lock.holder);
		c[1] = view_cell(v, BOLD, t->id);
		c[2].text = view_age(v, t->lock.acquired_at);
		c[3] = left_cell(v, &t->lock, ans->now);
		c[4] = status_cell(v, t->status);
		c[5] = view_cell(v, PLAIN, t->title);
	}
	view_text(v, PLAIN, "\n");
	view_table(v, heads, 6, cells, ans->n_tasks);
	if (ans->held > (int64_t)ans->n_tasks)
		view_text(v, DIM, "showing %zu of %lld; for all: pawl lock list -n 0\n",
			  ans->n_tasks, (long long)ans->held);
	view_text(v, PLAIN, "\n");
}

/* In Progress without a lock, such as a task that a reviewer sent back. */
static void put_orphans(struct view *v, const struct answer *ans)
{
	long long begun = ans->counts[IN_PROGRESS];

	for (size_t i = 0; i < ans->n_tasks; i++)
		begun -= ans->tasks[i].status == IN_PROGRESS;
	if (begun > 0)
		view_text(v, YELLOW, "%lld In Progress, not held\n", begun);
}

static void put_waiting(struct view *v, const struct answer *ans)
{
	bool any = false;

	for (size_t i = 0; i < sizeof(for_people) / sizeof(*for_people); i++) {
		long long n = view_count_of(ans, for_people[i]);

		if (!n)
			continue;
		view_text(v, PLAIN, any ? ", " : "waiting for a person: ");
		view_text(v, view_status_paint(for_people[i]), "%lld %s", n,
			  status_name(for_people[i]));
		any = true;
	}
	if (any)
		view_text(v, DIM, "\n  pawl list --status review,blocked,needs-help,failed\n");
}

void show_paused(const struct notice *p, struct view *v)
{
	view_text(v, YELLOW, "paused");
	view_text(v, PLAIN, " by ");
	view_data(v, CYAN, p->by);
	view_text(v, PLAIN, " since %.*s", STRF(view_when(v, p->at)));
	if (p->reason.n) {
		view_text(v, PLAIN, ": ");
		view_data(v, PLAIN, p->reason);
	}
	view_text(v, PLAIN, "\n");
}

void show_overview(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;
	const char *next = "pawl list";

	if (ans->paused)
		show_paused(ans->paused, v);
	put_counts(v, ans);
	put_held(v, ans);
	if (ans->held <= (int64_t)ans->n_tasks)
		put_orphans(v, ans);
	put_waiting(v, ans);
	if (ans->paused)
		next = "pawl resume";
	else if (!ans->total)
		next = "pawl create TITLE";
	else if (view_count_of(ans, READY))
		next = "pawl next --claim";
	else if (ans->counts[REVIEW])
		next = "pawl list --status review";
	else if (ans->waiting)
		next = "pawl list --waiting";
	view_text(v, DIM, "next: %s\n", next);
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
