/*
 * A change runs its edits on the view. The layout writes the changed records as commits, and the transport moves
 * the refs to these commits if no ref has moved since it was read. If another process committed first, the whole
 * change runs again, on the new state. The states of a change:
 *
 *     OPEN
 *       |  git_modify() calls transport->begin()
 *       v
 *     ADMITTED <-----------------------------------------------------+
 *       |  layout->ready() reads the refs, and                       |
 *       |  finishes interrupted changes                              |
 *       v                                                            |
 *     CURRENT                                                        |
 *       |  run_edits(): the write-set is in the view's memory;       |  retry_until_pushed(),
 *       |  put_bodies() writes new texts as objects                  |  after a pause
 *       v                                                            |
 *     EDITED ----- nothing to write, or a trial ---> DONE            |
 *       |     ---- git_memo_sure(): the memo was wrong --------------+
 *       |     ---- an edit or a write fails -------> FAILED          |
 *       |  layout->commit() writes the commits,      ^               |
 *       |  the leader's last                         |               |
 *       v                                            |               |
 *     WRITTEN                                        |               |
 *       |  layout->commit() calls transport->push()  |               |
 *       v                                            |               |
 *     PUSHING ---- refused, or outcome unknown ------+               |
 *       |     ---- a ref has moved, nothing applied -----------------+
 *       |  the leader moves, then the other refs
 *       v
 *     PUSHED
 *       |  refs: note_commits(), git_compact_finish(); a branch: keep() in git/git_view.c;
 *       |  a branch of locks: also git_status_end()
 *       v
 *     DONE
 *
 * Every attempt takes its edits out of the view again (git_change_attempt()), so the next read shows the committed state.
 * FAILED and DONE both end with transport->end(). The transports draw their part of PUSHING: git/transport/transport_path.c and
 * git/transport/transport_wire.c. If the process dies, it leaves this:
 *
 *     ADMITTED  nothing: the kernel frees the gate.
 *     CURRENT   perhaps an interrupted change of another process, partly finished. Each of its pending moves is a
 *               push by itself, and the next change makes the rest (settle() in git/layout/layout_refs.c).
 *     EDITED    objects that no ref reaches; git's garbage collection removes them.
 *     WRITTEN   the same objects, and commits that no ref reaches.
 *     PUSHING   the leader has not moved: nothing has happened, and the transport's locks are stale.
 *               The leader has moved: the change has happened. Its commit lists the pending moves. Every reader
 *               shows them as done (show_pending() in git/layout/layout_refs_read.c), and the next change makes them.
 *               A queue on a branch has only one ref, so it never has pending moves.
 *     PUSHED    the change is complete. Some memo entries may be missing, so readers read the commits. Some
 *               compacted tasks may still have a ref, which a later change removes. The kept tip of a branch may
 *               be older; the next read moves it. A task's file in the worktree may still have the old status.
 */
#include <stdlib.h>
#include <time.h>

#include "base/backoff.h"
#include "base/os.h"
#include "base/secret.h"
#include "store/git/git.h"

#define RETRY_MS 20

/* --- steps -------------------------------------------------------------------------------------- */

struct git_step *git_step_find(struct git_set *w, struct str key)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq(w->steps[i].key, key))
			return &w->steps[i];
	return NULL;
}

struct git_step *git_step_make(struct git_set *w, struct str key)
{
	struct git_step *p = git_step_find(w, key);

	if (p)
		return p;
	w->steps = arena_grow(&w->a, w->steps, w->n, sizeof(*p));
	p = &w->steps[w->n++];
	*p = (struct git_step){ .key = key, .head = git_head(&w->s->view, key) };
	return p;
}

static int put_bodies(struct git_set *w, const struct edit *e)
{
	const struct git_layout *l = w->s->layout;
	int rc = 0;

	for (struct edit_item *it = l->body_put ? e->items : NULL; rc == 0 && it; it = it->next)
		if (!it->dropped && it->rec.body_changed)
			rc = l->body_put(w->s, &it->rec, &w->a);
	return rc;
}

static void add_line(struct git_set *w, const struct entry *e)
{
	struct git_line *l = arena_new(&w->a, struct git_line);

	l->entry = *e;
	l->n = w->n_lines++;
	*w->last = l;
	w->last = &l->next;
}

static int run_edits(struct git_set *w, struct change *changes, size_t n)
{
	struct edit_entry **last = &w->s->base.uncommitted;

	for (size_t i = 0; i < n; i++) {
		struct edit e;
		int rc = edit_run(&e, &w->s->base, &w->a, w->s->now, &changes[i]);

		if (rc == 0)
			rc = put_bodies(w, &e);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		for (const struct edit_item *it = e.items; it; it = it->next)
			git_step_make(w, it->rec.key)->put = true;
		for (const struct edit_entry *l = e.entries; l; l = l->next)
			add_line(w, &l->entry);
		if (e.entries) {
			*last = e.entries;
			last = e.last;
		}
		mem_queue_apply(&w->s->view.q, &e, &w->undo);
	}
	return 0;
}

