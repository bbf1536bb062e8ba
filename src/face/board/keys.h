/* keys: the dialogs of the board, as a machine that keys drive. It tells its caller what to do. */
#ifndef BOARD_KEYS_H
#define BOARD_KEYS_H

#include "face/board/actions.h"

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
	K_MOUSE, /* screen_mouse() has the rest */
	K_RESIZE
};

#define MENU_WIDTH 34 /* of the menu, and its lines beside the items */
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
	enum mode mode, under; /* under: the view that the dialog lies on: board or detail */
	struct draft draft;
	enum input_for input_for;
	char input[INPUT_MAX + 1];
	size_t length;
	struct move menu[MOVES];
	size_t n_menu, menu_at;
	char shown[ID_MAX + 1]; /* the task of the detail view */
	struct here here;       /* the same, as it was last read; no task: it is gone */
	size_t scroll, lines,
		height; /* of the detail view and help: first line, all lines, lines on the screen */
	char message[MESSAGE_MAX];
	bool bad;  /* the message is about a failure */
	bool seek; /* after the next read the cursor goes to a task, if there is one */
	struct str agent;
	bool mouse;               /* clicks come to the board, not to the terminal */
	char clicked[ID_MAX + 1]; /* the task of the last click, and its time */
	int64_t clicked_at;
};

void ui_init(struct ui *u, struct str agent);
enum effect ui_key(struct ui *u, uint32_t key);
/* mouse.c */
enum effect ui_mouse(struct ui *u, const struct mouse *m);
void ui_say(struct ui *u, bool bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The question of the open text dialog. */
const char *ui_question(const struct ui *u);

#endif
