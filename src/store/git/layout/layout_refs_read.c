/*
 * The layout with a ref for each live task: reads the refs. A handle never reads a commit twice. Other
 * processes may be moving refs while this one lists them. It still sees a change of several refs as a whole:
 * the leader's commit says what the other refs become, and their commits name the leader.
 */
#include "store/git/git.h"

#define CHECKS 20 /* attempts to see all of a change's refs */

/* --- reading ------------------------------------------------------------------------------------ */

struct refresh {
	struct git *s;
	struct arena a;
	const struct git_refs *refs;
	bool torn;
};

static void note_pending(struct refresh *l, const struct git_move *moves, size_t n)
{
	struct git_view *v = &l->s->view;

	for (size_t i = 0; i < n; i++) {
		const git_oid *now = git_ref_find(l->refs, moves[i].name);
		bool still = now ? git_oid_equal(now, &moves[i].old)
				 : git_oid_is_zero(&moves[i].old);

		if (!still)
			continue;
		if (v->n_pending == v->pending_room)
			v->pending_moves = mem_grow(v->pending_moves,
						    (v->pending_room = v->pending_room * 2 + 4) *
							    sizeof(*v->pending_moves));
		v->pending_moves[v->n_pending++] = moves[i];
	}
}

static void keep_moves(struct git_view *v, const struct git_state *st, struct git_moves *out)
{
	*out = (struct git_moves){ arena_array(&v->arena, struct git_move, st->n_moves),
				   st->n_moves };
	for (size_t i = 0; i < st->n_moves; i++) {
		out->v[i] = st->moves[i];
		out->v[i].name = arena_str(&v->arena, st->moves[i].name);
	}
}

static bool git_refs_read_fits(const struct git_head *h, const struct git_state *st)
{
	return st->has_rec && str_eq(st->rec.key, h->key);
}

/* An unreadable commit makes only its own record unusable. */
static void head_load(struct refresh *l, struct git_head *h)
{
	struct git_view *v = &l->s->view;
	/* not l->a: a thousand large commits would stay in memory until the read ends */
	struct arena a = { 0 };
	struct git_state st;

	h->recalled = git_memo_recall(l->s, &h->oid, &st, &a);
	if (h->recalled && !git_refs_read_fits(h, &st))
		h->recalled = 0;
	h->bad = !h->recalled &&
		 (git_commit_read(l->s, &h->oid, &st, &a) || !git_refs_read_fits(h, &st));
	h->older = !h->recalled && !h->bad && st.older;
	h->bad |= h->older;
	if (!h->recalled && !h->bad)
		git_memo_put(l->s, &h->oid, &st);
	h->moves.n = 0;
	if (h->bad) {
		mem_queue_drop(&v->q, h->key);
		arena_free(&a);
		return;
	}
	st.rec.body = str_n((const char *)st.tree.id, GIT_OID_RAWSZ);
	st.rec.body_changed = true;
	h->clock = arena_str(&v->arena, st.clock);
	h->lease = h->oid;
	git_clock_show(l->s, h, &st.rec, &a);
	mem_queue_put(&v->q, &st.rec);
	h->stamp = st.stamp;
	h->leader = arena_str(&v->arena, st.leader);
	if (st.stamp > v->stamp)
		v->stamp = st.stamp;
	keep_moves(v, &st, &h->moves);
	arena_free(&a);
}

static void head_set(struct refresh *l, struct git_head *h, const git_oid *oid, bool on_base)
{
	bool same = h->seen && !h->bad && git_oid_equal(&h->oid, oid);

	h->seen = l->s->view.refresh;
	h->on_base = on_base;
	h->oid = *oid;
	if (!same)
		head_load(l, h);
}

static int link_seen(struct git *s, struct str key, const git_oid *oid, void *ctx)
{
	struct git_head *h = git_head_make(&s->view, key);

	(void)ctx;
	h->link = *oid;
	h->linked = s->view.refresh;
	return 0;
}

static int base_load(struct refresh *l, const git_oid *oid)
{
	struct git_view *v = &l->s->view;
	struct git_state st;
	int rc;

	rc = git_commit_read(l->s, oid, &st, &l->a);
	if (rc)
		return store_fail(&l->s->base.env, rc == 1 ? STORE_CORRUPT : STORE_FOREIGN,
				  "use another queue, or repair the ref with git",
				  "%s: %sbase is not a commit that pawl wrote", l->s->remote,
				  l->s->prefix);
	v->base_tree = st.tree;
	v->base_stamp = st.stamp;
	if (st.stamp > v->stamp)
		v->stamp = st.stamp;
	keep_moves(v, &st, &v->base_moves);
	rc = git_base_each(l->s, &st.tree, link_seen, l);
	if (rc == 0)
		v->base = *oid;
	return rc;
}

