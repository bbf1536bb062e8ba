/* A branch of locks: writes lock changes, and refuses every other change, which the branch could not keep. */
#include <stdlib.h>

#include "format/record_form.h"
#include "store/git/layout/layout.h"
#include "store/git/transport/transport.h"

/* A change's result: the branch's new tree, and new statuses for task files of the worktree. */
struct plan {
	struct git_set *w;
	git_treebuilder *tree;
	struct git_status *statuses;
	size_t n_statuses;
	int64_t fence;
};

/* --- the branch --------------------------------------------------------------------------------- */

int git_tip_tree(struct git *s, const git_oid *tip, git_tree **out)
{
	git_commit *c = NULL;
	int rc = git_commit_open(s, &c, tip);

	if (rc == 0)
		rc = git_commit_tree(out, c);
	git_commit_free(c);
	return rc ? git_fail(s, STORE_CORRUPT, "cannot read the branch") : 0;
}

void git_tip_said(struct git *s, const git_oid *tip, int64_t *stamp, int64_t *number)
{
	git_oid at = *tip;
	int rc = 2;

	*stamp = *number = 0;
	while (rc == 2) {
		struct arena a = { 0 };
		struct git_state st;

		rc = git_commit_read(s, &at, &st, &a);
		if (rc == 0) {
			*stamp = st.stamp;
			(void)(st.has_rec && str_to_i64(st.rec.hot, number));
		} else if (rc == 2 && st.n_parents) {
			at = st.parents[0];
		} else {
			rc = 1;
		}
		arena_free(&a);
	}
}

int git_file_put(struct git *s, git_treebuilder *b, const char *name, struct str text)
{
	git_oid oid;
	int rc = git_object_put(s, text, GIT_OBJECT_BLOB, &oid);

	if (rc == 0)
		rc = git_treebuilder_insert(NULL, b, name, &oid, GIT_FILEMODE_BLOB);
	return rc ? git_fail(s, STORE_IO, "cannot write a file of the branch") : 0;
}

int git_tip_move(struct git_set *w, const git_oid *tree, const char *subject, int64_t number)
{
	const struct record rec = { .key = str_c(subject),
				    .rev = w->stamp,
				    .hot = arena_printf(&w->a, "%lld", (long long)number) };

	return git_branch_commit(w, tree, &rec);
}

int git_tip_make(struct git *s, const char *name, struct str text, const char *subject,
		 int64_t number)
{
	git_treebuilder *b = NULL;
	struct git_set w;
	git_oid tree;
	int rc = git_treebuilder_new(&b, s->repo, NULL);

	git_view_clear(&s->view);
	git_set_begin(&w, s);
	if (rc == 0 && name)
		rc = git_file_put(s, b, name, text);
	if (rc == 0)
		rc = git_tree_put(s, b, &tree);
	rc = rc ? git_fail(s, STORE_IO, "cannot make the branch")
		: git_tip_move(&w, &tree, subject, number);
	git_treebuilder_free(b);
	arena_free(&w.a);
	return rc;
}

bool git_tip_roots(struct git *s, struct str key, git_root_fn *fn, void *ctx)
{
	(void)key;
	fn(ctx, &s->view.base);
	return false;
}

int git_tip_ready(struct git *s)
{
	int rc = git_refresh(s);

	return rc > 0 ? git_absent(s) : rc;
}

int git_tip_drop(struct git *s)
{
	return store_fail(
		&s->base.env, STORE_UNSUPPORTED,
		"if no program needs it any more: git push REMOTE --delete BRANCH",
		"%s: pawl does not remove the branch %s, because other programs use it, too",
		s->remote, s->only);
}

/* --- refusals ----------------------------------------------------------------------------------- */

