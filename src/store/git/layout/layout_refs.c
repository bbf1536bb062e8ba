/* The layout with a ref for each live task: plans which refs a change moves, and writes the commits for them.
 * The leader is the first ref by name; its commit must list the moves of all the others (git/git_change.c). */
#include <stdlib.h>

#include "base/secret.h"
#include "store/git/git.h"

/* --- planning the moves ------------------------------------------------------------------------- */

static bool is_task(struct str key)
{
	return str_starts(key, STR("task/"));
}

static bool git_refs_lively(const struct record *r)
{
	return r->ix.lane != LANE_NONE || r->ix.holder.n;
}

static void git_refs_place(struct git_set *w, struct git_step *p, size_t *n_refs)
{
	if (!is_task(p->key))
		p->to_base = true;
	else if (p->head && !p->head->on_base)
		p->to_base = false;
	else
		p->to_base = !git_refs_lively(p->rec) || *n_refs >= w->s->refs_wanted;
	if (!p->to_base && (!p->head || p->head->on_base))
		++*n_refs;
}

static void place_all(struct git_set *w)
{
	size_t n_refs = w->s->view.n_refs;

	n_refs -= w->compact.n < n_refs ? w->compact.n : n_refs;
	for (size_t i = 0; i < w->n; i++) {
		struct git_step *p = &w->steps[i];

		if (!p->rec)
			continue;
		if (p->rec->body.n)
			git_oid_fromraw(&p->tree, (const unsigned char *)p->rec->body.p);
		git_refs_place(w, p, &n_refs);
	}
}

/* Records that only the log names also get a new commit. So do records that were only read, if the transport
 * cannot keep a ref in its place. */
static void add_others(struct git_set *w)
{
	const struct git_view *v = &w->s->view;

	for (const struct git_line *l = w->lines; l; l = l->next)
		if (git_head(v, l->entry.key) && !git_head(v, l->entry.key)->bad)
			git_step_make(w, l->entry.key);
	for (size_t i = 0; i < w->s->reads.n; i++) {
		const struct git_head *h = git_head(v, w->s->reads.v[i]);

		if (git_step_find(w, w->s->reads.v[i]))
			continue;
		if (w->s->transport->guards(w->s))
			continue;
		if (h && !h->on_base)
			git_step_make(w, w->s->reads.v[i]);
		else
			w->base_moves = true;
	}
}

static void add_move(struct git_set *w, struct str name, const git_oid *old, const git_oid *to)
{
	w->moves = arena_grow(&w->a, w->moves, w->n_moves, sizeof(*w->moves));
	w->moves[w->n_moves++] = (struct git_move){ name, *old, *to };
}

static void add_link(struct git_set *w, struct str key, const git_oid *oid)
{
	w->links = arena_grow(&w->a, w->links, w->n_links, sizeof(*w->links));
	w->links[w->n_links++] = (struct git_link){ key, *oid };
	w->base_moves = true;
}

static void add_appended(struct git_set *w, const git_oid *oid)
{
	w->appended_list = arena_grow(&w->a, w->appended_list, w->n_appended,
				      sizeof(*w->appended_list));
	w->appended_list[w->n_appended++] = *oid;
}

static const git_oid none;

static bool has_ref(const struct git_step *p)
{
	return p->head && !p->head->on_base;
}

/* Plans the moves before the commits exist: `to` is filled in later. */
static void git_refs_plan(struct git_set *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct git_step *p = &w->steps[i];
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

static struct git_move *move_find(struct git_set *w, struct str name)
{
	for (size_t i = 0; i < w->n_moves; i++)
		if (str_eq(w->moves[i].name, name))
			return &w->moves[i];
	return NULL;
}

/* --- commits ------------------------------------------------------------------------------------ */

static int write_step(struct git_set *w, struct git_step *p, bool first)
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
		d.leader = w->moves[0].name;
	}
	return git_commit_write(w->s, &d, &p->oid, &w->a);
}

