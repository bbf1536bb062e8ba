#include "cmd/command.h"

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

static enum result run_init(struct session *s, struct args *a, json_t **out)
{
	struct answer ans = { 0 };
	bool existed = is_there(&s->client);

	(void)a;
	if (!existed && client_make(&s->client, &ans) != SUCCESS)
		return run_answer(&ans, s->arena, out);
	*out = run_success();
	json_object_set_new(*out, "existed", json_boolean(existed));
	json_object_set_new(*out, "store", json_str(uri_shown(s->arena, s->client.uri)));
	return SUCCESS;
}

static void show_init(const json_t *o, struct view *v)
{
	bool existed = json_is_true(json_object_get(o, "existed"));

	if (v->quiet)
		return;
	view_text(v, GREEN, existed ? "already there: " : "made: ");
	view_data(v, PLAIN, view_get(o, "store"));
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

static void show_released(const json_t *o, struct view *v)
{
	show_did(o, v, "is not locked by you any more");
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

static enum result run_check(struct session *s, struct args *a, json_t **out)
{
	enum result code = run_op(s, a, out);

	if (code != SUCCESS || json_is_true(json_object_get(*out, "locked")))
		return code;
	json_object_set_new(*out, "code", json_string(result_name(LOCK_FREE)));
	return LOCK_FREE;
}

static enum paint life_paint(const char *life)
{
	return !strcmp(life, "alive") ? GREEN : !strcmp(life, "dead") ? RED : DIM;
}

/* "  process 4711 on box is alive", or why one cannot tell */
static void show_process(struct view *v, const json_t *lock)
{
	const char *life = view_get(lock, "process");

	if (!life)
		return;
	view_text(v, PLAIN, "  ");
	if (!view_int(lock, "pid")) {
		view_text(
			v, DIM,
			"no process is noted with it (--pid): whether its holder lives is unknown\n");
		return;
	}
	view_text(v, PLAIN, "process %lld on ", (long long)view_int(lock, "pid"));
	view_data(v, PLAIN, view_get(lock, "host"));
	view_text(v, PLAIN, " is ");
	view_text(v, life_paint(life), "%s\n", life);
	if (!strcmp(life, "dead"))
		view_text(v, DIM, "  pawl lock cleanup releases it\n");
}

static void show_lock(const json_t *o, struct view *v)
{
	const json_t *lock = json_object_get(o, "lock"),
		     *left = json_object_get(lock, "expires_in");

	if (v->quiet)
		return;
	view_data(v, BOLD, view_get(json_object_get(o, "task"), "id"));
	if (!json_is_object(lock)) {
		view_text(v, GREEN, " is free\n");
		return;
	}
	if (!json_is_true(json_object_get(o, "locked"))) {
		view_text(v, GREEN, " is free");
		view_text(v, PLAIN, "; the lock of ");
		view_data(v, DIM, view_get(lock, "holder"));
		view_text(v, PLAIN, " (fence %lld) ran out\n", (long long)view_int(lock, "fence"));
		show_process(v, lock);
		return;
	}
	view_text(v, PLAIN, " is locked by ");
	view_data(v, CYAN, view_get(lock, "holder"));
	view_text(v, PLAIN, ", fence %lld, taken %.*s, ", (long long)view_int(lock, "fence"),
		  STRF(view_when(v, view_get(lock, "acquired_at"))));
	if (left)
		view_text(v, PLAIN, "%.*s left\n", STRF(view_seconds(v, left)));
	else
		view_text(v, PLAIN, "without an end\n");
	show_process(v, lock);
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

static enum result run_list(struct session *s, struct args *a, json_t **out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, a->global.quiet ? 0 : 100);
	return run_op(s, a, out);
}

static const struct param status_params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_TYPED,
	      .help = "task, or a lock of the whole queue; without one: all locks of tasks"),
	{ 0 }
};

static enum result run_status(struct session *s, struct args *a, json_t **out)
{
	if (HAS(&a->rq, id))
		return run_op(s, a, out);
	a->rq.op = OP_LOCKS;
	return run_list(s, a, out);
}

static void show_status(const json_t *o, struct view *v)
{
	if (json_object_get(o, "locks"))
		show_locks(o, v);
	else
		show_lock(o, v);
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

static void show_typed(const json_t *o, struct view *v)
{
	static const char *const heads[] = { "LOCK", "HOLDER", "OPERATION",  "USER",
					     "HOST", "SINCE",  "LEASE LEFT", "PROCESS" };
	const json_t *list = json_object_get(o, "locks"), *l;
	size_t n = json_array_size(list), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 8);

	if (!n && !v->quiet)
		view_text(v, DIM, "nobody has locked the queue as a whole\n");
	json_array_foreach(list, i, l) {
		bool live = json_is_true(json_object_get(l, "live"));
		struct cell *c = cells + i * 8;

		c[0] = view_cell(v, BOLD, view_get(l, "lock"));
		c[1] = view_cell(v, live ? CYAN : DIM, view_get(l, "holder"));
		c[2] = view_cell(v, PLAIN, view_get(l, "operation"));
		c[3] = view_cell(v, PLAIN, view_get(l, "user"));
		c[4] = view_cell(v, PLAIN, view_get(l, "host"));
		c[5].text = view_age(v, view_get(l, "acquired_at"));
		c[6] = (struct cell){ live ? PLAIN : YELLOW,
				      live ? view_seconds(v, json_object_get(l, "expires_in"))
					   : STR("ran out") };
		c[7] = view_cell(v, life_paint(view_get(l, "process")), view_get(l, "process"));
		if (v->quiet)
			view_text(v, PLAIN, "%s\n", view_get(l, "lock"));
	}
	if (n && !v->quiet)
		view_table(v, heads, 8, cells, n);
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

static void show_broken(const json_t *o, struct view *v)
{
	show_did(o, v, "is not locked any more");
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

static void show_cleanup(const json_t *o, struct view *v)
{
	show_each(o, v, "unlocked", "nothing to clean up");
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
