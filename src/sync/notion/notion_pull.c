/*
 * Makes people's edits of a page in the queue, by the operations that people have there. An edit
 * that the queue refuses goes back to the page, with the reason.
 */
#include "base/when.h"
#include "sync/notion/notion.h"

static void notion_send_back(struct item *x, enum notion_field f, struct str why)
{
	struct arena *a = x->r->arena;

	x->plan.action[f] = D_BACK;
	x->why = arena_printf(a, "%.*s%s%s: %.*s", STRF(x->why), x->why.n ? "\n" : "",
			      notion_fields[f].name ? x->n->names[f] : "Text", STRF(why));
}

/* --- fields ---------------------------------------------------------------------------------------------- */

/* Sets the argument for a field from its text on the page. Returns NULL, or why the text is not
 * valid. An empty property stands for a new task's value. */
static const char *set_field(const struct item *x, enum notion_field f, struct request *rq)
{
	struct str text = x->p->is.v[f];
	int64_t number = 0;

	switch (f) {
	case F_TITLE:
		GIVE(rq, title, text);
		return NULL;
	case F_BODY:
		GIVE(rq, description, x->p->body);
		return NULL;
	case F_PRIORITY:
		if (text.n && !str_to_i64(text, &number))
			return "priority: must be a number from 0 to 1000";
		GIVE(rq, priority, text.n ? number : PRIORITY_DEFAULT);
		return NULL;
	case F_CLASS:
		number = text.n ? class_parse(text) : STANDARD;
		if (!number)
			return "class: must be Expedite, Fixed Date, Standard or Intangible";
		GIVE(rq, class_rank, number);
		return NULL;
	default:
		if (text.n && !when_parse_date(text, x->r->now, &number, x->r->arena))
			return "due: not a date";
		GIVE(rq, due, number);
		return NULL;
	}
}

static bool is_pulled(const struct item *x, enum notion_field f)
{
	return x->plan.action[f] == D_PULL && notion_fields[f].direction == BY_PEOPLE &&
	       f != F_PARENT;
}

/* The reason why the queue refuses this field; NULL: it does not. */
static const char *fault_of(const struct item *x, enum notion_field f)
{
	struct request one = { .op = OP_UPDATE };
	const char *fault = set_field(x, f, &one);

	GIVE(&one, id, x->t->id);
	GIVE(&one, agent, x->n->job->client->self.agent);
	return fault ? fault : request_fault(&one, &policy_default, x->r->arena);
}

/* Does a lock keep people from moving the task? The lock of a Blocked task does not. */
static bool is_kept(const struct item *x)
{
	return x->held && x->t->status != BLOCKED;
}

static void decide_status(struct item *x)
{
	enum status to = status_parse(x->p->is.v[F_STATUS]);
	struct arena *a = x->r->arena;
	bool own = x->l->foreign.n > 0;

	if (x->plan.action[F_STATUS] != D_PULL)
		return;
	if (!to)
		notion_send_back(x, F_STATUS, STR("pawl has no such status"));
	else if (is_kept(x))
		/* do not name the expiry: with each heartbeat this would become a new comment */
		notion_send_back(
			x, F_STATUS,
			arena_printf(a, "%.*s holds %.*s. Ask the operator: pawl lock break %.*s",
				     STRF(x->t->lock.holder), STRF(x->t->id), STRF(x->t->id)));
	else if (notion_move(x->t->status, to, own) == OP_NONE)
		notion_send_back(x, F_STATUS,
				 arena_printf(a, "%.*s is %s; the board cannot move it to %s",
					      STRF(x->t->id), status_name(x->t->status),
					      status_name(to)));
}

void notion_decide(struct item *x)
{
	for (int i = 0; i < F_END; i++) {
		enum notion_field f = (enum notion_field)i;
		const char *fault = is_pulled(x, f) ? fault_of(x, f) : NULL;

		if (fault)
			notion_send_back(x, f, str_c(fault));
		else if (x->plan.action[f] == D_BACK && x->l->foreign.n)
			x->plan.action[f] = D_PUSH; /* work of the program that held the page */
		else if (x->plan.action[f] == D_BACK)
			notion_send_back(x, f, STR("pawl writes this property"));
	}
	decide_status(x);
}

/* --- the calls -------------------------------------------------------------------------------------------------- */

/* The reason for the log. It names the queue's values that the page replaced. */
static struct str reason_of(const struct item *x)
{
	struct arena *a = x->r->arena;
	struct str out = STR("edited in Notion");

	for (int i = 0; i < F_END; i++)
		if (x->plan.clash[i] && is_pulled(x, (enum notion_field)i))
			out = arena_printf(
				a, "%.*s; its %s was also changed here, to: %s", STRF(out),
				notion_fields[i].key,
				arena_cstr(a, i == F_BODY ? x->t->description : x->tv.v[i]));
	return out.n > TEXT_MAX ? STR("edited in Notion") : out;
}

