/*
 * The board itself: header, columns, cards and the last line. Drawing changes only the scroll
 * positions of the model.
 */
#include <curses.h>
#include <stdarg.h>

#include "base/os.h"
#include "base/text.h"
#include "face/board/board.h"

static int cards_height(void)
{
	return board_room(LINES) + 1;
}

/* --- header and footer ------------------------------------------------------------------------------ */

static void draw_header(const struct ui *u, struct str place)
{
	const struct board *b = &u->board;
	struct arena a = { 0 };
	struct str state = STR("");

	if (b->fault[0])
		state = arena_printf(&a, "  NOT LIVE: %s", b->fault);
	else if (b->paused)
		state = arena_printf(&a, "  PAUSED by %s%s%s",
				     arena_cstr(&a, text_line(&a, b->paused->by)),
				     b->paused->reason.n ? ": " : "",
				     arena_cstr(&a, text_line(&a, b->paused->reason)));
	if (b->search[0])
		state = arena_printf(&a, "%.*s  search: %s", STRF(state),
				     arena_cstr(&a, text_line(&a, str_c(b->search))));
	if (b->filter[0])
		state = arena_printf(&a, "%.*s  filter: %s", STRF(state),
				     arena_cstr(&a, text_line(&a, str_c(b->filter))));
	screen_paint(b->fault[0] ? RED : b->paused ? YELLOW : BOLD, true);
	draw_line_text(0, 0, COLS,
		       arena_printf(&a, " pawl board%.*s  %.*s as %s", STRF(state), STRF(place),
				    arena_cstr(&a, text_line(&a, u->agent))));
	arena_free(&a);
}

static const char *board_draw_hint(const struct ui *u)
{
	if (u->mode == UI_HELP)
		return " j k scroll  q back";
	if (u->under == UI_DETAIL)
		return " j k scroll  m move  a approve  r rework  c comment  e edit  ? help  q back";
	return " Enter show  / search  f filter  m move  c comment  n new  ? help  q quit";
}

static void draw_footer(const struct ui *u)
{
	screen_paint(u->message[0] ? (u->bad ? RED : GREEN) : DIM, false);
	draw_line_text(LINES - 1, 0, COLS, str_c(u->message[0] ? u->message : board_draw_hint(u)));
}

/* --- columns ---------------------------------------------------------------------------------------- */

static struct str column_title(const struct column *c, size_t number, struct arena *a)
{
	struct str name = arena_printf(a, "%zu %s", number, status_name(c->status));

	if (c->count < 0)
		return name;
	if (c->waiting && c->status == READY)
		return arena_printf(a, "%.*s %lld, %lld wait", STRF(name), (long long)c->count,
				    (long long)c->waiting);
	return arena_printf(a, "%.*s %lld", STRF(name), (long long)c->count);
}

/* Writes the name vertically, one character on each line. */
static void draw_strip(const struct ui *u, const struct span *s)
{
	const struct column *c = &u->board.col[s->column];
	struct arena a = { 0 };
	struct str title = column_title(c, s->column + 1, &a);
	bool here = s->column == u->board.cur;

	screen_paint(here ? BOLD : c->count ? view_status_paint(c->status) : DIM, here);
	for (int i = 0; (size_t)i < title.n && i < cards_height() + 1; i++)
		draw_line_text(TOP - 1 + i, s->x + 1, 1, str_n(title.p + i, 1));
	arena_free(&a);
}

/* Draws a card. Returns the number of its lines. */
static int draw_card(const struct ui *u, const struct span *s, size_t i, int y, int bottom)
{
	const struct column *c = &u->board.col[s->column];
	bool here = s->column == u->board.cur && i == c->at;
	struct line lines[CARD_LINES];
	struct arena a = { 0 };
	size_t n = card_lines(c, i, u->board.now, s->width - 1, lines, &a);

	for (size_t k = 0; k < n && y + (int)k < bottom; k++) {
		screen_paint(here ? PLAIN : lines[k].paint, here);
		draw_line_text(y + (int)k, s->x, s->width - 1, lines[k].text);
	}
	arena_free(&a);
	return (int)n;
}

static int card_end(const struct ui *u, const struct span *s, size_t i, int y)
{
	const struct column *c = &u->board.col[s->column];
	struct line lines[CARD_LINES];
	struct arena a = { 0 };
	size_t n = card_lines(c, i, u->board.now, s->width - 1, lines, &a);

	arena_free(&a);
	return y + (int)n;
}

