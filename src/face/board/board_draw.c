#include "face/board/draw.h"

#include <curses.h>

#include "base/text.h"

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

/* The name goes down, one character a line. */
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

/* Returns the number of lines. */
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

/* The last line of a column says how many tasks are not on the screen. */
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
