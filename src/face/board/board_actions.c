/*
 * The actions of the board. core/can.c says which ones are possible (struct allowed); nothing here
 * decides. A request and the shown command must have the same effect, because the user confirms the
 * command.
 */
#include <stdio.h>

#include "base/text.h"
#include "core/role.h"
#include "face/board/board.h"
#include "store/store.h"

#define CHANGES (A_TASK | A_VERSION)

const struct action act_approve = { "approve", "Approve", OP_APPROVE, CHANGES, { { 0 } }, 0 };
const struct action act_rework = { "rework",
				   "Send back",
				   OP_REWORK,
				   CHANGES,
				   { { "What is missing?", "reason", ARG_reason, true } },
				   0 };
const struct action act_unblock = { "unblock",
				    "Unblock",
				    OP_UNBLOCK,
				    CHANGES,
				    { { "What has changed? (may be empty)", "reason", ARG_reason,
					false } },
				    0 };
/* A comment does not overwrite anything, so the holder's heartbeat must not make it fail. */
const struct action act_comment = {
	"comment", "Comment on", OP_COMMENT, A_TASK, { { "Comment", NULL, ARG_text, true } }, 0
};
const struct action act_create = {
	"create", "Create", OP_CREATE, 0, { { "Title of the new task", NULL, ARG_title, true } }, 0
};
const struct action act_cancel = { "cancel",
				   "Cancel",
				   OP_CANCEL,
				   CHANGES,
				   { { "Why is it canceled?", "reason", ARG_reason, true } },
				   0 };
const struct action act_break = { "lock break",
				  "Break the lock of",
				  OP_LOCK_BREAK,
				  CHANGES,
				  { { "Why is the lock broken?", "reason", ARG_reason, true } },
				  0 };
const struct action act_pause = { "pause",
				  "Pause the queue",
				  OP_PAUSE,
				  0,
				  { { "Why is the queue paused? (may be empty)", "reason",
				      ARG_reason, false } },
				  0 };
const struct action act_resume = { "resume", "Resume the queue", OP_RESUME, 0, { { 0 } }, 0 };

/* The form of the action that the queue offers: the plain one, or the one with --force, which needs
 * a reason. 0: none. */
static int action_of(const struct action *a, const struct allowed *w)
{
	int number = action_find(a->op, a->to);
	uint64_t can = w ? (uint64_t)w->can : 0;

	if (can & ACTION_BIT(number))
		return number;
	return a->ask[0].must && number + 1 < ACTION_END && action_forces(number + 1) &&
			       can & ACTION_BIT(number + 1)
		       ? number + 1
		       : 0;
}

bool action_open(const struct action *a, const struct allowed *w)
{
	return action_of(a, w) != 0;
}

static const char *board_actions_cannot(struct draft *p, const struct action *a, struct here h)
{
	bool held = h.allowed && h.allowed->live;

	if (!h.task)
		return "there is no task under the cursor";
	if (a->op == OP_LOCK_BREAK && !h.task->lock.holder.n)
		return "nobody holds this task";
	snprintf(p->fault, sizeof(p->fault), "%s is not possible: %.*s is %s%s", a->name,
		 STRF(h.task->id), status_name(h.task->status),
		 held ? ", and an agent holds it" : "");
	return p->fault;
}

const char *draft_start(struct draft *p, const struct action *a, struct here h)
{
	*p = (struct draft){ .action = a };
	if (!(a->flags & A_TASK))
		return NULL;
	if (!h.task || !action_open(a, h.allowed))
		return board_actions_cannot(p, a, h);
	snprintf(p->id, sizeof(p->id), "%.*s", STRF(h.task->id));
	p->version = h.task->version;
	p->force = action_forces(action_of(a, h.allowed));
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

/* --- moves ------------------------------------------------------------------------------------ */

/*
 * The actions that change a status. The queue says which of them are possible now, and which status
 * they lead to.
 */

#define CHANGES (A_TASK | A_VERSION)
#define REASON(label, must)                                   \
	{                                                     \
		{                                             \
			(label), "reason", ARG_reason, (must) \
		}                                             \
	}
#define SUMMARY(label, must)                                    \
	{                                                       \
		{                                               \
			(label), "summary", ARG_summary, (must) \
		}                                               \
	}

static const struct action to_ready = {
	"update", "Make Ready", OP_UPDATE, CHANGES, { { 0 } }, READY
};
static const struct action to_backlog = { "update", "Put into Backlog", OP_UPDATE,
					  CHANGES,  { { 0 } },          BACKLOG };
static const struct action claim = { "claim", "Claim", OP_CLAIM, CHANGES, { { 0 } }, 0 };
static const struct action release = { "release",
				       "Release",
				       OP_RELEASE,
				       CHANGES,
				       REASON("Why is it released? (may be empty)", false),
				       0 };
static const struct action review = {
	"review", "Hand in", OP_REVIEW, CHANGES, SUMMARY("What did you do?", true), 0
};
static const struct action done = {
	"done", "Finish", OP_DONE, CHANGES, SUMMARY("Summary (may be empty)", false), 0
};
static const struct action block = { "block",
				     "Block",
				     OP_BLOCK,
				     CHANGES,
				     { { "What is in the way?", "reason", ARG_reason, true },
				       { "What must a person do?", "unblock-action",
					 ARG_unblock_action, true } },
				     0 };
static const struct action escalate = { "escalate",
					"Ask for help with",
					OP_ESCALATE,
					CHANGES,
					REASON("Which help is needed?", true),
					0 };
static const struct action fail = {
	"fail", "Fail", OP_FAIL, CHANGES, REASON("Why did it fail?", true), 0
};
static const struct action retry = { "retry", "Retry", OP_RETRY, CHANGES, { { 0 } }, 0 };
static const struct action reopen = {
	"reopen", "Reopen", OP_REOPEN, CHANGES, REASON("Why is it reopened?", true), 0
};

static const struct action *const actions[] = {
	&to_backlog, &to_ready,    &release,    &retry,       &reopen,
	&claim,      &block,       &escalate,   &review,      &fail,
	&done,       &act_unblock, &act_rework, &act_approve, &act_cancel,
};

static const struct action *board_moves_find(const struct allowed *w, enum status to)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (action_to(action_find(actions[i]->op, actions[i]->to)) == to &&
		    action_open(actions[i], w))
			return actions[i];
	return NULL;
}

size_t moves_of(const struct allowed *w, struct move out[MOVES])
{
	size_t n = 0;

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct action *a = board_moves_find(w, board_order[i]);

		if (a)
			out[n++] = (struct move){ board_order[i], a };
	}
	return n;
}
