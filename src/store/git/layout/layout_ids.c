/* A branch that counts ids: next_id.txt holds the number of the next task, in the form that other programs
 * use. */
#include "store/git/layout/locks.h"

#define COUNTER STR("meta/counter")
#define TEXT_MAX_BYTES 64

static int bad_number(struct git *s, struct str text)
{
	if (text.n > 40)
		text.n = 40;
	return store_fail(&s->base.env, STORE_CORRUPT, "repair that file on the branch",
			  "%s#%s: " GIT_NEXT_ID ": '%.*s' is not a number", s->remote, s->only,
			  STRF(text));
}

static int read_number(struct git *s, git_tree *top, int64_t *next)
{
	const git_tree_entry *e = git_tree_entry_byname(top, GIT_NEXT_ID);
	git_blob *blob = NULL;
	struct str text;
	int rc = 0;

	if (!e || git_blob_open(s, &blob, git_tree_entry_id(e)))
		return store_fail(&s->base.env, STORE_FOREIGN, "use another branch",
				  "%s: the branch %s has no file " GIT_NEXT_ID, s->remote, s->only);
	text = str_trim(str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)));
	if (text.n > TEXT_MAX_BYTES || !str_to_i64(text, next) || *next < 0 ||
	    *next > ID_NUMBER_MAX)
		rc = bad_number(s, text);
	git_blob_free(blob);
	return rc;
}

/* The view also gets the tasks of the worktree, because their ids are taken. */
static void put_all(struct git *s, int64_t next)
{
	struct arena a = { 0 };
	struct git_head *h = git_head_make(&s->view, COUNTER);
	const struct record r = { .key = COUNTER,
				  .rev = s->view.stamp + 1,
				  .hot = arena_printf(&a, "%lld", (long long)next - 1),
				  .body_changed = true };

	h->seen = s->view.refresh;
	mem_queue_put(&s->view.q, &r);
	for (size_t i = 0; i < s->worktree->n; i++) {
		const struct git_file *f = &s->worktree->v[i];
		const struct git_item it = { .key = f->key, .task = f->task, .file = f };

		git_item_put(s, &it, &a);
	}
	arena_free(&a);
}

static int check_one(struct git *s, const git_oid *tip)
{
	git_tree *top = NULL;
	int64_t next, ignored;
	int rc = git_tip_tree(s, tip, &top);

	if (rc == 0)
		rc = read_number(s, top, &next);
	if (rc == 0) {
		s->view.refresh++;
		git_tip_said(s, tip, &s->view.stamp, &ignored);
		put_all(s, next);
		git_view_prune(&s->view);
		s->view.base = *tip;
		s->view.base_tree = *git_tree_id(top);
	}
	git_tree_free(top);
	return rc;
}

static int ids_read(struct git *s)
{
	git_oid tip;
	int rc = git_branch_tip(s, &tip);

	if (rc == 0 && git_oid_is_zero(&tip))
		rc = 1;
	if (rc == 0)
		rc = git_worktree_read(s);
	if (rc == 0)
		rc = check_one(s, &tip);
	if (rc)
		git_view_clear(&s->view);
	return rc;
}

static const char *git_ids_subject(int64_t n, struct arena *a)
{
	return arena_printf(a, "the next id is t%lld", (long long)n + 1).p;
}

static int write_number(struct git_set *w, int64_t n)
{
	struct git *s = w->s;
	git_treebuilder *b = NULL;
	git_tree *top = NULL;
	git_oid tree;
	int rc = git_tree_open(s, &top, &s->view.base_tree) ||
		 git_treebuilder_new(&b, s->repo, top);

	if (rc == 0)
		rc = git_file_put(s, b, GIT_NEXT_ID,
				  arena_printf(&w->a, "%lld\n", (long long)n + 1));
	if (rc == 0)
		rc = git_tree_put(s, b, &tree);
	git_treebuilder_free(b);
	git_tree_free(top);
	return rc ? git_fail(s, STORE_IO, "cannot write the branch")
		  : git_tip_move(w, &tree, git_ids_subject(n, &w->a), n);
}

static int git_ids_refuse(struct git *s)
{
	return store_fail(
		&s->base.env, STORE_UNSUPPORTED,
		"take an id with pawl id claim; locks need another branch: git:REMOTE#" GIT_LOCKS,
		"the branch %s only counts ids", s->only);
}

static int ids_commit(struct git_set *w)
{
	int64_t n;

	git_set_states(w);
	if (w->n != 1 || !str_eq(w->steps[0].key, COUNTER) || !w->steps[0].rec ||
	    !str_to_i64(w->steps[0].rec->hot, &n))
		return git_ids_refuse(w->s);
	return write_number(w, n);
}

/* The counter begins after the greatest number of the worktree's tasks. */
static int ids_make(struct git *s)
{
	struct arena a = { 0 };
	int64_t most = 0;
	int rc = git_worktree_read(s);

	for (size_t i = 0; rc == 0 && i < s->worktree->n; i++) {
		int64_t n = id_number(s->worktree->v[i].task.id);

		most = n > most ? n : most;
	}
	if (rc == 0)
		rc = git_tip_make(s, GIT_NEXT_ID, arena_printf(&a, "%lld\n", (long long)most + 1),
				  git_ids_subject(most, &a), most);
	arena_free(&a);
	return rc;
}

const struct git_layout git_layout_ids = {
	.name = "ids",
	.strangers = true,
	.refresh = ids_read,
	.ready = git_tip_ready,
	.commit = ids_commit,
	.make = ids_make,
	.drop = git_tip_drop,
	.same = git_worktree_same,
	.roots = git_tip_roots,
};