static int refuse_task(struct plan *p, struct str id, const struct git_item *it)
{
	const struct store_env *env = &p->w->s->base.env;
	const char *folder = p->w->s->worktree->tasks;
	struct arena *a = &p->w->a;

	if (it && it->file)
		return store_fail(
			env, STORE_UNSUPPORTED,
			arena_printf(a, "edit %.*s and commit it", STRF(it->file->path)).p,
			"%.*s is the file %.*s; the branch %s keeps only its lock", STRF(id),
			STRF(it->file->path), p->w->s->only);
	return store_fail(
		env, STORE_UNSUPPORTED,
		arena_printf(a, "write %s/%.*s_NAME.md and commit it", folder, STRF(id)).p,
		"tasks are files in %s here; the branch %s keeps only their locks", folder,
		p->w->s->only);
}

static int refuse_done(struct plan *p, const struct git_item *it)
{
	struct arena *a = &p->w->a;
	struct str id = it->task.id;

	return store_fail(
		&p->w->s->base.env, STORE_UNSUPPORTED,
		arena_printf(
			a,
			"to write it there: pawl done %.*s --write-status; or set and commit it "
			"yourself, then run: pawl release %.*s",
			STRF(id), STRF(id))
			.p,
		"the status of %.*s is in %.*s; the branch %s keeps only its lock", STRF(id),
		STRF(it->file->path), p->w->s->only);
}

static int refuse_other(struct plan *p, struct str key)
{
	const struct store_env *env = &p->w->s->base.env;
	const char *branch = p->w->s->only;

	if (str_starts(key, STR("meta/counter")))
		return store_fail(env, STORE_UNSUPPORTED,
				  "use pawl id claim --store git:REMOTE#" GIT_IDS,
				  "the branch %s keeps only locks; it does not count ids", branch);
	if (str_starts(key, STR("request/")))
		return store_fail(env, STORE_UNSUPPORTED, "run the command without --request-id",
				  "the branch %s keeps only locks; it cannot keep request ids",
				  branch);
	return store_fail(env, STORE_UNSUPPORTED, "lock the tasks one by one",
			  "the branch %s keeps only locks of tasks, not locks of the whole queue",
			  branch);
}

/* --- one task ----------------------------------------------------------------------------------- */

/* Are all fields unchanged, apart from those that follow from the lock? The branch does not store those. */
static bool same_but_lock(const struct task *now, const struct task *was)
{
	struct task t = *now;

	t.lock = was->lock;
	t.fence = was->fence;
	t.attempts = was->attempts;
	t.abandoned = was->abandoned;
	t.last_holder = was->last_holder;
	t.run = was->run;
	t.version = was->version;
	t.updated_at = was->updated_at;
	t.started_at = was->started_at;
	t.first_started_at = was->first_started_at;
	t.done_at = was->done_at;
	t.archived_at = was->archived_at;
	t.summary = was->summary;
	t.last = was->last;
	t.last_ttl = was->last_ttl;
	t.last_expires_at = was->last_expires_at;
	t.free_at = was->free_at;
	t.status = was->status;
	t.open_deps = was->open_deps;
	t.canceled_deps = was->canceled_deps;
	t.open_subs = was->open_subs;
	return task_same(&t, was, HOT | BODY);
}

static bool status_follows(const struct task *now, const struct task *was)
{
	if (now->status == was->status)
		return true;
	if (now->lock.holder.n)
		return now->status == IN_PROGRESS;
	return now->status == READY && was->lock.holder.n;
}

static struct str lock_text(const struct task *t, struct str clock, struct arena *a)
{
	const struct git_lockfile f = {
		.id = t->id, .lock = t->lock, .fence = t->fence, .clock = clock
	};
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct str out = STR("");

