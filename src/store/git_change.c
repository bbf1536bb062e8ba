/*
 * A change: the edits run on the view; what they wrote becomes commits, and the refs are moved to them if all
 * are still where they were read. Else others were quicker, and all of it happens again.
 */
#include <stdlib.h>
#include <time.h>

#include "base/backoff.h"
#include "base/os.h"
#include "base/secret.h"
#include "store/git.h"

#define RETRY_MS 20

/* What becomes of one record. */
struct step {
	struct str key;
	const struct record *rec; /* NULL: dropped */
	const struct git_head *head;
	struct git_line *lines, **last;
	struct str clock;
	git_oid tree, oid;
	bool put;     /* by an edit; else only logged about, or read */
	bool to_base; /* where it will be */
};

struct set {
	struct git *s;
	struct arena a;
	struct mem_undo *undo;
	struct step *steps; /* by key */
	size_t n;
	struct git_line *lines, **last; /* that belong to no record */
	unsigned n_lines;
	struct git_move *moves;
	size_t n_moves;
	struct git_link *links;
	size_t n_links;
	git_oid *hung; /* commits that the base must keep */
	size_t n_hung;
	bool base_moves;
	struct git_fold fold;
	int64_t stamp;
	struct str nonce;
};

/* --- steps -------------------------------------------------------------------------------------- */

static struct step *step_find(struct set *w, struct str key)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq(w->steps[i].key, key))
			return &w->steps[i];
	return NULL;
}

static struct step *step_make(struct set *w, struct str key)
{
	struct step *p = step_find(w, key);

	if (p)
		return p;
	w->steps = arena_grow(&w->a, w->steps, w->n, sizeof(*p));
	p = &w->steps[w->n++];
	*p = (struct step){ .key = key, .head = git_head(&w->s->view, key) };
	return p;
}

static int put_bodies(struct set *w, const struct edit *e)
{
	int rc = 0;

	for (struct edit_item *it = e->items; rc == 0 && it; it = it->next) {
		git_oid *tree;

		if (it->dropped || !it->rec.body_changed)
			continue;
		tree = arena_new(&w->a, git_oid);
		rc = git_body_write(w->s, &it->rec, tree, &w->a);
		it->rec.body = str_n((const char *)tree->id, GIT_OID_RAWSZ);
	}
	return rc;
}

static void add_line(struct set *w, const struct entry *e)
{
	struct git_line *l = arena_new(&w->a, struct git_line);

	l->entry = *e;
	l->n = w->n_lines++;
	*w->last = l;
	w->last = &l->next;
}

static int run_edits(struct set *w, struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct edit e;
		int rc = edit_run(&e, &w->s->base, &w->a, w->s->now, &changes[i]);

		if (rc == 0)
			rc = put_bodies(w, &e);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		for (const struct edit_item *it = e.items; it; it = it->next)
			step_make(w, it->rec.key)->put = true;
		for (const struct edit_entry *l = e.entries; l; l = l->next)
			add_line(w, &l->entry);
		mem_queue_apply(&w->s->view.q, &e, &w->undo);
	}
	return 0;
}

/* --- what has to move --------------------------------------------------------------------------- */

static bool is_task(struct str key)
{
	return str_starts(key, STR("task/"));
}

static bool lively(const struct record *r)
{
	return r->ix.lane != LANE_NONE || r->ix.holder.n;
}

static void place(struct set *w, struct step *p, size_t *n_refs)
{
	if (!is_task(p->key))
		p->to_base = true;
	else if (p->head && !p->head->on_base)
		p->to_base = false;
	else
		p->to_base = !lively(p->rec) || *n_refs >= w->s->refs_wanted;
	if (!p->to_base && (!p->head || p->head->on_base))
		++*n_refs;
}

static void take_states(struct set *w)
{
	size_t n_refs = w->s->view.n_refs;

	n_refs -= w->fold.n < n_refs ? w->fold.n : n_refs;
	for (size_t i = 0; i < w->n; i++) {
		struct step *p = &w->steps[i];
		const struct record *r = mem_queue_get(&w->s->view.q, p->key, w->s->now);
		struct record *copy;

		if (!r)
			continue;
		copy = record_copy(&w->a, r);
		if (p->put)
			copy->rev = w->stamp;
		if (copy->body.n)
			git_oid_fromraw(&p->tree, (const unsigned char *)copy->body.p);
		p->clock = git_time_hide(w->s, p->head, copy, &w->a);
		p->rec = copy;
		place(w, p, &n_refs);
	}
}

