/*
 * pawl lock: locks without a change of status, for a task or for the whole queue. Only `break` and
 * `cleanup` end a lock of another agent, and `cleanup` ends none that an agent can still use.
 */
#include "cmd/command.h"

#include "client/redact.h"
#include "core/lease.h"
#include "format/task_form.h"

static const struct param acquire_params[] = {
	PARAM_LOCK("task to lock, or @write, @batch, @config or @maintenance"),
	PARAM_TTL("5m"),
	PARAM_PID,
	PARAM(description, "description", P_TEXT, .letter = 'd',
	      .help = "purpose of the lock, for the log"),
	PARAM_WRITE_STATUS,
	{ 0 }
};

static const struct param id_params[] = { PARAM_LOCK("task, or a lock of the whole queue"), { 0 } };

static const struct param release_params[] = { PARAM_LOCK("task, or a lock of the whole queue"),
					       PARAM_WRITE_STATUS,
					       { 0 } };

static const struct param list_params[] = {
	PARAM(holder, "holder", P_NAME, .help = "list only locks of this agent"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "show at most N locks (0 = no limit)"),
	PARAM_CACHED,
	{ 0 }
};

static const struct param status_params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "task, or a lock of the whole queue; without ID: all locks of tasks"),
	{ 0 }
};

static const struct param break_params[] = {
	PARAM_LOCK("task whose lock to remove, or a lock of the whole queue"),
	PARAM_REASON(P_REQUIRED, "reason, for the log"),
	{ 0 }
};

static const struct param cleanup_params[] = {
	PARAM(older_than, "older-than", P_DURATION,
	      .help = "clear only locks that expired at least DURATION ago",
	      .model = "only locks that expired at least this long ago"),
	{ 0 }
};

static enum result run_init(struct session *s, struct args *a, struct reply *out);
static void show_init(const struct reply *r, struct view *v);
static void show_released(const struct reply *r, struct view *v);
static void tell_check(struct session *s, const struct args *a, struct reply *out);
static void show_lock(const struct reply *r, struct view *v);
static enum result ask_status(struct session *s, struct args *a, struct reply *out);
static void show_status(const struct reply *r, struct view *v);
static enum result ask_list(struct session *s, struct args *a, struct reply *out);
static void show_typed(const struct reply *r, struct view *v);
static void show_broken(const struct reply *r, struct view *v);
static void show_cleanup(const struct reply *r, struct view *v);

const struct command cmd_lock_init = {
	.name = "lock init",
	.group = "locks",
	.summary = "make the queue, or the branch, for locks",
	.detail =
		"Makes the queue that --store, PAWL_STORE or the settings name, if it does not exist. An existing queue "
		"keeps its data. lock init does not record the choice: `pawl init` does that.",
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
		"With manual locks, several agents can work on one task in turn, e.g. a reviewer on a task in Review. A holder "
		"can block, review, finish or fail the task as after a claim. @write, @batch, @config and @maintenance "
		"lock the whole queue: the changes that such a lock excludes wait for it, and then fail (30); agents can "
		"still read and send heartbeats. With the lock's token in PAWL_LOCK_TOKEN, the programs that the holder "
		"starts can still make changes.",
	.example = "pawl lock acquire t1 --ttl 10m\n"
		   "pawl lock acquire @maintenance --ttl 10m --description \"moving the disk\"",
	.see = "lock release, lock typed, claim",
	.model =
		"Lock a task without changing its status, for several agents in turn, or for a reviewer; "
		"lock_release ends it. CONFLICT: it is held; call next, or wait. " MODEL_NOT_FOUND,
	.gives = "task lock parent waits_for comments came_back call_next",
	.params = acquire_params,
	.flags = C_WRITE,
	.op = OP_LOCK_ACQUIRE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.ask = ask_for_pid,
	.show = show_grant,
};

const struct command cmd_lock_release = {
	.name = "lock release",
	.group = "locks",
	.summary = "release a lock without changing the status",
	.detail =
		"A lock that is gone or has expired counts as released. pawl does not touch the live lock of another agent (21).",
	.example = "pawl lock release t1",
	.see = "lock acquire, release",
	.model =
		"End a lock of lock_acquire; the status stays. A lock that is gone counts as released. LOST_LOCK: "
		"another agent holds it; call next. " MODEL_NOT_FOUND,
	.gives = "task",
	.params = release_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_LOCK_RELEASE,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show_released,
};

