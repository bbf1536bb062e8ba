/* A branch of locks: combines its lock files with the worktree's task files. A lock file that cannot be read
 * still locks its task: only its holder is unknown. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/hex.h"
#include "base/str.h"
#include "base/when.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "store/git/git.h"
#include "store/git/layout/layout.h"
#include "store/store_tools.h"

#define LOCK_MAX (64u << 10)

struct refresh {
	struct git *s;
	struct git_worktree *w;
	struct arena *a; /* holds the items */
	git_tree *top;
	size_t n_files; /* items that have a file; they come first, by key */
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

/* An unreadable lock still counts as a lock, because somebody holds it. */
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

/* Copies the lock into the task; git_locks_read_settle() derives the status from it. */
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

/* The holder is working on the task, unless the lock is manual. */
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

/* Without a lock, a task In Progress belongs to the person who began it. A task whose file cannot be read is not offered,
 * because its status and dependencies are unknown. */
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

/* --- the read ----------------------------------------------------------------------------------- */

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

/* --- lockfile --------------------------------------------------------------------------------- */

/* Writes and reads lock files. The reader tolerates other programs' damaged lines, except the lines that decide
 * who holds the lock: a guess there could give one task to two agents. */

#define TAIL STR("_lock.yaml")
#define CLAIM_DIGITS 12
#define LOCKFILE_MAX (64u << 10)

/* --- names -------------------------------------------------------------------------------------- */

/* Is it an id that other programs write without the t? */
static bool is_numbered(struct str id)
{
	return id.n > 1 && id.p[0] == 't' && is_digit(id.p[1]);
}

struct str git_lockfile_name(struct arena *a, struct str id)
{
	struct str name = git_name(a, id);

	if (is_numbered(id))
		return arena_printf(a, "%.*s_lock.yaml", STRF(name));
	if (id.n && is_digit(id.p[0]))
		return arena_printf(a, "t%%%02x%.*s_lock.yaml", id.p[0], (int)name.n - 1,
				    name.p + 1);
	return arena_printf(a, "t%.*s_lock.yaml", STRF(name));
}

bool git_lockfile_named(struct arena *a, struct str name, struct str *id)
{
	if (!str_starts(name, STR("t")) || !str_ends(name, TAIL) || name.n == TAIL.n + 1)
		return false;
	name.n -= TAIL.n;
	if (!is_numbered(name))
		(void)str_cut_prefix(&name, STR("t"));
	return git_unname(a, name, id);
}

/* --- writing ------------------------------------------------------------------------------------ */

static void git_lockfile_add(struct buf *out, const char *key, json_t *v)
{
	yaml_add(out, str_c(key), v);
	json_decref(v);
}

static void add_text(struct buf *out, const char *key, struct str s)
{
	if (s.n)
		git_lockfile_add(out, key, json_stringn(s.p, s.n));
}

static void add_number(struct buf *out, const char *key, int64_t n)
{
	if (n)
		git_lockfile_add(out, key, json_integer(n));
}

static void add_time(struct buf *out, const char *key, int64_t ms, struct arena *a)
{
	if (ms)
		add_text(out, key, when_text(a, ms));
}

/* Writes the local time to the minute, as people do. */
static void add_minute(struct buf *out, const char *key, int64_t ms)
{
	time_t at = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];

	if (localtime_r(&at, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm))
		add_text(out, key, str_c(text));
}

static void add_id(struct buf *out, struct str id)
{
	int64_t n;

	if (is_numbered(id) && str_to_i64(str_n(id.p + 1, id.n - 1), &n))
		git_lockfile_add(out, "task_id", json_integer(n));
	else if (is_numbered(id))
		add_text(out, "task_id", str_n(id.p + 1, id.n - 1));
	else
		add_text(out, "task_id", id);
}

static struct str token_hex(struct str token, struct arena *a)
{
	struct buf b = BUF_MAX(2 * token.n + 1);
	struct str out;

