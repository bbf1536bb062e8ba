/*
 * Objects that others made. A small one on disk or on the wire can be one of gigabytes in memory, so its size is
 * asked for first: pawl writes none that are larger than GIT_OBJECT_MAX, and reads none.
 */
#include "store/git/git.h"

bool git_object_fits(git_odb *odb, const git_oid *oid)
{
	git_object_t type;
	size_t n;

	/* one that cannot be read is for the reader to report */
	return git_odb_read_header(&n, &type, odb, oid) || n <= GIT_OBJECT_MAX;
}

static int too_large(void)
{
	git_error_set_str(GIT_ERROR_ODB, "the object is too large to be pawl's");
	return GIT_EINVALID;
}

int git_tree_open(struct git *s, git_tree **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_tree_lookup(out, s->repo, oid) : too_large();
}

int git_blob_open(struct git *s, git_blob **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_blob_lookup(out, s->repo, oid) : too_large();
}

int git_commit_open(struct git *s, git_commit **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_commit_lookup(out, s->repo, oid) : too_large();
}
