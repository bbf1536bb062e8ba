/* The layout on one branch: writes the commits of changes. */
#include "store/git/layout/branch.h"

#include <stdio.h>

/* The trees of the commit in progress. */
struct trees {
	struct git *s;
	git_treebuilder *top, *tasks, *own;
};

static const git_oid none;

/* --- trees -------------------------------------------------------------------------------------- */

static int builder_at(struct git *s, git_tree *top, const char *folder, git_treebuilder **out)
{
	const git_tree_entry *e = top ? git_tree_entry_byname(top, folder) : NULL;
	git_tree *t = NULL;
	int rc = 0;

	if (e && git_tree_entry_type(e) != GIT_OBJECT_TREE)
		return store_fail(&s->base.env, STORE_FOREIGN, "rename that file on the branch",
				  "%s: on the branch %s, %s is not a folder", s->remote, s->only,
				  folder);
	if (e)
		rc = git_tree_open(s, &t, git_tree_entry_id(e));
	if (rc == 0)
		rc = git_treebuilder_new(out, s->repo, t);
	git_tree_free(t);
	return rc ? git_fail(s, STORE_IO, "cannot read a folder of the branch") : 0;
}

static int trees_open(struct trees *t, struct git *s, const git_oid *from)
{
	git_tree *top = NULL;
	int rc = git_oid_is_zero(from) ? 0 : git_tree_open(s, &top, from);

	*t = (struct trees){ .s = s };
	if (rc == 0)
		rc = git_treebuilder_new(&t->top, s->repo, top);
	if (rc)
		rc = git_fail(s, STORE_IO, "cannot read the branch");
	if (rc == 0)
		rc = builder_at(s, top, GIT_TASKS, &t->tasks);
	if (rc == 0)
		rc = builder_at(s, top, GIT_OWN, &t->own);
	git_tree_free(top);
	return rc;
}

static void trees_free(struct trees *t)
{
	git_treebuilder_free(t->top);
	git_treebuilder_free(t->tasks);
	git_treebuilder_free(t->own);
}

static int put_folder(struct trees *t, git_treebuilder *b, const char *folder)
{
	git_oid oid;
	int rc;

	if (git_treebuilder_entrycount(b) == 0)
		return git_treebuilder_get(t->top, folder) ? git_treebuilder_remove(t->top, folder)
							   : 0;
	rc = git_tree_put(t->s, b, &oid);
	return rc ? rc : git_treebuilder_insert(NULL, t->top, folder, &oid, GIT_FILEMODE_TREE);
}

static int trees_write(struct trees *t, git_oid *out)
{
	int rc = put_folder(t, t->tasks, GIT_TASKS);

	if (rc == 0)
		rc = put_folder(t, t->own, GIT_OWN);
	if (rc == 0)
		rc = git_tree_put(t->s, t->top, out);
	return rc ? git_fail(t->s, STORE_IO, "cannot write the branch") : 0;
}

/* --- files -------------------------------------------------------------------------------------- */

static int file_put(struct git *s, git_treebuilder *b, struct str name, struct str text,
		    struct arena *a)
{
	git_oid oid;
	int rc = git_object_put(s, text, GIT_OBJECT_BLOB, &oid);

	if (rc == 0)
		rc = git_treebuilder_insert(NULL, b, arena_cstr(a, name), &oid, GIT_FILEMODE_BLOB);
	return rc ? git_fail(s, STORE_IO, "cannot write a file of the branch") : 0;
}

static void file_drop(git_treebuilder *b, struct str name, struct arena *a)
{
	const char *c = arena_cstr(a, name);

	if (git_treebuilder_get(b, c))
		git_treebuilder_remove(b, c);
}

static git_treebuilder *folder_of(struct trees *t, struct str folder)
{
	return str_is(folder, GIT_TASKS) ? t->tasks : t->own;
}

/* Removes the old files of the record. */
static void step_clear(struct trees *t, const struct git_step *p, struct arena *a)
{
	struct str name = p->head ? p->head->file : STR(""), folder = str_cut(&name, '/');

	if (name.n)
		file_drop(folder_of(t, folder), name, a);
	if (p->head && p->head->lock.n)
		file_drop(t->top, p->head->lock, a);
}

/* If another program named the file, it keeps its name. */
static struct str name_for(const struct git_step *p, const struct git_form *f)
{
	struct str name = p->head ? p->head->file : STR("");

	return str_eq(str_cut(&name, '/'), f->folder) && name.n ? name : f->name;
}

