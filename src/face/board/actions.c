#include "face/board/actions.h"

#include <stdio.h>

#include "base/text.h"
#include "core/lease.h"
#include "store/store.h"

#define NOT_ENDED (STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)))
#define CHANGES (A_TASK | A_VERSION)

const struct action act_approve = { "approve", "Approve", OP_APPROVE, STATUS_BIT(REVIEW),
				    CHANGES,   { { 0 } }, 0 };
const struct action act_rework = {
	"rework",  "Send back",
	OP_REWORK, STATUS_BIT(REVIEW),
	CHANGES,   { { "What is missing?", "reason", ARG_reason, true } },
	0
};
const struct action act_unblock = {
	"unblock",  "Unblock",
	OP_UNBLOCK, STATUS_BIT(BLOCKED) | STATUS_BIT(NEEDS_HELP),
	CHANGES,    { { "What has changed? (may be empty)", "reason", ARG_reason, false } },
	0
};
/* A comment overwrites nothing, so a heartbeat of the holder must not make it fail. */
const struct action act_comment = { "comment",  "Comment on",
				    OP_COMMENT, STATUS_ALL,
				    A_TASK,     { { "Comment", NULL, ARG_text, true } },
				    0 };
const struct action act_create = {
	"create", "Create", OP_CREATE, 0, 0, { { "Title of the new task", NULL, ARG_title, true } },
	0
};
const struct action act_cancel = {
	"cancel",  "Cancel",          OP_CANCEL,
	NOT_ENDED, CHANGES | A_FORCE, { { "Why is it canceled?", "reason", ARG_reason, true } },
	0
};
const struct action act_break = { "lock break",
				  "Break the lock of",
				  OP_LOCK_BREAK,
				  STATUS_ALL,
				  CHANGES | A_LOCK,
				  { { "Why is the lock broken?", "reason", ARG_reason, true } },
				  0 };
const struct action act_pause = {
	"pause",  "Pause the queue",
	OP_PAUSE, 0,
	0,        { { "Why is the queue paused? (may be empty)", "reason", ARG_reason, false } },
	0
};
const struct action act_resume = { "resume", "Resume the queue", OP_RESUME, 0, 0, { { 0 } }, 0 };

static const char *cannot(const struct action *a, const struct task *t)
{
	if (!(a->flags & A_TASK))
		return NULL;
	if (!t)
		return "there is no task under the cursor";
	if (a->flags & A_LOCK && !t->lock.holder.n)
		return "nobody holds this task";
	if (!(a->from & STATUS_BIT(t->status)))
		return a == &act_unblock  ? "only a Blocked or Needs Help task can be unblocked"
		       : a == &act_cancel ? "the task has ended already; m reopens it"
					  : "only a task in Review can be approved or sent back";
	return NULL;
}

const char *draft_start(struct draft *p, const struct action *a, const struct task *t, int64_t now)
{
	const char *fault = cannot(a, t);

	*p = (struct draft){ .action = a };
	if (fault || !(a->flags & A_TASK))
		return fault;
	snprintf(p->id, sizeof(p->id), "%.*s", STRF(t->id));
	p->version = t->version;
	p->force = a->flags & A_FORCE && lease_live(&t->lock, now);
	return NULL;
}

const struct text_ask *draft_ask(const struct draft *p)
{
	const struct text_ask *ask = &p->action->ask[p->asked];

	return p->asked < TEXTS && ask->label ? ask : NULL;
}

struct request draft_request(const struct draft *p)
{
	const struct action *a = p->action;
	struct request rq = { .op = a->op };

	if (a->flags & A_TASK)
		GIVE(&rq, id, str_c(p->id));
	if (a->flags & A_VERSION)
		GIVE(&rq, if_version, p->version);
	if (p->force)
		GIVE(&rq, force, 1);
	if (a->to)
		GIVE(&rq, status, a->to);
	for (size_t i = 0; i < TEXTS && a->ask[i].label; i++) {
		if (!p->text[i][0])
			continue;
		*(struct str *)arg_at(&rq, a->ask[i].arg) = str_c(p->text[i]);
		rq.has |= UINT64_C(1) << a->ask[i].arg;
	}
	return rq;
}

static void add_text(struct buf *b, const struct text_ask *ask, const char *text, struct arena *a)
{
	if (!text[0])
		return;
	if (ask->option)
		buf_addf(b, " --%s", ask->option);
	buf_addf(b, " %s", arena_cstr(a, store_word(a, str_c(text))));
}

struct str draft_command(const struct draft *p, struct arena *a)
{
	const struct action *act = p->action;
	struct buf b = BUF_MAX(64 * 1024);
	struct str out;

	buf_addf(&b, "pawl %s", act->name);
	if (act->flags & A_TASK)
		buf_addf(&b, " %s", arena_cstr(a, store_word(a, str_c(p->id))));
	if (act->to)
		buf_addf(&b, " --status %s", act->to == BACKLOG ? "backlog" : "ready");
	for (size_t i = 0; i < TEXTS && act->ask[i].label; i++)
		add_text(&b, &act->ask[i], p->text[i], a);
	if (p->force)
		buf_adds(&b, STR(" --force"));
	if (act->flags & A_VERSION)
		buf_addf(&b, " --if-version %lld", (long long)p->version);
	out = text_line(a, arena_str(a, buf_str(&b)));
	buf_free(&b);
	return out;
}
