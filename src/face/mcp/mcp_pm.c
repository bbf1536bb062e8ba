/*
 * The profile pm: tools with the names, arguments and habits of dashboards that lock tasks by an
 * agent's name. Statuses are written IN_PROGRESS, a lock lasts 300 s by default, and every answer
 * has is_locked, lock_holder and lock_expires_at. The lock still needs its token: an agent's name
 * alone proves nothing.
 */
#include "base/when.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"
#include "format/task_form.h"

#define TIMEOUT_S 300
#define TIMEOUT_MAX 3600
#define AVAILABLE 20

struct pm_args {
	struct args args;
	struct str ra_mode, ra_score, status;
	struct strs statuses;
};

#define TASK_ID PARAM(id, "task_id", P_ID, .flags = P_REQUIRED, .help = "the task")
#define AGENT_ID                         \
	PARAM(agent, "agent_id", P_NAME, \
	      .help = "name of the acting agent; the lock is kept under it")
#define TIMEOUT                                                                  \
	PARAM(ttl, "timeout", P_INT, .min = 1, .max = TIMEOUT_MAX, .def = "300", \
	      .help = "seconds until the lock expires")
#define KEPT(member, text) LOCAL(pm, member, #member, P_NAME, .flags = P_EMPTY, .help = text)
#define FIELDS                                                                                   \
	PARAM(description, "description", P_TEXT, .help = "description of the work"),            \
		PARAM(acceptance, "acceptance", P_TEXT, .help = "the test for a finished task"), \
		PARAM(priority, "priority", P_PRIORITY,                                          \
		      .help = "0 to 1000, higher is more urgent"),                               \
		KEPT(ra_mode, "stored unchanged with the task, e.g. ra-full"),                   \
		KEPT(ra_score, "stored unchanged with the task, e.g. 9")

#define STATUSES \
	"READY, IN_PROGRESS, BLOCKED, NEEDS_HELP, REVIEW, DONE, FAILED, CANCELED or BACKLOG"

/* --- rendering tasks ------------------------------------------------------------------------------ */

static const char *pm_spelt(int64_t status)
{
	static const char *const names[STATUS_END] = {
		[BACKLOG] = "BACKLOG", [READY] = "READY",           [IN_PROGRESS] = "IN_PROGRESS",
		[BLOCKED] = "BLOCKED", [NEEDS_HELP] = "NEEDS_HELP", [REVIEW] = "REVIEW",
		[DONE] = "DONE",       [FAILED] = "FAILED",         [CANCELED] = "CANCELED",
	};

	return status > 0 && status < STATUS_END ? names[status] : "";
}

/* t may be NULL: then the task counts as not locked. */
static void set_lock(json_t *o, const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *lock = t && lease_live(&t->lock, now) ? &t->lock : NULL;
	int64_t until = lock ? lock->expires_at : 0;

	json_object_set_new(o, "is_locked", json_boolean(lock));
	json_object_set_new(o, "lock_holder", lock ? json_str(lock->holder) : json_null());
	json_object_set_new(o, "lock_expires_at",
			    until ? json_str(when_text(a, until)) : json_null());
}

static void pm_reshape(json_t *task, const struct task *t, int64_t now, struct arena *a)
{
	const json_t *extra = json_object_get(task, "extra");
	json_t *mode = json_object_get(extra, "ra_mode"),
	       *score = json_object_get(extra, "ra_score");

	json_object_set_new(task, "name", json_str(t->title));
	json_object_set_new(task, "status", json_string(pm_spelt(t->status)));
	json_object_set(task, "ra_mode", mode); /* does nothing without a value */
	json_object_set(task, "ra_score", score);
	set_lock(task, t, now, a);
}

/* Adds the text about the task: it is the whole answer for a model, and a member of the object. */
static void pm_say(struct session *s, struct reply *out, struct str message)
{
	struct str *own = arena_new(s->arena, struct str);

	*own = message;
	out->own = own;
}

static void set_message(json_t *o, const struct reply *r)
{
	if (r->own)
		json_object_set_new(o, "message", json_str(*(const struct str *)r->own));
}

