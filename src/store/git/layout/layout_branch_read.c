/*
 * Reads the branch's files. A handle does not read an unchanged file again. An unreadable file makes only its
 * own task unusable.
 */
#include <errno.h>
#include <stdlib.h>

#include "format/markdown.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "store/git/layout/layout.h"
#include "store/store_tools.h"

#define UNREAD "it is too large, or not a file"
#define ANCESTRY 10000 /* foreign commits on top of pawl's last one, at most */

/* A head with its file's name, as the last read saw it. */
struct known {
	struct str file;
	struct git_head *head;
};

struct refresh {
	struct git *s;
	struct arena a;
	git_tree *top;
	struct known *known; /* by file */
	size_t n_known;
};

/* --- the tip ------------------------------------------------------------------------------------ */

/* The stamp of pawl's last change, which may lie below other programs' commits. */
static int64_t last_stamp(struct git *s, const git_oid *tip, struct arena *a)
{
	git_oid at = *tip;

	for (int i = 0; i < ANCESTRY; i++) {
		struct git_state st;
		int rc = git_commit_read(s, &at, &st, a);

		if (rc == 0)
			return st.stamp;
		if (rc == 1 || !st.n_parents)
			break;
		at = st.parents[0];
	}
	return 0;
}

static int open_tip(struct refresh *l, const git_oid *tip)
{
	git_commit *c = NULL;
	int rc = git_commit_open(l->s, &c, tip);

	if (rc == 0)
		rc = git_commit_tree(&l->top, c);
	git_commit_free(c);
	return rc ? git_fail(l->s, STORE_CORRUPT, "cannot read the branch") : 0;
}

static bool is_kind(const git_tree_entry *e, git_object_t kind)
{
	return e && git_tree_entry_type(e) == kind;
}

/* pawl does not follow links on the branch. */
static bool is_file(const git_tree_entry *e)
{
	git_filemode_t mode = git_tree_entry_filemode(e);

	return mode == GIT_FILEMODE_BLOB || mode == GIT_FILEMODE_BLOB_EXECUTABLE;
}

/* pawl does not write to a branch that is not a queue. */
static bool is_queue(const struct refresh *l)
{
	return is_kind(git_tree_entry_byname(l->top, GIT_OWN), GIT_OBJECT_TREE) ||
	       is_kind(git_tree_entry_byname(l->top, GIT_TASKS), GIT_OBJECT_TREE);
}

static int git_branch_read_foreign(struct refresh *l)
{
	return store_fail(&l->s->base.env, STORE_FOREIGN,
			  "use another branch: pawl init --store git:REMOTE#BRANCH makes one",
			  "%s: the branch %s has no folder %s or %s, so it is not a queue",
			  l->s->remote, l->s->only, GIT_TASKS, GIT_OWN);
}

/* --- files -------------------------------------------------------------------------------------- */

static int known_cmp(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return str_cmp(x->file, y->file);
}

static void git_branch_read_know(struct refresh *l)
{
	const struct git_view *v = &l->s->view;

	l->known = arena_array(&l->a, struct known, v->n);
	for (size_t i = 0; i < v->n; i++)
		l->known[l->n_known++] = (struct known){ v->heads[i]->file, v->heads[i] };
	if (l->n_known > 1)
		qsort(l->known, l->n_known, sizeof(*l->known), known_cmp);
}

static struct git_head *known_find(const struct refresh *l, struct str file)
{
	const struct known key = { file, NULL };
	const struct known *k =
		l->n_known ? bsearch(&key, l->known, l->n_known, sizeof(key), known_cmp) : NULL;

	return k ? k->head : NULL;
}

/* 0, or 1 if the object is too large, missing, or not a file. */
static int read_blob(struct refresh *l, const git_oid *oid, struct str *out)
{
	git_blob *blob = NULL;
	int rc = git_blob_open(l->s, &blob, oid) ||
		 git_blob_rawsize(blob) > (git_object_size_t)GIT_RECORD_MAX;

	if (rc == 0)
		*out = arena_str(&l->a,
				 str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)));
	git_blob_free(blob);
	return rc;
}

static git_oid lock_oid(const struct refresh *l, const struct git_head *h)
{
	const git_tree_entry *e = h->lock.n ? git_tree_entry_byname(l->top, h->lock.p) : NULL;

	return e ? *git_tree_entry_id(e) : (git_oid){ 0 };
}

/* --- heads -------------------------------------------------------------------------------------- */

static struct git_head *head_begin(struct refresh *l, struct str key, struct str file,
				   const git_oid *oid)
{
	struct git_view *v = &l->s->view;
	struct git_head *h = git_head_make(v, key);

	h->seen = v->refresh;
	h->bad = false;
	h->oid = *oid;
	h->link = h->lease = (git_oid){ 0 };
	h->clock = h->fault = h->lock = (struct str){ 0 };
	h->file = arena_str(&v->arena, file);
	return h;
}

