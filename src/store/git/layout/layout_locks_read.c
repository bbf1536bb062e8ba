/* A branch of locks: combines its lock files with the task files of the worktree. */
#include <stdlib.h>

#include "format/record_form.h"
#include "store/git/layout/locks.h"
#include "format/task_form.h"
#include "store/store_tools.h"

#define LOCK_MAX (64u << 10)

struct refresh {
	struct git *s;
	struct git_worktree *w;
	struct arena *a; /* of the items */
	git_tree *top;
	size_t n_files; /* the items that have a file: they come first, by key */
};

/* --- locks -------------------------------------------------------------------------------------- */

static int key_cmp(const void *key, const void *item)
{
	return str_cmp(*(const struct str *)key, ((const struct git_item *)item)->key);
}

const struct git_item *git_item_find(const struct git_worktree *w, struct str key)
{
	return w->n_items ? bsearch(&key, w->items, w->n_items, sizeof(*w->items), key_cmp) : NULL;
}

static struct git_item *item_add(struct refresh *l, struct str id, const struct git_file *f)
{
	struct git_worktree *w = l->w;
	struct git_item *it;

	w->items = arena_grow(l->a, w->items, w->n_items, sizeof(*it));
	it = &w->items[w->n_items++];
	*it = (struct git_item){ .key = task_key(l->a, id), .file = f };
	if (f)
		it->task = f->task;
	else
		it->task = (struct task){ .id = id,
					  .title = id,
					  .status = READY,
					  .class_rank = STANDARD,
					  .priority = PRIORITY_DEFAULT,
					  .version = 1 };
	return it;
}

static struct git_item *item_of(struct refresh *l, struct str id)
{
	struct str key = task_key(l->a, id);
	struct git_item *it = l->n_files
				      ? bsearch(&key, l->w->items, l->n_files, sizeof(*it), key_cmp)
				      : NULL;

	return it ? it : item_add(l, id, NULL);
}

/* An unreadable lock still counts as a lock: somebody holds it. */
static void git_locks_read_unreadable(struct refresh *l, struct git_item *it,
				      const struct yaml_fault *fault)
{
	struct str at = fault->line ? arena_printf(l->a, ":%zu", fault->line) : STR("");

	it->fault = arena_printf(l->a, "%.*s%.*s: %.*s", STRF(it->name), STRF(at),
				 STRF(fault->text));
	it->task.lock = (struct lock){
		.holder = arena_printf(l->a, "unknown (%.*s)", STRF(it->fault)), .foreign = 1
	};
	if (it->task.lock.holder.n > NAME_MAX_BYTES)
		it->task.lock.holder.n = NAME_MAX_BYTES;
}

static int read_lock(struct refresh *l, struct git_item *it, struct git_lockfile *out,
		     struct yaml_fault *fault)
{
	git_blob *blob = NULL;
	int rc = git_blob_open(l->s, &blob, &it->oid) ||
		 git_blob_rawsize(blob) > (git_object_size_t)LOCK_MAX;

	*fault = (struct yaml_fault){ 0, STR("it is too large") };
	if (rc == 0)
		rc = git_lockfile_read(
			str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)),
			it->task.id, out, fault, l->a);
	git_blob_free(blob);
	return rc;
}

/* Copies the lock into the task; settle() derives the status from it. */
static void lay_over(struct refresh *l, struct git_item *it, const struct git_lockfile *f)
{
	struct task *t = &it->task;

	t->lock = f->lock;
	t->fence = f->fence;
	it->clock = f->clock;
	if (f->fence > l->w->fence)
		l->w->fence = f->fence;
}

static void see_lock(struct refresh *l, const git_tree_entry *e)
{
	struct git_lockfile f = { 0 };
	struct yaml_fault fault;
	struct git_item *it;
	struct str name = str_c(git_tree_entry_name(e)), id;

	if (git_tree_entry_type(e) != GIT_OBJECT_BLOB || !git_lockfile_named(l->a, name, &id) ||
	    id_fault(id) || !str_eq(git_lockfile_name(l->a, id), name) ||
	    !str_eq(id_numbered(l->a, id), id))
		return;
	it = item_of(l, id);
	it->oid = *git_tree_entry_id(e);
	it->name = arena_str(l->a, name);
	if (read_lock(l, it, &f, &fault))
		git_locks_read_unreadable(l, it, &fault);
	else
		lay_over(l, it, &f);
}

/* --- tasks -------------------------------------------------------------------------------------- */