/* A line goes with its record, or with the base if there is none. */
static void deal_lines(struct set *w)
{
	struct git_line *l = w->lines, *next;

	w->lines = NULL;
	w->last = &w->lines;
	for (; l; l = next) {
		struct step *p = step_find(w, l->entry.key);
		bool own = p && p->rec;
		struct git_line ***last = own ? &p->last : &w->last;

		next = l->next;
		l->next = NULL;
		if (own && !p->last)
			p->last = &p->lines;
		**last = l;
		*last = &l->next;
	}
}

/* Records that are only logged about get a new commit as well; those only read too, where a ref that stays
 * cannot be watched over. */
static void add_others(struct set *w)
{
	const struct git_view *v = &w->s->view;

	for (const struct git_line *l = w->lines; l; l = l->next)
		if (git_head(v, l->entry.key) && !git_head(v, l->entry.key)->bad)
			step_make(w, l->entry.key);
	for (size_t i = 0; i < w->s->reads.n; i++) {
		const struct git_head *h = git_head(v, w->s->reads.v[i]);

		if (step_find(w, w->s->reads.v[i]))
			continue;
		if (w->s->lane->guards)
			continue;
		if (h && !h->on_base)
			step_make(w, w->s->reads.v[i]);
		else
			w->base_moves = true;
	}
}

static void add_move(struct set *w, struct str name, const git_oid *old, const git_oid *to)
{
	w->moves = arena_grow(&w->a, w->moves, w->n_moves, sizeof(*w->moves));
	w->moves[w->n_moves++] = (struct git_move){ name, *old, *to };
}

static void add_link(struct set *w, struct str key, const git_oid *oid)
{
	w->links = arena_grow(&w->a, w->links, w->n_links, sizeof(*w->links));
	w->links[w->n_links++] = (struct git_link){ key, *oid };
	w->base_moves = true;
}

static void add_hung(struct set *w, const git_oid *oid)
{
	w->hung = arena_grow(&w->a, w->hung, w->n_hung, sizeof(*w->hung));
	w->hung[w->n_hung++] = *oid;
}

static const git_oid none;

static bool has_ref(const struct step *p)
{
	return p->head && !p->head->on_base;
}

/* Which refs will move, before their commits are there: `to` is filled in later. */
static void plan(struct set *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct step *p = &w->steps[i];
		struct str name;

		if (!p->rec && !p->head)
			continue;
		if (p->rec && p->to_base) {
			w->base_moves = true;
			continue;
		}
		name = is_task(p->key) ? git_ref_of(&w->a, p->key) : STR("");
		if (p->rec)
			add_move(w, name, has_ref(p) ? &p->head->oid : &none, &none);
		else if (has_ref(p))
			add_move(w, name, &p->head->oid, &none);
		w->base_moves |= !p->rec || !has_ref(p);
	}
	w->base_moves |= w->lines != NULL;
	if (w->base_moves)
		add_move(w, GIT_BASE, &w->s->view.base, &none);
	if (w->n_moves > 1)
		qsort(w->moves, w->n_moves, sizeof(*w->moves), git_move_cmp);
}

static struct git_move *move_find(struct set *w, struct str name)
{
	for (size_t i = 0; i < w->n_moves; i++)
		if (str_eq(w->moves[i].name, name))
			return &w->moves[i];
	return NULL;
}

/* --- commits ------------------------------------------------------------------------------------ */

static int write_step(struct set *w, struct step *p, bool first)
{
	git_oid *parents = arena_array(&w->a, git_oid, 1 + w->n_moves);
	struct git_draft d = { .rec = p->rec,
			       .stamp = w->stamp,
			       .nonce = w->nonce,
			       .lines = p->lines,
			       .clock = p->clock,
			       .tree = p->tree,
			       .parents = parents };

	if (git_oid_is_zero(&d.tree)) {
		int rc = git_body_write(w->s, &(struct record){ 0 }, &d.tree, &w->a);

		if (rc)
			return rc;
	}
	if (p->head)
		parents[d.n_parents++] = p->head->oid;
	if (first) {
		d.moves = w->moves + 1;
		d.n_moves = w->n_moves - 1;
		for (size_t i = 1; i < w->n_moves; i++)
			if (!git_oid_is_zero(&w->moves[i].to))
				parents[d.n_parents++] = w->moves[i].to;
	} else if (!p->to_base && w->n_moves > 1) {
		d.lead = w->moves[0].name;
	}
	return git_commit_write(w->s, &d, &p->oid, &w->a);
}

static void hang(struct set *w, const struct step *p)
{
	if (p->rec && p->to_base) {
		add_link(w, p->key, &p->oid);
		add_hung(w, &p->oid);
	} else if (p->head && p->head->on_base) {
		add_link(w, p->key, &none);
	}
	if (p->head && !p->head->on_base && (!p->rec || p->to_base))
		add_hung(w, &p->head->oid);
	if (!p->rec && p->head && !git_oid_is_zero(&p->head->link))
		add_link(w, p->key, &none);
}

