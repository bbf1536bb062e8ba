/*
 * Colours, tables and times. view_data() and view_cell() escape the text of tasks, so that it
 * cannot control the terminal.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "cmd/view.h"
#include "core/lease.h"

static const char *const codes[] = {
	[PLAIN] = "",         [BOLD] = "\033[1m",    [DIM] = "\033[2m",   [RED] = "\033[31m",
	[GREEN] = "\033[32m", [YELLOW] = "\033[33m", [BLUE] = "\033[34m", [CYAN] = "\033[36m",
};

static void view_begin(struct view *v, enum paint p)
{
	if (v->color && p != PLAIN)
		buf_adds(v->out, str_c(codes[p]));
}

static void view_end(struct view *v, enum paint p)
{
	if (v->color && p != PLAIN)
		buf_adds(v->out, STR("\033[0m"));
}

void view_text(struct view *v, enum paint p, const char *fmt, ...)
{
	char small[512];
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	view_begin(v, p);
	if (n > 0 && (size_t)n < sizeof(small)) {
		text_visible(v->out, str_n(small, (size_t)n), true);
	} else if (n > 0) {
		char *big = arena_alloc(v->arena, (size_t)n + 1);

		vsnprintf(big, (size_t)n + 1, fmt, again);
		text_visible(v->out, str_n(big, (size_t)n), true);
	}
	va_end(again);
	view_end(v, p);
}

void view_count(struct view *v, enum paint p, int64_t n, const char *what)
{
	view_text(v, p, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
}

void view_data(struct view *v, enum paint p, struct str text)
{
	view_begin(v, p);
	text_visible(v->out, text, false);
	view_end(v, p);
}

void view_lines(struct view *v, struct str rest, size_t indent)
{
	while (rest.n && rest.p[rest.n - 1] == '\n')
		rest.n--;
	do {
		struct str line = str_cut(&rest, '\n');

		if (line.n)
			buf_addf(v->out, "%*s", (int)indent, "");
		text_visible(v->out, line, true);
		buf_addc(v->out, '\n');
	} while (rest.n);
}

struct cell view_cell(struct view *v, enum paint p, struct str text)
{
	return (struct cell){ p, text_line(v->arena, text) };
}

/* The last column's minimum width, however narrow the terminal is. */
#define LAST_MIN 12

static void put_row(struct view *v, const struct cell *cells, const size_t *widths, size_t columns,
		    size_t at)
{
	for (size_t i = 0; i < columns; i++) {
		struct str text = cells[i].text;
		size_t room = widths[i], width;

		if (i + 1 == columns && v->width)
			room = v->width > at + LAST_MIN ? v->width - at : LAST_MIN;
		text = text_cut(v->arena, text, room);
		width = text_width(text);
		view_data(v, cells[i].paint, text);
		if (i + 1 < columns)
			buf_addf(v->out, "%*s", (int)(widths[i] - width + 2), "");
		at += widths[i] + 2;
	}
	while (v->out->n && v->out->p[v->out->n - 1] == ' ')
		v->out->n--;
	buf_addc(v->out, '\n');
}

static size_t width_of(const size_t *widths, size_t columns)
{
	size_t sum = 2 * (columns - 1);

	for (size_t i = 0; i < columns; i++)
		sum += widths[i];
	return sum;
}

/* Narrows the widest columns, the last of them first, so that one long name does not take the room
 * of all others. */
static void view_fit(size_t *widths, size_t columns, size_t terminal)
{
	size_t need = width_of(widths, columns);

	while (need > terminal) {
		size_t widest = columns - 1;

		for (size_t i = 0; i + 1 < columns; i++)
			widest = widths[i] > widths[widest] ? i : widest;
		if (widths[widest] <= VIEW_SHRUNK)
			return;
		widths[widest]--;
		need--;
	}
}

/* heads: may be NULL. */
static size_t *column_widths(struct view *v, const char *const *heads, size_t columns,
			     const struct cell *cells, size_t rows)
{
	size_t *widths = arena_array(v->arena, size_t, columns);

	for (size_t i = 0; heads && i < columns; i++)
		widths[i] = strlen(heads[i]);
	for (size_t i = 0; i < columns * rows; i++) {
		size_t w = text_width(cells[i].text);

		if (w > widths[i % columns])
			widths[i % columns] = w;
	}
	return widths;
}

/* Adds a line below the row, starting at its second column. */
static void put_note(struct view *v, const struct cell *note, size_t indent)
{
	if (!note->text.n)
		return;
	buf_addf(v->out, "%*s", (int)indent, "");
	put_row(v, note, &(size_t){ SIZE_MAX }, 1, indent);
}

static void put_table(struct view *v, const char *const *heads, size_t columns,
		      const struct cell *cells, size_t rows, const struct cell *headings,
		      const struct cell *notes)
{
	size_t *widths = column_widths(v, heads, columns, cells, rows);
	struct cell *head = arena_array(v->arena, struct cell, columns);

	for (size_t i = 0; i < columns; i++)
		head[i] = (struct cell){ DIM, str_c(heads[i]) };
	if (v->width)
		view_fit(widths, columns, v->width);
	put_row(v, head, widths, columns, 0);
	for (size_t r = 0; r < rows; r++) {
		if (headings && headings[r].text.n)
			view_text(v, headings[r].paint, "\n%.*s\n", STRF(headings[r].text));
		put_row(v, cells + r * columns, widths, columns, 0);
		if (notes)
			put_note(v, &notes[r], widths[0] + 2);
	}
}

