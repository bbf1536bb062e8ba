/*
 * The event log: the lines of all the queue's commits, sorted by stamp. A stamp is greater than all stamps
 * that its author had seen, so the lines of one record are in order. Lines of independent changes are in the
 * order of their authors' clocks. So a change that arrives late can sort before a cursor that a reader already
 * has, and that reader does not get its lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "store/git/git.h"

struct line {
	int64_t stamp;
	git_oid oid;
	unsigned n; /* position within its change */
	struct entry entry;
};

struct walk {
	struct git *s;
	struct arena a;
	git_oid *todo;
	size_t n_todo, todo_room;
	git_oid *table; /* commits seen so far */
	size_t n_seen, n_slots;
	struct line *lines;
	size_t n, room;
	bool own;      /* follow only the first parents: the commits of one record */
	int64_t since; /* ends a branch of the walk at a commit with a smaller stamp; 0: none */
	/* a record's newest commit, which the memo has but which cannot be read */
	git_oid lost;
};

/* --- the walk ----------------------------------------------------------------------------------- */

static size_t slot_of(const git_oid *oid, size_t n_slots)
{
	size_t h;

	memcpy(&h, oid->id, sizeof(h));
	return h & (n_slots - 1);
}

static bool table_add(struct walk *w, const git_oid *oid)
{
	size_t i = slot_of(oid, w->n_slots);

	for (; !git_oid_is_zero(&w->table[i]); i = (i + 1) & (w->n_slots - 1))
		if (git_oid_equal(&w->table[i], oid))
			return false;
	w->table[i] = *oid;
	w->n_seen++;
	return true;
}

static void table_grow(struct walk *w)
{
	git_oid *old = w->table;
	size_t n = w->n_slots;

	w->n_slots = n ? n * 4 : 256;
	w->n_seen = 0;
	w->table = mem_alloc(w->n_slots * sizeof(*w->table));
	memset(w->table, 0, w->n_slots * sizeof(*w->table));
	for (size_t i = 0; i < n; i++)
		if (!git_oid_is_zero(&old[i]))
			table_add(w, &old[i]);
	free(old);
}

static void walk_push(struct walk *w, const git_oid *oid)
{
	if (2 * w->n_seen >= w->n_slots)
		table_grow(w);
	if (git_oid_is_zero(oid) || !table_add(w, oid))
		return;
	if (w->n_todo == w->todo_room)
		w->todo = mem_grow(w->todo,
				   (w->todo_room = w->todo_room * 2 + 64) * sizeof(*w->todo));
	w->todo[w->n_todo++] = *oid;
}

static void add_lines(struct walk *w, const git_oid *oid, const struct git_state *st)
{
	for (const struct git_line *e = st->lines; e; e = e->next) {
		if (w->n == w->room)
			w->lines = mem_grow(w->lines,
					    (w->room = w->room * 2 + 64) * sizeof(*w->lines));
		w->lines[w->n++] = (struct line){ st->stamp, *oid, e->n, e->entry };
	}
}

/* Does the view show a record that came from the memo, so that its commit was not read? */
static bool is_recalled(const struct git *s, const git_oid *oid)
{
	for (size_t i = 0; i < s->view.n; i++)
		if (s->view.heads[i]->recalled && git_oid_equal(&s->view.heads[i]->oid, oid))
			return true;
	return false;
}

/* The memo has hidden the damage. The next read repairs a clone, so a wire store may retry. */
static int fail_lost(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	int rc = store_fail(&s->base.env, s->local ? STORE_MOVED : STORE_CORRUPT,
			    s->local ? "try again" : "to see the damage: pawl doctor",
			    "%s: cannot read the commit %s", s->remote, git_hex(&a, oid).p);

	arena_free(&a);
	git_memo_forget(s);
	return rc;
}

/* A missing commit ends its branch of the walk. So does a foreign commit, unless the layout allows foreign
 * commits between pawl's. */
static void git_log_walk(struct walk *w)
{
	while (w->n_todo) {
		git_oid oid = w->todo[--w->n_todo];
		struct git_state st;

		int rc = git_commit_read(w->s, &oid, &st, &w->a);

		if (rc && is_recalled(w->s, &oid))
			w->lost = oid;
		if (rc == 1 || (rc && !w->s->layout->strangers))
			continue;
		/* a stamp is not before its entries' times, and all its ancestors' stamps are smaller */
		if (rc == 0 && st.stamp < w->since)
			continue;
		if (rc == 0)
			add_lines(w, &oid, &st);
		for (size_t i = 0; i < st.n_parents && !(w->own && i); i++)
			walk_push(w, &st.parents[i]);
	}
}

