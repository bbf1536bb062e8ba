/*
 * What the refs say, as records in memory. A commit that was read once is never read again by the same
 * handle. Refs are listed one after the other while others move them: a change of several refs is seen whole
 * all the same, since its first ref says what the others become, and the others say which was the first.
 */
#include <stdlib.h>

#include "store/git.h"

#define LOOKS 20 /* until all refs of a change are seen */

/* --- heads -------------------------------------------------------------------------------------- */

static size_t head_place(const struct git_view *v, struct str key, bool *found)
{
	size_t lo = 0, hi = v->n;

	*found = false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = str_cmp(key, v->heads[mid]->key);

		if (c == 0) {
			*found = true;
			return mid;
		}
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

struct git_head *git_head(const struct git_view *v, struct str key)
{
	bool found;
	size_t i = head_place(v, key, &found);

	return found ? v->heads[i] : NULL;
}

static struct git_head *head_make(struct git_view *v, struct str key)
{
	bool found;
	size_t i = head_place(v, key, &found);

	if (found)
		return v->heads[i];
	if (v->n == v->room)
		v->heads = mem_grow(v->heads, (v->room = v->room * 2 + 16) * sizeof(*v->heads));
	memmove(v->heads + i + 1, v->heads + i, (v->n++ - i) * sizeof(*v->heads));
	v->heads[i] = arena_new(&v->arena, struct git_head);
	v->heads[i]->key = arena_str(&v->arena, key);
	return v->heads[i];
}

void git_view_clear(struct git_view *v)
{
	mem_queue_empty(&v->q);
	v->n = v->n_refs = v->n_owed = v->base_moves.n = 0;
	v->base = v->base_tree = (git_oid){ 0 };
	v->base_stamp = v->stamp = 0;
}

void git_view_free(struct git_view *v)
{
	git_view_clear(v);
	free(v->heads);
	free(v->owed);
	arena_free(&v->arena);
	*v = (struct git_view){ 0 };
}

/* --- reading ------------------------------------------------------------------------------------ */

struct look {
	struct git *s;
	struct arena a;
	const struct git_refs *refs;
	bool torn;
};

static const git_oid *ref_oid(const struct git_refs *refs, struct str name)
{
	size_t lo = 0, hi = refs->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = str_cmp(name, refs->v[mid].name);

		if (c == 0)
			return &refs->v[mid].oid;
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static void note_owed(struct look *l, const struct git_move *moves, size_t n)
{
	struct git_view *v = &l->s->view;

	for (size_t i = 0; i < n; i++) {
		const git_oid *now = ref_oid(l->refs, moves[i].name);
		bool still = now ? git_oid_equal(now, &moves[i].old)
				 : git_oid_is_zero(&moves[i].old);

		if (!still)
			continue;
		if (v->n_owed == v->owed_room)
			v->owed = mem_grow(v->owed, (v->owed_room = v->owed_room * 2 + 4) *
							    sizeof(*v->owed));
		v->owed[v->n_owed++] = moves[i];
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

/* A commit that cannot be read stands for a record that cannot be used; others are not affected. */
static void head_load(struct look *l, struct git_head *h)
{
	struct git_view *v = &l->s->view;
	struct git_state st;
	int rc = git_commit_read(l->s, &h->oid, &st, &l->a);

	h->bad = rc || !st.has_rec || !str_eq(st.rec.key, h->key);
	h->moves.n = 0;
	if (h->bad) {
		mem_queue_drop(&v->q, h->key);
		return;
	}
	st.rec.body = str_n((const char *)st.tree.id, GIT_OID_RAWSZ);
	st.rec.body_changed = true;
	h->clock = arena_str(&v->arena, st.clock);
	git_time_show(l->s, h, &st.rec, &l->a);
	mem_queue_put(&v->q, &st.rec);
	h->stamp = st.stamp;
	h->lead = arena_str(&v->arena, st.lead);
	if (st.stamp > v->stamp)
		v->stamp = st.stamp;
	keep_moves(v, &st, &h->moves);
}

static void head_set(struct look *l, struct git_head *h, const git_oid *oid, bool on_base)
{
	bool same = h->seen && !h->bad && git_oid_equal(&h->oid, oid);

	h->seen = l->s->view.look;
	h->on_base = on_base;
	h->oid = *oid;
	if (!same)
		head_load(l, h);
}

static int link_seen(struct git *s, struct str key, const git_oid *oid, void *ctx)
{
	struct git_head *h = head_make(&s->view, key);

	(void)ctx;
	h->link = *oid;
	h->linked = s->view.look;
	return 0;
}

static int base_load(struct look *l, const git_oid *oid)
{
	struct git_view *v = &l->s->view;
	struct git_state st;
	int rc;

	rc = git_commit_read(l->s, oid, &st, &l->a);
	if (rc)
		return store_fail(&l->s->base.env, rc == 1 ? STORE_CORRUPT : STORE_FOREIGN,
				  "name another queue, or mend the ref with git",
				  "%s: %sbase is no commit of pawl", l->s->remote, l->s->prefix);
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

/* A base that has not moved names what it named. */
static void keep_links(struct git_view *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->linked + 1 == v->look)
			v->heads[i]->linked = v->look;
}

/* A ref of its own counts more. */
static void use_links(struct look *l)
{
	struct git_view *v = &l->s->view;

	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->linked == v->look && v->heads[i]->seen != v->look)
			head_set(l, v->heads[i], &v->heads[i]->link, true);
}

static struct git_head *ref_head(struct look *l, struct str name)
{
	struct str id;

	if (!str_cut_prefix(&name, STR("t/")) || !git_unname(&l->a, name, &id))
		return NULL;
	return head_make(&l->s->view, arena_printf(&l->a, "task/%.*s", STRF(id)));
}

static void tasks_load(struct look *l)
{
	struct git_view *v = &l->s->view;

	v->n_refs = 0;
	for (size_t i = 0; i < l->refs->n; i++) {
		struct git_head *h = ref_head(l, l->refs->v[i].name);

		if (!h)
			continue;
		v->n_refs++;
		head_set(l, h, &l->refs->v[i].oid, false);
	}
}

static void drop_unseen(struct git_view *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (v->heads[i]->seen == v->look)
			v->heads[kept++] = v->heads[i];
		else
			mem_queue_drop(&v->q, v->heads[i]->key);
	}
	v->n = kept;
}

static int64_t lead_stamp(const struct look *l, struct str lead)
{
	const struct git_view *v = &l->s->view;
	struct arena a = { 0 };
	const struct git_head *h = NULL;
	struct str id;

	if (str_eq(lead, GIT_BASE))
		return v->base_stamp;
	if (str_cut_prefix(&lead, STR("t/")) && git_unname(&a, lead, &id))
		h = git_head(v, arena_printf(&a, "task/%.*s", STRF(id)));
	arena_free(&a);
	return h ? h->stamp : INT64_MAX; /* it is gone: later than that */
}

/* The first ref of a change moves first: if another of its refs seems newer, it was read too early. */
static bool is_torn(struct look *l)
{
	const struct git_view *v = &l->s->view;

	for (size_t i = 0; i < v->n; i++) {
		const struct git_head *h = v->heads[i];

		if (h->lead.n && !h->on_base && !h->bad && lead_stamp(l, h->lead) < h->stamp)
			return true;
	}
	return false;
}

/* --- what is owed ------------------------------------------------------------------------------- */

/* For a reader the change has happened. */
static void show_owed(struct look *l)
{
	struct git_view *v = &l->s->view;

	note_owed(l, v->base_moves.v, v->base_moves.n);
	for (size_t i = 0; i < v->n; i++)
		if (v->heads[i]->seen == v->look && !v->heads[i]->on_base)
			note_owed(l, v->heads[i]->moves.v, v->heads[i]->moves.n);
	for (size_t i = 0; i < v->n_owed; i++) {
		struct git_head *h = ref_head(l, v->owed[i].name);

		if (h && git_oid_is_zero(&v->owed[i].to))
			h->seen = v->look - 1;
		else if (h)
			head_set(l, h, &v->owed[i].to, false);
	}
}

static int look_once(struct look *l)
{
	struct git_view *v = &l->s->view;
	const git_oid *base = ref_oid(l->refs, GIT_BASE);
	int rc = 0;

	if (!base) {
		git_view_clear(v);
		return 1;
	}
	v->look++;
	v->n_owed = 0;
	tasks_load(l);
	if (git_oid_equal(base, &v->base))
		keep_links(v);
	else
		rc = base_load(l, base);
	if (rc) {
		git_view_clear(v);
		return rc;
	}
	show_owed(l);
	use_links(l);
	drop_unseen(v);
	return 0;
}

int git_look(struct git *s)
{
	int rc = 0;

	if (!git_oid_is_zero(&s->view.base) && !s->view.n_owed && s->lane->same && s->lane->same(s))
		return 0;

	for (int i = 0; i < LOOKS; i++) {
		struct look l = { .s = s };
		struct git_refs refs;

		rc = s->lane->list(s, &refs, &l.a);
		l.refs = &refs;
		if (rc == 0)
			rc = look_once(&l);
		l.torn = rc == 0 && is_torn(&l);
		arena_free(&l.a);
		if (!l.torn)
			break;
	}
	return rc;
}

/* --- the store's calls -------------------------------------------------------------------------- */

static int refresh(struct git *s)
{
	int rc;

	if (s->changing || s->depth)
		return 0;
	rc = git_look(s);
	return rc > 0 ? git_absent(s) : rc;
}

/* In the view a body is only named. */
static int fill_body(struct git *s, struct record *r, struct arena *a)
{
	git_oid tree;

	if (!r->body.n)
		return 0;
	git_oid_fromraw(&tree, (const unsigned char *)r->body.p);
	return git_body_read(s, &tree, &r->body, a);
}

int git_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct git *s = git_of(base);
	const struct git_head *h;
	const struct record *r;
	int rc = refresh(s);

	if (rc < 0)
		return rc;
	if (s->changing)
		s->reads = arena_append(&s->arena, s->reads, arena_str(&s->arena, key));
	h = git_head(&s->view, key);
	r = mem_queue_get(&s->view.q, key, git_now(base));
	if (!r && h && h->bad)
		return store_fail(&base->env, STORE_CORRUPT, "pawl doctor",
				  "%s: what %.*s points to is no record of pawl", s->remote,
				  STRF(key));
	if (!r)
		return 1;
	*out = *record_copy(a, r);
	return fill_body(s, out, a);
}

struct with_body {
	struct git *s;
	record_fn *fn;
	void *ctx;
};

static int send_with_body(const struct record *r, void *ctx)
{
	struct with_body *w = ctx;
	struct record full = *r;
	struct arena a = { 0 };
	int rc = fill_body(w->s, &full, &a);

	if (rc == 0)
		rc = w->fn(&full, w->ctx);
	arena_free(&a);
	return rc;
}

int git_snapshot(struct store *base, int (*fn)(void *ctx), void *ctx)
{
	struct git *s = git_of(base);
	int rc = refresh(s);

	if (rc < 0)
		return rc;
	s->depth++;
	rc = fn(ctx);
	s->depth--;
	return rc;
}

int git_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx)
{
	struct git *s = git_of(base);
	struct with_body w = { s, fn, ctx };
	int rc = refresh(s);

	if (rc < 0)
		return rc;
	s->depth++;
	rc = mem_queue_scan(&s->view.q, q, git_now(base), q->body ? send_with_body : fn,
			    q->body ? &w : ctx);
	s->depth--;
	return rc;
}

int git_count(struct store *base, const struct query *q, int64_t *n)
{
	struct git *s = git_of(base);
	int rc = refresh(s);

	if (rc == 0)
		*n = mem_queue_count(&s->view.q, q, git_now(base));
	return rc;
}

int git_tally(struct store *base, int64_t *counts)
{
	struct git *s = git_of(base);
	int rc = refresh(s);

	if (rc == 0)
		memcpy(counts, s->view.q.counts, sizeof(s->view.q.counts));
	return rc;
}