/* The first ref names the others' commits, so its own comes last. */
static int write_steps(struct set *w, bool first)
{
	for (size_t i = 0; i < w->n; i++) {
		struct step *p = &w->steps[i];
		struct git_move *m;
		int rc;

		if (!p->rec)
			continue;
		m = p->to_base ? NULL : move_find(w, git_ref_of(&w->a, p->key));
		if ((m == w->moves) != first)
			continue;
		rc = write_step(w, p, first && w->n_moves > 1);
		if (rc)
			return rc;
		if (m)
			m->to = p->oid;
	}
	return 0;
}

static int write_base(struct set *w)
{
	struct git_view *v = &w->s->view;
	git_oid *parents = arena_array(&w->a, git_oid, 1 + w->n_hung + w->n_moves);
	struct git_draft d = { .stamp = w->stamp,
			       .nonce = w->nonce,
			       .lines = w->lines,
			       .moves = w->moves + 1,
			       .n_moves = w->n_moves - 1,
			       .parents = parents };
	int rc = git_base_change(w->s, &v->base_tree, w->links, w->n_links, &d.tree);

	if (rc)
		return rc;
	if (!git_oid_is_zero(&v->base))
		parents[d.n_parents++] = v->base;
	for (size_t i = 0; i < w->n_hung; i++)
		parents[d.n_parents++] = w->hung[i];
	for (size_t i = 1; i < w->n_moves; i++)
		if (!git_oid_is_zero(&w->moves[i].to))
			parents[d.n_parents++] = w->moves[i].to;
	return git_commit_write(w->s, &d, &w->moves[0].to, &w->a);
}

static void hang_folded(struct set *w)
{
	for (size_t i = 0; i < w->fold.n; i++) {
		add_link(w, w->fold.v[i]->key, &w->fold.v[i]->oid);
		add_hung(w, &w->fold.v[i]->oid);
	}
}

static int write_commits(struct set *w)
{
	int rc = write_steps(w, false);

	if (rc)
		return rc;
	if (!w->base_moves)
		return write_steps(w, true);
	for (size_t i = 0; i < w->n; i++)
		hang(w, &w->steps[i]);
	hang_folded(w);
	return write_base(w);
}

/* Refs that were read and stay must stay as they are. */
static void add_guards(struct set *w)
{
	const struct git_view *v = &w->s->view;
	struct strs reads = w->s->reads;

	for (size_t i = 0; w->s->lane->guards && i < reads.n; i++) {
		const struct git_head *h = git_head(v, reads.v[i]);
		struct str name = h && !h->on_base ? git_ref_of(&w->a, reads.v[i]) : GIT_BASE;
		const git_oid *oid = h && !h->on_base ? &h->oid : &v->base;

		if (!move_find(w, name))
			add_move(w, name, oid, oid);
	}
}

/* --- attempts ----------------------------------------------------------------------------------- */

static int settle(struct git *s)
{
	struct git_view *v = &s->view;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < v->n_owed; i++)
		rc = s->lane->push(s, &v->owed[i], 1);
	return rc < 0 ? rc : 0;
}

/* The state to work on: 0, or a fault. */
static int look(struct git *s)
{
	for (int i = 0; i < GIT_TRIES; i++) {
		int rc = git_look(s);

		if (rc)
			return rc > 0 ? git_absent(s) : rc;
		if (!s->view.n_owed)
			return 0;
		rc = settle(s);
		if (rc < 0)
			return rc;
	}
	return store_fail(&s->base.env, STORE_BUSY, "pawl doctor looks for locks that were left",
			  "%s: a change that was cut short cannot be finished", s->remote);
}

static struct strs busy_keys(struct set *w)
{
	struct strs keys = { arena_array(&w->a, struct str, w->n + w->s->reads.n), 0 };

	for (size_t i = 0; i < w->n; i++)
		keys.v[keys.n++] = w->steps[i].key;
	for (size_t i = 0; i < w->s->reads.n; i++)
		keys.v[keys.n++] = w->s->reads.v[i];
	return keys;
}

static int commit(struct set *w)
{
	int rc;

	add_others(w);
	git_fold_plan(w->s, busy_keys(w), &w->fold, &w->a);
	take_states(w);
	deal_lines(w);
	plan(w);
	if (!w->n_moves)
		return 0;
	rc = write_commits(w);
	if (rc)
		return rc;
	add_guards(w);
	rc = w->s->lane->push(w->s, w->moves, w->n_moves);
	if (rc == 0 && w->base_moves)
		git_fold_finish(w->s, &w->fold, &w->a);
	return rc;
}