static int step_put(struct trees *t, const struct git_step *p, struct arena *a)
{
	struct git_form f;
	int rc;

	git_form_write(t->s->base.env.rules, p->rec, p->clock, &f, a);
	rc = file_put(t->s, folder_of(t, f.folder), name_for(p, &f), f.text, a);
	if (rc == 0 && f.lock.n)
		rc = file_put(t->s, t->top, f.lock_name, f.lock, a);
	return rc;
}

/* --- commits ------------------------------------------------------------------------------------ */

int git_branch_commit(struct git_set *w, const git_oid *tree, const struct record *rec)
{
	struct git *s = w->s;
	struct git_move m = { str_c(s->only), s->view.base, none };
	struct git_draft d = { .rec = rec,
			       .stamp = w->stamp,
			       .nonce = w->nonce,
			       .lines = w->lines,
			       .tree = *tree,
			       .parents = &s->view.base,
			       .n_parents = !git_oid_is_zero(&s->view.base) };
	int rc = git_commit_write(s, &d, &m.to, &w->a);

	return rc ? rc : git_branch_push(s, &m);
}

static int branch_commit(struct git_set *w)
{
	struct trees t;
	git_oid tree;
	int rc;

	git_set_states(w);
	rc = trees_open(&t, w->s, &w->s->view.base_tree);
	for (size_t i = 0; rc == 0 && i < w->n; i++) {
		step_clear(&t, &w->steps[i], &w->a);
		if (w->steps[i].rec)
			rc = step_put(&t, &w->steps[i], &w->a);
	}
	if (rc == 0)
		rc = trees_write(&t, &tree);
	trees_free(&t);
	return rc ? rc : git_branch_commit(w, &tree, NULL);
}

static int branch_ready(struct git *s)
{
	int rc = git_refresh(s);

	return rc > 0 ? git_absent(s) : rc;
}

/* --- creating and removing a queue -------------------------------------------------------------- */

/* Never writes onto an existing branch: look() has found that there is none. */
static int branch_make(struct git *s)
{
	struct git_set w;
	struct trees t;
	git_oid tree;
	int rc;

	git_view_clear(&s->view);
	git_set_begin(&w, s);
	rc = trees_open(&t, s, &none);
	if (rc == 0)
		rc = file_put(s, t.own, STR(GIT_MARK),
			      STR("{\"pawl\": 1, \"layout\": \"branch\"}\n"), &w.a);
	if (rc == 0)
		rc = trees_write(&t, &tree);
	trees_free(&t);
	if (rc == 0)
		rc = git_branch_commit(&w, &tree, NULL);
	arena_free(&w.a);
	return rc;
}

static int drop_name(const git_tree_entry *e, void *ctx)
{
	struct str name = str_c(git_tree_entry_name(e)), id;
	bool ours = git_lockfile_named(ctx, name, &id) || str_is(name, GIT_TASKS) ||
		    str_is(name, GIT_OWN);

	return ours;
}

/* Removes pawl's files. If files of other programs remain, the branch stays. */
static int branch_drop(struct git *s)
{
	git_treebuilder *b = NULL;
	git_tree *top = NULL;
	struct git_set w;
	git_oid tree;
	int rc = git_refresh(s);

	if (rc)
		return rc > 0 ? 0 : rc; /* it is already gone */
	git_set_begin(&w, s);
	rc = git_tree_open(s, &top, &s->view.base_tree) || git_treebuilder_new(&b, s->repo, top);
	if (rc == 0)
		rc = git_treebuilder_filter(b, drop_name, &w.a);
	if (rc)
		rc = git_fail(s, STORE_IO, "cannot read the branch");
	if (rc == 0 && git_treebuilder_entrycount(b) == 0) {
		struct git_move m = { str_c(s->only), s->view.base, none };

		rc = git_branch_push(s, &m);
	} else if (rc == 0) {
		rc = git_tree_put(s, b, &tree) ? git_fail(s, STORE_IO, "cannot write the branch")
					       : git_branch_commit(&w, &tree, NULL);
	}
	git_treebuilder_free(b);
	git_tree_free(top);
	arena_free(&w.a);
	return rc;
}

static bool branch_roots(struct git *s, struct str key, git_root_fn *fn, void *ctx)
{
	(void)key;
	fn(ctx, &s->view.base);
	return false;
}

const struct git_layout git_layout_branch = {
	.name = "branch",
	.strangers = true,
	.refresh = git_branch_read,
	.ready = branch_ready,
	.commit = branch_commit,
	.make = branch_make,
	.drop = branch_drop,
	.roots = branch_roots,
};
