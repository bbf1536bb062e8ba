/*
 * The overview of `pawl` and `status`: numbers, agents, and tasks that wait for a person.
 * overview.c collects the facts; this file reads nothing.
 */
#include "base/text.h"
#include "base/when.h"
#include "cmd/cmd.h"
#include "cmd/view.h"
#include "core/lease.h"

/* --- numbers ----------------------------------------------------------------------------------------- */

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

/* Adds a part to a line that breaks only between its parts. at: the columns used; 0: the line is
 * empty. */
static void put_part(struct view *v, size_t *at, const char *between, enum paint p, struct str text)
{
	size_t width = text_width(text), gap = *at ? text_width(str_c(between)) : 0;

	if (*at && v->width && *at + gap + width > v->width) {
		view_text(v, PLAIN, "\n");
		*at = gap = 0;
	}
	view_text(v, PLAIN, "%s", gap ? between : "");
	view_text(v, p, "%.*s", STRF(text));
	*at += gap + width;
}

static void put_number(struct view *v, enum paint p, size_t *at, int64_t n, const char *before,
		       const char *what)
{
	if (n)
		put_part(v, at, " · ", p,
			 arena_printf(v->arena, "%s%lld %s", before, (long long)n, what));
}

static int64_t count_archived(const struct answer *ans)
{
	int64_t n = 0;

	for (int s = BACKLOG; s < STATUS_END; s++)
		n += ans->archived[s];
	return n;
}

/* Ready tasks that wait are not counted as Ready, because nobody can claim them. */
static void put_counts(struct view *v, const struct answer *ans)
{
	int64_t archived = count_archived(ans);
	struct str total = arena_printf(v->arena, "(%lld task%s", (long long)ans->total,
					ans->total == 1 ? "" : "s");
	size_t at = 0;

	for (int s = BACKLOG; s < STATUS_END; s++) {
		put_number(v, view_status_paint(s), &at, view_count_of(ans, s),
			   s == READY && ans->waiting_more ? "up to " : "", status_name(s));
		if (s == READY)
			put_number(v, YELLOW, &at, ans->waiting, "",
				   ans->waiting_more ? "or more waiting" : "waiting");
	}
	if (!ans->total) {
		view_text(v, DIM, "the queue is empty\n");
		return;
	}
	if (archived)
		total = arena_printf(v->arena, "%.*s, %lld archived", STRF(total),
				     (long long)archived);
	put_part(v, &at, "  ", DIM, arena_printf(v->arena, "%.*s)", STRF(total)));
	view_text(v, PLAIN, "\n");
}

/* --- agents ------------------------------------------------------------------------------------------ */

#define IDLE_MAX 10
#define TITLE_ROOM 12 /* columns that are left to the title before a column is added */

enum column { AGENT, STATE, TASK, SINCE, LEFT, HOST, WORKTREE, STATUS, TITLE, COLUMNS };

static const char *const names[COLUMNS] = { "AGENT", "STATE",    "TASK",   "SINCE", "LEASE LEFT",
					    "HOST",  "WORKTREE", "STATUS", "TITLE" };

static enum paint state_paint(struct str state)
{
	return str_is(state, "working") ? GREEN
	       : str_is(state, "dead")  ? RED
	       : str_is(state, "idle")  ? DIM
					: YELLOW;
}

static struct cell lease_cell(struct view *v, const struct lock *l, int64_t now)
{
	if (!lease_live(l, now))
		return (struct cell){ YELLOW,
				      arena_printf(v->arena, "expired %s",
						   arena_cstr(v->arena, view_lost(v, l, now))) };
	return (struct cell){ PLAIN,
			      l->expires_at ? view_left(v, l->expires_at - now) : STR("no end") };
}

static void held_row(struct view *v, const struct task *t, struct str folder, int64_t now,
		     struct cell *c)
{
	struct str state = str_c(overview_state(t, now));

	c[AGENT] = view_cell(v, CYAN, t->lock.holder);
	c[STATE] = (struct cell){ state_paint(state), state };
	c[TASK] = view_cell(v, BOLD, t->id);
	c[SINCE].text = view_age(v, t->lock.acquired_at);
	c[LEFT] = lease_cell(v, &t->lock, now);
	c[HOST] = view_cell(v, PLAIN, t->lock.host);
	c[WORKTREE] = view_cell(v, PLAIN, overview_worktree(folder));
	c[STATUS] = view_cell(v, view_status_paint(t->status), str_c(status_name(t->status)));
	c[TITLE] = view_cell(v, PLAIN, t->title);
}

