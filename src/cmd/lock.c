#include "cmd/command.h"

#include "core/lease.h"
#include "format/task.h"

static const struct param acquire_params[] = {
	PARAM_LOCK("task to lock, or @write, @batch, @config or @maintenance"),
	PARAM_TTL("5m"),
	PARAM_PID,
	PARAM(description, "description", P_TEXT, .letter = 'd', .help = "what for, for the log"),
	PARAM_WRITE_STATUS,
	{ 0 }
};

static bool is_there(struct client *c)
{
	struct request rq = { .op = OP_LOCKS };
	struct answer ans = { 0 };

	GIVE(&rq, limit, 1);
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS;
}

static enum result run_init(struct session *s, struct args *a, struct reply *out)
{
	struct answer ans = { 0 };
	bool existed = is_there(&s->client);

	(void)a;
	if (!existed && client_make(&s->client, &ans) != SUCCESS)
		return run_answer(&ans, out);
	json_object_set_new(reply_more(out), "existed", json_boolean(existed));
	json_object_set_new(reply_more(out), "store",
			    json_str(uri_shown(s->arena, s->client.config.uri)));
	return SUCCESS;
}

static void show_init(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool existed = json_is_true(json_object_get(o, "existed"));

	if (v->quiet)
		return;
	view_text(v, GREEN, existed ? "already there: " : "made: ");
	view_data(v, PLAIN, json_get(o, "store"));
	view_text(v, DIM, "\nnext: pawl lock acquire ID\n");
}

const struct command cmd_lock_init = {
	.name = "lock init",
	.group = "locks",
	.summary = "make the queue, or the branch, that locks are in",
	.detail =
		"Makes the queue that --store, PAWL_STORE or the settings name, where there is none; harmless where "
		"there is one. Nothing is kept of the choice: `pawl init` does that.",
	.example = "pawl lock init --store git:origin#aitask-locks",
	.see = "init, lock acquire, id init",
	.gives = "existed store",
	.flags = C_WRITE | C_IDEMPOTENT | C_SHELL,
	.run = run_init,
	.show = show_init,
};

const struct command cmd_lock_acquire = {
	.name = "lock acquire",
	.group = "locks",
	.summary = "lock a task without changing its status",
	.detail =
		"The manual lock: several agents in turn on one task, e.g. a reviewer on one in Review. Who holds "
		"it can block, review, finish or fail the task as after a claim. @maintenance and its like are locks of "
		"the whole queue: while somebody holds one, the changes of others that it excludes wait, and then "
		"fail (30); reading and heartbeats go on. Programs that its holder starts get past it with its token "
		"in PAWL_LOCK_TOKEN.",
	.example = "pawl lock acquire t1 --ttl 10m\n"
		   "pawl lock acquire @maintenance --ttl 10m --description \"moving the disk\"",
	.see = "lock release, lock typed, claim",
	.gives = "task lock parent waits_for comments came_back call_next",
	.params = acquire_params,
	.flags = C_WRITE,
	.op = OP_LOCK_ACQUIRE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run_for_pid,
	.show = show_grant,
};

static const struct param id_params[] = { PARAM_LOCK("task, or a lock of the whole queue"), { 0 } };

static const struct param release_params[] = { PARAM_LOCK("task, or a lock of the whole queue"),
					       PARAM_WRITE_STATUS,
					       { 0 } };

static void show_released(const struct reply *r, struct view *v)
{
	show_did(r, v, "is not locked by you any more");
}

const struct command cmd_lock_release = {
	.name = "lock release",
	.group = "locks",
	.summary = "give up a lock, the status stays",
	.detail =
		"A lock that is gone or has run out counts as released. Another's live lock is not touched (21).",
	.example = "pawl lock release t1",
	.see = "lock acquire, release",
	.gives = "task",
	.params = release_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_LOCK_RELEASE,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show_released,
};

static bool is_locked(const struct answer *ans)
{
	return ans->task && lease_live(&ans->task->lock, ans->now);
}

static enum result run_check(struct session *s, struct args *a, struct reply *out)
{
	enum result code = run_op(s, a, out);

	if (code == SUCCESS && !is_locked(&out->ans))
		out->ans.code = LOCK_FREE;
	return out->ans.code;
}

