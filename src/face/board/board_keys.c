/*
 * The keys of each view and dialog. A draft is sent only after the user has confirmed it: only
 * confirm_key() returns DO_CALL.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "face/board/board.h"

void ui_init(struct ui *u, struct str agent)
{
	*u = (struct ui){ .agent = agent, .seek = true };
	board_init(&u->board);
}

void ui_say(struct ui *u, bool bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(u->message, sizeof(u->message), fmt, ap);
	va_end(ap);
	u->bad = bad;
}

/* --- beginning an action --------------------------------------------------------------------------- */

static struct here task_here(const struct ui *u)
{
	return u->under == UI_DETAIL ? u->here : board_task(&u->board);
}

static void open_input(struct ui *u, enum input_for what, const char *text)
{
	u->mode = UI_INPUT;
	u->input_for = what;
	u->length = (size_t)snprintf(u->input, sizeof(u->input), "%s", text);
}

static enum effect ask_or_confirm(struct ui *u)
{
	if (draft_ask(&u->draft))
		open_input(u, FOR_ACTION, "");
	else
		u->mode = UI_CONFIRM;
	return DO_NOTHING;
}

static enum effect board_keys_begin(struct ui *u, const struct action *a)
{
	const char *fault = draft_start(&u->draft, a, task_here(u));

	if (!fault)
		return ask_or_confirm(u);
	ui_say(u, true, "%s", fault);
	return DO_NOTHING;
}

static enum effect begin_move(struct ui *u)
{
	struct here h = task_here(u);

	u->n_menu = h.task ? moves_of(h.allowed, u->menu) : 0;
	u->menu_at = 0;
	if (u->n_menu)
		u->mode = UI_MENU;
	else
		ui_say(u, true,
		       h.task ? "you cannot move this task now"
			      : "there is no task under the cursor");
	return DO_NOTHING;
}

static enum effect begin_edit(struct ui *u)
{
	/* an edit is possible whenever a comment is */
	const char *fault = draft_start(&u->draft, &act_comment, task_here(u));

	if (!fault)
		return DO_EDIT;
	ui_say(u, true, "%s", fault);
	return DO_NOTHING;
}

/* --- keys that mean the same on the board and in the detail view ------------------------------------ */

static enum effect action_key(struct ui *u, uint32_t key)
{
	switch (key) {
	case 'a':
		return board_keys_begin(u, &act_approve);
	case 'r':
		return board_keys_begin(u, &act_rework);
	case 'u':
		return board_keys_begin(u, &act_unblock);
	case 'c':
		return board_keys_begin(u, &act_comment);
	case 'n':
		return board_keys_begin(u, &act_create);
	case 'x':
		return board_keys_begin(u, &act_cancel);
	case 'b':
		return board_keys_begin(u, &act_break);
	case 'p':
		return board_keys_begin(u, u->board.paused ? &act_resume : &act_pause);
	case 'm':
		return begin_move(u);
	case 'e':
		return begin_edit(u);
	case 't':
		u->mouse = !u->mouse;
		ui_say(u, false,
		       u->mouse ? "clicks come to the board; t gives them back to the terminal"
				: "the mouse belongs to the terminal: you can select text");
		return DO_MOUSE;
	case '?':
		u->mode = UI_HELP;
		u->scroll = 0;
		return DO_NOTHING;
	default:
		return DO_NOTHING;
	}
}

/* --- the board --------------------------------------------------------------------------------------- */

static enum effect open_detail(struct ui *u)
{
	const struct task *t = board_task(&u->board).task;

	if (!t) {
		board_go(&u->board, u->board.cur);
		return DO_READ;
	}
	snprintf(u->shown, sizeof(u->shown), "%.*s", STRF(t->id));
	u->mode = u->under = UI_DETAIL;
	u->scroll = 0;
	return DO_SHOW;
}

static enum effect go_along(struct ui *u, long step)
{
	board_along(&u->board, step);
	return board_page_needed(&u->board) ? DO_READ : DO_NOTHING;
}

static enum effect go_across(struct ui *u, int step)
{
	board_across(&u->board, step);
	return DO_NOTHING;
}

