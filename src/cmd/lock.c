#include "cmd/command.h"

static const struct param acquire_params[] = {
	PARAM_ID("task to lock"),
	PARAM_TTL("5m"),
	PARAM(description, "description", P_TEXT, .letter = 'd', .help = "what for, for the log"),
	{ 0 }
};

const struct command cmd_lock_acquire = {
	.name = "lock acquire",
	.group = "locks",
	.summary = "lock a task without changing its status",
	.detail =
		"The manual lock: several agents in turn on one task, e.g. a reviewer on one in Review. Who holds "
		"it can block, review, finish or fail the task as after a claim.",
	.example = "pawl lock acquire t1 --ttl 10m",
	.see = "lock release, claim",
	.gives = "task lock parent waits_for comments came_back call_next",
	.params = acquire_params,
	.flags = C_WRITE,
	.op = OP_LOCK_ACQUIRE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.show = show_grant,
};

static const struct param id_params[] = { PARAM_ID("task"), { 0 } };

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
	.params = id_params,
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

const struct command cmd_lock_status = {
	.name = "lock status",
	.group = "locks",
	.summary = "who holds a task, since when and until when",
	.example = "pawl lock status t1",
	.see = "lock check, lock list",
	.gives = "task locked lock",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.fails = FAILS(NOT_FOUND),
	.show = show_lock,
};

static const struct param list_params[] = { PARAM(holder, "holder", P_NAME,
						  .help = "only those of this agent"),
					    PARAM(limit, "limit", P_INT, .letter = 'n',
						  .def = "100", .help = "at most so many; 0: all"),
					    { 0 } };

static enum result run_list(struct session *s, struct args *a, json_t **out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, a->global.quiet ? 0 : 100);
	return run_op(s, a, out);
}

const struct command cmd_lock_list = {
	.name = "lock list",
	.group = "locks",
	.summary = "all locks, also those that ran out",
	.example = "pawl lock list",
	.see = "lock status, lock cleanup, status",
	.gives = "locks count total",
	.params = list_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCKS,
	.run = run_list,
	.show = show_locks,
};

static const struct param break_params[] = { PARAM_ID("task whose lock is to go"),
					     PARAM_REASON(P_REQUIRED, "why, for the log"),
					     { 0 } };

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
		"Those that ran out, whose process is provably dead on this host, or whose task has ended. Nothing "
		"depends on it: `pawl next` offers abandoned work anyway.",
	.example = "pawl lock cleanup --older-than 24h",
	.see = "lock list, lock break, doctor",
	.gives = "tasks count total",
	.params = cleanup_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_LOCK_CLEANUP,
	.show = show_cleanup,
};
