/* The view: the queue's known records in memory, and the calls that read them. The layout fills it in. Within
 * a change or a scan no call refreshes it, so all their reads see one state. */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "store/git/git.h"
#include "store/git/layout/layout.h"
#include "store/git/transport/transport.h"

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

/* --- the store interface's calls ---------------------------------------------------------------- */

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

/* --- known state of the remote ---------------------------------------------------------------- */

/* The remote's last known state, in refs of this clone. These refs also keep git from collecting the objects.
 * note_one() compares before it moves a ref, so an older read never overwrites a newer one. */

int git_seen_list(struct git *s, struct git_refs *out, struct arena *a)
{
	int rc = git_refs_list(s, s->seen, out, a);

	return rc ? git_fail_errno(s, -rc,
				   arena_printf(a, "cannot read its copy in %s", s->local).p)
		  : 0;
}

struct str git_main_ref(const struct git *s)
{
	return s->only ? str_c(s->only) : GIT_BASE;
}

bool git_seen_before(struct git *s)
{
	struct arena a = { 0 };
	git_oid oid;
	const char *name = arena_printf(&a, "%s%s", s->seen, git_main_ref(s).p).p;
	bool seen = git_reference_name_to_id(&oid, s->repo, name) == 0;

	arena_free(&a);
	return seen;
}

static void note_one(struct git *s, const char *name, const struct git_move *m)
{
	git_reference *ref = NULL;

	if (git_oid_is_zero(&m->to)) {
		if (git_reference_lookup(&ref, s->repo, name) == 0 &&
		    git_oid_equal(git_reference_target(ref), &m->old))
			git_reference_delete(ref);
	} else if (git_oid_is_zero(&m->old)) {
		git_reference_create(&ref, s->repo, name, &m->to, 0, NULL);
	} else {
		git_reference_create_matching(&ref, s->repo, name, &m->to, 1, &m->old, NULL);
	}
	git_reference_free(ref);
}

void git_seen_note(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < n; i++)
		if (!git_oid_equal(&moves[i].old, &moves[i].to))
			note_one(s, arena_printf(&a, "%s%.*s", s->seen, STRF(moves[i].name)).p,
				 &moves[i]);
	arena_free(&a);
}

void git_seen_now(struct git *s)
{
	futimens(s->gate.fd, NULL); /* the file's time is the time of the last fetch */
}

/* --- kept branch ------------------------------------------------------------------------------ */

/*
 * A branch only grows. refs/pawl-kept holds the last tip that this clone has seen, or that was written to
 * this path. If the branch no longer contains that tip, somebody has reset or replaced it, and pawl would
 * issue the same fences twice. So pawl refuses every call until a person has decided.
 */

#define TRIES 10
#define WAIT_NS 20000000

static const char *kept_name(struct git *s, struct arena *a)
{
	struct str below = str_c(s->seen ? s->seen : s->prefix);

	if (!str_cut_prefix(&below, STR("refs/pawl-seen/")))
		(void)str_cut_prefix(&below, STR("refs/"));
	return arena_printf(a, "refs/pawl-kept/%.*s%s", STRF(below), s->only).p;
}

static git_oid git_kept_run(struct git *s, struct arena *a)
{
	static const git_oid none;
	git_oid oid;

	return git_reference_name_to_id(&oid, s->repo, kept_name(s, a)) ? none : oid;
}

static void git_kept_forget(struct git *s, struct arena *a)
{
	git_reference_remove(s->repo, kept_name(s, a));
}

static int list_tip(struct git *s, git_oid *out, struct arena *a)
{
	struct git_refs refs;
	int rc = s->transport->list(s, &refs, a);

	*out = (git_oid){ 0 };
	for (size_t i = 0; rc == 0 && i < refs.n; i++)
		*out = refs.v[i].oid;
	return rc;
}

/* After this process has read the first tip of a branch, and before it keeps the tip, another pawl may remove
 * the branch, forget its tip and make a new branch. The new branch does not contain the kept tip, so every
 * call would be refused. A removal after this check forgets the tip itself. */
static void forget_if_removed(struct git *s, git_reference *ref, const git_oid *tip,
			      struct arena *a)
{
	git_oid now;

	if (list_tip(s, &now, a) || git_oid_equal(&now, tip))
		return;
	if (git_oid_is_zero(&now) || git_graph_descendant_of(s->repo, &now, tip) == 0)
		git_reference_delete(ref); /* fails if another process has changed it */
}

/* Does nothing if another process has changed the kept tip since `had` was read. */
static void git_kept_keep(struct git *s, const git_oid *had, const git_oid *tip, struct arena *a)
{
	git_reference *ref = NULL;
	const char *name = kept_name(s, a);

	if (!git_oid_is_zero(had))
		git_reference_create_matching(&ref, s->repo, name, tip, 1, had, NULL);
	else if (git_reference_create(&ref, s->repo, name, tip, 0, NULL) == 0)
		forget_if_removed(s, ref, tip, a);
	git_reference_free(ref);
}

static int set_back(struct git *s, const git_oid *had, struct arena *a)
{
	struct str hex = git_hex(a, had), dir = str_c(s->dir ? s->dir : s->local);
	const char *place = store_word(a, dir).p;

	return store_fail(
		&s->base.env, STORE_CORRUPT,
		arena_printf(a,
			     "to restore it: git -C %s push --force %s %.*s:%s%s; to continue "
			     "with the branch as it is: git -C %s update-ref -d %s",
			     place, s->dir ? "." : store_word(a, str_c(s->remote)).p, STRF(hex),
			     s->prefix, s->only, place, kept_name(s, a))
			.p,
		"%s: somebody has reset or replaced the branch %s: it no longer contains %.12s",
		s->remote, s->only, hex.p);
}

/* Reads the kept tip before the branch, so the branch is never the older of the two. 1: the branch no longer
 * contains that tip. */
static int check_once(struct git *s, git_oid *had, git_oid *out, struct arena *a)
{
	int rc;

	*had = git_kept_run(s, a);
	rc = list_tip(s, out, a);
	if (rc || git_oid_is_zero(out) || git_oid_equal(out, had) || s->no_fetch)
		return rc;
	if (!git_oid_is_zero(had) && git_graph_descendant_of(s->repo, out, had) == 0)
		return 1;
	if (s->base.env.mode != STORE_READ || s->seen)
		git_kept_keep(s, had, out, a);
	return 0;
}

/* Retries for a while. If pawl itself has just removed the branch and made it again, the kept tip soon
 * follows. */
int git_branch_tip(struct git *s, git_oid *out)
{
	struct arena a = { 0 };
	git_oid had;
	int rc = check_once(s, &had, out, &a);

	for (int i = 0; rc > 0 && i < TRIES; i++) {
		nanosleep(&(struct timespec){ 0, WAIT_NS }, NULL);
		rc = check_once(s, &had, out, &a);
	}
	if (rc > 0)
		rc = set_back(s, &had, &a);
	arena_free(&a);
	return rc;
}

int git_branch_push(struct git *s, const struct git_move *m)
{
	struct arena a = { 0 };
	git_oid had;
	int rc;

	if (s->base.env.trial)
		return 0;
	if (git_oid_is_zero(&m->old) || git_oid_is_zero(&m->to))
		git_kept_forget(s, &a);
	had = git_kept_run(s, &a);
	rc = s->transport->push(s, m, 1);
	if (rc == 0 && git_oid_is_zero(&m->to))
		git_kept_forget(s, &a);
	else if (rc == 0)
		git_kept_keep(s, &had, &m->to, &a);
	arena_free(&a);
	return rc;
}