/* Calls the queue. If the queue refuses because the task's version changed, the next round handles
 * the task again. */
static enum result notion_pull_call(struct item *x, const struct request *rq, struct answer *ans)
{
	enum result code = notion_queue(x->r, rq, ans);

	if (code != SUCCESS)
		return code;
	if (ans->code == SUCCESS) {
		x->t = ans->task;
		x->r->now = ans->now;
		return SUCCESS;
	}
	x->later = HAS(rq, if_version) &&
		   (ans->code == NOT_FOUND || (ans->task && ans->task->version != rq->if_version));
	return SUCCESS;
}

static void notion_pull_sign(const struct item *x, struct request *rq)
{
	GIVE(rq, id, x->t->id);
	GIVE(rq, if_version, x->t->version);
	if (x->l->foreign.n && x->t->lock.holder.n && !x->held)
		GIVE(rq, token, x->l->foreign);
	else if (is_kept(x))
		GIVE(rq, force, 1);
}

static void send_back_all(struct item *x, const struct answer *ans)
{
	for (int f = 0; f < F_END; f++)
		if (is_pulled(x, (enum notion_field)f))
			notion_send_back(x, (enum notion_field)f, ans->message);
}

static enum result pull_fields(struct item *x)
{
	struct request rq = { .op = OP_UPDATE };
	struct answer ans;
	bool any = false;
	enum result code;

	for (int f = 0; f < F_END; f++)
		if (is_pulled(x, (enum notion_field)f)) {
			any = true;
			(void)set_field(x, (enum notion_field)f, &rq);
		}
	if (!any)
		return SUCCESS;
	notion_pull_sign(x, &rq);
	GIVE(&rq, reason, reason_of(x));
	GIVE(&rq, request_id, notion_call_id(x, PART_FIELDS));
	code = notion_pull_call(x, &rq, &ans);
	if (code == SUCCESS && ans.code != SUCCESS && !x->later)
		send_back_all(x, &ans);
	return code;
}

static enum result pull_parent(struct item *x)
{
	struct request rq = { .op = OP_UPDATE };
	struct answer ans;
	enum result code;

	if (x->plan.action[F_PARENT] != D_PULL || x->later)
		return SUCCESS;
	notion_pull_sign(x, &rq);
	GIVE(&rq, parent, x->p->is.v[F_PARENT]);
	GIVE(&rq, reason, STR("edited in Notion"));
	GIVE(&rq, request_id, notion_call_id(x, PART_PARENT));
	code = notion_pull_call(x, &rq, &ans);
	if (code == SUCCESS && ans.code != SUCCESS && !x->later)
		notion_send_back(x, F_PARENT, ans.message);
	return code;
}

static struct str or_else(struct str text, const char *otherwise)
{
	return str_trim(text).n ? text : str_c(otherwise);
}

/* The arguments that the operation needs. */
static void notion_pull_equip(const struct item *x, enum op op, int64_t to, struct request *rq)
{
	const struct values *p = &x->p->is;

	if (op == OP_UPDATE)
		GIVE(rq, status, to);
	if (op == OP_REVIEW)
		GIVE(rq, summary, or_else(p->v[F_SUMMARY], "done by another program"));
	if (op == OP_DONE && p->v[F_SUMMARY].n)
		GIVE(rq, summary, p->v[F_SUMMARY]);
	if (op == OP_BLOCK)
		GIVE(rq, unblock_action, or_else(p->v[F_ACTION], "see the page in Notion"));
	if (op == OP_BLOCK || op == OP_ESCALATE || op == OP_FAIL)
		GIVE(rq, reason, or_else(p->v[F_REASON], "see the page in Notion"));
	else
		GIVE(rq, reason, STR("moved in Notion"));
}

static enum result pull_status(struct item *x)
{
	enum status to = status_parse(x->p->is.v[F_STATUS]);
	struct request rq = { 0 };
	struct answer ans;
	enum result code;

	if (x->plan.action[F_STATUS] != D_PULL || x->later)
		return SUCCESS;
	rq.op = notion_move(x->t->status, to, x->l->foreign.n > 0);
	notion_pull_sign(x, &rq);
	notion_pull_equip(x, rq.op, to, &rq);
	GIVE(&rq, request_id, notion_call_id(x, PART_STATUS));
	code = notion_pull_call(x, &rq, &ans);
	if (code == SUCCESS && ans.code != SUCCESS && !x->later)
		notion_send_back(x, F_STATUS, ans.message);
	return code;
}

enum result notion_pull(struct item *x)
{
	enum result code = pull_fields(x);

	if (code == SUCCESS)
		code = pull_parent(x);
	return code == SUCCESS ? pull_status(x) : code;
}
