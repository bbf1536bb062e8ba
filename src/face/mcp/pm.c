/*
 * The profile pm: tools with the names, arguments and habits of dashboards that lock tasks by an agent's
 * name. Statuses are written IN_PROGRESS, a lock lasts 300 s unless asked otherwise, and every answer says
 * is_locked, lock_holder and lock_expires_at.
 */
#include "face/mcp/mcp.h"

#include "base/when.h"

#define TIMEOUT_S 300
#define TIMEOUT_MAX 3600
#define AVAILABLE 20

#define TASK_ID PARAM(id, "task_id", P_ID, .flags = P_REQUIRED, .help = "the task")
#define AGENT_ID \
	PARAM(agent, "agent_id", P_NAME, .help = "who acts; the lock is kept under this name")
#define TIMEOUT                                                                  \
	PARAM(ttl, "timeout", P_INT, .min = 1, .max = TIMEOUT_MAX, .def = "300", \
	      .help = "seconds until the lock runs out by itself")
#define FIELD(member, text)                                                \
	{                                                                  \
		.name = #member, .type = P_NAME, .flags = P_EMPTY,         \
		.offset = offsetof(struct tool_args, member), .help = text \
	}
#define FIELDS                                                                   \
	PARAM(description, "description", P_TEXT, .help = "what is to be done"), \
		PARAM(acceptance, "acceptance", P_TEXT,                          \
		      .help = "how one can tell that it is done"),               \
		PARAM(priority, "priority", P_PRIORITY,                          \
		      .help = "0 to 1000, higher is more urgent"),               \
		FIELD(ra_mode, "kept with the task as it is, e.g. ra-full"),     \
		FIELD(ra_score, "kept with the task as it is, e.g. 9")

#define STATUSES \
	"READY, IN_PROGRESS, BLOCKED, NEEDS_HELP, REVIEW, DONE, FAILED, CANCELED or BACKLOG"

/* --- how tasks look ------------------------------------------------------------------------------- */

static json_t *spelt(const char *status)
{
	char text[32];
	size_t n = 0;

	for (; status && *status && n < sizeof(text); status++) {
		bool small = *status >= 'a' && *status <= 'z';

		text[n++] = *status == ' ' ? '_' : small ? (char)(*status - 32) : *status;
	}
	return json_stringn(text, n);
}

static void set_lock(json_t *o, const json_t *lock)
{
	bool live = json_is_true(json_object_get(lock, "live"));
	json_t *until = json_object_get(lock, "expires_at");

	json_object_set_new(o, "is_locked", json_boolean(live));
	json_object_set_new(o, "lock_holder",
			    live ? json_incref(json_object_get(lock, "holder")) : json_null());
	json_object_set_new(o, "lock_expires_at", live && until ? json_incref(until) : json_null());
}

static void reshape(json_t *task)
{
	const json_t *extra = json_object_get(task, "extra");
	json_t *mode = json_object_get(extra, "ra_mode"),
	       *score = json_object_get(extra, "ra_score");

	json_object_set(task, "name", json_object_get(task, "title"));
	json_object_set_new(task, "status", spelt(view_get(task, "status")));
	if (mode)
		json_object_set(task, "ra_mode", mode);
	if (score)
		json_object_set(task, "ra_score", score);
	set_lock(task, json_object_get(task, "lock"));
}

static void say(json_t *o, struct str message)
{
	json_object_set_new(o, "message", json_str(message));
}

/* --- refusals ------------------------------------------------------------------------------------- */

static void set_error(json_t *error, struct str message, struct str hint)
{
	json_object_set_new(error, "message", json_str(message));
	json_object_set_new(error, "hint", json_str(hint));
}

static void explain(struct session *s, const struct request *rq, json_t *o)
{
	json_t *error = json_object_get(o, "error");
	struct str code = mcp_text(error, "code"), agent = s->client.agent,
		   holder = mcp_text(o, "lock_holder"), until = mcp_text(o, "lock_expires_at");

	if (!str_is(code, result_name(CONFLICT)) && !str_is(code, result_name(LOST_LOCK)))
		return;
	if (holder.n)
		set_error(
			error,
			arena_printf(s->arena, "%.*s is locked by %.*s until %.*s", STRF(rq->id),
				     STRF(holder), STRF(until.n ? until : STR("it is removed"))),
			arena_printf(
				s->arena,
				"wait until then, take another with get_available_tasks, or ask %.*s",
				STRF(holder)));
	else
		set_error(error,
			  arena_printf(
				  s->arena,
				  "%.*s is not locked by %.*s: the lock ran out or was never taken",
				  STRF(rq->id), STRF(agent)),
			  arena_printf(
				  s->arena,
				  "acquire_task_lock task_id=%.*s agent_id=%.*s, then call again",
				  STRF(rq->id), STRF(agent)));
}