static enum effect clear_filters(struct ui *u)
{
	if (!board_filtered(&u->board))
		return DO_NOTHING;
	u->board.search[0] = u->board.filter[0] = '\0';
	ui_say(u, false, "all tasks");
	return DO_READ;
}

static enum effect board_key(struct ui *u, uint32_t key)
{
	if (key >= '1' && key <= '9') {
		board_go(&u->board, key - '1');
		return DO_READ;
	}
	switch (key) {
	case 'q':
		return DO_QUIT;
	case K_UP:
	case 'k':
		return go_along(u, -1);
	case K_DOWN:
	case 'j':
		return go_along(u, 1);
	case K_LEFT:
	case 'h':
		return go_across(u, -1);
	case K_RIGHT:
	case 'l':
	case K_TAB:
		return go_across(u, 1);
	case K_PAGE_UP:
		return go_along(u, -5);
	case K_PAGE_DOWN:
		return go_along(u, 5);
	case K_HOME:
	case 'g':
		return go_along(u, -1000000);
	case K_END:
	case 'G':
		return go_along(u, 1000000);
	case K_ENTER:
		return open_detail(u);
	case 'z':
		board_fold(&u->board);
		return DO_READ;
	case '/':
		open_input(u, FOR_SEARCH, u->board.search);
		return DO_NOTHING;
	case 'f':
		open_input(u, FOR_FILTER, u->board.filter);
		return DO_NOTHING;
	case K_ESC:
		return clear_filters(u);
	default:
		return action_key(u, key);
	}
}

/* --- views that scroll ------------------------------------------------------------------------------- */

static void scroll_by(struct ui *u, long step)
{
	long most = u->lines > u->height ? (long)(u->lines - u->height) : 0;
	long at = (long)u->scroll + step;

	u->scroll = at < 0 ? 0 : (size_t)(at > most ? most : at);
}

static bool scroll_key(struct ui *u, uint32_t key)
{
	switch (key) {
	case K_UP:
	case 'k':
		scroll_by(u, -1);
		return true;
	case K_DOWN:
	case 'j':
		scroll_by(u, 1);
		return true;
	case K_PAGE_UP:
		scroll_by(u, -(long)u->height);
		return true;
	case K_PAGE_DOWN:
	case ' ':
		scroll_by(u, (long)u->height);
		return true;
	case K_HOME:
	case 'g':
		scroll_by(u, -1000000);
		return true;
	case K_END:
	case 'G':
		scroll_by(u, 1000000);
		return true;
	default:
		return false;
	}
}

static enum effect detail_key(struct ui *u, uint32_t key)
{
	if (scroll_key(u, key))
		return DO_NOTHING;
	if (key == 'q' || key == K_ESC || key == K_ENTER || key == K_LEFT || key == 'h') {
		u->mode = u->under = UI_BOARD;
		return DO_NOTHING;
	}
	return action_key(u, key);
}

static enum effect help_key(struct ui *u, uint32_t key)
{
	if (!scroll_key(u, key)) {
		u->mode = u->under;
		u->scroll = 0;
	}
	return DO_NOTHING;
}

/* --- dialogs ----------------------------------------------------------------------------------------- */

static enum effect cancel_dialog(struct ui *u)
{
	u->mode = u->under;
	ui_say(u, false, "nothing changed");
	return DO_NOTHING;
}

static enum effect board_keys_choose(struct ui *u, size_t at)
{
	u->mode = u->under;
	return board_keys_begin(u, u->menu[at].action);
}

static enum effect menu_key(struct ui *u, uint32_t key)
{
	if (key == K_ESC || key == 'q')
		return cancel_dialog(u);
	if ((key == K_DOWN || key == 'j') && u->menu_at + 1 < u->n_menu)
		u->menu_at++;
	else if ((key == K_UP || key == 'k') && u->menu_at)
		u->menu_at--;
	else if (key >= '1' && key - '1' < u->n_menu)
		return board_keys_choose(u, key - '1');
	else if (key == K_ENTER)
		return board_keys_choose(u, u->menu_at);
	return DO_NOTHING;
}

