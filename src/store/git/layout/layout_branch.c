/* The layout on one branch: writes each change as one commit on top of the tip that was read. The commit
 * replaces only pawl's files, and keeps other programs' files. */
#include <errno.h>
#include <stdio.h>

#include "base/when.h"
#include "format/markdown.h"
#include "store/columns.h"
#include "store/git/layout/layout.h"

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

/* Removes the record's old files. */
static void step_clear(struct trees *t, const struct git_step *p, struct arena *a)
{
	struct str name = p->head ? p->head->file : STR(""), folder = str_cut(&name, '/');

	if (name.n)
		file_drop(folder_of(t, folder), name, a);
	if (p->head && p->head->lock.n)
		file_drop(t->top, p->head->lock, a);
}

/* A file that another program named keeps its name. */
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

/* Never writes onto an existing branch: the layout's refresh() has found none. */
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

/* Removes pawl's files. If other programs' files remain, the branch stays. */
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

/* --- branch form ------------------------------------------------------------------------------ */

/* Writes a record as files on a branch, and reads it back. A record that a Markdown file cannot hold without
 * loss becomes a JSON file. */

#define FRONT STR("---\n")
#define REV STR("rev: ")

/* --- a task ------------------------------------------------------------------------------------- */

static struct str task_text(const struct task *t, int64_t rev, struct arena *a)
{
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct task free_one = *t;
	struct str text, out;

	free_one.lock = (struct lock){ 0 };
	task_md_write(&free_one, NULL, 0, true, &b, a);
	text = buf_str(&b);
	(void)str_cut_prefix(&text, FRONT);
	out = arena_printf(a, "---\nrev: %lld\n%.*s", (long long)rev, STRF(text));
	buf_free(&b);
	return out;
}

static struct str lock_text(const struct task *t, struct str clock, struct arena *a)
{
	const struct git_lockfile f = {
		.id = t->id, .lock = t->lock, .fence = t->fence, .clock = clock
	};
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct str out;

	git_lockfile_write(&f, &b, a);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* A person who edits the file may have removed the line `rev:`. */
static struct str take_rev(struct str text, int64_t *rev, struct arena *a)
{
	struct str rest = text, line;

	*rev = 1;
	if (!str_cut_prefix(&rest, FRONT) || !str_starts(rest, REV))
		return text;
	line = str_cut(&rest, '\n');
	(void)str_cut_prefix(&line, REV);
	if (!str_to_i64(str_trim(line), rev) || *rev < 1)
		*rev = 1;
	return arena_printf(a, "---\n%.*s", STRF(rest));
}

int git_form_task(struct str text, struct str name, struct git_read *out, struct yaml_fault *fault,
		  struct arena *a)
{
	struct plain p = { 0 };
	struct str stem = name;
	int rc;

	*out = (struct git_read){ 0 };
	text = take_rev(text, &out->rec.rev, a);
	plain_start(&p, when_parse, true, a);
	rc = task_md_parse(text, stem, &p, fault);
	out->task = p.task;
	out->task.lock = (struct lock){ 0 };
	if (rc == 0 && id_fault(p.task.id)) {
		*fault = (struct yaml_fault){ 1, str_c(id_fault(p.task.id)) };
		rc = -EBADMSG;
	}
	return rc;
}

void git_form_lock(struct git_read *r, const struct git_lockfile *lock)
{
	r->task.lock = lock->lock;
	r->clock = lock->clock;
	if (lock->fence > r->task.fence)
		r->task.fence = lock->fence;
}

void git_form_record(const struct store_rules *rules, struct git_read *r, struct arena *a)
{
	r->rec.key = task_key(a, r->task.id);
	r->rec.hot = task_part(&r->task, HOT, a);
	r->rec.body = task_part(&r->task, BODY, a);
	r->rec.body_changed = true;
	rules->index(&r->task, &r->rec.ix, a);
}

/* --- choosing the form -------------------------------------------------------------------------- */

/* A task becomes a Markdown file only if reading that file gives the same record. */
static bool reads_back(const struct store_rules *rules, const struct record *r,
		       const struct git_form *f, struct arena *a)
{
	struct yaml_fault fault;
	struct git_lockfile lock;
	struct git_read got;
	struct str id;

	if (git_form_task(f->text, f->name, &got, &fault, a))
		return false;
	if (f->lock.n) {
		if (!git_lockfile_named(a, f->lock_name, &id) || !str_eq(id, got.task.id) ||
		    git_lockfile_read(f->lock, id, &lock, &fault, a))
			return false;
		git_form_lock(&got, &lock);
	}
	git_form_record(rules, &got, a);
	return got.rec.rev == r->rev && str_eq(got.rec.key, r->key) &&
	       str_eq(got.rec.hot, r->hot) && str_eq(got.rec.body, r->body);
}

static bool as_task(const struct store_rules *rules, const struct record *r, struct str clock,
		    struct git_form *out, struct arena *a)
{
	struct task t;

	if (!task_of_record(rules, r, &t, a))
		return false;
	*out = (struct git_form){
		.folder = STR(GIT_TASKS),
		.name = arena_printf(a, "%s.md", arena_cstr(a, git_name(a, t.id))),
		.text = task_text(&t, r->rev, a),
	};
	if (t.lock.holder.n) {
		out->lock_name = git_lockfile_name(a, t.id);
		out->lock = lock_text(&t, clock, a);
	}
	return reads_back(rules, r, out, a);
}

void git_form_write(const struct store_rules *rules, const struct record *r, struct str clock,
		    struct git_form *out, struct arena *a)
{
	if (as_task(rules, r, clock, out, a))
		return;
	*out = (struct git_form){
		.folder = STR(GIT_OWN),
		.name = arena_printf(a, "%s.json", arena_cstr(a, git_name(a, r->key))),
		.text = git_record_text(r, a),
	};
}