static void head_bad(struct refresh *l, struct git_head *h, struct str file, size_t line,
		     struct str why)
{
	struct arena *a = &l->s->view.arena;

	h->bad = true;
	h->fault = line ? arena_printf(a, "%.*s:%zu: %.*s", STRF(file), line, STRF(why))
			: arena_printf(a, "%.*s: %.*s", STRF(file), STRF(why));
	mem_queue_drop(&l->s->view.q, h->key);
}

static bool git_branch_read_taken(const struct refresh *l, struct str key)
{
	const struct git_head *h = git_head(&l->s->view, key);

	return h && h->seen == l->s->view.refresh;
}

/* Reports a file that does not say which task it is. The task's id comes from the file's name. */
static void file_bad(struct refresh *l, struct str folder, struct str name, const git_oid *oid,
		     size_t line, struct str why)
{
	struct str file = arena_printf(&l->a, "%.*s/%.*s", STRF(folder), STRF(name));
	struct str id = task_md_id(name), key = task_key(&l->a, id);

	if (git_branch_read_taken(l, key))
		key = arena_printf(&l->a, "task/%.*s", STRF(name));
	head_bad(l, head_begin(l, key, file, oid), file, line, why);
}

static void head_put(struct refresh *l, struct git_head *h, struct record *r)
{
	r->body_changed = true;
	git_clock_show(l->s, h, r, &l->a);
	mem_queue_put(&l->s->view.q, r);
}

/* --- tasks -------------------------------------------------------------------------------------- */

/* False: the lock file exists, but cannot be read, so the holder is unknown. */
static bool add_lock(struct refresh *l, struct git_head *h, struct git_read *r)
{
	struct yaml_fault fault = { 0, STR(UNREAD) };
	struct git_lockfile lock;
	struct str text;

	h->lock = git_lockfile_name(&l->s->view.arena, r->task.id);
	h->link = h->lease = lock_oid(l, h);
	if (git_oid_is_zero(&h->link))
		return true;
	if (read_blob(l, &h->link, &text) ||
	    git_lockfile_read(text, r->task.id, &lock, &fault, &l->a)) {
		head_bad(l, h, h->lock, fault.line, fault.text);
		return false;
	}
	git_form_lock(r, &lock);
	h->clock = arena_str(&l->s->view.arena, r->clock);
	return true;
}

static void task_put(struct refresh *l, struct git_head *h, struct git_read *r)
{
	const struct task *t = &r->task;

	h->counts[0] = t->open_deps;
	h->counts[1] = t->canceled_deps;
	h->counts[2] = t->open_subs;
	git_form_record(l->s->base.env.rules, r, &l->a);
	head_put(l, h, &r->rec);
}

static void task_load(struct refresh *l, struct str name, const git_oid *oid)
{
	struct yaml_fault fault = { 0, STR(UNREAD) };
	struct str file, text, key;
	struct git_head *h;
	struct git_read r;

	if (read_blob(l, oid, &text) || git_form_task(text, name, &r, &fault, &l->a)) {
		file_bad(l, STR(GIT_TASKS), name, oid, fault.line, fault.text);
		return;
	}
	file = arena_printf(&l->a, "%s/%.*s", GIT_TASKS, STRF(name));
	key = task_key(&l->a, r.task.id);
	if (git_branch_read_taken(l, key)) {
		file_bad(
			l, STR(GIT_TASKS), name, oid, 0,
			arena_printf(&l->a, "another file is also the task %.*s", STRF(r.task.id)));
		return;
	}
	h = head_begin(l, key, file, oid);
	if (add_lock(l, h, &r))
		task_put(l, h, &r);
}

static bool same_task(struct refresh *l, struct git_head *h, const git_oid *oid)
{
	git_oid lock;

	if (!h || h->bad || !git_oid_equal(&h->oid, oid))
		return false;
	lock = lock_oid(l, h);
	return git_oid_equal(&lock, &h->link);
}

static void see_task(struct refresh *l, struct str name, const git_oid *oid)
{
	struct str file = arena_printf(&l->a, "%s/%.*s", GIT_TASKS, STRF(name));
	struct git_head *h = known_find(l, file);

	if (!str_ends(name, STR(".md")))
		return;
	if (same_task(l, h, oid))
		h->seen = l->s->view.refresh;
	else
		task_load(l, name, oid);
}

/* --- other records ------------------------------------------------------------------------------ */

