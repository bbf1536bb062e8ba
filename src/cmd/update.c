/*
 * pawl update: changes the fields of a task. It cannot end or approve one. fields_fault() also
 * checks the fields of create and batch.
 */
#include "cmd/cmd.h"

static const struct param params[] = {
	PARAM_ID("task to change"),
	PARAM(title, "title", P_TITLE, .help = "title: one line"),
	PARAM(status, "status", P_STATUS, .choices = "ready backlog",
	      .help = "Backlog or Ready; other statuses have their own commands",
	      .model = "Backlog or Ready; the other statuses have tools"),
#define FIELD_CLEAR P_EMPTY
#include "cmd/fields.def"
	PARAM(append, "append", P_TEXT, .flags = P_FILLED,
	      .help = "text to add to the description as a paragraph; - reads standard input",
	      .model = "paragraph to add to the description"),
	PARAM(add_labels, "add-label", P_NAMES, .help = "label to add to the present ones"),
	PARAM(remove_labels, "remove-label", P_NAMES, .help = "label to remove"),
	PARAM_OVERRIDE,
	{ 0 }
};

static enum result update_ask(struct session *s, struct args *a, struct reply *out);
static void update_show(const struct reply *r, struct view *v);

const struct command cmd_update = {
	.name = "update",
	.group = "plan",
	.summary = "change the fields of a task",
	.detail =
		"An empty value clears a field: --due \"\". Only the holder can change a task that is held (else 20), or an "
		"operator with --force --reason TEXT: the lock stays, and the holder is told. The status can change "
		"between Backlog and Ready, and to Ready from Blocked, Needs Help, or In Progress without a live lock; "
		"update cannot close or approve a task. --assignee plans the task for an agent: `next --mine` offers it "
		"to that agent, `next` to everybody.",
	.example = "pawl update t1 --priority 5 --add-label urgent\n"
		   "pawl update t1 --append \"It also fails with tabs.\"\n"
		   "pawl update t1 --status backlog\n"
		   "pawl update t1 --priority 9 --force --reason \"customer waits\"",
	.see = "create, status, depend, comment",
	.model =
		"Change fields of a task, not its work: status only between Backlog and Ready, or from Blocked or "
		"Needs Help to Ready. An empty value clears a field. " MODEL_HELD MODEL_LOST
			MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE,
	.op = OP_UPDATE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.ask = update_ask,
	.show = update_show,
};

const char *fields_fault(const struct request *rq)
{
	if (HAS(rq, delay) && HAS(rq, not_before))
		return "--delay and --not-before cannot be used together: give one of them";
	return NULL;
}

static enum result update_ask(struct session *s, struct args *a, struct reply *out)
{
	const uint64_t who = UINT64_C(1) << ARG_id | UINT64_C(1) << ARG_token |
			     UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_request_id |
			     UINT64_C(1) << ARG_if_version | UINT64_C(1) << ARG_force |
			     UINT64_C(1) << ARG_reason;
	const char *fault = fields_fault(&a->rq);

	(void)s;
	if (!fault && !(a->rq.has & ~who))
		fault = "nothing to change: give at least one field, e.g. --priority high";
	if (!fault && HAS(&a->rq, append) && HAS(&a->rq, description))
		fault = "--append and --description cannot be used together: give one of them";
	if (!fault && HAS(&a->rq, labels) &&
	    (HAS(&a->rq, add_labels) || HAS(&a->rq, remove_labels)))
		fault = "--label replaces all labels: it cannot be used with --add-label or --remove-label";
	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help update`"), out);
	return SUCCESS;
}

static void update_show(const struct reply *r, struct view *v)
{
	show_did(r, v, "updated");
}