/* The holder works on the task, unless its lock is a manual one. */
static void git_locks_read_settle(const struct refresh *l, struct git_item *it)
{
	struct task *t = &it->task;
	const struct lock *lock = &t->lock;

	if (!t->fence)
		t->fence = l->w->fence;
	if (!lock->holder.n)
		return;
	t->last_holder = lock->holder;
	t->attempts = 1;
	t->last_ttl = lock->ttl;
	t->started_at = lock->acquired_at;
	if (!status_ended(t->status) && !lock->manual)
		t->status = IN_PROGRESS;
}

static void git_locks_read_recount(const struct store_rules *rules, struct git_worktree *w)
{
	struct recount c = { .rules = rules };
	struct arena a = { 0 };
	struct index *ix = arena_array(&a, struct index, w->n_items);

	for (size_t i = 0; i < w->n_items; i++) {
		rules->index(&w->items[i].task, &ix[i], &a);
		recount_add(&c, w->items[i].key, ix[i].parent, w->items[i].task.status);
	}
	for (size_t i = 0; i < w->n_items; i++)
		(void)recount_task(&c, w->items[i].key, ix[i].depends, &w->items[i].task);
	recount_free(&c);
	arena_free(&a);
}

/* Without a lock, a task In Progress belongs to the person who began it. A task without a readable file is
 * not known well enough to offer it. */
static bool never_offered(const struct git_item *it)
{
	return !it->file || it->file->fault.n ||
	       (it->task.status == IN_PROGRESS && !it->task.lock.holder.n);
}

struct git_head *git_item_put(struct git *s, const struct git_item *it, struct arena *a)
{
	struct git_view *v = &s->view;
	struct git_head *h = git_head_make(v, it->key);
	struct record r = { .key = it->key,
			    .rev = v->stamp + 1,
			    .hot = task_part(&it->task, HOT, a),
			    .body = task_part(&it->task, BODY, a),
			    .body_changed = true };

	h->seen = v->refresh;
	h->lease = it->oid;
	h->clock = arena_str(&v->arena, it->clock);
	h->file = it->fault.n ? arena_str(&v->arena, it->name) : STR("");
	h->fault = it->fault.n ? it->fault : it->file ? it->file->fault : STR("");
	h->fault = arena_str(&v->arena, h->fault);
	h->bad = h->fault.n;
	s->base.env.rules->index(&it->task, &r.ix, a);
	if (never_offered(it)) {
		r.ix.lane = LANE_NONE;
		r.ix.eligible_at = 0;
	}
	git_clock_show(s, h, &r, a);
	mem_queue_put(&v->q, &r);
	return h;
}

/* --- the look ----------------------------------------------------------------------------------- */

static int item_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct git_item *)a)->key, ((const struct git_item *)b)->key);
}

static void put_all(struct refresh *l)
{
	struct git_worktree *w = l->w;
	struct arena a = { 0 };

	for (size_t i = 0; i < w->n_items; i++)
		git_locks_read_settle(l, &w->items[i]);
	if (w->n_items > 1)
		qsort(w->items, w->n_items, sizeof(*w->items), item_cmp);
	git_locks_read_recount(l->s->base.env.rules, w);
	for (size_t i = 0; i < w->n_items; i++)
		git_item_put(l->s, &w->items[i], &a);
	arena_free(&a);
}

static int check_one(struct git *s, const git_oid *tip)
{
	struct git_worktree *w = s->worktree;
	struct refresh l = { .s = s, .w = w, .a = &w->seen };
	int rc = git_tip_tree(s, tip, &l.top);

	if (rc)
		return rc;
	arena_free(&w->seen);
	w->items = NULL;
	w->n_items = 0;
	s->view.refresh++;
	git_tip_said(s, tip, &s->view.stamp, &w->fence);
	for (size_t i = 0; i < w->n; i++)
		item_add(&l, w->v[i].task.id, &w->v[i]);
	l.n_files = w->n;
	for (size_t i = 0; i < git_tree_entrycount(l.top); i++)
		see_lock(&l, git_tree_entry_byindex(l.top, i));
	put_all(&l);
	git_view_prune(&s->view);
	s->view.base = *tip;
	s->view.base_tree = *git_tree_id(l.top);
	git_tree_free(l.top);
	return 0;
}

int git_locks_read(struct git *s)
{
	uint64_t before = s->worktree->stamp;
	git_oid tip;
	int rc = git_branch_tip(s, &tip);

	if (rc == 0 && git_oid_is_zero(&tip))
		rc = 1;
	if (rc == 0)
		rc = git_worktree_read(s);
	if (rc == 0 && (s->worktree->stamp != before || !git_oid_equal(&tip, &s->view.base)))
		rc = check_one(s, &tip);
	if (rc)
		git_view_clear(&s->view);
	return rc;
}