static enum result finish(struct session *s, const struct request *rq, enum result code, json_t *o)
{
	json_t *task = json_object_get(o, "task");
	bool ok = json_is_true(json_object_get(o, "ok"));

	json_object_set_new(o, "success", json_boolean(ok));
	if (json_is_object(task))
		reshape(task);
	if (json_is_object(task) && json_object_get(task, "lock"))
		set_lock(o, json_object_get(task, "lock"));
	if (!ok)
		explain(s, rq, o);
	return code;
}

static enum result call(struct session *s, struct args *a, json_t **out)
{
	enum result code = run_op(s, a, out);

	return finish(s, &a->rq, code, *out);
}

static void show_message(const json_t *o, struct view *v)
{
	view_data(v, PLAIN, view_get(o, "message"));
	view_text(v, PLAIN, "\n");
}

/* --- making and changing -------------------------------------------------------------------------- */

static void set_extra(json_t *extra, const char *key, struct str value)
{
	if (value.n)
		json_object_set_new(extra, key, json_str(value));
}

/* ra_mode and ra_score go where pawl keeps what it does not read. */
static void give_extra(struct session *s, struct args *a)
{
	const struct tool_args *t = (const struct tool_args *)a;
	json_t *extra = json_object();
	char *text;

	set_extra(extra, "ra_mode", t->ra_mode);
	set_extra(extra, "ra_score", t->ra_score);
	if (json_object_size(extra)) {
		text = json_dumps(extra, JSON_COMPACT);
		GIVE(&a->rq, extra, arena_str(s->arena, str_c(text)));
		free(text);
	}
	json_decref(extra);
}

static enum result run_create(struct session *s, struct args *a, json_t **out)
{
	enum result code;

	give_extra(s, a);
	code = call(s, a, out);
	if (code == SUCCESS) {
		struct str id = mcp_text(json_object_get(*out, "task"), "id");

		json_object_set_new(*out, "task_id", json_str(id));
		say(*out, arena_printf(s->arena, "created %.*s", STRF(id)));
	}
	return code;
}

static const struct param create_params[] = {
	PARAM(title, "name", P_TITLE, .flags = P_REQUIRED, .help = "one line that says what it is"),
	FIELDS,
	PARAM(parent, "parent_id", P_ID, .help = "the task that this is a part of"),
	PARAM(depends, "depends_on", P_IDS, .help = "tasks that must be DONE first"),
	{ 0 }
};

static const struct command create_task = {
	.name = "create_task",
	.summary = "add a task",
	.model =
		"Adds a task, unlocked and READY. Answers with its id (task_id). Not idempotent: each call adds "
		"one.",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = create_params,
	.flags = C_WRITE,
	.op = OP_CREATE,
	.run = run_create,
	.show = show_message,
};

static enum result run_update(struct session *s, struct args *a, json_t **out)
{
	enum result code;

	give_extra(s, a);
	code = call(s, a, out);
	if (code == SUCCESS)
		say(*out, arena_printf(s->arena, "updated %.*s", STRF(a->rq.id)));
	return code;
}

static const struct param update_params[] = { TASK_ID,
					      AGENT_ID,
					      PARAM(title, "name", P_TITLE,
						    .help = "one line that says what it is"),
					      FIELDS,
					      { 0 } };

static const struct command update_task = {
	.name = "update_task",
	.summary = "change the fields of a task",
	.model =
		"Changes fields of a task, not its status. While it is locked only its holder (agent_id) may; "
		"others are refused with CONFLICT and who holds it until when.",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = update_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_UPDATE,
	.run = run_update,
	.show = show_message,
};

/* --- status and locks ----------------------------------------------------------------------------- */

static void limit_time(struct request *rq)
{
	GIVE(rq, ttl, (HAS(rq, ttl) ? rq->ttl : TIMEOUT_S) * 1000);
}

static void say_locked(struct session *s, json_t *o, const char *what)
{
	const json_t *t = json_object_get(o, "task");

	say(o, arena_printf(s->arena, "%.*s is %s; locked by %.*s until %.*s",
			    STRF(mcp_text(t, "id")), what, STRF(mcp_text(o, "lock_holder")),
			    STRF(mcp_text(o, "lock_expires_at"))));
}

static enum result run_status(struct session *s, struct args *a, json_t **out)
{
	struct request *rq = &a->rq;
	enum status status = status_parse(a->value);
	const char *name;
	enum result code;