/* An agent that worked in the last hour and holds nothing now. */
static void free_row(struct view *v, const json_t *agent, struct cell *c)
{
	struct str state = json_get(agent, "state");
	int64_t seen = 0;

	(void)when_parse(json_get(agent, "last_seen"), &seen);
	c[AGENT] = view_cell(v, CYAN, json_get(agent, "agent"));
	c[STATE] = view_cell(v, state_paint(state), state);
	c[SINCE] = (struct cell){ DIM, view_age(v, seen) };
	c[HOST] = view_cell(v, PLAIN, json_get(agent, "host"));
}

/* The room that the column needs at least, as wide columns can shrink. */
static size_t column_width(const struct cell *cells, size_t rows, enum column col)
{
	size_t width = strlen(names[col]);

	for (size_t i = 0; i < rows; i++) {
		size_t w = text_width(cells[i * COLUMNS + col].text);

		width = w > width ? w : width;
	}
	return (width < VIEW_SHRUNK ? width : VIEW_SHRUNK) + 2;
}

/* Does the cell say anything new? The operator's own host and worktree do not, nor do those in the
 * agent's name, nor the status of a task in work. */
static bool says_more(const struct cell *c, enum column col, const struct overview *here)
{
	struct str own = col == HOST ? here->host : overview_worktree(here->folder);

	if (col != STATUS)
		return c[col].text.n && !str_eq(c[col].text, own) &&
		       !str_has_nocase(c[AGENT].text, c[col].text);
	return c[STATUS].text.n && !str_is(c[STATUS].text, status_name(IN_PROGRESS)) &&
	       !str_is(c[STATE].text, "blocked");
}

/* HOST, WORKTREE and STATUS are shown only if they say something and leave room for the title. */
static size_t choose_columns(const struct view *v, const struct cell *cells, size_t rows,
			     const struct overview *here, bool *chosen)
{
	static const enum column optional[] = { HOST, WORKTREE, STATUS };
	const size_t n_optional = sizeof(optional) / sizeof(*optional);
	size_t n = COLUMNS - n_optional, used = 0;

	for (int c = AGENT; c < COLUMNS; c++) {
		chosen[c] = c < HOST || c > STATUS;
		used += chosen[c] && c != TITLE ? column_width(cells, rows, (enum column)c) : 0;
	}
	for (size_t k = 0; k < n_optional; k++) {
		enum column c = optional[k];
		size_t more = column_width(cells, rows, c);
		bool wanted = false;

		for (size_t i = 0; i < rows; i++)
			wanted |= says_more(cells + i * COLUMNS, c, here);
		chosen[c] = wanted && (!v->width || used + more + TITLE_ROOM <= v->width);
		used += chosen[c] ? more : 0;
		n += chosen[c];
	}
	return n;
}

static void put_agent_table(struct view *v, struct cell *cells, size_t rows,
			    const struct overview *here)
{
	const char *heads[COLUMNS];
	bool chosen[COLUMNS];
	size_t columns = choose_columns(v, cells, rows, here, chosen), n = 0, to = 0;

	for (int c = AGENT; c < COLUMNS; c++)
		if (chosen[c])
			heads[n++] = names[c];
	for (size_t i = 0; i < rows * COLUMNS; i++)
		if (chosen[i % COLUMNS])
			cells[to++] = cells[i];
	view_table(v, heads, columns, cells, rows);
}