static json_t *task_answer(const struct reply *r, struct arena *a)
{
	const struct answer *ans = &r->ans;
	json_t *o = reply_json(r, a);

	json_object_set_new(o, "success", json_boolean(reply_ok(r)));
	if (ans->task) {
		pm_reshape(json_object_get(o, "task"), ans->task, ans->now, a);
		set_lock(o, ans->task, ans->now, a);
	}
	set_message(o, r);
	return o;
}

static void pm_tell(struct session *s, const struct args *a, struct reply *out)
{
	pm_explain(s, &a->rq, &out->ans);
}

static void show_message(const struct reply *r, struct view *v)
{
	view_data(v, PLAIN, r->own ? *(const struct str *)r->own : r->ans.message);
	view_text(v, PLAIN, "\n");
}

/* --- making and changing -------------------------------------------------------------------------- */

static void set_extra(json_t *extra, const char *key, struct str value)
{
	if (value.n)
		json_object_set_new(extra, key, json_str(value));
}

/* ra_mode and ra_score go to `extra`, which pawl stores and does not interpret. */
static enum result ask_fields(struct session *s, struct args *a, struct reply *out)
{
	const struct pm_args *t = (const struct pm_args *)a;
	json_t *extra = json_object();
	char *text;

	(void)out;
	set_extra(extra, "ra_mode", t->ra_mode);
	set_extra(extra, "ra_score", t->ra_score);
	if (json_object_size(extra)) {
		text = json_dumps(extra, JSON_COMPACT);
		GIVE(&a->rq, extra, arena_str(s->arena, str_c(text)));
		free(text);
	}
	json_decref(extra);
	return SUCCESS;
}

static void tell_create(struct session *s, const struct args *a, struct reply *out)
{
	pm_tell(s, a, out);
	if (out->ans.code == SUCCESS)
		pm_say(s, out, arena_printf(s->arena, "created %.*s", STRF(out->ans.task->id)));
}

static json_t *pm_created(const struct reply *r, struct arena *a)
{
	json_t *o = task_answer(r, a);

	if (r->ans.code == SUCCESS) { /* before the message */
		json_object_del(o, "message");
		json_object_set_new(o, "task_id", json_str(r->ans.task->id));
		set_message(o, r);
	}
	return o;
}

static const struct param create_params[] = {
	PARAM(title, "name", P_TITLE, .flags = P_REQUIRED, .help = "title: one line"),
	FIELDS,
	PARAM(parent, "parent_id", P_ID, .help = "parent: this task is one of its sub-tasks"),
	PARAM(depends, "depends_on", P_IDS, .help = "tasks that must be DONE first"),
	{ 0 }
};

static const struct command create_task = {
	.name = "create_task",
	.summary = "create a task",
	.model =
		"Adds a task, unlocked and READY. Answers with its id (task_id). Not idempotent: each call adds "
		"one.",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = create_params,
	.args_size = sizeof(struct pm_args),
	.flags = C_WRITE,
	.op = OP_CREATE,
	.ask = ask_fields,
	.tell = tell_create,
	.json = pm_created,
	.show = show_message,
};

static void tell_change(struct session *s, const struct args *a, struct reply *out)
{
	bool undo = a->rq.op == OP_UNDO, update = a->rq.op == OP_UPDATE;
	const char *is = undo ? "as before" : update ? "updated" : "not locked";

	pm_tell(s, a, out);
	if (out->ans.code == SUCCESS)
		pm_say(s, out, arena_printf(s->arena, "%.*s is %s", STRF(a->rq.id), is));
}

static const struct param update_params[] = { TASK_ID,
					      AGENT_ID,
					      PARAM(title, "name", P_TITLE,
						    .help = "title: one line"),
					      FIELDS,
					      { 0 } };