/* A base that has not moved still names the same commits. */
static void keep_links(struct git_view *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->linked + 1 == v->refresh)
			v->heads[i]->linked = v->refresh;
}

/* A record's own ref takes precedence over its link from the base. */
static void use_links(struct refresh *l)
{
	struct git_view *v = &l->s->view;

	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->linked == v->refresh && v->heads[i]->seen != v->refresh)
			head_set(l, v->heads[i], &v->heads[i]->link, true);
}

/* A record has exactly one ref. If a second spelling of its name counted, a change would wait for the first
 * ref forever. */
static struct git_head *ref_head(struct refresh *l, struct str name)
{
	struct str id;

	if (!str_cut_prefix(&name, STR("t/")))
		return NULL;
	if (!git_unname(&l->a, name, &id) || !str_eq(git_name(&l->a, id), name)) {
		l->s->view.n_strange++;
		return NULL;
	}
	return git_head_make(&l->s->view, arena_printf(&l->a, "task/%.*s", STRF(id)));
}

static void tasks_load(struct refresh *l)
{
	struct git_view *v = &l->s->view;

	v->n_refs = v->n_strange = 0;
	for (size_t i = 0; i < l->refs->n; i++) {
		struct git_head *h = ref_head(l, l->refs->v[i].name);

		if (!h)
			continue;
		v->n_refs++;
		head_set(l, h, &l->refs->v[i].oid, false);
	}
}

static int64_t leader_stamp(const struct refresh *l, struct str leader)
{
	const struct git_view *v = &l->s->view;
	struct arena a = { 0 };
	const struct git_head *h = NULL;
	struct str id;

	if (str_eq(leader, GIT_BASE))
		return v->base_stamp;
	if (str_cut_prefix(&leader, STR("t/")) && git_unname(&a, leader, &id))
		h = git_head(v, arena_printf(&a, "task/%.*s", STRF(id)));
	arena_free(&a);
	/* the leader is gone, so a later change has removed it */
	return h ? h->stamp : INT64_MAX;
}

/* A change moves its leader first. If another of its refs looks newer, the leader was read too early. */
static bool is_torn(struct refresh *l)
{
	const struct git_view *v = &l->s->view;

	for (size_t i = 0; i < v->n; i++) {
		const struct git_head *h = v->heads[i];

		if (h->leader.n && !h->on_base && !h->bad && leader_stamp(l, h->leader) < h->stamp)
			return true;
	}
	return false;
}

/* --- interrupted changes ------------------------------------------------------------------------ */

/* Shows an interrupted change as complete. */
static void show_pending(struct refresh *l)
{
	struct git_view *v = &l->s->view;

	note_pending(l, v->base_moves.v, v->base_moves.n);
	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->seen == v->refresh && !v->heads[i]->on_base)
			note_pending(l, v->heads[i]->moves.v, v->heads[i]->moves.n);
	for (size_t i = 0; i < v->n_pending; i++) {
		struct git_head *h = ref_head(l, v->pending_moves[i].name);

		if (h && git_oid_is_zero(&v->pending_moves[i].to))
			h->seen = v->refresh - 1;
		else if (h)
			head_set(l, h, &v->pending_moves[i].to, false);
	}
}

/* Did pawl 0.1 write every task that can be read? A single handmade commit must not hide the other tasks. */
static bool is_older(const struct git_view *v)
{
	bool older = false;

	for (size_t i = 0; i < v->n; i++) {
		if (!v->heads[i]->bad && str_starts(v->heads[i]->key, STR("task/")))
			return false;
		older |= v->heads[i]->older;
	}
	return older;
}

static int check_once(struct refresh *l)
{
	struct git_view *v = &l->s->view;
	const git_oid *base = git_ref_find(l->refs, GIT_BASE);
	int rc = 0;

	if (!base) {
		git_view_clear(v);
		return 1;
	}
	v->refresh++;
	v->n_pending = 0;
	tasks_load(l);
	if (git_oid_equal(base, &v->base))
		keep_links(v);
	else
		rc = base_load(l, base);
	if (rc) {
		git_view_clear(v);
		return rc;
	}
	show_pending(l);
	use_links(l);
	git_view_prune(v);
	if (!is_older(v))
		return 0;
	git_view_clear(v);
	return store_fail_older(&l->s->base.env, l->s->remote);
}

int git_refs_read(struct git *s)
{
	int rc = 0;

	for (int i = 0; i < CHECKS; i++) {
		struct refresh l = { .s = s };
		struct git_refs refs;

		rc = s->transport->list(s, &refs, &l.a);
		git_memo_check(s);
		l.refs = &refs;
		if (rc == 0)
			rc = check_once(&l);
		l.torn = rc == 0 && is_torn(&l);
		arena_free(&l.a);
		if (!l.torn)
			break;
	}
	if (rc == 0)
		git_memo_save(s);
	return rc;
}
