/* The last known state of the remote, in refs of this clone. These refs also keep git from collecting the
 * objects. */
#include <sys/stat.h>

#include "store/git/folder.h"
#include "store/git/transport/raw.h"

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