	if (!status) {
		code = run_fail(s, USAGE, STR("there is no such status"),
				STR("it is one of " STATUSES), out);
		return finish(s, rq, code, *out);
	}
	GIVE(rq, status, status);
	if (status == IN_PROGRESS)
		limit_time(rq);
	else
		rq->has &= ~(UINT64_C(1) << ARG_ttl);
	keeper_prove(s->face, rq);
	code = call(s, a, out);
	if (code != SUCCESS)
		return code;
	name = view_get(json_object_get(*out, "task"), "status");
	if (json_is_true(json_object_get(*out, "is_locked")))
		say_locked(s, *out, name);
	else
		say(*out, arena_printf(s->arena, "%.*s is %s; not locked", STRF(rq->id), name));
	return code;
}

static const struct param status_params[] = {
	TASK_ID,
	LOCAL(value, "status", P_NAME, .flags = P_REQUIRED, .help = STATUSES),
	AGENT_ID,
	TIMEOUT,
	PARAM(summary, "summary", P_TEXT, .help = "for REVIEW and DONE: what was done"),
	PARAM(reason, "reason", P_TEXT, .help = "needed for BLOCKED, NEEDS_HELP, FAILED, CANCELED"),
	PARAM(unblock_action, "unblock_action", P_TEXT,
	      .help = "needed for BLOCKED: what somebody has to do"),
	{ 0 }
};

static const struct command update_task_status = {
	.name = "update_task_status",
	.summary = "bring a task to a status, with its lock",
	.model =
		"The usual way to work: IN_PROGRESS locks the task for agent_id in the same step, REVIEW and DONE "
		"unlock it. If another agent has it: CONFLICT or LOST_LOCK with lock_holder and lock_expires_at, and "
		"nothing changed. If your own lock ran out: LOST_LOCK; acquire_task_lock, then call again.",
	.gives =
		"task lock success message is_locked lock_holder lock_expires_at parent waits_for comments "
		"came_back call_next",
	.params = status_params,
	.flags = C_WRITE,
	.op = OP_STATUS,
	.run = run_status,
	.show = show_message,
};

static enum result run_acquire(struct session *s, struct args *a, json_t **out)
{
	enum result code;

	limit_time(&a->rq);
	code = call(s, a, out);
	if (code == SUCCESS)
		say_locked(s, *out, view_get(json_object_get(*out, "task"), "status"));
	return code;
}

static const struct param acquire_params[] = { TASK_ID, AGENT_ID, TIMEOUT, { 0 } };

static const struct command acquire_task_lock = {
	.name = "acquire_task_lock",
	.summary = "lock a task, its status stays",
	.model =
		"Locks a task for agent_id without changing its status: for several agents in turn on one task, or a "
		"reviewer. Of any number that try at once, one succeeds; the others get CONFLICT with lock_holder and "
		"lock_expires_at. Not renewed: it runs out after timeout seconds.",
	.gives =
		"task lock success message is_locked lock_holder lock_expires_at parent waits_for comments "
		"came_back call_next",
	.params = acquire_params,
	.flags = C_WRITE,
	.op = OP_LOCK_ACQUIRE,
	.run = run_acquire,
	.show = show_message,
};

static enum result run_release(struct session *s, struct args *a, json_t **out)
{
	enum result code = call(s, a, out);

	if (code == SUCCESS)
		say(*out, arena_printf(s->arena, "%.*s is not locked", STRF(a->rq.id)));
	return code;
}

static const struct param release_params[] = { TASK_ID, AGENT_ID, { 0 } };

static const struct command release_task_lock = {
	.name = "release_task_lock",
	.summary = "unlock a task, its status stays",
	.model =
		"Unlocks a task that agent_id has locked; its status stays. A lock that is gone already counts as "
		"released; another agent's is not touched (LOST_LOCK).",
	.gives = "task success message is_locked lock_holder lock_expires_at",
	.params = release_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_LOCK_RELEASE,
	.run = run_release,
	.show = show_message,
};

static enum result run_lock_status(struct session *s, struct args *a, json_t **out)
{
	enum result code = run_op(s, a, out);
	json_t *lock = json_incref(json_object_get(*out, "lock"));

	json_object_del(*out, "lock");
	finish(s, &a->rq, code, *out);
	if (code == SUCCESS)
		set_lock(*out, lock);
	json_decref(lock);
	if (json_is_true(json_object_get(*out, "is_locked")))
		say_locked(s, *out, view_get(json_object_get(*out, "task"), "status"));
	else if (code == SUCCESS)
		say(*out, arena_printf(s->arena, "%.*s is not locked", STRF(a->rq.id)));
	return code;
}

static const struct param id_params[] = { TASK_ID, { 0 } };

