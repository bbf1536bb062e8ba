#include <curses.h>

#include "base/text.h"
#include "face/board/draw.h"

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
	"  u                   unblock: let a Blocked or Needs Help task go on\n"
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

/* The end of a long text stays in view, where the user types. */
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
	screen_words(y + 2, x, width - 4, "Enter goes on, Esc leaves, Ctrl-U clears");
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