static enum paint life_paint(int64_t life)
{
	return life == LIFE_ALIVE ? GREEN : life == LIFE_DEAD ? RED : DIM;
}

/* "  process 4711 on box is alive", or why one cannot tell */
static void show_process(struct view *v, const struct lock *l)
{
	if (l->life == LIFE_NOT_LOOKED)
		return;
	view_text(v, PLAIN, "  ");
	if (!l->pid) {
		view_text(
			v, DIM,
			"no process is noted with it (--pid): whether its holder lives is unknown\n");
		return;
	}
	view_text(v, PLAIN, "process %lld on ", (long long)l->pid);
	view_data(v, PLAIN, l->host);
	view_text(v, PLAIN, " is ");
	view_text(v, life_paint(l->life), "%s\n", life_name(l->life));
	if (l->life == LIFE_DEAD)
		view_text(v, DIM, "  pawl lock cleanup releases it\n");
}

static void show_lock(const struct reply *r, struct view *v)
{
	static const struct task none;
	const struct task *t = r->ans.task ? r->ans.task : &none;
	const struct lock *l = &t->lock;

	if (v->quiet)
		return;
	view_data(v, BOLD, t->id);
	if (!l->holder.n) {
		view_text(v, GREEN, " is free\n");
		return;
	}
	if (!is_locked(&r->ans)) {
		view_text(v, GREEN, " is free");
		view_text(v, PLAIN, "; the lock of ");
		view_data(v, DIM, l->holder);
		view_text(v, PLAIN, " (fence %lld) ran out\n", (long long)t->fence);
		show_process(v, l);
		return;
	}
	view_text(v, PLAIN, " is locked by ");
	view_data(v, CYAN, l->holder);
	view_text(v, PLAIN, ", fence %lld, taken %.*s, ", (long long)t->fence,
		  STRF(view_when(v, l->acquired_at)));
	if (l->expires_at)
		view_text(v, PLAIN, "%.*s left\n", STRF(view_left(v, l->expires_at - r->ans.now)));
	else
		view_text(v, PLAIN, "without an end\n");
	show_process(v, l);
}

const struct command cmd_lock_check = {
	.name = "lock check",
	.group = "locks",
	.summary = "is it locked? exit code 0: yes, 1: no",
	.detail = "Any other exit code means that it could not be found out.",
	.example = "pawl lock check -q t1; [ $? -eq 1 ] && echo free",
	.see = "lock status",
	.gives = "task locked lock",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.fails = FAILS(LOCK_FREE, NOT_FOUND),
	.run = run_check,
	.show = show_lock,
};

static const struct param list_params[] = { PARAM(holder, "holder", P_NAME,
						  .help = "only those of this agent"),
					    PARAM(limit, "limit", P_INT, .letter = 'n',
						  .def = "100", .help = "at most so many; 0: all"),
					    PARAM_CACHED,
					    { 0 } };

static enum result run_list(struct session *s, struct args *a, struct reply *out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	return run_op(s, a, out);
}

static const struct param status_params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "task, or a lock of the whole queue; without one: all locks of tasks"),
	{ 0 }
};

static enum result run_status(struct session *s, struct args *a, struct reply *out)
{
	if (HAS(&a->rq, id))
		return run_op(s, a, out);
	a->rq.op = OP_LOCKS;
	return run_list(s, a, out);
}

static void show_status(const struct reply *r, struct view *v)
{
	if (r->ans.kind == ANSWER_LOCKS)
		show_locks(r, v);
	else
		show_lock(r, v);
}

const struct command cmd_lock_status = {
	.name = "lock status",
	.group = "locks",
	.summary = "who holds a task, since when, until when; or all locks",
	.detail =
		"And whether the process that was noted with the lock (claim --pid, pawl run) is alive, dead or "
		"unknown: it is known by host, boot, pid namespace, pid and start time, and never signalled.",
	.example = "pawl lock status\n"
		   "pawl lock status t1\n"
		   "pawl lock status @maintenance",
	.see = "lock check, lock list, lock typed",
	.gives = "task locked lock locks count total",
	.params = status_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.fails = FAILS(NOT_FOUND),
	.run = run_status,
	.show = show_status,
};

