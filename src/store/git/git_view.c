/* The view: the known records of the queue in memory, and the calls that read them. The layout fills it
 * in. */
#include <stdlib.h>

#include "base/str.h"
#include "store/git/git.h"

/* --- heads -------------------------------------------------------------------------------------- */

static struct str key_at(const void *list, size_t i)
{
	const struct git_view *v = list;

	return v->heads[i]->key;
}

struct git_head *git_head(const struct git_view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

	return found ? v->heads[i] : NULL;
}

struct git_head *git_head_make(struct git_view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

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
	v->n = v->n_refs = v->n_strange = v->n_pending = v->base_moves.n = 0;
	v->base = v->base_tree = (git_oid){ 0 };
	v->base_stamp = v->stamp = 0;
}

void git_view_free(struct git_view *v)
{
	git_view_clear(v);
	free(v->heads);
	free(v->pending_moves);
	arena_free(&v->arena);
	*v = (struct git_view){ 0 };
}

void git_view_prune(struct git_view *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (v->heads[i]->seen == v->refresh)
			v->heads[kept++] = v->heads[i];
		else
			mem_queue_drop(&v->q, v->heads[i]->key);
	}
	v->n = kept;
}

/* --- the calls of the store interface ----------------------------------------------------------- */

int git_refresh(struct git *s)
{
	if (!git_oid_is_zero(&s->view.base) && !s->view.n_pending && s->transport->same &&
	    s->transport->same(s) && (!s->layout->same || s->layout->same(s)))
		return 0;
	return git_repair(s, s->layout->refresh(s));
}

static int git_view_refresh(struct git *s)
{
	int rc;

	if (s->changing || s->depth)
		return 0;
	rc = git_refresh(s);
	return rc > 0 ? git_absent(s) : rc;
}

static int fill_body(struct git *s, struct record *r, struct arena *a)
{
	return r->body.n && s->layout->body_get ? s->layout->body_get(s, r, a) : 0;
}

int git_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct git *s = git_of(base);
	const struct git_head *h;
	const struct record *r;
	int rc = git_view_refresh(s);

	if (rc < 0)
		return rc;
	if (s->changing)
		s->reads = arena_append(&s->arena, s->reads, arena_str(&s->arena, key));
	h = git_head(&s->view, key);
	r = mem_queue_get(&s->view.q, key, git_now(base));
	if (!r && h && h->bad && h->fault.n)
		return store_fail(&base->env, STORE_CORRUPT, "repair the file on the branch",
				  "%s#%s: %.*s", s->remote, s->only, STRF(h->fault));
	if (!r && h && h->bad)
		return store_fail(&base->env, STORE_CORRUPT, "to see which commit: pawl doctor",
				  "%s: the ref of %.*s does not point to a record of pawl",
				  s->remote, STRF(key));
	if (!r)
		return s->layout->stand_in ? s->layout->stand_in(s, key, out, a) : 1;
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

int git_snapshot(struct store *base, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct git *s = git_of(base);
	int rc = git_view_refresh(s);

	(void)all;
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
	int rc = git_view_refresh(s);

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
	int rc = git_view_refresh(s);

	if (rc == 0)
		*n = mem_queue_count(&s->view.q, q, git_now(base));
	return rc;
}

int git_tally(struct store *base, int64_t *counts)
{
	struct git *s = git_of(base);
	int rc = git_view_refresh(s);

	if (rc == 0)
		memcpy(counts, s->view.q.counts, sizeof(s->view.q.counts));
	return rc;
}
