/*
 * The places of columns and cards on the screen. Drawing and mouse clicks both use them, so a click
 * hits the card that the user sees.
 */
#include "face/board/board.h"

static int least_width(const struct board *b, size_t i)
{
	return column_open(b, i) ? COLUMN_MIN : STRIP;
}

/* The number of columns that fit from `first` on; at least one. */
static size_t board_layout_fitting(const struct board *b, size_t first, int width)
{
	size_t n = 0;

	for (; first + n < COLUMNS; n++) {
		width -= least_width(b, first + n);
		if (width < 0 && n)
			break;
	}
	return n;
}

/* Scrolls so that the cursor's column is visible and no room on the right stays empty. */
static void scroll_across(struct board *b, int width)
{
	if (b->first > b->cur)
		b->first = b->cur;
	while (b->cur >= b->first + board_layout_fitting(b, b->first, width))
		b->first++;
	while (b->first > 0 &&
	       b->first - 1 + board_layout_fitting(b, b->first - 1, width) == COLUMNS)
		b->first--;
}

size_t board_layout(struct board *b, int width, struct span out[COLUMNS])
{
	int rest = width, open = 0, x = 0;
	size_t n;

	scroll_across(b, width);
	n = board_layout_fitting(b, b->first, width);
	for (size_t i = 0; i < n; i++) {
		rest -= least_width(b, b->first + i);
		open += column_open(b, b->first + i);
	}
	for (size_t i = 0; i < n; i++) {
		struct span *s = &out[i];

		*s = (struct span){ .column = b->first + i,
				    .x = x,
				    .width = least_width(b, b->first + i),
				    .strip = !column_open(b, b->first + i) };
		if (!s->strip && rest > 0) {
			s->width += rest / open;
			rest -= rest / open;
			open--;
		}
		if (s->x + s->width > width)
			s->width = width - s->x;
		x += s->width;
	}
	return n;
}

static int card_height(const struct column *c, size_t i, int64_t now, int width)
{
	struct line lines[CARD_LINES];
	struct arena a = { 0 };
	size_t n = card_lines(c, i, now, width, lines, &a);

	arena_free(&a);
	return (int)n + 1; /* and a line between two cards */
}

/* Shows earlier cards while all later ones still fit, so that a larger screen has no empty room. */
static void fill_up(struct column *c, int64_t now, int width, int height)
{
	int used = 0;

	for (size_t i = c->top; i < c->n && used <= height; i++)
		used += card_height(c, i, now, width);
	while (c->top > 0 && used <= height) {
		used += card_height(c, c->top - 1, now, width);
		if (used <= height)
			c->top--;
	}
}

int board_room(int rows)
{
	return rows - TOP - 2;
}

static struct hit hit_card(const struct board *b, const struct span *s, const struct mouse *m)
{
	const struct column *c = &b->col[s->column];
	int y = TOP, bottom = TOP + board_room(m->rows);

	for (size_t i = c->top; !s->strip && i < c->n && y < bottom; i++) {
		int height = card_height(c, i, b->now, s->width - 1);

		if (i > c->top && y + height - 1 > bottom) /* it is not on the screen */
			break;
		if (m->y >= y && m->y < y + height - 1)
			return (struct hit){ HIT_CARD, s->column, i };
		y += height;
	}
	return (struct hit){ HIT_COLUMN, s->column, 0 };
}

struct hit board_hit(struct board *b, const struct mouse *m)
{
	struct span spans[COLUMNS];
	size_t n = board_layout(b, m->cols, spans);

	for (size_t i = 0; i < n; i++)
		if (m->x >= spans[i].x && m->x < spans[i].x + spans[i].width && m->y >= TOP - 1 &&
		    m->y < m->rows - 1)
			return hit_card(b, &spans[i], m);
	return (struct hit){ HIT_NONE, 0, 0 };
}

void column_scroll(struct column *c, int64_t now, int width, int height)
{
	int used = 0;
	size_t top = c->at;

	if (c->top > c->at || c->top >= c->n)
		c->top = c->at;
	/* finds the first card from which the card under the cursor still fits */
	for (;; top--) {
		used += top < c->n ? card_height(c, top, now, width) : 0;
		if (used > height || top == 0)
			break;
	}
	if (used > height && top < c->at)
		top++;
	if (c->top < top)
		c->top = top;
	fill_up(c, now, width, height);
}