static void put_agents(struct view *v, const struct reply *r)
{
	const struct answer *ans = &r->ans;
	const struct overview *places = r->own;
	const json_t *agents = json_object_get(r->more, "agents");
	struct cell *cells = arena_array(v->arena, struct cell,
					 (ans->n_tasks + IDLE_MAX) * COLUMNS);
	size_t rows = 0, idle = 0, i;
	json_t *o;

	for (; rows < ans->n_tasks; rows++)
		held_row(v, &ans->tasks[rows], places->folders[rows], ans->now,
			 cells + rows * COLUMNS);
	json_array_foreach(agents, i, o)
		if (!json_array_size(json_object_get(o, "tasks")) && idle++ < IDLE_MAX)
			free_row(v, o, cells + rows++ * COLUMNS);
	if (!rows)
		return;
	view_text(v, PLAIN, "\n");
	put_agent_table(v, cells, rows, places);
	if (ans->held > (int64_t)ans->n_tasks)
		view_text(v, DIM, "showing %zu of %lld; for all: pawl lock list -n 0\n",
			  ans->n_tasks, (long long)ans->held);
	if (idle > IDLE_MAX)
		view_text(v, DIM, "%zu more agents are idle\n", idle - IDLE_MAX);
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

/* --- tasks that wait for a person ---------------------------------------------------------------------- */

#define PEOPLE_COLUMNS 5

/* A long reason leaves room for the action, because the action is the person's part. */
static struct str reason_of(struct view *v, const json_t *o)
{
	struct str text = text_line(v->arena, json_get(o, "text")),
		   action = text_line(v->arena, json_get(o, "unblock_action"));
	size_t line = v->width > 40 ? v->width - 9 : 0, half = line / 2, need = text_width(action);

	if (!action.n)
		return text;
	if (line)
		text = text_cut(v->arena, text, need < half ? line - need : half);
	return arena_printf(v->arena, "%.*s → %.*s", STRF(text), STRF(action));
}

/* Shows the commands for the first task of each status; the others of that status take the same. */
static void put_actions_on(struct view *v, const json_t *people)
{
	struct str before = STR("");
	size_t i, k;
	json_t *o, *command;

	json_array_foreach(people, i, o) {
		struct str status = json_get(o, "status");

		if (str_eq(status, before))
			continue;
		before = status;
		view_text(v, DIM, "  ");
		view_data(v, DIM, status);
		json_array_foreach(json_object_get(o, "commands"), k, command) {
			view_text(v, DIM, k ? " · " : ": ");
			view_data(v, DIM, json_text(command));
		}
		view_text(v, DIM, "\n");
	}
}

static void put_people(struct view *v, const json_t *people)
{
	static const char *const heads[] = { "TASK", "STATUS", "AGENT", "TITLE", "REASON" };
	size_t i, n = json_array_size(people);
	struct cell *cells = arena_array(v->arena, struct cell, n * PEOPLE_COLUMNS);
	json_t *o;

	json_array_foreach(people, i, o) {
		struct cell *c = cells + i * PEOPLE_COLUMNS;
		struct str status = json_get(o, "status");

		c[0] = view_cell(v, BOLD, json_get(o, "task"));
		c[1] = view_cell(v, view_status_paint(status_parse(status)), status);
		c[2] = view_cell(v, CYAN, json_get(o, "agent"));
		c[3] = view_cell(v, PLAIN, json_get(o, "title"));
		c[4] = (struct cell){ PLAIN, reason_of(v, o) };
	}
	if (!n)
		return;
	view_noted(v, heads, PEOPLE_COLUMNS, cells, n);
	put_actions_on(v, people);
}

static void put_waiting(struct view *v, const struct answer *ans, const json_t *people)
{
	int64_t shown = (int64_t)json_array_size(people);
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
	if (!any)
		return;
	view_text(v, PLAIN, "\n");
	put_people(v, people);
	if (view_for_people(ans) > shown)
		view_text(v, DIM,
			  "  for all: pawl list --status review,blocked,needs-help,failed\n");
	view_text(v, PLAIN, "\n");
}

/* --- all of it --------------------------------------------------------------------------------------- */

/* `since` is less than an hour ago if the hour had too many events. */
static void put_hour(struct view *v, const json_t *hour, int64_t now)
{
	long long failed = view_int(hour, "failed"), lost = view_int(hour, "abandoned");
	int64_t since = 0;

	if (!hour || !when_parse(json_get(hour, "since"), &since))
		return;
	if (now - since < HOUR_MS)
		view_text(v, PLAIN, "last %s", arena_cstr(v->arena, view_left(v, now - since)));
	else
		view_text(v, PLAIN, "last hour");
	view_text(v, PLAIN, ": %lld done", (long long)view_int(hour, "done"));
	if (failed)
		view_text(v, RED, ", %lld failed", failed);
	if (lost)
		view_text(v, RED, ", %lld abandoned", lost);
	view_text(v, PLAIN, "\n");
}

void show_paused(const struct notice *p, struct view *v)
{
	view_text(v, YELLOW, "paused");
	view_text(v, PLAIN, " by ");
	view_data(v, CYAN, p->by);
	view_text(v, PLAIN, " since %s", arena_cstr(v->arena, view_when(v, p->at)));
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
	if (ans->total)
		put_hour(v, json_object_get(r->more, "last_hour"), ans->now);
	put_agents(v, r);
	if (ans->held <= (int64_t)ans->n_tasks)
		put_orphans(v, ans);
	put_waiting(v, ans, json_object_get(r->more, "people"));
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
