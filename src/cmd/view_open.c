/* The table of `list` and `find`: by status, or one list. */
#include "cmd/view.h"

#include "base/text.h"
#include "base/when.h"
#include "core/lease.h"

#define DAY INT64_C(86400000)
#define TITLE_ROOM 22 /* columns that are left to the title before a column is added */

enum column { ID, STATUS, CLASS, PRIORITY, HOLDER, DUE, LABELS, WAITS, TITLE, COLUMNS };

static const char *const names[COLUMNS] = { "ID",  "STATUS", "CLASS",     "PRI",  "HOLDER",
					    "DUE", "LABELS", "WAITS FOR", "TITLE" };
/* The columns that are there only if they have something to say and there is room, the most useful first. */
static const enum column optional[] = { DUE, CLASS, WAITS, LABELS };

/* A bare date is the whole day. */
bool view_overdue(const struct task *t, int64_t now)
{
	int64_t end = t->due % DAY ? t->due : t->due + DAY;

	return t->due && now >= end && !status_ended(t->status);
}

/* "ann (abandoned 2m ago)", "ann (expired)" */
static struct cell holder_cell(struct view *v, const struct task *t, int64_t now)
{
	const struct lock *l = &t->lock;
	struct cell c = view_cell(v, CYAN, l->holder);
	struct str when = view_lost(v, l, now);

	if (!c.text.n || lease_live(l, now))
		return c;
	if (!lease_abandoned(t, now))
		return (struct cell){ YELLOW,
				      arena_printf(v->arena, "%.*s (expired)", STRF(c.text)) };
	return (struct cell){ RED, arena_printf(v->arena, "%.*s (abandoned%s%.*s)", STRF(c.text),
						when.n ? " " : "", STRF(when)) };
}

static struct cell due_cell(struct view *v, const struct task *t, int64_t now)
{
	struct str date = t->due ? when_date(v->arena, t->due) : STR("");

	if (!view_overdue(t, now))
		return (struct cell){ PLAIN, date };
	return (struct cell){ RED, arena_printf(v->arena, "%.*s late", STRF(date)) };
}

static struct cell waits_cell(struct view *v, const struct task *t, const struct standing *st,
			      int64_t now)
{
	struct str on = st ? view_strs(v, st->on) : STR("");

	if (on.n)
		return (struct cell){ YELLOW, arena_printf(v->arena, "%.*s%s", STRF(on),
							   st->more ? ", …" : "") };
	if (t->status == READY && t->not_before > now)
		return (struct cell){ YELLOW, view_when(v, t->not_before) };
	return (struct cell){ 0 };
}

static void fill_row(struct view *v, const struct answer *ans, size_t i, struct cell *c)
{
	const struct task *t = &ans->tasks[i];

	c[ID] = view_cell(v, BOLD, t->id);
	c[STATUS] = view_cell(v, view_status_paint(t->status), str_c(status_name(t->status)));
	c[CLASS] = view_cell(v, PLAIN, str_c(class_name(t->class_rank)));
	c[PRIORITY].text = arena_printf(v->arena, "%lld", (long long)t->priority);
	c[HOLDER] = holder_cell(v, t, ans->now);
	c[DUE] = due_cell(v, t, ans->now);
	c[LABELS] = (struct cell){ DIM, view_strs(v, t->labels) };
	c[WAITS] = waits_cell(v, t, ans->standing ? &ans->standing[i] : NULL, ans->now);
	c[TITLE] = view_cell(v, PLAIN, t->title);
}

/* --- which columns ----------------------------------------------------------------------------------- */

static size_t column_width(const struct cell *cells, size_t rows, enum column col)
{
	size_t width = 0;

	for (size_t i = 0; i < rows; i++) {
		size_t w = text_width(cells[i * COLUMNS + col].text);

		width = w > width ? w : width;
	}
	return width;
}

static bool all_standard(const struct answer *ans)
{
	for (size_t i = 0; i < ans->n_tasks; i++)
		if (ans->tasks[i].class_rank != STANDARD)
			return false;
	return true;
}

static size_t shown_width(const char *name, size_t width)
{
	return (width > strlen(name) ? width : strlen(name)) + 2;
}

static void choose_columns(const struct view *v, const struct answer *ans, const struct cell *cells,
			   bool grouped, bool *chosen)
{
	size_t used = 0, widths[COLUMNS], title;

	for (int c = ID; c < COLUMNS; c++)
		widths[c] = column_width(cells, ans->n_tasks, (enum column)c);
	title = widths[TITLE] < TITLE_ROOM ? widths[TITLE] : TITLE_ROOM;
	chosen[ID] = chosen[PRIORITY] = chosen[TITLE] = true;
	chosen[STATUS] = !grouped;
	if (all_standard(ans))
		widths[CLASS] = 0;
	chosen[HOLDER] = widths[HOLDER] > 0;
	for (int c = ID; c < TITLE; c++)
		used += chosen[c] ? shown_width(names[c], widths[c]) : 0;
	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++) {
		enum column c = optional[i];
		size_t more = shown_width(names[c], widths[c]);

		chosen[c] = widths[c] && (!v->width || used + more + title <= v->width);
		used += chosen[c] ? more : 0;
	}
}