static const struct command update_task = {
	.name = "update_task",
	.summary = "change the fields of a task",
	.model =
		"Changes fields of a task, not its status. Only the holder (agent_id) may change a locked task; others are "
		"refused with CONFLICT, the holder and the end of its lock.",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = update_params,
	.args_size = sizeof(struct pm_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_UPDATE,
	.ask = ask_fields,
	.tell = tell_change,
	.json = task_answer,
	.show = show_message,
};

/* --- status and locks ----------------------------------------------------------------------------- */

static void limit_time(struct request *rq)
{
	GIVE(rq, ttl, (HAS(rq, ttl) ? rq->ttl : TIMEOUT_S) * 1000);
}

static void say_locked(struct session *s, struct reply *out)
{
	const struct task *t = out->ans.task;
	int64_t at = t->lock.expires_at;
	struct str until = at ? when_text(s->arena, at) : STR("");

	pm_say(s, out,
	       arena_printf(s->arena, "%.*s is %s; locked by %.*s until %.*s", STRF(t->id),
			    pm_spelt(t->status), STRF(t->lock.holder), STRF(until)));
}

static bool is_locked(const struct answer *ans)
{
	return ans->task && lease_live(&ans->task->lock, ans->now);
}

static enum result ask_status(struct session *s, struct args *a, struct reply *out)
{
	struct request *rq = &a->rq;
	enum status status = status_parse(((const struct pm_args *)a)->status);

	if (!status)
		return run_fail(USAGE, STR("this status does not exist"),
				STR("use one of " STATUSES), out);
	GIVE(rq, status, status);
	if (status == IN_PROGRESS)
		limit_time(rq);
	else
		rq->has &= ~(UINT64_C(1) << ARG_ttl);
	keeper_prove(s->face, rq);
	return SUCCESS;
}

static void tell_status(struct session *s, const struct args *a, struct reply *out)
{
	pm_tell(s, a, out);
	if (out->ans.code != SUCCESS)
		return;
	if (is_locked(&out->ans))
		say_locked(s, out);
	else
		pm_say(s, out,
		       arena_printf(s->arena, "%.*s is %s; not locked", STRF(a->rq.id),
				    pm_spelt(out->ans.task->status)));
}

static const struct param status_params[] = {
	TASK_ID,
	LOCAL(pm, status, "status", P_NAME, .flags = P_REQUIRED, .help = STATUSES),
	AGENT_ID,
	TIMEOUT,
	PARAM(summary, "summary", P_TEXT, .help = "for REVIEW and DONE: summary of the work"),
	PARAM(reason, "reason", P_TEXT, .help = "needed for BLOCKED, NEEDS_HELP, FAILED, CANCELED"),
	PARAM(unblock_action, "unblock_action", P_TEXT,
	      .help = "needed for BLOCKED: the action that a person must take"),
	{ 0 }
};

static const struct command update_task_status = {
	.name = "update_task_status",
	.summary = "set the status of a task, with its lock",
	.model =
		"The usual way to work: IN_PROGRESS locks the task for agent_id in the same step, REVIEW and DONE unlock "
		"it. If another agent has it: CONFLICT or LOST_LOCK with lock_holder and lock_expires_at, and nothing "
		"changed. If your own lock expired: LOST_LOCK; acquire_task_lock, then call again.",
	.gives =
		"task lock success message is_locked lock_holder lock_expires_at parent waits_for comments "
		"came_back call_next",
	.params = status_params,
	.args_size = sizeof(struct pm_args),
	.flags = C_WRITE,
	.op = OP_STATUS,
	.ask = ask_status,
	.tell = tell_status,
	.json = task_answer,
	.show = show_message,
};

/* Does this server hold the agent's lock? The name alone would prove nothing. */
static bool is_own(struct session *s, const struct request *rq, const struct answer *ans)
{
	return ans->code == CONFLICT && is_locked(ans) &&
	       str_eq(ans->task->lock.holder, s->client.self.agent) &&
	       keeper_find(s->face, s->client.self.agent, rq->id);
}

/* A holder that asks again extends its lock. */
static enum result run_acquire(struct session *s, struct args *a, struct reply *out)
{
	enum result code;

	limit_time(&a->rq);
	code = run_op(s, a, out);
	if (is_own(s, &a->rq, &out->ans)) {
		a->rq.op = OP_HEARTBEAT;
		keeper_prove(s->face, &a->rq);
		*out = (struct reply){ 0 };
		code = run_op(s, a, out);
	}
	pm_explain(s, &a->rq, &out->ans);
	if (code == SUCCESS)
		say_locked(s, out);
	return code;
}

static const struct param acquire_params[] = { TASK_ID, AGENT_ID, TIMEOUT, { 0 } };

static const struct command acquire_task_lock = {
	.name = "acquire_task_lock",
	.summary = "lock a task without changing its status",
	.model =
		"Locks a task for agent_id without changing its status: for several agents in turn on one task, or a "
		"reviewer. If several try at once, one succeeds; the others get CONFLICT with lock_holder and "
		"lock_expires_at. Not renewed: it expires after timeout seconds, unless you call again, which extends it.",
	.gives =
		"task lock success message is_locked lock_holder lock_expires_at parent waits_for comments "
		"came_back call_next",
	.params = acquire_params,
	.flags = C_WRITE,
	.op = OP_LOCK_ACQUIRE,
	.run = run_acquire,
	.json = task_answer,
	.show = show_message,
};

static const struct param release_params[] = { TASK_ID, AGENT_ID, { 0 } };

static const struct command release_task_lock = {
	.name = "release_task_lock",
	.summary = "unlock a task without changing its status",
	.model =
		"Unlocks a task that agent_id has locked; its status stays. A lock that is gone already counts as "
		"released; another agent's lock is not touched (LOST_LOCK).",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = release_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_LOCK_RELEASE,
	.tell = tell_change,
	.json = task_answer,
	.show = show_message,
};

static void tell_lock_status(struct session *s, const struct args *a, struct reply *out)
{
	pm_tell(s, a, out);
	if (is_locked(&out->ans))
		say_locked(s, out);
	else if (out->ans.code == SUCCESS)
		pm_say(s, out, arena_printf(s->arena, "%.*s is not locked", STRF(a->rq.id)));
}

static json_t *lock_answer(const struct reply *r, struct arena *a)
{
	json_t *o = task_answer(r, a);

	json_object_del(o, "lock");
	if (r->ans.code == SUCCESS && !r->ans.task) {
		json_object_del(o, "message");
		set_lock(o, NULL, r->ans.now, a);
		set_message(o, r);
	}
	return o;
}

static const struct param id_params[] = { TASK_ID, { 0 } };

static const struct command get_task_lock_status = {
	.name = "get_task_lock_status",
	.summary = "show the holder and the expiry of a task's lock",
	.model =
		"Shows the holder and the expiry of a task's lock: is_locked, lock_holder, lock_expires_at. An expired lock "
		"counts as none. It can change at once: to take a task, acquire it, do not look first.",
	.gives = "task success locked message is_locked lock_holder lock_expires_at",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.tell = tell_lock_status,
	.json = lock_answer,
	.show = show_message,
};

static const struct command undo_task = {
	.name = "undo_task",
	.summary = "take back the agent's last change of a task",
	.model =
		"Takes back agent_id's last change of a task. CONFLICT names who changed it since.",
	.gives = "task undone success message is_locked lock_holder lock_expires_at",
	.params = release_params,
	.flags = C_WRITE,
	.op = OP_UNDO,
	.tell = tell_change,
	.json = task_answer,
	.show = show_message,
};

/* --- looking -------------------------------------------------------------------------------------- */

static void show_list(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;

	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];

		view_data(v, PLAIN, t->id);
		view_text(v, PLAIN, " %s ", pm_spelt(t->status));
		view_data(v, PLAIN, t->title);
		if (lease_live(&t->lock, ans->now)) {
			view_text(v, PLAIN, " (locked by ");
			view_data(v, PLAIN, t->lock.holder);
			view_text(v, PLAIN, ")");
		}
		view_text(v, PLAIN, "\n");
	}
	view_count(v, PLAIN, (int64_t)ans->n_tasks, "task");
	view_text(v, PLAIN, "\n");
}