	if (t->lock.holder.n)
		git_lockfile_write(&f, &b, a);
	if (b.n)
		out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static int put_lock(struct plan *p, const struct git_step *step, const struct task *t)
{
	const char *name = git_lockfile_name(&p->w->a, t->id).p;

	if (t->fence > p->fence)
		p->fence = t->fence;
	if (t->lock.holder.n)
		return git_file_put(p->w->s, p->tree, name, lock_text(t, step->clock, &p->w->a));
	if (git_treebuilder_get(p->tree, name))
		git_treebuilder_remove(p->tree, name);
	return 0;
}

static const char *status_word(const struct task *now, const struct git_file *f)
{
	if (now->lock.holder.n)
		return "Implementing";
	if (now->status == DONE)
		return "Done";
	return f->task.status == IN_PROGRESS ? "Ready" : NULL;
}

static int put_status(struct plan *p, const struct task *now, const struct git_item *it)
{
	const char *word = it && it->file ? status_word(now, it->file) : NULL;
	struct git_status *e;
	int rc;

	if (!it || !it->file)
		return refuse_task(p, now->id, it);
	if (!word)
		return 0;
	p->statuses = arena_grow(&p->w->a, p->statuses, p->n_statuses, sizeof(*e));
	e = &p->statuses[p->n_statuses];
	rc = git_status_begin(p->w->s, it->file, word, e, &p->w->a);
	p->n_statuses += rc == 0;
	return rc;
}

/* A manual lock may be on an id that has no task. */
static bool is_lone(const struct task *now)
{
	return now->lock.holder.n && now->lock.manual && !now->description.n;
}

static int plan_task(struct plan *p, const struct git_step *step)
{
	const struct git_item *it = git_item_find(p->w->s->worktree, step->key);
	bool writes = p->w->s->base.env.opt.write_status;
	struct task now = { 0 };
	struct str id = step->key, was;
	int rc;

	(void)str_cut(&id, '/');
	if (!step->rec || task_unpack(step->rec->hot, &now, &p->w->a) ||
	    task_unpack(step->rec->body, &now, &p->w->a))
		return refuse_task(p, id, it);
	if (it ? !same_but_lock(&now, &it->task) : !is_lone(&now))
		return refuse_task(p, now.id, it);
	if (it && it->file && now.status == DONE && it->task.status != DONE && !writes)
		return refuse_done(p, it);
	if (it && !status_follows(&now, &it->task) && !(now.status == DONE && it->file))
		return refuse_task(p, now.id, it);
	was = it ? lock_text(&it->task, STR(""), &p->w->a) : STR("");
	if (str_eq(was, lock_text(&now, STR(""), &p->w->a)))
		return 0;
	rc = put_lock(p, step, &now);
	return rc || !writes ? rc : put_status(p, &now, it);
}

/* --- the change --------------------------------------------------------------------------------- */

/* A new task also drops its record gone/ID. The branch does not keep that record, so there is nothing to
 * drop. */
static int plan_step(struct plan *p, const struct git_step *step)
{
	if (str_starts(step->key, STR("task/")))
		return plan_task(p, step);
	return step->rec ? refuse_other(p, step->key) : 0;
}

static int open_tree(struct plan *p)
{
	struct git *s = p->w->s;
	git_tree *top = NULL;
	int rc = git_tree_open(s, &top, &s->view.base_tree);

	if (rc == 0)
		rc = git_treebuilder_new(&p->tree, s->repo, top);
	git_tree_free(top);
	return rc ? git_fail(s, STORE_IO, "cannot read the branch") : 0;
}

/* Refuses a comment, or an update that changes nothing. */
static int refuse_words(struct plan *p)
{
	return store_fail(&p->w->s->base.env, STORE_UNSUPPORTED, "write it into the task's file",
			  "the branch %s keeps only locks, and this call does not change a lock",
			  p->w->s->only);
}

static int move_tip(struct plan *p)
{
	struct git *s = p->w->s;
	git_oid tree;

	if (git_tree_put(s, p->tree, &tree))
		return git_fail(s, STORE_IO, "cannot write the branch");
	if (!git_oid_equal(&tree, &s->view.base_tree))
		return git_tip_move(p->w, &tree, "locks", p->fence);
	return p->w->lines ? refuse_words(p) : 0;
}

static int locks_commit(struct git_set *w)
{
	struct plan p = { .w = w, .fence = w->s->worktree->fence };
	int rc = open_tree(&p);

	git_set_states(w);
	for (size_t i = 0; rc == 0 && i < w->n; i++)
		rc = plan_step(&p, &w->steps[i]);
	if (rc == 0)
		rc = move_tip(&p);
	for (size_t i = 0; i < p.n_statuses; i++) {
		if (rc == 0 && !w->s->base.env.trial)
			rc = git_status_end(w->s, &p.statuses[i], &w->a);
		else
			git_status_drop(w->s, &p.statuses[i]);
	}
	git_treebuilder_free(p.tree);
	return rc;
}

static int locks_make(struct git *s)
{
	return git_tip_make(s, NULL, STR(""), "begin to keep locks", 0);
}

/* Stands in for gone/ID with the greatest fence, so that a new lock gets a greater one. */
static int locks_stand_in(struct git *s, struct str key, struct record *out, struct arena *a)
{
	if (!str_starts(key, STR("gone/")) || !s->worktree->fence)
		return 1;
	*out = (struct record){ .key = key,
				.rev = 1,
				.hot = arena_printf(a, "%lld", (long long)s->worktree->fence) };
	return 0;
}

const struct git_layout git_layout_locks = {
	.name = "locks",
	.strangers = true,
	.refresh = git_locks_read,
	.ready = git_tip_ready,
	.commit = locks_commit,
	.make = locks_make,
	.drop = git_tip_drop,
	.same = git_worktree_same,
	.stand_in = locks_stand_in,
	.roots = git_tip_roots,
};

/* --- recognising the layout --------------------------------------------------------------------- */

static bool has_folder(git_tree *top, const char *name)
{
	const git_tree_entry *e = git_tree_entry_byname(top, name);

	return e && git_tree_entry_type(e) == GIT_OBJECT_TREE;
}

/* A branch that does not exist or has no files gets its layout from its name. */
static const struct git_layout *layout_named(const char *branch)
{
	if (!strcmp(branch, GIT_LOCKS))
		return &git_layout_locks;
	return strcmp(branch, GIT_IDS) ? &git_layout_branch : &git_layout_ids;
}

static const struct git_layout *layout_of(struct git *s, git_tree *top, const git_oid *tip,
					  struct arena *a)
{
	size_t n = git_tree_entrycount(top);
	int64_t stamp, ignored;
	struct str id;