const struct command cmd_lock_check = {
	.name = "lock check",
	.group = "locks",
	.summary = "is it locked? The exit code is 0 for yes, 1 for no",
	.detail = "Any other exit code means that pawl could not find out.",
	.example = "pawl lock check -q t1; [ $? -eq 1 ] && echo free",
	.see = "lock status",
	.model =
		"Is a task locked? locked says it; LOCK_FREE: it is not, so claim may take it. " MODEL_NOT_FOUND,
	.gives = "task locked lock",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.fails = FAILS(LOCK_FREE, NOT_FOUND),
	.tell = tell_check,
	.show = show_lock,
};

const struct command cmd_lock_status = {
	.name = "lock status",
	.group = "locks",
	.summary = "show the holder of a task and its lease, or all locks",
	.detail =
		"Also shows whether the process of the lock (claim --pid, pawl run) is alive, dead or unknown. pawl "
		"identifies the process by host, boot, pid namespace, pid and start time, and never sends it a signal.",
	.example = "pawl lock status\n"
		   "pawl lock status t1\n"
		   "pawl lock status @maintenance",
	.see = "lock check, lock list, lock typed",
	.model = "The holder of a task and its lease; without id, all locks. " MODEL_NOT_FOUND,
	.gives = "task locked lock locks count total",
	.params = status_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.fails = FAILS(NOT_FOUND),
	.ask = ask_status,
	.show = show_status,
};

const struct command cmd_lock_list = {
	.name = "lock list",
	.group = "locks",
	.summary = "list all locks, expired ones included",
	.example = "pawl lock list",
	.see = "lock status, lock cleanup, status",
	.model = "All locks, expired ones included.",
	.gives = "locks count total as_of cached_age_ms",
	.params = list_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCKS,
	.ask = ask_list,
	.show = show_locks,
};

const struct command cmd_lock_typed = {
	.name = "lock typed",
	.group = "locks",
	.summary = "list the locks of the whole queue with holder, purpose and time",
	.detail =
		"@write excludes the changes of other agents, @batch their batches and imports, @config their changes of "
		"settings, and @maintenance all of these. Agents can still read and send heartbeats. Each of these locks "
		"has a lease and expires.",
	.example = "pawl lock typed",
	.see = "lock acquire, lock break, emergency status",
	.model =
		"The locks of the whole queue, with holder and purpose: @write, @batch, @config, @maintenance, and @sync, which "
		"a sync takes.",
	.gives = "locks count total",
	.flags = C_IDEMPOTENT,
	.op = OP_TYPED,
	.show = show_typed,
};

const struct command cmd_lock_break = {
	.name = "lock break",
	.group = "locks",
	.summary = "take a lock away from its holder (for the operator)",
	.detail =
		"The holder learns of it at its next call (21). The log records who broke the lock and why. The status of "
		"the task stays. If it is In Progress, `pawl next` offers it at once, at its old place in the order.",
	.example = "pawl lock break t1 --reason \"that machine is gone\"",
	.see = "lock status, lock cleanup",
	.model =
		"For the operator: take a lock away from its holder, with a reason. Never use it to get a task; "
		"call next. LOST_LOCK: the lock has changed since you saw it; check it with lock_status. " MODEL_NOT_FOUND,
	.gives = "task",
	.params = break_params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_LOCK_BREAK,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show_broken,
};

const struct command cmd_lock_cleanup = {
	.name = "lock cleanup",
	.group = "locks",
	.summary = "clear locks that no agent can use any more",
	.detail =
		"These are locks that have expired, locks of a process that is provably dead on this host, and locks of "
		"ended tasks; locks of the whole queue are included. Cleaning up is optional: `pawl next` offers abandoned "
		"tasks anyway. pawl names the remaining locks that are older than the setting lock.warn_after (7 days).",
	.example = "pawl lock cleanup --older-than 24h",
	.see = "lock list, lock break, doctor",
	.model =
		"Clear locks that no agent can use any more. Optional: next offers abandoned tasks anyway.",
	.gives = "tasks count total",
	.params = cleanup_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_LOCK_CLEANUP,
	.show = show_cleanup,
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
	json_object_set_new(reply_more(out), "store", json_str(redact_store(&s->client, s->arena)));
	return SUCCESS;
}