static json_t *list_answer(const struct reply *r, struct arena *a)
{
	json_t *o = reply_json(r, a), *list = json_object_get(o, "tasks"), *t;
	size_t i;

	json_object_set_new(o, "success", json_boolean(reply_ok(r)));
	json_array_foreach(list, i, t)
		pm_reshape(t, &r->ans.tasks[i], r->ans.now, a);
	return o;
}

static enum result ask_list(struct session *s, struct args *a, struct reply *out)
{
	struct strs wanted = ((const struct pm_args *)a)->statuses;

	(void)s;
	for (size_t i = 0; i < wanted.n; i++) {
		enum status status = status_parse(wanted.v[i]);

		if (!status)
			return run_fail(USAGE, STR("this status does not exist"),
					STR("use one of " STATUSES), out);
		GIVE(&a->rq, statuses, a->rq.statuses | (int64_t)STATUS_BIT(status));
	}
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, 100);
	return SUCCESS;
}

static const struct param list_params[] = {
	LOCAL(pm, statuses, "status", P_NAMES, .help = "list only these: " STATUSES),
	PARAM(holder, "agent_id", P_NAME, .help = "list only tasks that this agent has locked"),
	PARAM(limit, "limit", P_INT, .def = "100", .help = "show at most N tasks (0 = no limit)"),
	{ 0 }
};