/* Draws the cards of a column. Its last line says how many tasks are not on the screen. */
static void draw_cards(struct ui *u, const struct span *s)
{
	struct column *c = &u->board.col[s->column];
	int y = TOP, bottom = TOP + cards_height() - 1;
	size_t i;

	column_scroll(c, u->board.now, s->width - 1, bottom - TOP + 1);
	for (i = c->top; i < c->n; i++) {
		if (i > c->top && card_end(u, s, i, y) > bottom)
			break;
		y += draw_card(u, s, i, y, bottom) + 1;
	}
	screen_paint(DIM, false);
	if (c->count > (int64_t)(i - c->top))
		screen_words(bottom, s->x, s->width - 1, "… %lld more",
			     (long long)(c->count - (int64_t)(i - c->top)));
	else if (!c->n)
		screen_words(TOP, s->x, s->width - 1,
			     board_filtered(&u->board) ? "no match" : "empty");
}

static void draw_column(struct ui *u, const struct span *s)
{
	const struct column *c = &u->board.col[s->column];
	struct arena a = { 0 };

	if (s->strip) {
		draw_strip(u, s);
		return;
	}
	screen_paint(view_status_paint(c->status), s->column == u->board.cur);
	if (s->column == u->board.cur)
		attron(A_BOLD);
	draw_line_text(TOP - 1, s->x, s->width - 1, column_title(c, s->column + 1, &a));
	draw_cards(u, s);
	arena_free(&a);
}

static void draw_board(struct ui *u)
{
	struct span spans[COLUMNS];
	size_t n = board_layout(&u->board, COLS, spans);

	for (size_t i = 0; i < n; i++)
		draw_column(u, &spans[i]);
	screen_paint(BOLD, true);
	if (u->board.first > 0)
		draw_line_text(0, 0, 1, STR("<"));
	if (u->board.first + n < COLUMNS)
		draw_line_text(0, COLS - 1, 1, STR(">"));
}

void draw_all(struct ui *u, const struct reader *r, struct str place)
{
	u->board.now = reader_now(r);
	attr_set(A_NORMAL, 0, NULL);
	erase();
	draw_header(u, place);
	if (u->mode == UI_HELP)
		draw_help(u);
	else if (u->under == UI_DETAIL)
		draw_detail(u, r);
	else
		draw_board(u);
	draw_footer(u);
	draw_dialog(u);
	refresh();
}

/* --- dialog ----------------------------------------------------------------------------------- */

/*
 * The views and dialogs over the board: a task's details, help, the menu, text input and the
 * confirmation. They show the model and change only the scroll position and the size of the view.
 */

#define BOX_MAX 76 /* columns of a dialog */

/* --- views over the whole screen -------------------------------------------------------------------- */

static void draw_lines(struct ui *u, struct strs lines)
{
	u->height = LINES > 3 ? (size_t)LINES - 3 : 1;
	u->lines = lines.n;
	if (u->scroll > u->lines)
		u->scroll = u->lines;
	screen_paint(PLAIN, false);
	for (size_t i = 0; i < u->height && u->scroll + i < lines.n; i++)
		draw_line_text(1 + (int)i, 1, COLS - 2, lines.v[u->scroll + i]);
	screen_paint(DIM, false);
	if (u->lines > u->height)
		screen_words(LINES - 2, 1, COLS - 2, "lines %zu to %zu of %zu", u->scroll + 1,
			     u->scroll + u->height < u->lines ? u->scroll + u->height : u->lines,
			     u->lines);
}

void draw_detail(struct ui *u, const struct reader *r)
{
	struct arena a = { 0 };

	draw_lines(u, wrap_lines(&a, detail_text(r, &a), COLS > 4 ? (size_t)COLS - 2 : 2));
	arena_free(&a);
}

static const char help[] =
	"Keys of the board\n"
	"\n"
	"  arrows, h j k l     go to another card or column\n"
	"  PgUp PgDn Home End  go faster; the end of a column reads its next page\n"
	"  1 to 9              go to a column and open it\n"
	"  z                   collapse or open the column\n"
	"  Enter               show the task, with the reason why it is not next\n"
	"  /                   search for a text; Esc shows all tasks again\n"
	"  f                   filter: #LABEL @HOLDER class:CLASS type:TYPE mine\n"
	"\n"
	"  m                   move the task to another status\n"
	"  a                   approve: Review to Done\n"
	"  r                   rework: send a task in Review back, with the reason\n"
	"  u                   unblock: let work on a Blocked or Needs Help task continue\n"
	"  c                   comment on the task\n"
	"  n                   create a task\n"
	"  x                   cancel the task, with the reason\n"
	"  b                   break the lock of the task, with the reason\n"
	"  e                   edit the task in $VISUAL or $EDITOR\n"
	"  p                   pause the queue, or resume it\n"
	"\n"
	"  click, wheel        go to a card; a double click opens it\n"
	"  t                   give the mouse back to the terminal, to select text\n"
	"\n"
	"  ?                   this help\n"
	"  q                   back, or leave the board\n"
	"\n"
	"Each change asks first and shows the command that does the same. It is refused if the task changed after the board "
	"showed it.\n";