static void show_init(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool existed = json_is_true(json_object_get(o, "existed"));

	if (v->quiet)
		return;
	view_text(v, GREEN, existed ? "exists already: " : "made: ");
	view_data(v, PLAIN, json_get(o, "store"));
	view_text(v, DIM, "\nnext: pawl lock acquire ID\n");
}

static void show_released(const struct reply *r, struct view *v)
{
	show_did(r, v, "is no longer locked by you");
}

static bool is_locked(const struct answer *ans)
{
	return ans->task && lease_live(&ans->task->lock, ans->now);
}

static void tell_check(struct session *s, const struct args *a, struct reply *out)
{
	(void)s;
	(void)a;
	if (out->ans.code == SUCCESS && !is_locked(&out->ans))
		out->ans.code = LOCK_FREE;
}

static enum paint life_paint(int64_t life)
{
	return life == LIFE_ALIVE ? GREEN : life == LIFE_DEAD ? RED : DIM;
}

/* "  process 4711 on box is alive", or why that is unknown */
static void show_process(struct view *v, const struct lock *l)
{
	if (l->life == LIFE_NOT_CHECKED)
		return;
	view_text(v, PLAIN, "  ");
	if (!l->pid) {
		view_text(
			v, DIM,
			"the lock names no process (--pid), so pawl cannot tell whether its holder is alive\n");
		return;
	}
	view_text(v, PLAIN, "process %lld on ", (long long)l->pid);
	view_data(v, PLAIN, l->host);
	view_text(v, PLAIN, " is ");
	view_text(v, life_paint(l->life), "%s\n", life_name(l->life));
	if (l->life == LIFE_DEAD)
		view_text(v, DIM, "  to release it: pawl lock cleanup\n");
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
		view_text(v, PLAIN, " (fence %lld) expired\n", (long long)t->fence);
		show_process(v, l);
		return;
	}
	view_text(v, PLAIN, " is locked by ");
	view_data(v, CYAN, l->holder);
	view_text(v, PLAIN, ", fence %lld, taken %s, ", (long long)t->fence,
		  arena_cstr(v->arena, view_when(v, l->acquired_at)));
	if (l->expires_at)
		view_text(v, PLAIN, "%s left\n",
			  arena_cstr(v->arena, view_left(v, l->expires_at - r->ans.now)));
	else
		view_text(v, PLAIN, "does not expire\n");
	if (l->mode.n) {
		view_text(v, PLAIN, "  taken in ");
		view_data(v, PLAIN, l->mode);
		view_text(v, PLAIN, " mode\n");
	}
	show_process(v, l);
}

static enum result ask_list(struct session *s, struct args *a, struct reply *out)
{
	(void)out;
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	return SUCCESS;
}

static enum result ask_status(struct session *s, struct args *a, struct reply *out)
{
	if (HAS(&a->rq, id))
		return SUCCESS;
	a->rq.op = OP_LOCKS;
	return ask_list(s, a, out);
}

static void show_status(const struct reply *r, struct view *v)
{
	if (r->ans.kind == ANSWER_LOCKS)
		show_locks(r, v);
	else
		show_lock(r, v);
}

static void show_typed(const struct reply *r, struct view *v)
{
	static const char *const heads[] = { "LOCK", "HOLDER", "OPERATION",  "USER",
					     "HOST", "SINCE",  "LEASE LEFT", "PROCESS" };
	const struct answer *ans = &r->ans;
	struct cell *cells = arena_array(v->arena, struct cell, ans->n_tasks * 8);

	if (!ans->n_tasks && !v->quiet)
		view_text(v, DIM, "no agent has locked the whole queue\n");
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
					   : STR("expired") };
		c[7] = view_cell(v, life_paint(l->life), str_c(life_name(l->life)));
		if (v->quiet)
			view_text(v, PLAIN, "%.*s\n", STRF(ans->tasks[i].id));
	}
	if (ans->n_tasks && !v->quiet)
		view_table(v, heads, 8, cells, ans->n_tasks);
}

static void show_broken(const struct reply *r, struct view *v)
{
	show_did(r, v, "is no longer locked");
}

static void show_cleanup(const struct reply *r, struct view *v)
{
	show_each(r, v, "unlocked", "nothing to clean up");
}
