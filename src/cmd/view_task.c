/* The usual renderings of answers about one task: after a change, in full, and after a claim. */
#include "cmd/view.h"

#include <stdlib.h>

#include "base/when.h"
#include "core/lease.h"
#include "core/typed.h"

/* Marks the answer to a repeated call. */
static void note_repeat(const struct reply *r, struct view *v)
{
	if (r->ans.repeated)
		view_text(v, DIM, "  (done before; nothing changed)");
}

static void show_none(const struct answer *ans, struct view *v)
{
	if (v->quiet)
		return;
	view_text(v, PLAIN, "no task: ");
	view_data(v, PLAIN, ans->message.n ? ans->message : STR("no task is eligible now"));
	view_text(v, PLAIN, "\n");
	if (ans->wait_ms)
		view_text(v, DIM, "the next one becomes eligible in %s\n",
			  arena_cstr(v->arena, view_left(v, ans->wait_ms)));
	if (ans->hint.n) {
		view_text(v, DIM, "hint: ");
		view_data(v, PLAIN, ans->hint);
		view_text(v, PLAIN, "\n");
	}
}

static struct str id_of(const struct reply *r)
{
	return r->ans.task ? r->ans.task->id : STR("");
}

void show_did(const struct reply *r, struct view *v, const char *what)
{
	if (v->quiet)
		return;
	view_data(v, BOLD, id_of(r));
	view_text(v, PLAIN, " %s", what);
	note_repeat(r, v);
	view_text(v, PLAIN, "\n");
}

void show_depends(const struct reply *r, struct view *v)
{
	struct strs on = r->ans.task ? r->ans.task->depends : (struct strs){ 0 };

	if (on.n)
		show_did(r, v,
			 arena_printf(v->arena, "depends on %s",
				      arena_cstr(v->arena, view_strs(v, on)))
				 .p);
	else
		show_did(r, v, "depends on nothing");
}

void show_task(const struct reply *r, struct view *v)
{
	int64_t status = r->ans.task ? r->ans.task->status : 0;

	if (v->quiet)
		return;
	view_data(v, BOLD, id_of(r));
	view_text(v, PLAIN, " → ");
	view_status(v, status, "gone");
	note_repeat(r, v);
	view_text(v, PLAIN, "\n");
}

/* --- one task ------------------------------------------------------------------------------------ */

static void view_task_label(struct view *v, const char *name)
{
	view_text(v, DIM, "%-12s", name);
}

static void view_task_row(struct view *v, const char *name, struct str text)
{
	if (!text.n)
		return;
	view_task_label(v, name);
	view_data(v, PLAIN, text);
	view_text(v, PLAIN, "\n");
}

static void row_time(struct view *v, const char *name, int64_t ms)
{
	if (!ms)
		return;
	view_task_label(v, name);
	view_text(v, PLAIN, "%s", arena_cstr(v->arena, when_text(v->arena, ms)));
	view_text(v, DIM, "  (%s)\n", arena_cstr(v->arena, view_when(v, ms)));
}

static void view_task_block(struct view *v, const char *name, struct str text)
{
	if (!text.n)
		return;
	view_text(v, DIM, "%s\n", name);
	view_lines(v, text, 2);
}

static void put_lock(struct view *v, const struct task *t, int64_t now)
{
	const struct lock *l = &t->lock;
	bool live = lease_live(l, now);

	if (!l->holder.n)
		return;
	view_task_label(v, "lock");
	view_data(v, live ? CYAN : DIM, l->holder);
	view_text(v, PLAIN, ", fence %lld", (long long)t->fence);
	if (!live)
		view_text(v, lease_abandoned(t, now) ? RED : YELLOW, "%s%s",
			  lease_abandoned(t, now) ? ", abandoned: the lease expired "
						  : ", expired ",
			  arena_cstr(v->arena, view_lost(v, l, now)));
	else if (l->expires_at)
		view_text(v, PLAIN, ", expires in %s",
			  arena_cstr(v->arena, view_left(v, l->expires_at - now)));
	else
		view_text(v, PLAIN, ", does not expire");
	if (l->manual)
		view_text(v, PLAIN, ", manual");
	if (l->pid)
		view_text(v, PLAIN, ", pid %lld", (long long)l->pid);
	view_text(v, PLAIN, "\n");
}

