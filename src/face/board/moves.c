/* The ways from one status to another. The queue has the last word: some are for the holder only. */
#include "face/board/actions.h"

#define CHANGES (A_TASK | A_VERSION)
#define REASON(label, must)                                   \
	{                                                     \
		{                                             \
			(label), "reason", ARG_reason, (must) \
		}                                             \
	}
#define SUMMARY                                                                 \
	{                                                                       \
		{                                                               \
			"Summary (may be empty)", "summary", ARG_summary, false \
		}                                                               \
	}
#define FROM(status) STATUS_BIT(status)

static const struct action to_ready = { "update", "Make Ready", OP_UPDATE, FROM(BACKLOG),
					CHANGES,  { { 0 } },    READY };
static const struct action to_backlog = { "update", "Put into Backlog", OP_UPDATE, FROM(READY),
					  CHANGES,  { { 0 } },          BACKLOG };
static const struct action claim = { "claim", "Claim",   OP_CLAIM, FROM(READY) | FROM(IN_PROGRESS),
				     CHANGES, { { 0 } }, 0 };
static const struct action release = {
	"release",  "Release",
	OP_RELEASE, FROM(IN_PROGRESS),
	CHANGES,    REASON("Why is it released? (may be empty)", false),
	0
};
static const struct action review = { "review", "Hand in", OP_REVIEW, FROM(IN_PROGRESS),
				      CHANGES,  SUMMARY,   0 };
static const struct action done = { "done",  "Finish", OP_DONE, FROM(IN_PROGRESS),
				    CHANGES, SUMMARY,  0 };
static const struct action block = { "block",
				     "Block",
				     OP_BLOCK,
				     FROM(IN_PROGRESS),
				     CHANGES,
				     { { "What is in the way?", "reason", ARG_reason, true },
				       { "What must a person do?", "unblock-action",
					 ARG_unblock_action, true } },
				     0 };
static const struct action escalate = { "escalate",
					"Ask for help with",
					OP_ESCALATE,
					FROM(IN_PROGRESS),
					CHANGES,
					REASON("Which help is needed?", true),
					0 };
static const struct action fail = {
	"fail", "Fail", OP_FAIL, FROM(IN_PROGRESS), CHANGES, REASON("Why did it fail?", true), 0
};
static const struct action retry = {
	"retry", "Retry", OP_RETRY, FROM(FAILED), CHANGES, { { 0 } }, 0
};
static const struct action reopen = { "reopen", "Reopen",  OP_REOPEN, FROM(DONE) | FROM(CANCELED),
				      CHANGES,  { { 0 } }, 0 };

static const struct move moves[] = {
	{ BACKLOG, READY, &to_ready },
	{ BACKLOG, CANCELED, &act_cancel },
	{ READY, BACKLOG, &to_backlog },
	{ READY, IN_PROGRESS, &claim },
	{ READY, CANCELED, &act_cancel },
	{ IN_PROGRESS, READY, &release },
	{ IN_PROGRESS, BLOCKED, &block },
	{ IN_PROGRESS, NEEDS_HELP, &escalate },
	{ IN_PROGRESS, REVIEW, &review },
	{ IN_PROGRESS, FAILED, &fail },
	{ IN_PROGRESS, DONE, &done },
	{ IN_PROGRESS, CANCELED, &act_cancel },
	{ BLOCKED, IN_PROGRESS, &act_unblock },
	{ BLOCKED, CANCELED, &act_cancel },
	{ NEEDS_HELP, IN_PROGRESS, &act_unblock },
	{ NEEDS_HELP, CANCELED, &act_cancel },
	{ REVIEW, IN_PROGRESS, &act_rework },
	{ REVIEW, DONE, &act_approve },
	{ REVIEW, CANCELED, &act_cancel },
	{ FAILED, READY, &retry },
	{ FAILED, CANCELED, &act_cancel },
	{ DONE, READY, &reopen },
	{ CANCELED, READY, &reopen },
};

size_t moves_from(int64_t status, const struct move *out[MOVES])
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves) && n < MOVES; i++)
		if ((int64_t)moves[i].from == status)
			out[n++] = &moves[i];
	return n;
}
