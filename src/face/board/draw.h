/* draw: shows the model on the terminal. */
#ifndef BOARD_DRAW_H
#define BOARD_DRAW_H

#include "face/board/keys.h"
#include "face/board/read.h"

/* Shows everything. place: the store, safe to print. */
void draw_all(struct ui *u, const struct reader *r, struct str place);
void draw_dialog(struct ui *u);
void draw_help(struct ui *u);
void draw_detail(struct ui *u, const struct reader *r);

/* --- screen.c ------------------------------------------------------------------------------------- */

/* Turns a colour of the views on; `strong`: the line is under the cursor. */
void screen_paint(enum paint p, bool strong);
/* Writes a text that is safe to print into `width` columns, cut or filled up with spaces. */
void draw_line_text(int y, int x, int width, struct str text);
/* The same with an own format; for pawl's own words. */
void screen_words(int y, int x, int width, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* An empty box in the middle of the screen; *y and *x: the first place inside. */
void screen_box(int height, int width, int *y, int *x);
/* Reads one key; K_NONE: there is none. */
uint32_t screen_key(void);
/* The click or turn of the wheel that K_MOUSE stands for. */
struct mouse screen_mouse(void);

#endif
