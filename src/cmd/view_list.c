/* Renderings of answers that hold many things: tables and the log. */
#include "cmd/view.h"

static void ids_only(struct view *v, const json_t *list, const char *key)
{
	size_t i;
	const json_t *t;

	json_array_foreach(list, i, t) {
		view_data(v, PLAIN, view_get(t, key));
		view_text(v, PLAIN, "\n");
	}
}

/* Nobody has what only was somebody's: the last assignee is not shown. */
static struct cell holder_cell(struct view *v, const json_t *lock)
{
	struct cell c = view_cell(v, CYAN, view_get(lock, "holder"));

	if (c.text.n && !json_is_true(json_object_get(lock, "live")))
		c = (struct cell){ YELLOW, arena_printf(v->arena, "%.*s (ran out)", STRF(c.text)) };
	return c;
}

static void put_total(struct view *v, const json_t *o)
{
	long long count = view_int(o, "count"), total = view_int(o, "total");

	if (total > count)
		view_text(v, DIM, "%lld of %lld shown; --limit 0 shows all\n", count, total);
}

void show_tasks(const json_t *o, struct view *v)
{
	static const char *const heads[] = { "ID", "STATUS", "CLASS", "PRI", "HOLDER", "TITLE" };
	const json_t *list = json_object_get(o, "tasks"), *t;
	size_t n = json_array_size(list), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 6);

	if (v->quiet) {
		ids_only(v, list, "id");
		return;
	}
	if (!n) {
		if (view_get(o, "hint"))
			view_text(v, DIM, "no tasks yet; %s\n", view_get(o, "hint"));
		else
			view_text(v, DIM, "no tasks match\n");
		return;
	}
	json_array_foreach(list, i, t) {
		const char *status = view_get(t, "status");
		struct cell *c = cells + i * 6;

		c[0] = view_cell(v, BOLD, view_get(t, "id"));
		c[1] = view_cell(v, view_status_paint(status), status);
		c[2] = view_cell(v, PLAIN, view_get(t, "class"));
		c[3].text = arena_printf(v->arena, "%lld", (long long)view_int(t, "priority"));
		c[4] = holder_cell(v, json_object_get(t, "lock"));
		c[5] = view_cell(v, PLAIN, view_get(t, "title"));
	}
	view_table(v, heads, 6, cells, n);
	put_total(v, o);
}

void show_locks(const json_t *o, struct view *v)
{
	static const char *const heads[] = { "TASK",       "HOLDER", "FENCE", "SINCE",
					     "LEASE LEFT", "STATUS", "TITLE" };
	const json_t *list = json_object_get(o, "locks"), *l;
	size_t n = json_array_size(list), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 7);

	if (v->quiet) {
		ids_only(v, list, "task");
		return;
	}
	if (!n) {
		view_text(v, DIM, "nothing is locked\n");
		return;
	}
	json_array_foreach(list, i, l) {
		bool live = json_is_true(json_object_get(l, "live"));
		const char *status = view_get(l, "status");
		const json_t *left = json_object_get(l, "expires_in");
		struct cell *c = cells + i * 7;

		c[0] = view_cell(v, BOLD, view_get(l, "task"));
		c[1] = view_cell(v, live ? CYAN : DIM, view_get(l, "holder"));
		c[2].text = arena_printf(v->arena, "%lld", (long long)view_int(l, "fence"));
		c[3].text = view_age(v, view_get(l, "acquired_at"));
		c[4] = (struct cell){ live ? PLAIN : YELLOW, !live  ? STR("ran out")
							     : left ? view_seconds(v, left)
								    : STR("no end") };
		c[5] = view_cell(v, view_status_paint(status), status);
		c[6] = view_cell(v, PLAIN, view_get(l, "title"));
	}
	view_table(v, heads, 7, cells, n);
	put_total(v, o);
}

void show_candidates(const json_t *o, struct view *v)
{
	static const char *const heads[] = { "PLACE", "ID", "ELIGIBLE", "WHY", "TITLE" };
	const json_t *list = json_object_get(o, "candidates"), *t;
	size_t n = json_array_size(list), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 5);

	if (v->quiet) {
		ids_only(v, list, "id");
		return;
	}
	if (!n) {
		view_text(v, DIM, "no tasks\n");
		return;
	}
	json_array_foreach(list, i, t) {
		bool yes = json_is_true(json_object_get(t, "eligible"));
		struct cell *c = cells + i * 5;

		if (view_int(t, "place"))
			c[0].text = arena_printf(v->arena, "%lld", (long long)view_int(t, "place"));
		c[1] = view_cell(v, BOLD, view_get(t, "id"));
		c[2] = view_cell(v, yes ? GREEN : DIM, yes ? "yes" : "no");
		c[3] = view_cell(v, PLAIN, view_get(t, "why"));
		c[4] = view_cell(v, DIM, view_get(t, "title"));
	}
	view_table(v, heads, 5, cells, n);
	put_total(v, o);
}

/* --- the log ------------------------------------------------------------------------------------- */