void view_groups(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		 size_t rows, const struct cell *headings)
{
	put_table(v, heads, columns, cells, rows, headings, NULL);
}

void view_table(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		size_t rows)
{
	put_table(v, heads, columns, cells, rows, NULL, NULL);
}

void view_noted(struct view *v, const char *const *heads, size_t columns, struct cell *cells,
		size_t rows)
{
	size_t *widths = column_widths(v, heads, columns, cells, rows), to = 0;
	struct cell *notes = arena_array(v->arena, struct cell, rows);

	if (!v->width || width_of(widths, columns) <= v->width) {
		view_table(v, heads, columns, cells, rows);
		return;
	}
	for (size_t i = 0; i < rows * columns; i++)
		if ((i + 1) % columns)
			cells[to++] = cells[i];
		else
			notes[i / columns] = cells[i];
	put_table(v, heads, columns - 1, cells, rows, NULL, notes);
}

void view_rows(struct view *v, size_t columns, const struct cell *cells, size_t rows)
{
	size_t *widths = column_widths(v, NULL, columns, cells, rows);

	if (v->width > 2)
		view_fit(widths, columns, v->width - 2);
	for (size_t r = 0; r < rows; r++) {
		view_text(v, PLAIN, "  ");
		put_row(v, cells + r * columns, widths, columns, 2);
	}
}

enum paint view_status_paint(int64_t status)
{
	static const enum paint paints[STATUS_END] = {
		[BACKLOG] = DIM,    [READY] = GREEN,    [IN_PROGRESS] = CYAN,
		[BLOCKED] = YELLOW, [NEEDS_HELP] = RED, [REVIEW] = BLUE,
		[DONE] = DIM,       [FAILED] = RED,     [CANCELED] = DIM,
	};

	return status > 0 && status < STATUS_END ? paints[status] : PLAIN;
}

void view_status(struct view *v, int64_t status, const char *none)
{
	const char *(*name)(int64_t) = v->status ? v->status : status_name;

	view_text(v, view_status_paint(status), "%s", status ? name(status) : none);
}

struct str view_left(struct view *v, int64_t ms)
{
	/* Tenths of a second do not matter beyond a second. */
	return duration_text(v->arena, ms >= 1000 ? (ms + 500) / 1000 * 1000 : ms > 0 ? ms : 0);
}

struct str view_age(struct view *v, int64_t ms)
{
	int64_t now = os_wall_ms();

	if (!ms)
		return STR("");
	return duration_text(v->arena, now - ms < 1000 ? 0 : (now - ms) / 1000 * 1000);
}

struct str view_when(struct view *v, int64_t ms)
{
	int64_t now = os_wall_ms();

	if (ms > now)
		return arena_printf(
			v->arena, "in %s",
			arena_cstr(v->arena,
				   duration_text(v->arena, (ms - now + 999) / 1000 * 1000)));
	return ms ? arena_printf(v->arena, "%s ago", arena_cstr(v->arena, view_age(v, ms)))
		  : STR("");
}

struct str view_lost(struct view *v, const struct lock *l, int64_t now)
{
	if (!l->expires_at || l->expires_at > now)
		return STR("");
	return arena_printf(
		v->arena, "%s ago",
		arena_cstr(v->arena, duration_text(v->arena, (now - l->expires_at) / 1000 * 1000)));
}

int64_t view_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

struct str view_strs(struct view *v, struct strs list)
{
	struct buf b = BUF_MAX(1u << 20);
	struct str out;

	for (size_t i = 0; i < list.n; i++) {
		if (i)
			buf_adds(&b, STR(", "));
		text_visible(&b, list.v[i], false);
	}
	out = arena_str(v->arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* --- view open -------------------------------------------------------------------------------- */

/*
 * The table of `list` and `find`, grouped by status or as one list. A column appears only if it
 * says something and leaves room for the title.
 */

#define DAY INT64_C(86400000)
#define TITLE_ROOM 22 /* columns that are left to the title before a column is added */

enum column { ID, STATUS, CLASS, PRIORITY, HOLDER, DUE, LABELS, WAITS, TITLE, COLUMNS };

static const char *const names[COLUMNS] = { "ID",  "STATUS", "CLASS",     "PRI",  "HOLDER",
					    "DUE", "LABELS", "WAITS FOR", "TITLE" };
/* Columns that are shown only if they are not empty and there is room, the most useful first. */
static const enum column optional[] = { DUE, CLASS, WAITS, LABELS };

/* A date without a time is over at the end of the day. */
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

/* Keeps only the chosen columns, in place. Returns their number. */
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

/* The number of tasks in this task's group. */
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

/* --- tasks that are left out ------------------------------------------------------------------------- */

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
