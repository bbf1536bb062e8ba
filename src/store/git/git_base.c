/*
 * The base: a tree that names the commit of each record without its own ref, as git names submodules. The
 * base's commit has those commits among its parents, so a fetch of the base brings them, too, and git never
 * collects them. The tree has 256 folders, so a change rewrites only a small part of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/git/git.h"
#include "store/git/transport/transport.h"

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

/* --- list ------------------------------------------------------------------------------------- */

/*
 * Lists a queue's refs from their files, with a fifth of libgit2's system calls. It reads the loose refs before packed-refs. So
 * it does not miss a ref that git is packing at that moment.
 */

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

/* A ref that git is packing right now may be missing here. packed-refs, which is read later, contains it. */
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

/* Lists one folder of the prefix; `below` is "" or "t/". */
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

/* Some tools make packed-refs a link to the file in another of the user's clones. pawl only reads it. */
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

/* --- queues ----------------------------------------------------------------------------------- */

/* Lists the repository's queues. Each queue has a base, PREFIX/NAME/base, so one list of refs finds them all. */

struct naming {
	struct git *s;
	struct str before; /* "refs/pawl/" */
	name_fn *fn;
	void *ctx;
};

/* Reports NAME for a ref of the form BEFORE/NAME/base. */
static void see_ref(const struct naming *n, struct str ref)
{
	struct arena a = { 0 };
	struct str name;

	if (str_cut_prefix(&ref, n->before) && str_ends(ref, STR("/base"))) {
		ref.n -= strlen("/base");
		if (!memchr(ref.p, '/', ref.n) && git_unname(&a, ref, &name))
			n->fn(n->ctx, name);
	}
	arena_free(&a);
}

static int names_here(const struct naming *n, struct arena *a)
{
	git_reference_iterator *it = NULL;
	const char *name;
	int rc = git_reference_iterator_glob_new(&it, n->s->repo,
						 arena_printf(a, "%.*s*/base", STRF(n->before)).p);

	while (rc == 0 && (rc = git_reference_next_name(&name, it)) == 0)
		see_ref(n, str_c(name));
	git_reference_iterator_free(it);
	return rc == GIT_ITEROVER ? 0 : git_fail(n->s, STORE_IO, "cannot read its refs");
}

/* Each line is "OID<tab>REF". */
static int names_there(const struct naming *n)
{
	struct git_args g;
	struct str text = { 0 };
	int rc;

	git_args_begin(&g, n->s->local, "ls-remote");
	git_arg(&g, STR("--refs"));
	git_arg(&g, STR("--end-of-options"));
	git_arg(&g, str_c(n->s->url));
	git_arg(&g, arena_printf(&g.a, "%.*s*/base", STRF(n->before)));
	rc = git_run(&g, n->s->base.env.opt.timeout_ms, &text);
	while (rc == 0 && text.n) {
		struct str line = str_cut(&text, '\n');

		(void)str_cut(&line, '\t');
		see_ref(n, line);
	}
	git_args_free(&g);
	return rc ? store_fail(&n->s->base.env, STORE_UNREACHABLE,
			       "to see git's own message: git ls-remote REMOTE", "cannot reach %s",
			       n->s->remote)
		  : 0;
}

int git_queues(struct store *base, name_fn *fn, void *ctx)
{
	struct git *s = git_of(base);
	struct arena a = { 0 };
	struct naming n = { s, str_c(s->prefix), fn, ctx };
	int rc;

	n.before.n--;
	while (n.before.n && n.before.p[n.before.n - 1] != '/')
		n.before.n--;
	rc = s->transport == &git_transport_path ? names_here(&n, &a) : names_there(&n);
	arena_free(&a);
	return rc;
}

/* --- compact ---------------------------------------------------------------------------------- */

/*
 * Compaction. Each call reads and sends the list of refs, so the store keeps it short. A change that moves the
 * base anyway also appends idle tasks to it, and removes their refs afterwards.
 * Until then the ref counts. pawl removes a ref only if it still names the appended commit, so a task that
 * another process has changed since keeps its ref.
 */

#define COMPACT_MAX 64 /* tasks in one change */

static bool git_compact_idle(struct git *s, const struct git_head *h)
{
	const struct record *r = mem_queue_get(&s->view.q, h->key, s->now);

	return r && r->ix.lane == LANE_NONE && !r->ix.holder.n;
}

/* Has a process appended this task to the base without removing its ref? */
static bool is_appended(const struct git_view *v, const struct git_head *h)
{
	return h->linked == v->refresh && git_oid_equal(&h->link, &h->oid);
}

static bool git_compact_taken(struct strs keys, struct str key)
{
	return strs_have(keys, key);
}

void git_compact_plan(struct git *s, struct strs busy, struct git_compact *out, struct arena *a)
{
	const struct git_view *v = &s->view;

	*out = (struct git_compact){ 0 };
	if (v->n_refs < s->refs_wanted)
		return;
	out->v = arena_array(a, const struct git_head *, COMPACT_MAX);
	for (size_t i = 0; i < v->n && out->n < COMPACT_MAX; i++) {
		const struct git_head *h = v->heads[i];

		if (!h->on_base && !h->bad && !git_compact_taken(busy, h->key) &&
		    (is_appended(v, h) || git_compact_idle(s, h)))
			out->v[out->n++] = h;
	}
}

/* If a ref cannot be removed now, a later change removes it. */
void git_compact_finish(struct git *s, const struct git_compact *f, struct arena *a)
{
	struct git_move *moves = arena_array(a, struct git_move, f->n);

	for (size_t i = 0; i < f->n; i++)
		moves[i] =
			(struct git_move){ git_ref_of(a, f->v[i]->key), f->v[i]->oid, { { 0 } } };
	if (f->n && s->transport->drop)
		s->transport->drop(s, moves, f->n);
}
