/*
 * pawl emergency on, off and status: makes the queue read-only. `on` makes a backup first, but goes
 * ahead if the backup fails.
 */
#include "base/when.h"
#include "transfer/backup_file.h"
#include "cmd/command.h"

static const struct param on_params[] = {
	PARAM_REASON(P_REQUIRED, "reason for the emergency, for the log and for every refusal"),
	{ 0 }
};

static const struct param off_params[] = { PARAM_REASON(0, "how the emergency ended, for the log"),
					   { 0 } };

static enum result run_on(struct session *s, struct args *a, struct reply *out);
static void show_state(const struct reply *r, struct view *v);
static void emergency_tell(struct session *s, const struct args *a, struct reply *out);

const struct command cmd_emergency_on = {
	.name = "emergency on",
	.group = "locks",
	.summary = "back up the queue and make it read-only for everybody",
	.detail =
		"pawl first makes a backup like `pawl backup`. Until `emergency off` it then refuses every change (30) and "
		"gives the reason. Agents can still read, and heartbeats still renew leases, so no holder loses a task.",
	.example = "pawl emergency on --reason \"two agents report the same task\"",
	.see = "emergency off, emergency status, lock health",
	.model =
		"For the operator: back up the queue and make it read-only for everybody. Holders keep their locks.",
	.gives = "emergency",
	.params = on_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_EMERGENCY_ON,
	.run = run_on,
	.show = show_state,
};

const struct command cmd_emergency_off = {
	.name = "emergency off",
	.group = "locks",
	.summary = "end the emergency: the queue accepts changes again",
	.example = "pawl emergency off --reason \"found and repaired\"",
	.see = "emergency on, emergency status",
	.model = "For the operator: end the emergency, so that the queue accepts changes again.",
	.gives = "emergency",
	.params = off_params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_EMERGENCY_OFF,
	.tell = emergency_tell,
	.show = show_state,
};

const struct command cmd_emergency_status = {
	.name = "emergency status",
	.group = "locks",
	.summary = "show whether there is an emergency, since when and why",
	.example = "pawl emergency status",
	.see = "emergency on, emergency off, lock typed",
	.model = "Is the queue read-only because of an emergency, since when and why?",
	.gives = "emergency",
	.flags = C_IDEMPOTENT,
	.op = OP_EMERGENCY,
	.tell = emergency_tell,
	.show = show_state,
};

/* {"on":true,"reason":…,"by":…,"since":…}. The emergency is stored like a task, but shown as this
 * object. */
static json_t *state_json(const struct task *t, struct arena *a)
{
	const struct lock *l = &t->lock;
	const struct {
		const char *name;
		struct str text;
	} parts[] = { { "by", l->holder },
		      { "user", l->user },
		      { "host", l->host },
		      { "since", l->acquired_at ? when_text(a, l->acquired_at) : STR("") },
		      { "reason", t->blocker_reason },
		      { "backup", t->summary } };
	bool on = l->holder.n;
	json_t *e = json_pack("{s:b}", "on", on);

	for (size_t i = 0; on && i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].text.n)
			json_object_set_new(e, parts[i].name, json_str(parts[i].text));
	return e;
}

/* Returns a warning if the backup fails. The emergency goes ahead, because a full disk may be its
 * cause. */
static struct str back_up(struct session *s, struct str *path)
{
	struct client *c = &s->client;
	struct answer ans = { 0 };
	struct backup b;
	char *name;

	*path = STR("");
	if (client_open(c, STORE_READ, &ans) == SUCCESS) {
		if (backup_name(c, queue_now(c->conn.queue), &name, &ans) == SUCCESS &&
		    backup_write(c->conn.queue, name, &b, &ans, s->arena) == SUCCESS) {
			*path = str_c(name);
			return STR("");
		}
	}
	return arena_printf(s->arena, "pawl could not make a backup: %.*s", STRF(ans.message));
}

static bool is_on(struct session *s)
{
	struct request rq = { .op = OP_EMERGENCY };
	struct answer ans;

	client_call(&s->client, &rq, &ans);
	return ans.code == SUCCESS && ans.task->lock.holder.n;
}

static void emergency_tell(struct session *s, const struct args *a, struct reply *out)
{
	(void)a;
	if (out->ans.code != SUCCESS)
		return;
	json_object_set_new(reply_more(out), "emergency", state_json(out->ans.task, s->arena));
	out->own = out->ans.task;
	out->ans.task = NULL;
}

static enum result run_on(struct session *s, struct args *a, struct reply *out)
{
	struct str path, trouble = STR("");
	enum result code;

	if (str_trim(a->rq.reason).n && !is_on(s)) {
		trouble = back_up(s, &path);
		GIVE(&a->rq, text, path);
	}
	code = run_op(s, a, out);
	emergency_tell(s, a, out);
	if (code == SUCCESS && trouble.n)
		reply_warn(out, trouble, s->arena);
	return code;
}

static void show_state(const struct reply *r, struct view *v)
{
	const struct task *t = r->own;

	if (v->quiet)
		return;
	if (!t->lock.holder.n) {
		view_text(v, GREEN, "no emergency");
		view_text(v, PLAIN, ": the queue accepts changes\n");
		return;
	}
	view_text(v, RED, "emergency");
	view_text(v, PLAIN, ", the queue is read-only: ");
	view_data(v, PLAIN, t->blocker_reason);
	view_text(v, PLAIN, "\n  declared %s by ",
		  arena_cstr(v->arena, view_when(v, t->lock.acquired_at)));
	view_data(v, CYAN, t->lock.holder);
	view_text(v, PLAIN, "\n");
	if (t->summary.n) {
		view_text(v, PLAIN, "  backup: ");
		view_data(v, PLAIN, t->summary);
		view_text(v, PLAIN, "\n");
	}
	view_text(v, DIM, "next: pawl emergency off\n");
}