static void put_event(struct view *v, const json_t *e)
{
	const char *to = view_get(e, "to"), *from = view_get(e, "from"),
		   *text = view_get(e, "text");

	view_text(v, DIM, "%s  ", view_get(e, "at"));
	view_data(v, BOLD, view_get(e, "task"));
	view_text(v, PLAIN, "  ");
	view_data(v, PLAIN, view_get(e, "event"));
	if (to && (!from || strcmp(from, to) != 0)) {
		view_text(v, PLAIN, from ? "  %s → " : "  %s→ ", from ? from : "");
		view_text(v, view_status_paint(to), "%s", to);
	}
	if (view_get(e, "agent")) {
		view_text(v, PLAIN, "  by ");
		view_data(v, CYAN, view_get(e, "agent"));
	}
	if (view_int(e, "fence"))
		view_text(v, DIM, "  fence %lld", (long long)view_int(e, "fence"));
	if (text) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, text);
	}
	view_text(v, PLAIN, "\n");
}

void show_events(const json_t *o, struct view *v)
{
	const json_t *list = json_object_get(o, "events"), *e;
	size_t i;

	if (!list) {
		put_event(v, o);
		return;
	}
	if (!json_array_size(list) && !v->quiet)
		view_text(v, DIM, "nothing in the log\n");
	json_array_foreach(list, i, e)
		put_event(v, e);
}

/* --- the overview -------------------------------------------------------------------------------- */

static void put_counts(struct view *v, const json_t *counts, long long total)
{
	const char *status;
	const json_t *n;
	bool any = false;

	json_object_foreach((json_t *)counts, status, n) {
		if (!json_integer_value(n))
			continue;
		view_text(v, PLAIN, any ? " · " : "");
		view_text(v, view_status_paint(status), "%lld %s", (long long)json_integer_value(n),
			  status);
		any = true;
	}
	view_text(v, DIM, any ? "  (%lld task%s)\n" : "the queue is empty\n", total,
		  total == 1 ? "" : "s");
}

static void put_held(struct view *v, const json_t *held, long long total)
{
	static const char *const heads[] = { "AGENT",      "TASK",   "SINCE",
					     "LEASE LEFT", "STATUS", "TITLE" };
	size_t n = json_array_size(held), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 6);
	const json_t *t;

	if (!n)
		return;
	json_array_foreach(held, i, t) {
		const json_t *lock = json_object_get(t, "lock"),
			     *left = json_object_get(lock, "expires_in");
		bool live = json_is_true(json_object_get(lock, "live"));
		const char *status = view_get(t, "status");
		struct cell *c = cells + i * 6;

		c[0] = view_cell(v, live ? CYAN : DIM, view_get(lock, "holder"));
		c[1] = view_cell(v, BOLD, view_get(t, "id"));
		c[2].text = view_age(v, view_get(lock, "acquired_at"));
		c[3] = (struct cell){ live ? PLAIN : YELLOW, !live  ? STR("ran out")
							     : left ? view_seconds(v, left)
								    : STR("no end") };
		c[4] = view_cell(v, view_status_paint(status), status);
		c[5] = view_cell(v, PLAIN, view_get(t, "title"));
	}
	view_text(v, PLAIN, "\n");
	view_table(v, heads, 6, cells, n);
	if (total > (long long)n)
		view_text(v, DIM, "%zu of %lld shown; pawl lock list -n 0 shows all\n", n, total);
	view_text(v, PLAIN, "\n");
}

/* Work that was begun and has no lock, such as what a reviewer sent back. */
static void put_orphans(struct view *v, const json_t *held, long long begun)
{
	const json_t *t;
	size_t i;

	json_array_foreach(held, i, t) {
		const char *status = view_get(t, "status");

		begun -= status && !strcmp(status, "In Progress");
	}
	if (begun > 0)
		view_text(v, YELLOW, "%lld In Progress, held by nobody\n", begun);
}

static void put_waiting(struct view *v, const json_t *counts)
{
	static const char *const waiting[] = { "Review", "Blocked", "Needs Help", "Failed" };
	bool any = false;

	for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++) {
		long long n = view_int(counts, waiting[i]);

		if (!n)
			continue;
		view_text(v, PLAIN, any ? ", " : "waiting for a person: ");
		view_text(v, view_status_paint(waiting[i]), "%lld %s", n, waiting[i]);
		any = true;
	}
	if (any)
		view_text(v, DIM, "\n  pawl list --status review,blocked,needs-help,failed\n");
}

void show_overview(const json_t *o, struct view *v)
{
	const json_t *counts = json_object_get(o, "counts"), *held = json_object_get(o, "held");
	long long total = view_int(o, "held_total");
	const char *next = "pawl list";

	put_counts(v, counts, view_int(o, "total"));
	put_held(v, held, total);
	if (total <= (long long)json_array_size(held))
		put_orphans(v, held, view_int(counts, "In Progress"));
	put_waiting(v, counts);
	if (!view_int(o, "total"))
		next = "pawl create TITLE";
	else if (view_int(counts, "Ready"))
		next = "pawl next --claim";
	else if (view_int(counts, "Review"))
		next = "pawl list --status review";
	view_text(v, DIM, "next: %s\n", next);
}

void show_each(const json_t *o, struct view *v, const char *did, const char *none)
{
	const json_t *list = json_object_get(o, "tasks"), *t;
	size_t i;

	json_array_foreach(list, i, t) {
		view_data(v, v->quiet ? PLAIN : BOLD, view_get(t, "id"));
		view_text(v, PLAIN, "%s%s\n", v->quiet ? "" : " ", v->quiet ? "" : did);
	}
	if (!json_array_size(list) && !v->quiet)
		view_text(v, DIM, "%s\n", none);
}
