/* Writes a record as files on a branch, and reads it back. */
#include "store/git/layout/branch.h"

#include <errno.h>

#include "base/when.h"
#include "format/markdown.h"
#include "store/columns.h"

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
