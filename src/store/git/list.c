/*
 * Lists the refs of a queue from their files. That takes a fifth of the system calls that libgit2 makes for
 * it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/git/folder.h"

/* --- lists -------------------------------------------------------------------------------------- */

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

/* --- files -------------------------------------------------------------------------------------- */

struct listing {
	struct git *s;
	const char *prefix;
	struct git_refs *out;
	struct arena *a;
};

static bool oid_parse(struct str text, git_oid *out)
{
	return text.n >= GIT_OID_HEXSZ && git_oid_fromstrn(out, text.p, GIT_OID_HEXSZ) == 0;
}

/* A ref that git is packing right now may be missing here; packed-refs, which is read later, has it. */
static int list_loose(struct listing *l, int dir, const char *file, struct str name)
{
	char text[128];
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int rc = n < 0 && errno != ENOENT && errno != EISDIR ? -errno : 0;
	git_oid oid;

	if (fd >= 0)
		close(fd);
	if (n > 0 && oid_parse(str_n(text, (size_t)n), &oid))
		git_refs_add(l->out, name, &oid, l->a);
	return rc;
}

/* Lists the folder `below` of the prefix, "" or "t/". */
static int list_folder(struct listing *l, const char *below)
{
	const char *path = arena_printf(l->a, "%s%s", l->prefix + strlen("refs/"), below).p;
	int fd = git_folder(l->s->refs, path, false);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int rc = fd >= 0 || fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	struct dirent *e;

	while (rc == 0 && d && (e = readdir(d))) {
		struct str name = arena_printf(l->a, "%s%s", below, e->d_name);

		if (e->d_name[0] != '.' && !str_ends(name, STR(".lock")) && git_ours(l->s, name))
			rc = list_loose(l, dirfd(d), e->d_name, name);
	}
	if (d)
		closedir(d);
	return rc;
}

/* Some tools make packed-refs a link to the file of another clone of the user. pawl only reads it. */
static int read_packed(struct listing *l, struct str *out)
{
	const char *dir = l->s->dir ? l->s->dir : l->s->local;
	const char *file = fs_join(l->a, str_c(dir), STR(GIT_PACKED));
	char *path = l->s->foreign ? NULL : realpath(file, NULL);
	int rc = path || l->s->foreign ? fs_read(l->a, path ? path : file, GIT_PACKED_MAX, out)
				       : -errno;

	free(path);
	return rc;
}

/* Each line is "OID refs/…". A loose ref takes precedence over a packed one. */
static int list_packed(struct listing *l)
{
	struct git_refs loose = *l->out;
	struct str text, prefix = str_c(l->prefix);
	int rc = read_packed(l, &text);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (text.n) {
		struct str line = str_cut(&text, '\n'), hex = str_cut(&line, ' ');
		git_oid oid;

		if (str_cut_prefix(&line, prefix) && git_ours(l->s, line) && oid_parse(hex, &oid) &&
		    !git_ref_find(&loose, line))
			git_refs_add(l->out, line, &oid, l->a);
	}
	return 0;
}

int git_refs_list(struct git *s, const char *prefix, struct git_refs *out, struct arena *a)
{
	struct listing l = { s, prefix, out, a };
	int rc;

	*out = (struct git_refs){ 0 };
	rc = list_folder(&l, "");
	if (rc == 0)
		rc = list_folder(&l, "t/");
	git_refs_sort(out);
	if (rc == 0)
		rc = list_packed(&l);
	git_refs_sort(out);
	return rc;
}
