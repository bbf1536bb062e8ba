/* The part of `show` about the tasks around a task, and about its attempts. */
#include "cmd/view.h"

#include "base/when.h"

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
