/*
 * A branch only grows. refs/pawl-kept holds the last tip that this clone has seen, or that was written to
 * this path. If the branch no longer contains that tip, somebody has reset or replaced it, and pawl would
 * give fences twice. So pawl refuses every call until a person has decided.
 */
#include <time.h>

#include "store/git/layout/branch.h"

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

/* Before the first tip of a branch is kept, pawl may have removed that branch, forgotten its tip and made another branch. Then
 * the kept tip is not in this one, and every call would be refused. A removal after this check forgets the tip itself. */
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

/* Reads the kept tip before the branch, so the branch is never the older of the two. 1: the branch has
 * lost that tip. */
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

/* Looks again for a while: if pawl itself just removed the branch and made it again, the kept tip soon
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