static int64_t next_stamp(const struct git *s)
{
	int64_t own = s->now * 1000;

	return own > s->view.stamp ? own : s->view.stamp + 1;
}

static int attempt(struct git *s, struct change *changes, size_t n)
{
	struct set w = { .s = s };
	int rc = look(s);

	if (rc)
		return rc;
	w.last = &w.lines;
	w.nonce = token_make(&w.a);
	s->reads = (struct strs){ 0 };
	git_clock_change(s);
	s->now = git_now(&s->base);
	w.stamp = next_stamp(s);
	s->changing = true;
	rc = run_edits(&w, changes, n);
	if (rc == 0 && (w.n || w.lines))
		rc = commit(&w);
	s->changing = false;
	mem_queue_take_back(&s->view.q, w.undo, 0);
	s->reads = (struct strs){ 0 };
	arena_free(&s->arena);
	arena_free(&w.a);
	return rc;
}

static int in_lane(struct git *s, struct change *changes, size_t n)
{
	struct backoff b = s->base.env.backoff;
	int rc;

	b.made = 0;
	b.deadline = os_boot_ms() + s->base.env.timeout_ms;
	b.base_ms = b.base_ms ? b.base_ms : RETRY_MS;
	while ((rc = attempt(s, changes, n)) > 0) {
		int64_t ms = backoff_next(&b, os_boot_ms());

		if (ms < 0)
			return store_fail(&s->base.env, STORE_BUSY, "try again",
					  "%s: others were quicker %lld times", s->remote,
					  (long long)b.made);
		nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
	}
	return rc;
}

int git_modify(struct store *base, struct change *changes, size_t n)
{
	struct git *s = git_of(base);
	int rc;

	if (base->env.mode == STORE_READ)
		return store_fail(&base->env, STORE_READONLY, NULL,
				  "%s was opened for reading only", s->remote);
	if (s->changing || s->depth)
		return store_fail(&base->env, STORE_IO, NULL,
				  "a change inside a scan or another change");
	rc = s->lane->begin(s);
	if (rc < 0)
		return rc;
	rc = in_lane(s, changes, n);
	s->lane->end(s);
	return rc;
}

/* --- the beginning and the end of a queue ------------------------------------------------------- */

/* Refs of a queue whose base is gone. */
static int drop_rest(struct git *s)
{
	struct arena a = { 0 };
	struct git_refs refs;
	int rc = s->lane->list(s, &refs, &a);

	for (size_t i = 0; rc == 0 && i < refs.n; i++) {
		struct git_move m = { refs.v[i].name, refs.v[i].oid, none };

		rc = s->lane->push(s, &m, 1);
	}
	arena_free(&a);
	return rc;
}

static int make_base(struct git *s)
{
	struct set w = { .s = s };
	int rc = drop_rest(s);

	git_view_clear(&s->view);
	s->now = git_now(&s->base);
	w.stamp = next_stamp(s);
	w.nonce = token_make(&w.a);
	add_move(&w, GIT_BASE, &none, &none);
	if (rc == 0)
		rc = write_base(&w);
	if (rc == 0)
		rc = s->lane->push(s, w.moves, 1);
	arena_free(&w.a);
	return rc;
}

int git_begin_queue(struct git *s)
{
	int rc = s->lane->begin(s);

	if (rc < 0)
		return rc;
	rc = 1;
	for (int i = 0; rc > 0 && i < GIT_TRIES; i++) {
		rc = git_look(s);
		if (rc > 0)
			rc = make_base(s);
	}
	s->lane->end(s);
	return rc <= 0 ? rc
		       : store_fail(&s->base.env, STORE_BUSY, "try again",
				    "%s: others were quicker", s->remote);
}

static int drop_base(struct git *s)
{
	struct git_move m = { GIT_BASE, s->view.base, none };

	return s->lane->push(s, &m, 1);
}

int git_discard(struct store *base)
{
	struct git *s = git_of(base);
	int rc;

	if (base->env.mode == STORE_READ)
		return store_fail(&base->env, STORE_READONLY, NULL,
				  "%s was opened for reading only", s->remote);
	rc = s->lane->begin(s);
	if (rc < 0)
		return rc;
	rc = 1;
	for (int i = 0; rc > 0 && i < GIT_TRIES; i++) {
		rc = git_look(s);
		if (rc == 0)
			rc = drop_base(s);
		else if (rc > 0)
			rc = 0; /* gone already */
		if (rc == 0)
			rc = drop_rest(s);
	}
	git_view_clear(&s->view);
	s->lane->end(s);
	return rc <= 0 ? rc
		       : store_fail(&base->env, STORE_BUSY, "try again", "%s: others were quicker",
				    s->remote);
}
