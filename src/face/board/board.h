/*
 * board: the model of the terminal board: its columns, the cursor, the open dialog. It knows no terminal and reads no
 * store: read.c fills it in, draw.c shows it, and keys.c changes it by the keys of the user.
 */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

#include "cmd/view.h"
#include "core/answer.h"
#include "core/request.h"

#define COLUMNS 9     /* one for each status */
#define PAGE 50       /* tasks of a column that are read at first, and added at its end */
#define CARD_LINES 6  /* the most lines of a card */
#define COLUMN_MIN 22 /* the least width of an open column */
#define STRIP 3       /* the width of a collapsed column */
#define TOP 2 /* the first line of the cards: after the header and the names of the columns */
#define INPUT_MAX 2000   /* bytes of a text that the user types */
#define MESSAGE_MAX 1000 /* bytes of the last line */

struct column {
	enum status status;
	int64_t count;   /* -1: unknown, because a filter is set and the column is collapsed */
	int64_t waiting; /* Ready ones that are not eligible */
	const struct task *tasks; /* the first `n` of them */
	const struct standing *standing;
	const struct allowed *allowed; /* what the queue lets the user do with each of them */
	size_t n, limit;
	int wish;            /* of the user: 1 open, -1 collapsed, 0 none */
	size_t at, top;      /* the card under the cursor, the first card on the screen */
	char id[ID_MAX + 1]; /* the task under the cursor; it stays there when others move */
};

struct board {
	struct column col[COLUMNS];
	size_t cur, first; /* the column of the cursor, the first one on the screen */
	int64_t now;       /* the store's time */
	const struct notice *paused;
	char fault[MESSAGE_MAX]; /* why the last read failed; empty: it did not */
	char search[INPUT_MAX + 1], filter[INPUT_MAX + 1];
};

void board_init(struct board *b);
bool board_filtered(const struct board *b);
bool column_open(const struct board *b, size_t i);
/* Puts the cursor back on the task that it was on, or on the task that took its place. */
void column_settle(struct column *c);
/* A task, and what the queue lets the user do with it. */
struct here {
	const struct task *task; /* NULL: there is none */
	const struct allowed *allowed;
};

/* The task under the cursor. */
struct here board_task(const struct board *b);
/* The columns from left to right. */
extern const enum status board_order[COLUMNS];
void board_across(struct board *b, int step);
void board_along(struct board *b, long step);
/* Goes to a column and opens it. */
void board_go(struct board *b, size_t column);
void board_fold(struct board *b);
/* If there is no task under the cursor: goes to the next column that has one. */
void board_seek(struct board *b);
/* At the end of a column that has more tasks than were read: asks for the next page. */
bool board_page_needed(struct board *b);

/* --- layout.c ------------------------------------------------------------------------------------- */

struct span {
	size_t column;
	int x, width;
	bool strip;
};

/* The columns that fit side by side, with the one of the cursor among them. Changes b->first. Returns their number. */
size_t board_layout(struct board *b, int width, struct span out[COLUMNS]);
/* A click, or a turn of the wheel, on a screen of `rows` and `cols`. */
struct mouse {
	enum { MOUSE_CLICK, MOUSE_DOUBLE, MOUSE_UP, MOUSE_DOWN } what;
	int y, x, rows, cols;
	int64_t at; /* by the boot clock, ms */
};

struct hit {
	enum { HIT_NONE, HIT_COLUMN, HIT_CARD } what;
	size_t column, card;
};

/* The lines for cards on a screen of `rows`, without the last one, which says how many tasks are hidden. */
int board_room(int rows);
/* The thing at that place of the screen, as it was last drawn. */
struct hit board_hit(struct board *b, const struct mouse *m);
/* Changes c->top so that the card under the cursor is on a screen of `height` lines. */
void column_scroll(struct column *c, int64_t now, int width, int height);

/* --- card.c --------------------------------------------------------------------------------------- */

struct line {
	enum paint paint;
	struct str text; /* safe to print */
};

/* The lines of a card of this width; returns their number. */
size_t card_lines(const struct column *c, size_t i, int64_t now, int width,
		  struct line out[CARD_LINES], struct arena *a);

/* --- wrap.c --------------------------------------------------------------------------------------- */

/* Lines of at most `width` columns, broken between words where possible. `text` is safe to print. */
struct strs wrap_lines(struct arena *a, struct str text, size_t width);

/* --- filter.c ------------------------------------------------------------------------------------- */

/* Adds the words of a filter to a list request: #label, @holder, class:C, type:T, mine. Returns NULL, or the fault. */
const char *filter_apply(struct str words, struct str agent, struct request *rq, struct arena *a);

#endif
