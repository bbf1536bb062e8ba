/*
 * board: the model of the terminal board: its columns, the cursor, the open dialog. It knows
 * neither a terminal nor a store: board_read.c fills it in, board_draw.c shows it, and board_keys.c changes it by the
 * user's keys.
 */
#ifndef FACE_BOARD_BOARD_H
#define FACE_BOARD_BOARD_H

#include "cmd/command.h"
#include "cmd/view.h"
#include "core/answer.h"
#include "core/request.h"

#define COLUMNS 9        /* one for each status */
#define PAGE 50          /* tasks of a column that one page adds */
#define CARD_LINES 6     /* the most lines of a card */
#define COLUMN_MIN 22    /* the least width of an open column */
#define STRIP 3          /* the width of a collapsed column */
#define TOP 2            /* the first line of the cards, below the header and the column names */
#define INPUT_MAX 2000   /* bytes of a text that the user types */
#define MESSAGE_MAX 1000 /* bytes of the last line */

struct column {
	enum status status;
	int64_t count;   /* -1: unknown, because a filter is set and the column is collapsed */
	int64_t waiting; /* Ready tasks that are not eligible */
	const struct task *tasks; /* the first `n` of them */
	const struct standing *standing;
	const struct allowed *allowed; /* the actions on each task that the queue allows the user */
	size_t n, limit;
	int wish;            /* the user's choice: 1 open, -1 collapsed, 0 none */
	size_t at, top;      /* the card under the cursor, the first card on the screen */
	char id[ID_MAX + 1]; /* the task under the cursor; it stays there when others move */
};

struct board {
	struct column col[COLUMNS];
	size_t cur, first; /* the cursor's column, the first column on the screen */
	int64_t now;       /* the store's time */
	const struct notice *paused;
	char fault[MESSAGE_MAX]; /* why the last read failed; empty: it did not fail */
	char search[INPUT_MAX + 1], filter[INPUT_MAX + 1];
};

void board_init(struct board *b);
bool board_filtered(const struct board *b);
bool column_open(const struct board *b, size_t i);
/* Puts the cursor back on its task, or on the task that took its place. */
void column_settle(struct column *c);
/* A task, and the actions on it that the queue allows the user. */
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
/* If there is no task under the cursor, goes to the next column that has one. */
void board_seek(struct board *b);
/* At the end of a column that has more tasks than were read, asks for the next page. */
bool board_page_needed(struct board *b);

/* --- board_layout.c ------------------------------------------------------------------------------------- */

struct span {
	size_t column;
	int x, width;
	bool strip;
};

/* The columns that fit side by side, including the cursor's column. Changes b->first. Returns their
 * number. */
size_t board_layout(struct board *b, int width, struct span out[COLUMNS]);
/* A click, or a movement of the wheel, on a screen of `rows` and `cols`. */
struct mouse {
	enum { MOUSE_CLICK, MOUSE_DOUBLE, MOUSE_UP, MOUSE_DOWN } what;
	int y, x, rows, cols;
	int64_t at; /* by the boot clock, ms */
};

struct hit {
	enum { HIT_NONE, HIT_COLUMN, HIT_CARD } what;
	size_t column, card;
};

/* The lines for cards on a screen of `rows`, without the last line, which says how many tasks are
 * hidden. */
int board_room(int rows);
/* The card or column at this place of the screen, as it was last drawn. */
struct hit board_hit(struct board *b, const struct mouse *m);
/* Changes c->top so that the card under the cursor is visible on `height` lines. */
void column_scroll(struct column *c, int64_t now, int width, int height);

/* --- board_layout.c --------------------------------------------------------------------------------------- */

struct line {
	enum paint paint;
	struct str text; /* safe to print */
};

/* The lines of a card of this width; returns their number. */
size_t card_lines(const struct column *c, size_t i, int64_t now, int width,
		  struct line out[CARD_LINES], struct arena *a);

/* --- board_layout.c --------------------------------------------------------------------------------------- */

/* Lines of at most `width` columns, broken between words where possible. `text` is safe to print. */
struct strs wrap_lines(struct arena *a, struct str text, size_t width);

/* --- board_model.c ------------------------------------------------------------------------------------- */

/* Adds the words of a filter to a list request: #label, @holder, class:C, type:T, mine. Returns NULL, or the fault. */
const char *filter_apply(struct str words, struct str agent, struct request *rq, struct arena *a);

/* --- actions ---------------------------------------------------------------------------------- */

/* actions: the changes that the board offers, each as a request and as the equivalent `pawl` command. */

#define TEXTS 2 /* an action asks for at most this number of texts */

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
	const char *name; /* the command's name */
	const char *title;
	enum op op;
	unsigned flags;
	struct text_ask ask[TEXTS];
	enum status to; /* for `update`; 0: none */
};

extern const struct action act_approve, act_rework, act_unblock, act_comment, act_create,
	act_cancel, act_break, act_pause, act_resume;

/* An action that the user has begun. */
struct draft {
	const struct action *action;
	char id[ID_MAX + 1];
	int64_t version;
	bool force; /* the queue requires it, because another agent holds the task */
	char fault[200];
	size_t asked; /* number of texts that were asked for */
	char text[TEXTS][INPUT_MAX + 1];
};

/* Begins the action on the task, if there is one. Returns NULL, or the reason why the action is not
 * possible. */