static void git_refs_append(struct git_set *w, const struct git_step *p)
{
	if (p->rec && p->to_base) {
		add_link(w, p->key, &p->oid);
		add_appended(w, &p->oid);
	} else if (p->head && p->head->on_base) {
		add_link(w, p->key, &none);
	}
	if (p->head && !p->head->on_base && (!p->rec || p->to_base))
		add_appended(w, &p->head->oid);
	if (!p->rec && p->head && !git_oid_is_zero(&p->head->link))
		add_link(w, p->key, &none);
}

/* The leader's commit names the other refs' commits, so it is written last. */
static int write_steps(struct git_set *w, bool first)
{
	for (size_t i = 0; i < w->n; i++) {
		struct git_step *p = &w->steps[i];
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

static int write_base(struct git_set *w)
{
	struct git_view *v = &w->s->view;
	git_oid *parents = arena_array(&w->a, git_oid, 1 + w->n_appended + w->n_moves);
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
	for (size_t i = 0; i < w->n_appended; i++)
		parents[d.n_parents++] = w->appended_list[i];
	for (size_t i = 1; i < w->n_moves; i++)
		if (!git_oid_is_zero(&w->moves[i].to))
			parents[d.n_parents++] = w->moves[i].to;
	return git_commit_write(w->s, &d, &w->moves[0].to, &w->a);
}

static void append_compacted(struct git_set *w)
{
	for (size_t i = 0; i < w->compact.n; i++) {
		add_link(w, w->compact.v[i]->key, &w->compact.v[i]->oid);
		add_appended(w, &w->compact.v[i]->oid);
	}
}

static int write_commits(struct git_set *w)
{
	int rc = write_steps(w, false);

	if (rc)
		return rc;
	if (!w->base_moves)
		return write_steps(w, true);
	for (size_t i = 0; i < w->n; i++)
		git_refs_append(w, &w->steps[i]);
	append_compacted(w);
	return write_base(w);
}

/* No other process may move a ref that this change has read but does not move. */
static void add_guards(struct git_set *w)
{
	const struct git_view *v = &w->s->view;
	struct strs reads = w->s->reads;

	for (size_t i = 0; w->s->transport->guards(w->s) && i < reads.n; i++) {
		const struct git_head *h = git_head(v, reads.v[i]);
		struct str name = h && !h->on_base ? git_ref_of(&w->a, reads.v[i]) : GIT_BASE;
		const git_oid *oid = h && !h->on_base ? &h->oid : &v->base;

		if (!move_find(w, name))
			add_move(w, name, oid, oid);
	}
}

/* --- the whole change --------------------------------------------------------------------------- */

static int git_refs_settle(struct git *s)
{
	struct git_view *v = &s->view;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < v->n_pending; i++)
		rc = s->transport->push(s, &v->pending_moves[i], 1);
	return rc < 0 ? rc : 0;
}

/* Prepares the view for a change: 0, or a fault. */
static int refs_ready(struct git *s)
{
	for (int i = 0; i < GIT_TRIES; i++) {
		int rc = git_refresh(s);

		if (rc)
			return rc > 0 ? git_absent(s) : rc;
		if (!s->view.n_pending)
			return 0;
		if (!s->memo.off) { /* the memo alone must not move refs */
			git_memo_doubt(s);
			continue;
		}
		rc = git_refs_settle(s);
		if (rc < 0)
			return rc;
	}
	return store_fail(&s->base.env, STORE_BUSY, "to look for stale locks: pawl doctor",
			  "%s: cannot finish an interrupted change", s->remote);
}

static struct strs busy_keys(struct git_set *w)
{
	struct strs keys = { arena_array(&w->a, struct str, w->n + w->s->reads.n), 0 };

	for (size_t i = 0; i < w->n; i++)
		keys.v[keys.n++] = w->steps[i].key;
	for (size_t i = 0; i < w->s->reads.n; i++)
		keys.v[keys.n++] = w->s->reads.v[i];
	return keys;
}

/* Adds the new commits to the memo, so that the next process need not read them from the objects. */
static void note_commits(struct git_set *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->steps[i].rec)
			git_memo_note(w->s, &w->steps[i].oid);
	git_memo_save(w->s);
}