void draw_help(struct ui *u)
{
	struct arena a = { 0 };

	draw_lines(u, wrap_lines(&a, str_c(help), COLS > 4 ? (size_t)COLS - 2 : 2));
	arena_free(&a);
}

/* --- dialogs ---------------------------------------------------------------------------------------- */

static int box_width(void)
{
	return COLS < BOX_MAX ? COLS : BOX_MAX;
}

static void draw_menu(const struct ui *u)
{
	int y, x, width = MENU_WIDTH;

	screen_box((int)u->n_menu + MENU_REST, width, &y, &x);
	screen_paint(BOLD, false);
	screen_words(y, x, width - 4, "Move to which status?");
	for (size_t i = 0; i < u->n_menu; i++) {
		screen_paint(view_status_paint(u->menu[i].to), i == u->menu_at);
		screen_words(y + 1 + (int)i, x, width - 4, "%zu %-12s (%s)", i + 1,
			     status_name(u->menu[i].to), u->menu[i].action->name);
	}
	screen_paint(DIM, false);
	screen_words(y + 1 + (int)u->n_menu, x, width - 4, "Enter chooses, Esc leaves");
}

/* The end of a long text, so that the place where the user types stays visible. */
static struct str board_dialog_tail(struct arena *a, const char *text, size_t width)
{
	struct str s = text_line(a, str_c(text));

	while (s.n && text_width(s) > width) {
		uint32_t c;
		size_t n = text_char(s, &c);

		s = str_n(s.p + (n ? n : 1), s.n - (n ? n : 1));
	}
	return s;
}

static void draw_input(const struct ui *u)
{
	int y, x, width = box_width();
	struct arena a = { 0 };

	screen_box(5, width, &y, &x);
	screen_paint(BOLD, false);
	screen_words(y, x, width - 4, "%s", ui_question(u));
	screen_paint(PLAIN, false);
	draw_line_text(
		y + 1, x, width - 4,
		arena_printf(&a, "> %s_",
			     arena_cstr(&a, board_dialog_tail(&a, u->input, (size_t)width - 8))));
	screen_paint(DIM, false);
	screen_words(y + 2, x, width - 4, "Enter continues, Esc cancels, Ctrl-U clears");
	arena_free(&a);
}

static void draw_confirm(const struct ui *u)
{
	int y, x, width = box_width(), n;
	const struct draft *p = &u->draft;
	struct arena a = { 0 };
	struct strs command = wrap_lines(&a, draft_command(p, &a), (size_t)width - 4);

	n = command.n < 8 ? (int)command.n : 8;
	screen_box(n + 5 + p->force, width, &y, &x);
	screen_paint(BOLD, false);
	draw_line_text(y++, x, width - 4,
		       arena_printf(&a, "%s%s%s?", p->action->title, p->id[0] ? " " : "",
				    arena_cstr(&a, text_line(&a, str_c(p->id)))));
	screen_paint(YELLOW, false);
	if (p->force)
		screen_words(y++, x, width - 4, "An agent holds it; its lock ends.");
	screen_paint(CYAN, false);
	for (int i = 0; i < n; i++)
		draw_line_text(y++, x, width - 4, command.v[i]);
	screen_paint(PLAIN, false);
	screen_words(y + 1, x, width - 4, "y yes    n no");
	arena_free(&a);
}

void draw_dialog(struct ui *u)
{
	if (u->mode == UI_MENU)
		draw_menu(u);
	else if (u->mode == UI_INPUT)
		draw_input(u);
	else if (u->mode == UI_CONFIRM)
		draw_confirm(u);
}

/* --- screen ----------------------------------------------------------------------------------- */

/*
 * Writes to the screen and reads keys, through ncurses. A text is never written outside of the
 * screen or beyond its width.
 */