/* --- the edits' result -------------------------------------------------------------------------- */

void git_set_states(struct git_set *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct git_step *p = &w->steps[i];
		const struct record *r = mem_queue_get(&w->s->view.q, p->key, w->s->now);
		struct record *copy;

		if (!r)
			continue;
		copy = record_copy(&w->a, r);
		if (p->put)
			copy->rev = w->stamp;
		p->clock = git_clock_hide(w->s, p->head, copy, &w->a);
		p->rec = copy;
	}
}

/* A log line goes into its record's commit; a line without a record stays with the change. */
void git_set_lines(struct git_set *w)
{
	struct git_line *l = w->lines, *next;

	w->lines = NULL;
	w->last = &w->lines;
	for (; l; l = next) {
		struct git_step *p = git_step_find(w, l->entry.key);
		bool own = p && p->rec;
		struct git_line ***last = own ? &p->last : &w->last;

		next = l->next;
		l->next = NULL;
		if (own && !p->last)
			p->last = &p->lines;
		**last = l;
		*last = &l->next;
	}
}

/* --- attempts ----------------------------------------------------------------------------------- */

void git_set_begin(struct git_set *w, struct git *s)
{
	int64_t own;

	*w = (struct git_set){ .s = s };
	s->now = git_now(&s->base);
	own = s->now * 1000;
	w->stamp = own > s->view.stamp ? own : s->view.stamp + 1;
	w->nonce = token_make(&w->a);
	w->last = &w->lines;
}

static int git_change_attempt(struct git *s, struct change *changes, size_t n)
{
	struct git_set w;
	int rc = s->layout->ready(s);

	if (rc)
		return rc;
	s->reads = (struct strs){ 0 };
	git_clock_change(s);
	git_set_begin(&w, s);
	s->changing = true;
	rc = run_edits(&w, changes, n);
	s->base.uncommitted = NULL;
	if (rc == 0 && !git_memo_sure(s, s->reads))
		rc = 1;
	if (rc == 0 && (w.n || w.lines))
		rc = s->layout->commit(&w);
	s->changing = false;
	mem_queue_take_back(&s->view.q, w.undo, 0);
	s->reads = (struct strs){ 0 };
	arena_free(&s->arena);
	arena_free(&w.a);
	return rc;
}

static int retry_until_pushed(struct git *s, struct change *changes, size_t n)
{
	struct backoff b = s->base.env.opt.backoff;
	int rc;

	b.made = 0;
	b.deadline = os_boot_ms() + s->base.env.opt.timeout_ms;
	b.base_ms = b.base_ms ? b.base_ms : RETRY_MS;
	while ((rc = git_change_attempt(s, changes, n)) > 0) {
		int64_t ms = backoff_next(&b, os_boot_ms());

		if (ms < 0)
			return store_fail(
				&s->base.env, STORE_BUSY, "try again",
				"%s: gave up after %lld attempts: other writers committed first each time",
				s->remote, (long long)b.made);
		nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
	}
	return rc;
}

int git_modify(struct store *base, struct change *changes, size_t n)
{
	struct git *s = git_of(base);
	int rc = store_may_write(&base->env, s->remote, s->changing || s->depth);

	if (rc == 0)
		rc = s->transport->begin(s);
	if (rc < 0)
		return rc;
	rc = retry_until_pushed(s, changes, n);
	s->transport->end(s);
	return rc;
}

/* --- creating and removing a queue -------------------------------------------------------------- */

int git_begin_queue(struct git *s)
{
	int rc = s->transport->begin(s);

	if (rc < 0)
		return rc;
	rc = 1;
	for (int i = 0; rc > 0 && i < GIT_TRIES; i++) {
		rc = git_refresh(s);
		if (rc > 0)
			rc = s->layout->make(s);
	}
	s->transport->end(s);
	return rc <= 0 ? rc
		       : store_fail(&s->base.env, STORE_BUSY, "try again",
				    "%s: other writers committed first each time", s->remote);
}

int git_discard(struct store *base)
{
	struct git *s = git_of(base);
	int rc = store_may_write(&base->env, s->remote, false);

	if (rc == 0)
		rc = s->transport->begin(s);
	if (rc < 0)
		return rc;
	rc = 1;
	for (int i = 0; rc > 0 && i < GIT_TRIES; i++) {
		rc = s->layout->drop(s);
	}
	git_memo_forget(s);
	git_view_clear(&s->view);
	s->transport->end(s);
	return rc <= 0 ? rc
		       : store_fail(&base->env, STORE_BUSY, "try again",
				    "%s: other writers committed first each time", s->remote);
}