/* Keeps the chosen columns, in place. Returns how many these are. */
static size_t pack_columns(struct cell *cells, size_t rows, const bool *chosen, const char **heads)
{
	size_t n = 0, to = 0;

	for (int c = ID; c < COLUMNS; c++)
		if (chosen[c])
			heads[n++] = names[c];
	for (size_t i = 0; i < rows * COLUMNS; i++)
		if (chosen[i % COLUMNS])
			cells[to++] = cells[i];
	return n;
}

/* --- groups ------------------------------------------------------------------------------------------ */

static bool same_group(const struct answer *ans, size_t a, size_t b)
{
	return ans->tasks[a].status == ans->tasks[b].status &&
	       ans->standing[a].waits == ans->standing[b].waits;
}

/* How many there are of the group of this task. */
static struct str group_size(struct view *v, const struct answer *ans, size_t i)
{
	int64_t status = ans->tasks[i].status, n = ans->counts[status];

	if (status == READY)
		n = ans->standing[i].waits ? ans->waiting : n - ans->waiting;
	return arena_printf(
		v->arena, "%s%lld%s",
		status == READY && ans->waiting_more && !ans->standing[i].waits ? "up to " : "",
		(long long)n, ans->waiting_more && ans->standing[i].waits ? "+" : "");
}

static struct cell *group_headings(struct view *v, const struct answer *ans)
{
	struct cell *out = arena_array(v->arena, struct cell, ans->n_tasks);

	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];

		if (i && same_group(ans, i, i - 1))
			continue;
		out[i].paint = ans->standing[i].waits ? YELLOW : view_status_paint(t->status);
		out[i].text = arena_printf(v->arena, "%s%s (%s)", status_name(t->status),
					   ans->standing[i].waits ? ", waiting" : "",
					   arena_cstr(v->arena, group_size(v, ans, i)));
	}
	return out;
}

/* --- what is not shown ------------------------------------------------------------------------------- */

static void put_hidden(struct view *v, const struct answer *ans, const struct list_shown *own)
{
	if (ans->total > (int64_t)ans->n_tasks) {
		view_text(v, DIM, "\nshowing %zu of %lld; for all: ", ans->n_tasks,
			  (long long)ans->total);
		view_data(v, DIM, own->command);
		view_text(v, DIM, " --limit 0\n");
	}
	if (own->open && !own->filtered && ans->ended) {
		view_text(v, DIM, "%s", ans->total > (int64_t)ans->n_tasks ? "" : "\n");
		view_count(v, DIM, ans->ended, "ended task");
		view_text(v, DIM, " not shown: ");
		view_data(v, DIM, own->all);
		view_text(v, DIM, "\n");
	}
}

static void put_none(struct view *v, const struct answer *ans, const struct list_shown *own)
{
	if (!own->filtered && !ans->ended && own->open) {
		view_text(v, DIM, "no tasks yet; to create one: pawl create TITLE\n");
		return;
	}
	if (!own->filtered && own->open) {
		view_text(v, DIM, "no open tasks; ");
		view_count(v, DIM, ans->ended, "ended task");
		view_text(v, DIM, ": ");
		view_data(v, DIM, own->all);
		view_text(v, DIM, "\n");
		return;
	}
	view_text(v, DIM, own->filtered ? "no %stasks match" : "no %stasks",
		  own->open ? "open " : "");
	if (!own->archived) {
		view_text(v, DIM, own->open ? "; with ended ones: " : "; with archived ones: ");
		view_data(v, DIM, own->all);
	}
	view_text(v, DIM, "\n");
}

void show_tasks(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;
	const struct list_shown *own = r->own;
	bool grouped = ans->standing && ans->n_tasks && ans->counts[ans->tasks[0].status];
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_tasks * COLUMNS);
	const char *heads[COLUMNS];
	bool chosen[COLUMNS] = { false };
	size_t columns;

	for (size_t i = 0; i < ans->n_tasks; i++) {
		if (v->quiet) {
			view_data(v, PLAIN, ans->tasks[i].id);
			view_text(v, PLAIN, "\n");
		} else {
			fill_row(v, ans, i, cells + i * COLUMNS);
		}
	}
	if (v->quiet)
		return;
	if (!ans->n_tasks && !ans->total) {
		put_none(v, ans, own);
		return;
	}
	choose_columns(v, ans, cells, grouped, chosen);
	columns = pack_columns(cells, ans->n_tasks, chosen, heads);
	view_groups(v, heads, columns, cells, ans->n_tasks,
		    grouped ? group_headings(v, ans) : NULL);
	put_hidden(v, ans, own);
}