static int line_cmp(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->stamp != y->stamp)
		return x->stamp < y->stamp ? -1 : 1;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return git_oid_cmp(&x->oid, &y->oid);
}

static void walk_free(struct walk *w)
{
	free(w->todo);
	free(w->table);
	free(w->lines);
	arena_free(&w->a);
}

/* --- cursors ------------------------------------------------------------------------------------ */

#define CURSOR_ROOM 80

static struct str cursor_text(char *out, const struct line *l)
{
	char hex[GIT_OID_HEXSZ + 1];

	git_oid_tostr(hex, sizeof(hex), &l->oid);
	snprintf(out, CURSOR_ROOM, "%" PRId64 "-%s-%u", l->stamp, hex, l->n);
	return str_c(out);
}

static bool cursor_parse(struct str text, struct line *out)
{
	struct str stamp = str_cut(&text, '-'), oid = str_cut(&text, '-');
	char hex[GIT_OID_HEXSZ + 1] = { 0 };
	int64_t n;

	if (!str_to_i64(stamp, &out->stamp) || oid.n != GIT_OID_HEXSZ || !str_to_i64(text, &n) ||
	    n < 0 || n > INT32_MAX)
		return false;
	memcpy(hex, oid.p, oid.n);
	out->n = (unsigned)n;
	return git_oid_fromstr(&out->oid, hex) == 0;
}

/* --- the answer --------------------------------------------------------------------------------- */

static bool git_log_wanted(const struct entry_query *q, const struct line *after,
			   const struct line *l)
{
	return (!q->key.n || str_eq(q->key, l->entry.key)) && entry_in_time(q, l->entry.at) &&
	       (!q->after.n || line_cmp(l, after) > 0);
}

/* The index of the oldest of the newest q->last lines. */
static size_t first_line(const struct walk *w, const struct entry_query *q,
			 const struct line *after, void *ctx)
{
	size_t i = w->n, n = 0;

	while (i && n < q->last) {
		i--;
		n += git_log_wanted(q, after, &w->lines[i]) &&
		     entry_counts(q, &w->lines[i].entry, ctx);
	}
	return i;
}

static int git_log_send(const struct line *l, entry_fn *fn, void *ctx)
{
	char cursor[CURSOR_ROOM];
	struct entry e = l->entry;

	e.cursor = cursor_text(cursor, l);
	return fn(&e, ctx);
}

static int git_log_answer(const struct walk *w, const struct entry_query *q,
			  const struct line *after, entry_fn *fn, void *ctx)
{
	int rc = 0;

	for (size_t i = q->last ? first_line(w, q, after, ctx) : 0; rc == 0 && i < w->n; i++)
		if (git_log_wanted(q, after, &w->lines[i]))
			rc = git_log_send(&w->lines[i], fn, ctx);
	return rc < 0 ? rc : 0;
}

static void root_push(void *ctx, const git_oid *oid)
{
	walk_push(ctx, oid);
}

int git_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct git *s = git_of(base);
	struct walk w = { .s = s, .since = q->since < WHEN_MAX ? q->since * 1000 : INT64_MAX };
	struct line after = { 0 };
	int rc;

	if (q->after.n && !cursor_parse(q->after, &after))
		return store_fail(&base->env, STORE_UNSUPPORTED, NULL,
				  "'%.*s' is not a cursor of this queue", STRF(q->after));
	rc = s->changing || s->depth ? 0 : git_refresh(s);
	if (rc)
		return rc > 0 ? git_absent(s) : rc;
	w.own = s->layout->roots(s, q->key, root_push, &w);
	git_log_walk(&w);
	if (!git_oid_is_zero(&w.lost)) {
		walk_free(&w);
		return fail_lost(s, &w.lost);
	}
	if (w.n > 1)
		qsort(w.lines, w.n, sizeof(*w.lines), line_cmp);
	s->depth++;
	rc = git_log_answer(&w, q, &after, fn, ctx);
	s->depth--;
	walk_free(&w);
	return rc;
}
