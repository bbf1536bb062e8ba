/*
 * Repairs the clone that the wire transport fetches into, when an object there is lost, truncated or
 * overwritten. The remote still has the object. So pawl moves the damaged object aside and fetches the whole
 * queue again, once.
 */
#include <stdio.h>

#include "store/git/git.h"
#include "store/git/transport/raw.h"

enum read { READ_WELL, READ_DAMAGED, READ_NOT };

static enum read try_object(struct git *s, const git_oid *oid)
{
	git_odb_object *obj = NULL;
	const git_error *e;
	int rc;

	if (!git_object_fits(s->odb, oid))
		return READ_WELL; /* it exists, but is too large to be pawl's */
	rc = git_odb_read(&obj, s->odb, oid);
	e = rc ? git_error_last() : NULL;

	git_odb_object_free(obj);
	if (rc == 0)
		return READ_WELL;
	/* an error of the system (no descriptors left, no permission) does not mean damage */
	return rc == GIT_ENOTFOUND || (e && e->klass == GIT_ERROR_OS) ? READ_NOT : READ_DAMAGED;
}

/* --- finding the damage ------------------------------------------------------------------------- */

static bool main_is_damaged(struct git *s, git_oid *out)
{
	struct arena a = { 0 };
	const char *name = arena_printf(&a, "%s%s", s->seen, git_main_ref(s).p).p;
	bool bad = git_reference_name_to_id(out, s->repo, name) == 0 &&
		   try_object(s, out) != READ_WELL;

	arena_free(&a);
	return bad;
}

/* After a look: do the refs name an object that cannot be read here? */
static bool is_damaged(struct git *s, int rc, git_oid *out)
{
	const struct git_view *v = &s->view;

	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		*out = v->heads[i]->oid;
		if (v->heads[i]->bad && !v->heads[i]->fault.n && !git_oid_is_zero(out) &&
		    try_object(s, out) != READ_WELL)
			return true;
	}
	return rc == STORE_CORRUPT && main_is_damaged(s, out);
}

/* --- repairing it ------------------------------------------------------------------------------- */

/* The new name begins like those of git's temporary files, which `git prune` removes. */
static void put_aside(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	const char *hex = git_hex(&a, oid).p;

	if (try_object(s, oid) == READ_DAMAGED)
		(void)!rename(
			arena_printf(&a, "%s/objects/%.2s/%s", s->local, hex, hex + 2).p,
			arena_printf(&a, "%s/objects/%.2s/tmp_obj_%s", s->local, hex, hex + 2).p);
	arena_free(&a);
}

static int fetch_anew(struct git *s)
{
	struct arena a = { 0 };
	struct git_refs seen;
	struct git_move *gone;
	int rc = git_seen_list(s, &seen, &a);

	if (rc == 0) {
		gone = arena_array(&a, struct git_move, seen.n);
		for (size_t i = 0; i < seen.n; i++)
			gone[i] = (struct git_move){ .name = seen.v[i].name, .old = seen.v[i].oid };
		git_seen_note(s, gone, seen.n);
		rc = s->layout->refresh(s);
	}
	arena_free(&a);
	return rc;
}

static int cannot_read(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	int rc = store_fail(
		&s->base.env, STORE_CORRUPT,
		s->no_fetch
			? "run the command without --cached: pawl then fetches the object again"
			: arena_printf(&a, "git -C %s fsck", store_word(&a, str_c(s->local)).p).p,
		"cannot read the object %s in %s", git_hex(&a, oid).p, s->local);

	arena_free(&a);
	return rc;
}

int git_repair(struct git *s, int rc)
{
	git_oid oid;

	if (s->transport != &git_transport_wire || !is_damaged(s, rc, &oid))
		return rc;
	if (!s->no_fetch) {
		for (size_t i = 0; i < s->view.n; i++)
			if (s->view.heads[i]->bad)
				put_aside(s, &s->view.heads[i]->oid);
		put_aside(s, &oid);
		rc = fetch_anew(s);
	}
	return is_damaged(s, rc, &oid) ? cannot_read(s, &oid) : rc;
}
