/* The actions that change a status. The queue says which of them are possible now, and where they lead. */
#include "core/role.h"
#include "face/board/actions.h"

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