const struct command cmd_lock_list = {
	.name = "lock list",
	.group = "locks",
	.summary = "all locks, also those that ran out",
	.example = "pawl lock list",
	.see = "lock status, lock cleanup, status",
	.gives = "locks count total as_of cached_age_ms",
	.params = list_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCKS,
	.run = run_list,
	.show = show_locks,
};

static void show_typed(const struct reply *r, struct view *v)
{
	static const char *const heads[] = { "LOCK", "HOLDER", "OPERATION",  "USER",
					     "HOST", "SINCE",  "LEASE LEFT", "PROCESS" };
	const struct answer *ans = &r->ans;
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_tasks * 8);

	if (!ans->n_tasks && !v->quiet)
		view_text(v, DIM, "nobody has locked the queue as a whole\n");
	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct lock *l = &ans->tasks[i].lock;
		bool live = lease_live(l, ans->now);
		struct cell *c = cells + i * 8;

		c[0] = view_cell(v, BOLD, ans->tasks[i].id);
		c[1] = view_cell(v, live ? CYAN : DIM, l->holder);
		c[2] = view_cell(v, PLAIN, l->operation);
		c[3] = view_cell(v, PLAIN, l->user);
		c[4] = view_cell(v, PLAIN, l->host);
		c[5].text = view_age(v, l->acquired_at);
		c[6] = (struct cell){ live ? PLAIN : YELLOW,
				      live ? view_left(v, l->expires_at - ans->now)
					   : STR("ran out") };
		c[7] = view_cell(v, life_paint(l->life), str_c(life_name(l->life)));
		if (v->quiet)
			view_text(v, PLAIN, "%.*s\n", STRF(ans->tasks[i].id));
	}
	if (ans->n_tasks && !v->quiet)
		view_table(v, heads, 8, cells, ans->n_tasks);
}

const struct command cmd_lock_typed = {
	.name = "lock typed",
	.group = "locks",
	.summary = "the locks of the whole queue: who, for what, since when",
	.detail =
		"@write keeps out the changes of others, @batch their batches and imports, @config their changes of "
		"settings, @maintenance all of these. Reading and heartbeats go on. Each is a lease and runs out.",
	.example = "pawl lock typed",
	.see = "lock acquire, lock break, emergency status",
	.gives = "locks count total",
	.flags = C_IDEMPOTENT,
	.op = OP_TYPED,
	.show = show_typed,
};

static const struct param break_params[] = {
	PARAM_LOCK("task whose lock is to go, or a lock of the whole queue"),
	PARAM_REASON(P_REQUIRED, "why, for the log"),
	{ 0 }
};

static void show_broken(const struct reply *r, struct view *v)
{
	show_did(r, v, "is not locked any more");
}

const struct command cmd_lock_break = {
	.name = "lock break",
	.group = "locks",
	.summary = "a person's override: takes a lock away from its holder",
	.detail =
		"The holder finds out at its next call (21). The log says who did it and why. Only the lock goes; "
		"the status stays.",
	.example = "pawl lock break t1 --reason \"that machine is gone\"",
	.see = "lock status, lock cleanup",
	.gives = "task",
	.params = break_params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_LOCK_BREAK,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show_broken,
};

static const struct param cleanup_params[] = {
	PARAM(older_than, "older-than", P_DURATION,
	      .help = "only locks that ran out at least so long ago"),
	{ 0 }
};

static void show_cleanup(const struct reply *r, struct view *v)
{
	show_each(r, v, "unlocked", "nothing to clean up");
}

const struct command cmd_lock_cleanup = {
	.name = "lock cleanup",
	.group = "locks",
	.summary = "clear locks that nobody can use any more",
	.detail =
		"Those that ran out, whose process is provably dead on this host, or whose task has ended; also locks "
		"of the whole queue. Nothing depends on it: `pawl next` offers abandoned work anyway. Locks that stay "
		"and are older than the setting lock.warn_after (7 days) are named.",
	.example = "pawl lock cleanup --older-than 24h",
	.see = "lock list, lock break, doctor",
	.gives = "tasks count total",
	.params = cleanup_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_LOCK_CLEANUP,
	.show = show_cleanup,
};
