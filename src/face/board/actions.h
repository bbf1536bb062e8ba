/* actions: the changes that the board offers, each as a request and as the `pawl` command that does the same. */
#ifndef BOARD_ACTIONS_H
#define BOARD_ACTIONS_H

#include "face/board/board.h"

#define TEXTS 2 /* the most texts that one action asks for */

/* A text that the user types. */
struct text_ask {
	const char *label;  /* NULL: none */
	const char *option; /* NULL: it is a positional word */
	enum arg arg;
	bool must;
};

#define A_TASK 1u    /* concerns the task under the cursor */
#define A_VERSION 2u /* overwrites something, so it carries the version that the user saw */

struct action {
	const char *name; /* of the command */
	const char *title;
	enum op op;
	unsigned flags;
	struct text_ask ask[TEXTS];
	enum status to; /* of `update`; 0: none */
};

extern const struct action act_approve, act_rework, act_unblock, act_comment, act_create,
	act_cancel, act_break, act_pause, act_resume;

/* An action that the user has begun. */
struct draft {
	const struct action *action;
	char id[ID_MAX + 1];
	int64_t version;
	bool force; /* the queue asks for it: another agent holds the task */
	char fault[200];
	size_t asked; /* texts that were asked for */
	char text[TEXTS][INPUT_MAX + 1];
};

/* Begins the action on the task, if there is one. Returns NULL, or the reason why it cannot. */
const char *draft_start(struct draft *p, const struct action *a, struct here h);
/* Does the queue let the user do it to the task? */
bool action_open(const struct action *a, const struct allowed *w);
/* The next text to ask for; NULL: the user has given all. */
const struct text_ask *draft_ask(const struct draft *p);
struct request draft_request(const struct draft *p);
struct str draft_command(const struct draft *p, struct arena *a);

/* --- moves.c -------------------------------------------------------------------------------------- */

struct move {
	enum status to;
	const struct action *action;
};

#define MOVES 9 /* the most moves of one task: one to each status */

/* The actions that the queue allows and that change the status, in the order of the columns; returns their number. */
size_t moves_of(const struct allowed *w, struct move out[MOVES]);

#endif