static const struct command list_tasks = {
	.name = "list_tasks",
	.summary = "list tasks in the order of their creation",
	.model =
		"Lists tasks in the order of their creation, each with its lock. To find a task to take, use "
		"get_available_tasks.",
	.gives = "tasks count total success",
	.params = list_params,
	.args_size = sizeof(struct pm_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.ask = ask_list,
	.json = list_answer,
	.show = show_list,
};

static enum result ask_available(struct session *s, struct args *a, struct reply *out)
{
	(void)s;
	(void)out;
	GIVE(&a->rq, explain, 1);
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, AVAILABLE);
	return SUCCESS;
}

/* Makes the candidates that an agent can claim the tasks of the answer. */
static void tell_available(struct session *s, const struct args *a, struct reply *out)
{
	struct answer *ans = &out->ans, shown;

	(void)a;
	for (size_t i = 0; reply_ok(out) && i < ans->n_candidates; i++) {
		if (!ans->candidates[i].eligible ||
		    !mcp_show(s->face, ans->candidates[i].id, 0, &shown, s->arena))
			continue;
		ans->tasks = arena_grow(s->arena, ans->tasks, ans->n_tasks, sizeof(*ans->tasks));
		ans->tasks[ans->n_tasks++] = *shown.task;
		ans->now = shown.now;
	}
	ans->n_candidates = 0;
}

static json_t *pm_available(const struct reply *r, struct arena *a)
{
	json_t *o = reply_json(r, a), *tasks = json_array();

	for (size_t i = 0; i < r->ans.n_tasks; i++) {
		const struct task *t = &r->ans.tasks[i];
		json_t *v = task_json(t, r->ans.now, a);

		pm_reshape(v, t, r->ans.now, a);
		json_array_append_new(tasks, v);
	}
	json_object_del(o, "candidates");
	json_object_del(o, "total");
	json_object_set_new(o, "count", json_integer((json_int_t)r->ans.n_tasks));
	json_object_set_new(o, "tasks", tasks);
	json_object_set_new(o, "success", json_boolean(reply_ok(r)));
	return o;
}

static const struct param available_params[] = { PARAM(limit, "limit", P_INT, .min = 1, .max = 100,
						       .def = "20", .help = "show at most N tasks"),
						 PARAM(label, "label", P_NAME,
						       .help = "list only tasks with this label"),
						 { 0 } };

static const struct command get_available_tasks = {
	.name = "get_available_tasks",
	.summary = "list the tasks that can be taken now, most urgent first",
	.model =
		"Lists the tasks that can be taken now, most urgent first: not locked, all dependencies DONE. Others see "
		"the same list: the first agent to lock a task has it.",
	.gives = "tasks count success",
	.params = available_params,
	.flags = C_IDEMPOTENT,
	.op = OP_NEXT,
	.ask = ask_available,
	.tell = tell_available,
	.json = pm_available,
	.show = show_list,
};

static void show_one(const struct reply *r, struct view *v)
{
	v->status = pm_spelt;
	show_details(r, v);
}

static const struct command get_task_details = {
	.name = "get_task_details",
	.summary = "show everything about one task",
	.model = "Shows everything about one task, with its comments and its lock.",
	.gives = "task comments success is_locked lock_holder lock_expires_at",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.tell = pm_tell,
	.json = task_answer,
	.show = show_one,
};

const struct command *const pm_tools[] = {
	&create_task,
	&update_task_status,
	&acquire_task_lock,
	&release_task_lock,
	&get_task_lock_status,
	&get_available_tasks,
	&get_task_details,
	&update_task,
	&list_tasks,
	&undo_task,
	NULL,
};