static void put_relations(struct view *v, const struct task *t)
{
	view_task_row(v, "parent", t->parent);
	if (t->depends.n) {
		view_task_label(v, "depends on");
		view_text(v, PLAIN, "%s", arena_cstr(v->arena, view_strs(v, t->depends)));
		if (t->open_deps)
			view_text(v, YELLOW, "  (%lld not done)", (long long)t->open_deps);
		view_text(v, PLAIN, "\n");
	}
	if (t->open_subs) {
		view_task_label(v, "sub-tasks");
		view_text(v, YELLOW, "%lld open\n", (long long)t->open_subs);
	}
}

static void put_head(struct view *v, const struct task *t)
{
	view_data(v, BOLD, t->id);
	view_text(v, PLAIN, "  ");
	view_data(v, BOLD, t->title);
	view_text(v, PLAIN, "\n");
	view_task_label(v, "status");
	view_status(v, t->status, "?");
	view_text(v, PLAIN, "  %s, priority %lld\n", class_name(t->class_rank),
		  (long long)t->priority);
}

static void put_history(struct view *v, const struct task *t)
{
	view_task_row(v, "assignee", t->assignee);
	if (!t->lock.holder.n)
		view_task_row(v, "last holder", t->last_holder);
	view_task_row(v, "run", t->run);
	if (t->attempts) {
		view_task_label(v, "claims");
		view_text(v, PLAIN, "%lld", (long long)t->attempts);
		if (t->abandoned)
			view_text(v, YELLOW, ", %lld expired", (long long)t->abandoned);
		view_text(v, PLAIN, "\n");
	}
	row_time(v, "created", t->created_at);
	row_time(v, "edited", t->updated_at);
	row_time(v, "started", t->started_at);
	row_time(v, "done", t->done_at);
}

static void put_comments(struct view *v, const struct event *list, size_t n)
{
	if (n)
		view_text(v, DIM, "comments\n");
	for (size_t i = 0; i < n; i++) {
		view_text(v, PLAIN, "  ");
		view_data(v, CYAN, list[i].agent);
		view_text(v, DIM, "  %s\n", arena_cstr(v->arena, view_when(v, list[i].at)));
		view_lines(v, list[i].text, 4);
	}
}

/* The value is stored as written, but shown with sorted keys. */
static void put_extra(struct view *v, struct str extra)
{
	json_t *o = extra.n ? json_loadb(extra.p, extra.n, 0, NULL) : NULL;
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	view_task_row(v, "extra", str_c(text));
	free(text);
	json_decref(o);
}

static void put_due(struct view *v, const struct task *t, int64_t now)
{
	if (!t->due)
		return;
	view_task_label(v, "due");
	view_text(v, PLAIN, "%s", arena_cstr(v->arena, when_date(v->arena, t->due)));
	view_text(v, RED, view_overdue(t, now) ? "  late\n" : "\n");
}

/* Does the reason explain the present status? Otherwise it only tells how an earlier attempt
 * ended. */
static bool view_task_stands(const struct task *t)
{
	return t->status == BLOCKED || t->status == NEEDS_HELP || t->status == FAILED ||
	       t->status == CANCELED;
}

void show_details(const struct reply *r, struct view *v)
{
	const struct task *t = r->ans.task;

	put_head(v, t);
#define PLAIN(tag, part, name, limit, argument, help) view_task_row(v, #name, t->name);
#include "core/task.def"
	if (t->labels.n) {
		view_task_label(v, "labels");
		view_text(v, PLAIN, "%s\n", arena_cstr(v->arena, view_strs(v, t->labels)));
	}
	put_due(v, t, r->ans.now);
	row_time(v, "not before", t->not_before);
	if (r->ans.related)
		view_task_row(v, "parent", t->parent);
	else
		put_relations(v, t);
	put_lock(v, t, r->ans.now);
	put_history(v, t);
	row_time(v, "next check", t->next_check);
	put_extra(v, t->extra);
	view_task_block(v, "came back", r->ans.came_back ? r->ans.came_back->reason : STR(""));
	view_task_block(v, view_task_stands(t) ? "reason" : "last reason", t->blocker_reason);
	if (t->status == BLOCKED)
		view_task_block(v, "to unblock", t->unblock_action);
	view_task_block(v, "description", t->description);
	view_task_block(v, "acceptance", t->acceptance);
	view_task_block(v, "summary", t->summary);
	if (r->ans.related) {
		view_links(v, r->ans.related);
		view_attempts(v, r->ans.related, t);
	}
	put_comments(v, r->ans.events, r->ans.n_events);
}

