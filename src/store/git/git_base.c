/*
 * The base: a tree that names the commit of each record that has no ref of its own, as git names submodules.
 * The commit of the base has those commits among its parents, so a fetch of the base brings them, too. The
 * tree has 256 folders, so a change rewrites only a small part of it.
 */
#include <stdio.h>

#include "store/git/git.h"

static void folder_of(struct str key, char out[3])
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 16777619u;
	snprintf(out, 3, "%02x", (h ^ h >> 8 ^ h >> 16) & 255);
}

/* --- reading ------------------------------------------------------------------------------------ */

struct each {
	struct git *s;
	int (*fn)(struct git *, struct str, const git_oid *, void *);
	void *ctx;
};

static int each_folder(struct each *e, const git_oid *oid)
{
	struct arena a = { 0 };
	git_tree *t = NULL;
	int rc = 0;

	if (git_tree_open(e->s, &t, oid))
		return git_fail(e->s, STORE_CORRUPT, "cannot read a folder of the base");
	for (size_t i = 0; rc == 0 && i < git_tree_entrycount(t); i++) {
		const git_tree_entry *it = git_tree_entry_byindex(t, i);
		struct str key;

		if (git_tree_entry_filemode(it) == GIT_FILEMODE_COMMIT &&
		    git_unname(&a, str_c(git_tree_entry_name(it)), &key))
			rc = e->fn(e->s, key, git_tree_entry_id(it), e->ctx);
	}
	git_tree_free(t);
	arena_free(&a);
	return rc;
}

int git_base_each(struct git *s, const git_oid *tree,
		  int (*fn)(struct git *s, struct str key, const git_oid *oid, void *ctx),
		  void *ctx)
{
	struct each e = { s, fn, ctx };
	git_tree *t = NULL;
	int rc = 0;

	if (git_tree_open(s, &t, tree))
		return git_fail(s, STORE_CORRUPT, "cannot read the base");
	for (size_t i = 0; rc == 0 && i < git_tree_entrycount(t); i++) {
		const git_tree_entry *it = git_tree_entry_byindex(t, i);

		if (git_tree_entry_type(it) == GIT_OBJECT_TREE)
			rc = each_folder(&e, git_tree_entry_id(it));
	}
	git_tree_free(t);
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------ */

static int folder_links(git_treebuilder *t, const char *folder, const struct git_link *links,
			size_t n)
{
	struct arena a = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *name = git_name(&a, links[i].key).p;
		char own[3];

		folder_of(links[i].key, own);
		if (strcmp(own, folder))
			continue;
		if (!git_oid_is_zero(&links[i].oid))
			rc = git_treebuilder_insert(NULL, t, name, &links[i].oid,
						    GIT_FILEMODE_COMMIT);
		else if (git_treebuilder_get(t, name))
			rc = git_treebuilder_remove(t, name);
	}
	arena_free(&a);
	return rc;
}

static int folder_change(struct git *s, git_treebuilder *top, const char *folder,
			 const struct git_link *links, size_t n)
{
	const git_tree_entry *e = git_treebuilder_get(top, folder);
	git_treebuilder *t = NULL;
	git_tree *old = NULL;
	git_oid oid;
	int rc = e ? git_tree_open(s, &old, git_tree_entry_id(e)) : 0;

	if (rc == 0)
		rc = git_treebuilder_new(&t, s->repo, old);
	if (rc == 0)
		rc = folder_links(t, folder, links, n);
	if (rc == 0 && git_treebuilder_entrycount(t) == 0) {
		rc = e ? git_treebuilder_remove(top, folder) : 0;
	} else if (rc == 0) {
		rc = git_tree_put(s, t, &oid);
		if (rc == 0)
			rc = git_treebuilder_insert(NULL, top, folder, &oid, GIT_FILEMODE_TREE);
	}
	git_treebuilder_free(t);
	git_tree_free(old);
	return rc;
}

static bool first_in_folder(const struct git_link *links, size_t i, const char *folder)
{
	while (i-- > 0) {
		char other[3];

		folder_of(links[i].key, other);
		if (!strcmp(other, folder))
			return false;
	}
	return true;
}

int git_base_change(struct git *s, const git_oid *from, const struct git_link *links, size_t n,
		    git_oid *out)
{
	git_treebuilder *top = NULL;
	git_tree *old = NULL;
	int rc = git_oid_is_zero(from) ? 0 : git_tree_open(s, &old, from);

	if (rc == 0)
		rc = git_treebuilder_new(&top, s->repo, old);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		char folder[3];

		folder_of(links[i].key, folder);
		if (first_in_folder(links, i, folder))
			rc = folder_change(s, top, folder, links, n);
	}
	if (rc == 0)
		rc = git_tree_put(s, top, out);
	git_treebuilder_free(top);
	git_tree_free(old);
	return rc ? git_fail(s, STORE_IO, "cannot write the base") : 0;
}