	for (size_t i = 0; i < token.n; i++)
		buf_addf(&b, "%02x", (unsigned char)token.p[i]);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void git_lockfile_write(const struct git_lockfile *f, struct buf *out, struct arena *a)
{
	const struct lock *l = &f->lock;
	struct str hex = token_hex(l->token, a);

	add_id(out, f->id);
	add_text(out, "locked_by", l->holder);
	add_minute(out, "locked_at", l->acquired_at);
	add_text(out, "hostname", l->host);
	add_text(out, "claim_id", str_n(hex.p, hex.n < CLAIM_DIGITS ? hex.n : CLAIM_DIGITS));
	add_number(out, "fence", f->fence);
	add_time(out, "acquired_at", l->acquired_at, a);
	add_time(out, "expires_at", l->expires_at, a);
	add_number(out, "ttl", l->ttl);
	add_text(out, "token_sha256", hex);
	add_number(out, "manual", l->manual);
	add_number(out, "pid", l->pid);
	add_number(out, "pid_start", l->pid_start);
	add_text(out, "boot_id", l->boot_id);
	add_text(out, "mode", l->mode);
	add_text(out, "clock", f->clock);
}

/* --- reading ------------------------------------------------------------------------------------ */

struct reading {
	struct git_lockfile *out;
	struct yaml_fault *fault;
	struct arena *a;
	int64_t locked_at;
};

static int git_lockfile_refuse(struct reading *r, size_t line, const char *text)
{
	*r->fault = (struct yaml_fault){ line, str_c(text) };
	return -EBADMSG;
}

static struct str text_of(const json_t *v, struct arena *a)
{
	if (json_is_integer(v))
		return arena_printf(a, "%lld", (long long)json_integer_value(v));
	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

static struct str *text_at(struct git_lockfile *f, struct str key)
{
	const struct {
		const char *key;
		struct str *at;
	} texts[] = {
		{ "locked_by", &f->lock.holder }, { "hostname", &f->lock.host },
		{ "boot_id", &f->lock.boot_id },  { "mode", &f->lock.mode },
		{ "clock", &f->clock },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (str_is(key, texts[i].key))
			return texts[i].at;
	return NULL;
}

static int64_t *number_at(struct git_lockfile *f, struct str key)
{
	const struct {
		const char *key;
		int64_t *at;
	} numbers[] = {
		{ "fence", &f->fence },
		{ "ttl", &f->lock.ttl },
		{ "manual", &f->lock.manual },
		{ "pid", &f->lock.pid },
		{ "pid_start", &f->lock.pid_start },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (str_is(key, numbers[i].key))
			return numbers[i].at;
	return NULL;
}

static int64_t *time_at(struct reading *r, struct str key)
{
	if (str_is(key, "locked_at"))
		return &r->locked_at;
	if (str_is(key, "acquired_at"))
		return &r->out->lock.acquired_at;
	return str_is(key, "expires_at") ? &r->out->lock.expires_at : NULL;
}

/* Ignores unknown keys: other programs may use them. */
static int set_key(void *ctx, struct str key, json_t *v, size_t line)
{
	struct reading *r = ctx;
	struct str *text = text_at(r->out, key);
	int64_t *number = number_at(r->out, key), *time = time_at(r, key);

	if ((text || time || str_is(key, "token_sha256")) && !json_is_string(v) &&
	    !json_is_integer(v))
		return git_lockfile_refuse(r, line, "not a text");
	if (text)
		*text = text_of(v, r->a);
	if (number && !json_is_integer(v))
		return git_lockfile_refuse(r, line, "not a number");
	if (number)
		*number = json_integer_value(v);
	if (time && !when_parse(text_of(v, r->a), time))
		return git_lockfile_refuse(r, line, "not a time");
	if (str_is(key, "token_sha256") && !hex_bytes(text_of(v, r->a), &r->out->lock.token, r->a))
		return git_lockfile_refuse(r, line, "not a hash");
	return 0;
}

/* These keys decide who holds a lock, so a damaged line with one of them makes the file unreadable. Other
 * damaged lines are ignored. */
static bool git_lockfile_decides(struct str key)
{
	return str_is(key, "token_sha256") || str_is(key, "expires_at") || str_is(key, "fence") ||
	       str_is(key, "clock") || str_is(key, "locked_by");
}

/* Some programs write "pid: -", which is not YAML, or "---" at the end. So this function reads each line by
 * itself and ignores unreadable lines. It does not join continuation lines. */
static int read_lines(struct str text, struct reading *r)
{
	struct yaml_fault fault;
	struct reading one = { .out = r->out, .fault = &fault, .a = r->a };
	struct strs seen = { 0 };
	int rc = 0;

	while (!rc && text.n) {
		struct str line = str_cut(&text, '\n'), rest = line, key = str_cut(&rest, ':');

		if (!text_at(r->out, key) && !number_at(r->out, key) && !time_at(r, key) &&
		    !str_is(key, "token_sha256"))
			continue;
		if (strs_have(seen, key))
			return -EBADMSG;
		seen.v = arena_grow(r->a, seen.v, seen.n, sizeof(*seen.v));
		seen.v[seen.n++] = key;
		if (yaml_read(line, set_key, &one, &fault, r->a) && git_lockfile_decides(key))
			rc = -EBADMSG;
	}
	r->locked_at = one.locked_at;
	return rc;
}

int git_lockfile_read(struct str text, struct str id, struct git_lockfile *out,
		      struct yaml_fault *fault, struct arena *a)
{
	struct reading r = { .out = out, .fault = fault, .a = a };

	*out = (struct git_lockfile){ .id = id };
	if (text.n > LOCKFILE_MAX)
		return git_lockfile_refuse(&r, 1, "it is too large");
	if (yaml_read(text, set_key, &r, fault, a)) {
		*out = (struct git_lockfile){ .id = id };
		if (read_lines(text, &r) || !out->lock.holder.n)
			return -EBADMSG;
	}
	if (!out->lock.holder.n)
		return git_lockfile_refuse(&r, 1, "it does not name the holder (locked_by)");
	if (!out->lock.acquired_at)
		out->lock.acquired_at = r.locked_at;
	out->lock.foreign = !out->lock.token.n;
	return 0;
}