static const struct command get_task_lock_status = {
	.name = "get_task_lock_status",
	.summary = "who has locked a task, and until when",
	.model =
		"Who has locked a task and until when: is_locked, lock_holder, lock_expires_at. A lock that ran out "
		"counts as none. It can change at once: to take a task, acquire it, do not look first.",
	.gives = "task success locked message is_locked lock_holder lock_expires_at",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOCK_STATUS,
	.run = run_lock_status,
	.show = show_message,
};

/* --- looking -------------------------------------------------------------------------------------- */

static void show_list(const json_t *o, struct view *v)
{
	const json_t *list = json_object_get(o, "tasks"), *t;
	size_t i;

	json_array_foreach(list, i, t) {
		view_data(v, PLAIN, view_get(t, "id"));
		view_text(v, PLAIN, " %s ", view_get(t, "status"));
		view_data(v, PLAIN, view_get(t, "name"));
		if (json_is_true(json_object_get(t, "is_locked"))) {
			view_text(v, PLAIN, " (locked by ");
			view_data(v, PLAIN, view_get(t, "lock_holder"));
			view_text(v, PLAIN, ")");
		}
		view_text(v, PLAIN, "\n");
	}
	view_text(v, PLAIN, "%zu tasks\n", json_array_size(list));
}

static void finish_list(json_t *o)
{
	json_t *list = json_object_get(o, "tasks"), *t;
	size_t i;

	json_object_set_new(o, "success", json_boolean(json_is_true(json_object_get(o, "ok"))));
	json_array_foreach(list, i, t)
		reshape(t);
}

static enum result run_list(struct session *s, struct args *a, json_t **out)
{
	enum result code;

	for (size_t i = 0; i < a->words.n; i++) {
		enum status status = status_parse(a->words.v[i]);

		if (!status)
			return run_fail(s, USAGE, STR("there is no such status"),
					STR("it is one of " STATUSES), out);
		GIVE(&a->rq, statuses, a->rq.statuses | (int64_t)STATUS_BIT(status));
	}
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, 100);
	code = run_op(s, a, out);
	finish_list(*out);
	return code;
}

static const struct param list_params[] = {
	LOCAL(words, "status", P_NAMES, .help = "only of these: " STATUSES),
	PARAM(holder, "agent_id", P_NAME, .help = "only those that this agent has locked"),
	PARAM(limit, "limit", P_INT, .def = "100", .help = "at most so many; 0: all"),
	{ 0 }
};

static const struct command list_tasks = {
	.name = "list_tasks",
	.summary = "tasks, in the order in which they were made",
	.model =
		"Tasks in the order in which they were made, each with its lock. For what can be taken now, "
		"get_available_tasks.",
	.gives = "tasks count total success",
	.params = list_params,
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.run = run_list,
	.show = show_list,
};

static enum result run_available(struct session *s, struct args *a, json_t **out)
{
	json_t *tasks = json_array(), *c, *shown, *t;
	enum result code;
	size_t i;

	GIVE(&a->rq, explain, 1);
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, AVAILABLE);
	code = run_op(s, a, out);
	json_array_foreach(json_object_get(*out, "candidates"), i, c) {
		if (!json_is_true(json_object_get(c, "eligible")))
			continue;
		shown = mcp_show(s->face, mcp_text(c, "id"), s->arena);
		t = json_object_get(shown, "task");
		if (t)
			json_array_append(tasks, t);
		json_decref(shown);
	}
	json_object_del(*out, "candidates");
	json_object_del(*out, "total");
	json_object_set_new(*out, "count", json_integer((json_int_t)json_array_size(tasks)));
	json_object_set_new(*out, "tasks", tasks);
	finish_list(*out);
	return code;
}

static const struct param available_params[] = {
	PARAM(limit, "limit", P_INT, .min = 1, .max = 100, .def = "20", .help = "at most so many"),
	PARAM(label, "label", P_NAME, .help = "only tasks with this label"),
	{ 0 }
};

static const struct command get_available_tasks = {
	.name = "get_available_tasks",
	.summary = "what can be taken now, most urgent first",
	.model =
		"What can be taken now, most urgent first: not locked, all it depends on DONE. Others see the same "
		"list: whoever locks a task first has it.",
	.gives = "tasks count success",
	.params = available_params,
	.flags = C_IDEMPOTENT,
	.op = OP_NEXT,
	.run = run_available,
	.show = show_list,
};

static const struct command get_task_details = {
	.name = "get_task_details",
	.summary = "everything about one task",
	.model = "Everything about one task, with its comments and its lock.",
	.gives = "task comments success is_locked lock_holder lock_expires_at",
	.params = id_params,
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.run = call,
	.show = show_details,
};

const struct command *const pm_tools[] = {
	&create_task,          &update_task_status,
	&acquire_task_lock,    &release_task_lock,
	&get_task_lock_status, &get_available_tasks,
	&get_task_details,     &update_task,
	&list_tasks,           NULL,
};
