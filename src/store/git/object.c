/*
 * Guards against large foreign objects. An object that is small on disk or on the wire can take gigabytes in
 * memory, so pawl asks for its size first. pawl neither writes nor reads objects larger than GIT_OBJECT_MAX.
 */
#include "store/git/git.h"

#if __has_include(<git2/sys/errors.h>) /* libgit2 1.9 declares git_error_set_str there */
#include <git2/sys/errors.h>
#endif

bool git_object_fits(git_odb *odb, const git_oid *oid)
{
	git_object_t type;
	size_t n;

	/* true if there is no header: the read that follows reports the error */
	return git_odb_read_header(&n, &type, odb, oid) || n <= GIT_OBJECT_MAX;
}

static int too_large(void)
{
	git_error_set_str(GIT_ERROR_ODB, "pawl did not write this object: it is too large");
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