void screen_paint(enum paint p, bool strong)
{
	static const short pairs[] = { [RED] = COLOR_RED,
				       [GREEN] = COLOR_GREEN,
				       [YELLOW] = COLOR_YELLOW,
				       [BLUE] = COLOR_BLUE,
				       [CYAN] = COLOR_CYAN };
	attr_t attr = p == BOLD ? A_BOLD : p == DIM ? A_DIM : A_NORMAL;

	attr_set(attr | (strong ? A_REVERSE : A_NORMAL), p >= RED ? pairs[p] : 0, NULL);
}

void draw_line_text(int y, int x, int width, struct str text)
{
	struct arena a = { 0 };
	struct str cut;

	if (width <= 0 || y < 0 || y >= LINES || x >= COLS)
		return;
	if (x + width > COLS)
		width = COLS - x;
	mvhline(y, x, ' ', width);
	cut = text_width(text) > (size_t)width ? text_cut(&a, text, (size_t)width) : text;
	mvaddnstr(y, x, str_p(cut), (int)cut.n);
	arena_free(&a);
}

void screen_words(int y, int x, int width, const char *fmt, ...)
{
	struct buf b = BUF_MAX(64 * 1024);
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_adds(&b, str_c(line));
	draw_line_text(y, x, width, buf_str(&b));
	buf_free(&b);
}

void screen_box(int height, int width, int *y, int *x)
{
	if (width > COLS)
		width = COLS;
	if (height > LINES)
		height = LINES;
	*y = (LINES - height) / 2;
	*x = (COLS - width) / 2;
	screen_paint(PLAIN, false);
	for (int i = 0; i < height; i++)
		mvhline(*y + i, *x, ' ', width);
	mvhline(*y, *x, ACS_HLINE, width);
	mvhline(*y + height - 1, *x, ACS_HLINE, width);
	mvvline(*y, *x, ACS_VLINE, height);
	mvvline(*y, *x + width - 1, ACS_VLINE, height);
	mvaddch(*y, *x, ACS_ULCORNER);
	mvaddch(*y, *x + width - 1, ACS_URCORNER);
	mvaddch(*y + height - 1, *x, ACS_LLCORNER);
	mvaddch(*y + height - 1, *x + width - 1, ACS_LRCORNER);
	*y += 1;
	*x += 2;
}

static struct mouse last;

/* Reads a mouse event. ncurses combines a press and a release that it reads at once, and a double
 * click, into one event. false: a release. */
static bool take_mouse(void)
{
	mmask_t single = BUTTON1_PRESSED | BUTTON1_CLICKED,
		twice = BUTTON1_DOUBLE_CLICKED | BUTTON1_TRIPLE_CLICKED;
	MEVENT e;

	if (getmouse(&e) != OK)
		return false;
	last = (struct mouse){ .what = e.bstate & BUTTON4_PRESSED   ? MOUSE_UP
				       : e.bstate & BUTTON5_PRESSED ? MOUSE_DOWN
				       : e.bstate & twice           ? MOUSE_DOUBLE
								    : MOUSE_CLICK,
			       .y = e.y,
			       .x = e.x,
			       .rows = LINES,
			       .cols = COLS,
			       .at = os_boot_ms() };
	return e.bstate & (single | twice | BUTTON4_PRESSED | BUTTON5_PRESSED);
}

struct mouse screen_mouse(void)
{
	return last;
}

static uint32_t board_screen_special(wint_t c)
{
	static const struct {
		int code;
		uint32_t key;
	} keys[] = { { KEY_UP, K_UP },         { KEY_DOWN, K_DOWN },
		     { KEY_LEFT, K_LEFT },     { KEY_RIGHT, K_RIGHT },
		     { KEY_PPAGE, K_PAGE_UP }, { KEY_NPAGE, K_PAGE_DOWN },
		     { KEY_HOME, K_HOME },     { KEY_END, K_END },
		     { KEY_ENTER, K_ENTER },   { KEY_BACKSPACE, K_ERASE },
		     { KEY_RESIZE, K_RESIZE } };

	if (c == KEY_MOUSE)
		return take_mouse() ? K_MOUSE : K_RESIZE;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if ((wint_t)keys[i].code == c)
			return keys[i].key;
	return K_RESIZE; /* any other key changes nothing */
}

uint32_t screen_key(void)
{
	wint_t c;
	int r = get_wch(&c);

	if (r == ERR)
		return K_NONE;
	if (r == KEY_CODE_YES)
		return board_screen_special(c);
	return c == '\r' ? K_ENTER : c == '\b' ? K_ERASE : c ? (uint32_t)c : K_RESIZE;
}