	if (has_folder(top, GIT_OWN) || has_folder(top, GIT_TASKS))
		return &git_layout_branch;
	if (git_tree_entry_byname(top, GIT_NEXT_ID))
		return &git_layout_ids;
	for (size_t i = 0; i < n; i++)
		if (!git_lockfile_named(
			    a, str_c(git_tree_entry_name(git_tree_entry_byindex(top, i))), &id))
			return &git_layout_branch;
	git_tip_said(s, tip, &stamp, &ignored);
	return n || stamp ? &git_layout_locks : layout_named(s->only);
}

/* Opens the tree of a known branch. If the tree is damaged in this clone, fetches it again. */
static int open_top(struct git *s, git_oid *tip, git_tree **top)
{
	int rc = git_tip_tree(s, tip, top);

	if (rc != STORE_CORRUPT)
		return rc;
	rc = git_repair(s, rc);
	git_view_clear(&s->view);
	if (rc == STORE_CORRUPT)
		return rc;
	rc = git_branch_tip(s, tip);
	return rc ? rc : git_tip_tree(s, tip, top);
}

int git_recognise(struct git *s)
{
	struct arena a = { 0 };
	git_tree *top = NULL;
	bool offline = s->no_fetch;
	git_oid tip = { 0 };
	int rc = 0;

	if (s->transport == &git_transport_wire && git_seen_before(s)) {
		/* a branch does not change its layout, so the last fetch is enough */
		s->no_fetch = true;
		rc = git_branch_tip(s, &tip);
		s->no_fetch = offline;
	}
	if (rc == 0 && git_oid_is_zero(&tip))
		rc = git_branch_tip(s, &tip);
	if (rc == 0 && git_oid_is_zero(&tip)) {
		s->layout = layout_named(s->only);
	} else if (rc == 0) {
		rc = open_top(s, &tip, &top);
		if (rc == 0)
			s->layout = layout_of(s, top, &tip, &a);
	}
	git_tree_free(top);
	arena_free(&a);
	return rc;
}