const char *ui_question(const struct ui *u)
{
	const struct text_ask *ask;

	if (u->input_for == FOR_SEARCH)
		return "Search for (empty: show all)";
	if (u->input_for == FOR_FILTER)
		return "Filter: #LABEL @HOLDER class:CLASS type:TYPE mine";
	ask = draft_ask(&u->draft);
	return ask ? ask->label : "";
}

static enum effect text_given(struct ui *u)
{
	const struct text_ask *ask = draft_ask(&u->draft);

	if (ask->must && !str_trim(str_c(u->input)).n) {
		ui_say(u, true, "this text cannot be empty; Esc cancels");
		return DO_NOTHING;
	}
	snprintf(u->draft.text[u->draft.asked], INPUT_MAX + 1, "%s", u->input);
	u->draft.asked++;
	return ask_or_confirm(u);
}

static enum effect filter_given(struct ui *u)
{
	struct arena a = { 0 };
	struct request rq = { .op = OP_LIST };
	const char *fault = filter_apply(str_c(u->input), u->agent, &rq, &a);

	arena_free(&a);
	if (fault) {
		ui_say(u, true, "%s", fault);
		return DO_NOTHING;
	}
	snprintf(u->board.filter, sizeof(u->board.filter), "%s", u->input);
	u->mode = u->under;
	u->seek = true;
	return DO_READ;
}

static enum effect input_given(struct ui *u)
{
	if (u->input_for == FOR_ACTION)
		return text_given(u);
	if (u->input_for == FOR_FILTER)
		return filter_given(u);
	snprintf(u->board.search, sizeof(u->board.search), "%s", u->input);
	u->mode = u->under;
	u->seek = true;
	return DO_READ;
}

/* Removes one whole character. */
static void board_keys_erase(struct ui *u)
{
	while (u->length && (u->input[u->length - 1] & 0xc0) == 0x80)
		u->length--;
	if (u->length)
		u->length--;
	u->input[u->length] = '\0';
}

static void board_keys_type(struct ui *u, uint32_t c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80)
		s[n++] = (char)c;
	else if (c < 0x800)
		s[n++] = (char)(0xc0 | c >> 6);
	else if (c < 0x10000)
		s[n++] = (char)(0xe0 | c >> 12);
	else
		s[n++] = (char)(0xf0 | c >> 18);
	if (c >= 0x10000)
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
	if (c >= 0x800)
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 0x3f));
	if (u->length + n > INPUT_MAX)
		return;
	memcpy(u->input + u->length, s, n);
	u->length += n;
	u->input[u->length] = '\0';
}

#define CTRL_U 21u

static enum effect input_key(struct ui *u, uint32_t key)
{
	if (key == K_ESC)
		return cancel_dialog(u);
	if (key == K_ENTER)
		return input_given(u);
	if (key == K_ERASE)
		board_keys_erase(u);
	else if (key == CTRL_U)
		u->input[u->length = 0] = '\0';
	else if (key >= ' ' && key < K_UP)
		board_keys_type(u, key);
	return DO_NOTHING;
}

static enum effect confirm_key(struct ui *u, uint32_t key)
{
	if (key == 'n' || key == 'N' || key == 'q' || key == K_ESC)
		return cancel_dialog(u);
	if (key != 'y' && key != 'Y')
		return DO_NOTHING;
	u->mode = u->under;
	return DO_CALL;
}

enum effect ui_key(struct ui *u, uint32_t key)
{
	if (key == K_NONE || key == K_RESIZE || key == K_MOUSE)
		return DO_NOTHING;
	u->message[0] = '\0';
	switch (u->mode) {
	case UI_BOARD:
		return board_key(u, key);
	case UI_DETAIL:
		return detail_key(u, key);
	case UI_HELP:
		return help_key(u, key);
	case UI_MENU:
		return menu_key(u, key);
	case UI_INPUT:
		return input_key(u, key);
	default:
		return confirm_key(u, key);
	}
}

/* --- mouse ------------------------------------------------------------------------------------ */

/*
 * The mouse, as keys: each click and each movement of the wheel does what a key does. It never
 * confirms a change.
 */

#define DOUBLE_MS 400 /* the longest time between the two clicks of a double click */
#define WHEEL 3       /* lines for one step of the wheel, in a view that scrolls */

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
