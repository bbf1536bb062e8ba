#include <curses.h>
#include <stdarg.h>

#include "base/os.h"
#include "base/text.h"
#include "face/board/draw.h"

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

/* ncurses makes one event of a press and a release that it reads at once, and of two of them. false: a release. */
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