static void see_other(struct refresh *l, struct str name, const git_oid *oid)
{
	struct str file = arena_printf(&l->a, "%s/%.*s", GIT_OWN, STRF(name)), text;
	struct git_head *h = known_find(l, file);
	struct record r;

	if (str_is(name, GIT_MARK) || !str_ends(name, STR(".json")))
		return;
	if (h && !h->bad && git_oid_equal(&h->oid, oid)) {
		h->seen = l->s->view.refresh;
		return;
	}
	if (read_blob(l, oid, &text) || !git_record_read(text, &r, &l->a) ||
	    git_branch_read_taken(l, r.key)) {
		file_bad(l, STR(GIT_OWN), name, oid, 0, STR("it is not a record of pawl"));
		return;
	}
	head_put(l, head_begin(l, r.key, file, oid), &r);
}

static int see_folder(struct refresh *l, const char *folder,
		      void (*see)(struct refresh *, struct str, const git_oid *))
{
	const git_tree_entry *e = git_tree_entry_byname(l->top, folder);
	git_tree *t = NULL;

	if (!is_kind(e, GIT_OBJECT_TREE))
		return 0;
	if (git_tree_open(l->s, &t, git_tree_entry_id(e)))
		return git_fail(l->s, STORE_CORRUPT, "cannot read a folder of the branch");
	for (size_t i = 0; i < git_tree_entrycount(t); i++) {
		const git_tree_entry *it = git_tree_entry_byindex(t, i);

		if (is_file(it))
			see(l, str_c(git_tree_entry_name(it)), git_tree_entry_id(it));
	}
	git_tree_free(t);
	return 0;
}

/* --- tasks that wait for others ----------------------------------------------------------------- */

static void set_counts(struct refresh *l, struct git_head *h, const struct task *c)
{
	struct git_view *v = &l->s->view;
	const struct record *old = mem_queue_get(&v->q, h->key, 0);
	struct task t = { 0 };
	struct record *r;

	if (!old || !old->ix.status || task_unpack(old->hot, &t, &l->a) ||
	    task_unpack(old->body, &t, &l->a))
		return;
	t.open_deps = h->counts[0] = c->open_deps;
	t.canceled_deps = h->counts[1] = c->canceled_deps;
	t.open_subs = h->counts[2] = c->open_subs;
	r = record_copy(&l->a, old);
	r->hot = task_part(&t, HOT, &l->a);
	r->body_changed = true;
	l->s->base.env.rules->index(&t, &r->ix, &l->a);
	mem_queue_put(&v->q, r);
}

/* A person who edits a file does not update the counts in the tasks that wait for it. An unreadable task may not be
 * Done, so it counts as open. */
static void git_branch_read_recount(struct refresh *l)
{
	const struct git_view *v = &l->s->view;
	struct recount c = { .rules = l->s->base.env.rules };

	for (size_t i = 0; i < v->n; i++) {
		const struct git_head *h = v->heads[i];
		const struct record *r = mem_queue_get(&v->q, h->key, 0);

		if (r)
			recount_add(&c, h->key, r->ix.parent, r->ix.status);
		else if (h->bad)
			recount_add(&c, h->key, STR(""), READY);
	}
	for (size_t i = 0; i < v->n; i++) {
		struct git_head *h = v->heads[i];
		const struct record *r = mem_queue_get(&v->q, h->key, 0);
		struct task t = { 0 };

		if (!r || h->bad || !str_starts(h->file, STR(GIT_TASKS "/")))
			continue;
		(void)recount_task(&c, h->key, r->ix.depends, &t);
		if (h->counts[0] != t.open_deps || h->counts[1] != t.canceled_deps ||
		    h->counts[2] != t.open_subs)
			set_counts(l, h, &t);
	}
	recount_free(&c);
}

/* --- the read ----------------------------------------------------------------------------------- */

static int check_one(struct refresh *l, const git_oid *tip)
{
	struct git_view *v = &l->s->view;
	int rc = open_tip(l, tip);

	if (rc == 0 && !is_queue(l))
		rc = git_branch_read_foreign(l);
	if (rc)
		return rc;
	git_branch_read_know(l);
	v->refresh++;
	v->stamp = last_stamp(l->s, tip, &l->a);
	rc = see_folder(l, GIT_TASKS, see_task);
	if (rc == 0)
		rc = see_folder(l, GIT_OWN, see_other);
	git_view_prune(v);
	git_branch_read_recount(l);
	v->base = *tip;
	v->base_tree = *git_tree_id(l->top);
	return rc;
}

int git_branch_read(struct git *s)
{
	struct refresh l = { .s = s };
	git_oid tip;
	int rc = git_branch_tip(s, &tip);

	if (rc == 0 && git_oid_equal(&tip, &s->view.base) && !git_oid_is_zero(&tip))
		return 0;
	if (rc == 0 && git_oid_is_zero(&tip))
		rc = 1;
	if (rc == 0)
		rc = check_one(&l, &tip);
	if (rc)
		git_view_clear(&s->view);
	git_tree_free(l.top);
	arena_free(&l.a);
	return rc;
}
