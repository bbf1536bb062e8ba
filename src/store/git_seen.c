/* What this clone knows of the remote: refs of its own, which also keep the objects from being collected. */
#include <stdlib.h>
#include <sys/stat.h>

#include "store/git.h"
#include "store/git_raw.h"

static int ref_cmp(const void *a, const void *b)
{
	const struct git_ref *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

void git_refs_sort(struct git_refs *refs)
{
	if (refs->n > 1)
		qsort(refs->v, refs->n, sizeof(*refs->v), ref_cmp);
}

void git_refs_add(struct git_refs *refs, struct str name, const git_oid *oid, struct arena *a)
{
	refs->v = arena_grow(a, refs->v, refs->n, sizeof(*refs->v));
	refs->v[refs->n++] = (struct git_ref){ arena_str(a, name), *oid };
}

const git_oid *git_ref_find(const struct git_refs *refs, struct str name)
{
	const struct git_ref *r = refs->n ? bsearch(&(struct git_ref){ .name = name }, refs->v,
						    refs->n, sizeof(*refs->v), ref_cmp)
					  : NULL;

	return r ? &r->oid : NULL;
}

int git_seen_list(struct git *s, struct git_refs *out, struct arena *a)
{
	git_reference_iterator *it = NULL;
	git_reference *ref;
	int rc = git_reference_iterator_glob_new(&it, s->repo, arena_printf(a, "%s*", s->seen).p);

	*out = (struct git_refs){ 0 };
	while (rc == 0 && (rc = git_reference_next(&ref, it)) == 0) {
		struct str name = str_c(git_reference_name(ref));

		if (git_reference_target(ref) && str_cut_prefix(&name, str_c(s->seen)) &&
		    git_ours(s, name))
			git_refs_add(out, name, git_reference_target(ref), a);
		git_reference_free(ref);
	}
	git_reference_iterator_free(it);
	if (rc != GIT_ITEROVER)
		return git_fail(s, STORE_IO, "what was fetched cannot be read");
	git_refs_sort(out);
	return 0;
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
	futimens(s->gate.fd, NULL); /* as old as this file */
}