/* --- after a claim ------------------------------------------------------------------------------- */

/* The brief for a new holder. */
struct granted {
	const struct task *task;
	const struct grant *lock;
	const struct event *comments;
	size_t n_comments;
	int64_t now;
	const struct notice *back; /* reason for the task's return; NULL: unknown */
};

/* The history that earlier holders left: the reason for the return, and the comments. */
static void put_return(struct view *v, const struct granted *g)
{
	long long earlier = g->task->attempts - 1, abandoned = g->task->abandoned;

	if (earlier < 1)
		return;
	view_text(v, YELLOW, "came back: %lld earlier claim%s", earlier, earlier == 1 ? "" : "s");
	if (abandoned)
		view_text(v, YELLOW, ", %lld abandoned", abandoned);
	view_text(v, PLAIN, "\n");
	view_task_block(v, "why", g->back ? g->back->reason : STR(""));
	if (!g->back)
		view_task_block(v, "the last reason was", g->task->blocker_reason);
	put_comments(v, g->comments, g->n_comments);
}

static void put_grant(struct view *v, const struct granted *g)
{
	const struct grant *lock = g->lock;

	if (lock) {
		view_task_label(v, "fence");
		view_text(v, PLAIN, "%lld\n", (long long)lock->fence);
		view_task_label(v, "expires");
		view_text(v, PLAIN, "in %s",
			  arena_cstr(v->arena, view_left(v, lock->expires_at - g->now)));
		view_text(v, DIM, "  (%s)\n",
			  arena_cstr(v->arena, when_text(v->arena, lock->expires_at)));
		view_task_row(v, "token", lock->token);
	}
	put_relations(v, g->task);
	put_return(v, g);
	view_task_block(v, "description", g->task->description);
	view_task_block(v, "acceptance", g->task->acceptance);
}

/* People paste this command, so "ID" replaces an invalid id, which a damaged store may have. */
static const char *command_id(const struct task *t, struct arena *a)
{
	return id_fault(t->id) && !typed_of(t->id) ? "ID" : arena_cstr(a, t->id);
}

static void put_granted(struct view *v, const struct granted *g)
{
	const char *id = command_id(g->task, v->arena);
	bool manual = g->task->lock.manual;

	if (v->quiet) {
		view_data(v, PLAIN, g->task->id);
		view_text(v, PLAIN, "\n");
		return;
	}
	view_text(v, GREEN, "%s ", manual ? "locked" : "claimed");
	view_data(v, BOLD, g->task->id);
	view_text(v, PLAIN, "  ");
	view_data(v, PLAIN, g->task->title);
	view_text(v, PLAIN, "\n");
	put_grant(v, g);
	if (manual)
		view_text(v, DIM, "next: pawl heartbeat %s · pawl lock release %s\n", id, id);
	else
		view_text(
			v, DIM,
			"next: pawl heartbeat %s · pawl done %s · pawl review %s --summary TEXT\n",
			id, id, id);
}

void show_grant(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;
	struct granted g = { ans->task,     ans->lock, ans->events,
			     ans->n_events, ans->now,  ans->came_back };

	if (ans->task)
		put_granted(v, &g);
	else
		show_none(ans, v);
}

void show_granted_next(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;
	struct granted g = { ans->next,     ans->next_lock, ans->events,
			     ans->n_events, ans->now,       ans->came_back };

	put_granted(v, &g);
}

void show_next(const struct reply *r, struct view *v)
{
	const struct task *t = r->ans.task;

	if (r->ans.kind == ANSWER_CANDIDATES) {
		show_candidates(r, v);
	} else if (!t) {
		show_none(&r->ans, v);
	} else if (r->ans.lock) {
		show_grant(r, v);
	} else if (v->quiet) {
		view_data(v, PLAIN, t->id);
		view_text(v, PLAIN, "\n");
	} else {
		show_details(r, v);
		view_text(v, DIM, "next: pawl claim %s\n", command_id(t, v->arena));
	}
}
