/* read: fills the model in from the queue, and sends the changes of the user to it. */
#ifndef BOARD_READ_H
#define BOARD_READ_H

#include "cmd/command.h"
#include "face/board/keys.h"

struct reader {
	struct session *session;
	struct arena columns, detail; /* what the model points to */
	struct answer shown;          /* the task of the detail view; no task: the reason */
	int64_t tried_at,
		took;    /* when the last read ended, by the boot clock, and how long it took; ms */
	int64_t read_at; /* when the last read that succeeded began */
	int64_t as_of;   /* the store's time then */
	int64_t expires_at; /* a lease that the columns show as live expires then */
	enum result code;   /* of the last read of the columns */
};

/* Reads the counts and one page of each open column. On failure the model stays as it is, and says why. */
void read_board(struct reader *r, struct ui *u);
/* Reads the task of the detail view. */
void read_detail(struct reader *r, struct ui *u);
/* All about that task at this moment, safe to print. */
struct str detail_text(const struct reader *r, struct arena *a);
/* Sends the draft, and leaves the outcome in the message. */
void send_draft(struct reader *r, struct ui *u);
/* Opens the editor on the task of the draft. The terminal must be in its normal mode. */
void edit_draft(struct reader *r, struct ui *u);
/* The store's time now. */
int64_t reader_now(const struct reader *r);
void reader_free(struct reader *r);

#endif