static int refs_commit(struct git_set *w)
{
	struct strs busy;
	int rc;

	add_others(w);
	busy = busy_keys(w);
	if (!git_memo_sure(w->s, busy))
		return 1;
	git_compact_plan(w->s, busy, &w->compact, &w->a);
	git_set_states(w);
	git_set_lines(w);
	place_all(w);
	git_refs_plan(w);
	if (!w->n_moves || w->s->base.env.trial)
		return 0;
	rc = write_commits(w);
	if (rc)
		return rc;
	add_guards(w);
	rc = w->s->transport->push(w->s, w->moves, w->n_moves);
	if (rc == 0)
		note_commits(w);
	if (rc == 0 && w->base_moves)
		git_compact_finish(w->s, &w->compact, &w->a);
	return rc;
}

/* --- creating and removing a queue -------------------------------------------------------------- */

/* Removes a queue's refs after its base is gone. 1: another process has created the queue again. */
static int drop_rest(struct git *s)
{
	struct arena a = { 0 };
	struct git_refs refs;
	int rc = s->transport->list(s, &refs, &a);

	for (size_t i = 0; rc == 0 && i < refs.n; i++)
		rc = str_eq(refs.v[i].name, GIT_BASE);
	for (size_t i = 0; rc == 0 && i < refs.n; i++) {
		struct git_move m = { refs.v[i].name, refs.v[i].oid, none };

		rc = s->transport->push(s, &m, 1);
	}
	arena_free(&a);
	return rc;
}

static int refs_make(struct git *s)
{
	struct git_set w;
	int rc = drop_rest(s);

	git_view_clear(&s->view);
	git_set_begin(&w, s);
	add_move(&w, GIT_BASE, &none, &none);
	if (rc == 0)
		rc = write_base(&w);
	if (rc == 0)
		rc = s->transport->push(s, w.moves, 1);
	arena_free(&w.a);
	return rc;
}

static int drop_base(struct git *s)
{
	struct git_move m = { GIT_BASE, s->view.base, none };

	return s->transport->push(s, &m, 1);
}

static int refs_drop(struct git *s)
{
	int rc = git_refresh(s);

	if (rc == 0)
		rc = drop_base(s);
	else if (rc > 0)
		rc = 0; /* it is already gone */
	if (rc)
		return rc;
	rc = drop_rest(s);
	/* 1: another process has created a new queue, which belongs to that process */
	return rc > 0 ? 0 : rc;
}

/* --- bodies and the log ------------------------------------------------------------------------- */

/* The view does not hold a body, only the id of the tree that holds it. */
static int refs_body_put(struct git *s, struct record *r, struct arena *a)
{
	git_oid *tree = arena_new(a, git_oid);
	int rc = git_body_write(s, r, tree, a);

	r->body = str_n((const char *)tree->id, GIT_OID_RAWSZ);
	return rc;
}

static int refs_body_get(struct git *s, struct record *r, struct arena *a)
{
	git_oid tree;

	git_oid_fromraw(&tree, (const unsigned char *)r->body.p);
	return git_body_read(s, &tree, &r->body, a);
}

/* A task's commits hold all of its log lines, unless an earlier task had the same id. */
static const struct git_head *git_refs_alone(struct git *s, struct str key)
{
	struct arena a = { 0 };
	struct str id = key;
	bool before = !str_cut_prefix(&id, STR("task/")) ||
		      git_head(&s->view, arena_printf(&a, "gone/%.*s", STRF(id)));

	arena_free(&a);
	return before ? NULL : git_head(&s->view, key);
}

static bool refs_roots(struct git *s, struct str key, git_root_fn *fn, void *ctx)
{
	const struct git_view *v = &s->view;
	const struct git_head *h = git_refs_alone(s, key);

	if (h) {
		fn(ctx, &h->oid);
		return true;
	}
	fn(ctx, &v->base);
	for (size_t i = 0; i < v->n; i++)
		fn(ctx, &v->heads[i]->oid);
	return false;
}

const struct git_layout git_layout_refs = {
	.name = "refs",
	.refresh = git_refs_read,
	.ready = refs_ready,
	.commit = refs_commit,
	.make = refs_make,
	.drop = refs_drop,
	.body_put = refs_body_put,
	.body_get = refs_body_get,
	.roots = refs_roots,
};
