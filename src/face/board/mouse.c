/* The mouse, as keys: each click and each turn of the wheel does what a key does. It confirms no change. */
#include <stdio.h>

#include "face/board/keys.h"

#define DOUBLE_MS 400 /* the most time between the two clicks of a double click */
#define WHEEL 3       /* lines of one turn of the wheel, in a view that scrolls */

/* A click on a card puts the cursor on it; the second click opens it. */
static enum effect click_card(struct ui *u, const struct hit *h, const struct mouse *m)
{
	struct column *c = &u->board.col[h->column];
	bool again = m->what == MOUSE_DOUBLE || (str_is(c->tasks[h->card].id, u->clicked) &&
						 m->at - u->clicked_at <= DOUBLE_MS);

	u->board.cur = h->column;
	board_along(&u->board, (long)h->card - (long)c->at);
	snprintf(u->clicked, sizeof(u->clicked), "%.*s", STRF(c->tasks[h->card].id));
	u->clicked_at = m->at;
	if (again)
		u->clicked[0] = '\0';
	return again ? ui_key(u, K_ENTER) : DO_NOTHING;
}

static enum effect click_board(struct ui *u, const struct mouse *m)
{
	struct hit h = board_hit(&u->board, m);

	if (h.what == HIT_CARD)
		return click_card(u, &h, m);
	if (h.what == HIT_NONE)
		return DO_NOTHING;
	if (!column_open(&u->board, h.column)) {
		board_go(&u->board, h.column);
		return DO_READ;
	}
	u->board.cur = h.column;
	return DO_NOTHING;
}

/* The wheel moves the cursor of the column under the pointer. */
static enum effect wheel_board(struct ui *u, const struct mouse *m, uint32_t key)
{
	struct hit h = board_hit(&u->board, m);

	if (h.what == HIT_NONE || !column_open(&u->board, h.column))
		return DO_NOTHING;
	u->board.cur = h.column;
	return ui_key(u, key);
}

static enum effect click_menu(struct ui *u, const struct mouse *m)
{
	int top = (m->rows - ((int)u->n_menu + MENU_REST)) / 2, left = (m->cols - MENU_WIDTH) / 2;
	int i = m->y - top - 2; /* after the frame and the question */

	if (i < 0 || (size_t)i >= u->n_menu || m->x < left || m->x >= left + MENU_WIDTH)
		return DO_NOTHING;
	u->menu_at = (size_t)i;
	return ui_key(u, K_ENTER);
}

enum effect ui_mouse(struct ui *u, const struct mouse *m)
{
	uint32_t key = m->what == MOUSE_UP ? K_UP : K_DOWN;
	enum effect what = DO_NOTHING;

	if (m->what == MOUSE_CLICK || m->what == MOUSE_DOUBLE)
		return u->mode == UI_BOARD  ? click_board(u, m)
		       : u->mode == UI_MENU ? click_menu(u, m)
					    : DO_NOTHING;
	if (u->mode == UI_BOARD)
		return wheel_board(u, m, key);
	if (u->mode == UI_MENU)
		return ui_key(u, key);
	for (int i = 0; i < WHEEL && (u->mode == UI_DETAIL || u->mode == UI_HELP); i++)
		what = ui_key(u, key);
	return what;
}