const char *draft_start(struct draft *p, const struct action *a, struct here h);
/* Does the queue allow the user this action on the task? */
bool action_open(const struct action *a, const struct allowed *w);
/* The next text to ask for; NULL: the user has given all of them. */
const struct text_ask *draft_ask(const struct draft *p);
struct request draft_request(const struct draft *p);
struct str draft_command(const struct draft *p, struct arena *a);

/* --- board_actions.c -------------------------------------------------------------------------------------- */

struct move {
	enum status to;
	const struct action *action;
};

#define MOVES 9 /* the most moves of one task: one to each status */

/* The actions that the queue allows and that change the status, in the order of the columns;
 * returns their number. */
size_t moves_of(const struct allowed *w, struct move out[MOVES]);

/* --- keys ------------------------------------------------------------------------------------- */

/*
 * keys: the dialogs of the board, as a state machine that keys drive. It tells its caller what to
 * do.
 */

/* Keys that are not characters. */
enum key {
	K_NONE = 0,
	K_TAB = 9,
	K_ENTER = 10,
	K_ESC = 27,
	K_ERASE = 127,
	K_UP = 0x110000, /* beyond Unicode */
	K_DOWN,
	K_LEFT,
	K_RIGHT,
	K_PAGE_UP,
	K_PAGE_DOWN,
	K_HOME,
	K_END,
	K_MOUSE, /* screen_mouse() has the details */
	K_RESIZE
};

#define MENU_WIDTH 34 /* the menu's width, and its lines besides the items */
#define MENU_REST 4

enum mode { UI_BOARD, UI_DETAIL, UI_HELP, UI_MENU, UI_INPUT, UI_CONFIRM };
enum input_for { FOR_ACTION, FOR_SEARCH, FOR_FILTER };

enum effect {
	DO_NOTHING,
	DO_READ,  /* read the columns again */
	DO_SHOW,  /* read the task of the detail view */
	DO_CALL,  /* send the draft */
	DO_EDIT,  /* open the editor on the task of the draft */
	DO_MOUSE, /* take the mouse, or give it back to the terminal */
	DO_QUIT
};

struct ui {
	struct board board;
	enum mode mode, under; /* under: the view below the dialog, board or detail */
	struct draft draft;
	enum input_for input_for;
	char input[INPUT_MAX + 1];
	size_t length;
	struct move menu[MOVES];
	size_t n_menu, menu_at;
	char shown[ID_MAX + 1]; /* the task of the detail view */
	struct here here;       /* that task as it was last read; no task: it is gone */
	size_t scroll, lines,
		height; /* of the detail view and help: first line, all lines, visible lines */
	char message[MESSAGE_MAX];
	bool bad;  /* the message is about a failure */
	bool seek; /* after the next read the cursor goes to a task, if there is one */
	struct str agent;
	bool mouse;               /* the board gets the clicks, not the terminal */
	char clicked[ID_MAX + 1]; /* the task of the last click, and its time */
	int64_t clicked_at;
};

void ui_init(struct ui *u, struct str agent);
enum effect ui_key(struct ui *u, uint32_t key);
/* board_keys.c */
enum effect ui_mouse(struct ui *u, const struct mouse *m);
void ui_say(struct ui *u, bool bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The question of the open text dialog. */
const char *ui_question(const struct ui *u);

/* --- read ------------------------------------------------------------------------------------- */

/* read: fills in the model from the queue, and sends the user's changes to the queue. */

struct reader {
	struct session *session;
	struct arena columns, detail; /* the data that the model points to */
	struct answer shown;          /* the task of the detail view; no task: the reason */
	int64_t tried_at,
		took;    /* when the last read ended, by the boot clock, and how long it took; ms */
	int64_t read_at; /* when the last successful read began */
	int64_t as_of;   /* the store's time then */
	int64_t expires_at; /* when the first lease expires that the columns show as live */
	enum result code;   /* of the last read of the columns */
};

/* Reads the counts and one page of each open column. If this fails, the model stays as it is, with
 * the reason in its `fault`. */
void read_board(struct reader *r, struct ui *u);
/* Reads the task of the detail view. */
void read_detail(struct reader *r, struct ui *u);
/* The text about that task at this moment, safe to print. */
struct str detail_text(const struct reader *r, struct arena *a);
/* Sends the draft, and leaves the outcome in the message. */
void send_draft(struct reader *r, struct ui *u);
/* Opens the editor on the task of the draft. The terminal must be in its normal mode. */
void edit_draft(struct reader *r, struct ui *u);
/* The store's time now. */
int64_t reader_now(const struct reader *r);
void reader_free(struct reader *r);

/* --- draw ------------------------------------------------------------------------------------- */

/* draw: shows the model on the terminal. */

/* Shows everything. place: the store, safe to print. */
void draw_all(struct ui *u, const struct reader *r, struct str place);
void draw_dialog(struct ui *u);
void draw_help(struct ui *u);
void draw_detail(struct ui *u, const struct reader *r);

/* --- board_draw.c ------------------------------------------------------------------------------------- */

/* Sets a colour of the views; `strong`: the line is under the cursor. */
void screen_paint(enum paint p, bool strong);
/* Writes a text that is safe to print into `width` columns, cut or padded with spaces. */
void draw_line_text(int y, int x, int width, struct str text);
/* Formats pawl's own words, and writes them as draw_line_text() does. */
void screen_words(int y, int x, int width, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* An empty box in the middle of the screen; *y and *x: the first place inside. */
void screen_box(int height, int width, int *y, int *x);
/* Reads one key; K_NONE: there is none. */
uint32_t screen_key(void);
/* The click or movement of the wheel that K_MOUSE stands for. */
struct mouse screen_mouse(void);

#endif
