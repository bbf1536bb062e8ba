/*
 * One task as the lines of a card. Texts of tasks pass through text_line(), so they cannot control
 * the terminal.
 */
#include "base/text.h"
#include "base/when.h"
#include "face/board/board.h"

struct card {
	struct line *lines;
	size_t n;
	size_t width;
	struct arena *arena;
};

static void board_card_add(struct card *c, enum paint p, struct str text)
{
	if (text.n && c->n < CARD_LINES)
		c->lines[c->n++] = (struct line){ p, text_cut(c->arena, text, c->width) };
}

static struct str board_card_joined(struct card *c, struct strs list, const char *before)
{
	struct buf b = BUF_MAX(4096);
	struct str out;

	for (size_t i = 0; i < list.n && b.n < 1000; i++) {
		buf_addf(&b, "%s%s", i ? " " : "", before);
		text_visible(&b, list.v[i], false);
	}
	out = arena_str(c->arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* "t12 Expedite p5": shows only values that differ from the default. */
static void add_head(struct card *c, const struct task *t)
{
	struct str id = text_line(c->arena, t->id), kind = STR(""), priority = STR("");

	if (t->class_rank != STANDARD)
		kind = arena_printf(c->arena, "  %s", class_name(t->class_rank));
	if (t->priority != PRIORITY_DEFAULT)
		priority = arena_printf(c->arena, "  p%lld", (long long)t->priority);
	board_card_add(
		c, t->class_rank == EXPEDITE ? RED : BOLD,
		arena_printf(c->arena, "%.*s%.*s%.*s", STRF(id), STRF(kind), STRF(priority)));
}

/* At most two lines: the detail view has the whole title. */
static void add_title(struct card *c, const struct task *t)
{
	struct strs lines = wrap_lines(c->arena, text_line(c->arena, t->title), c->width);

	board_card_add(c, PLAIN, lines.n ? lines.v[0] : STR(""));
	if (lines.n > 2)
		board_card_add(c, PLAIN,
			       text_cut(c->arena,
					arena_printf(c->arena, "%.*s …", STRF(lines.v[1])),
					c->width));
	else if (lines.n == 2)
		board_card_add(c, PLAIN, lines.v[1]);
}

static void add_due(struct card *c, const struct task *t, int64_t now)
{
	struct str date = t->due ? when_date(c->arena, t->due) : STR("");

	if (!t->due || status_ended(t->status))
		return;
	if (view_overdue(t, now))
		board_card_add(c, RED, arena_printf(c->arena, "! overdue %.*s", STRF(date)));
	else
		board_card_add(c, PLAIN, arena_printf(c->arena, "due %.*s", STRF(date)));
}

static struct str left_text(struct arena *a, int64_t ms)
{
	return duration_text(a, ms < 1000 ? 1000 : ms / 1000 * 1000);
}

/* Keeps the time left readable if the holder's name is long. */
static void add_holder(struct card *c, const struct task *t, bool live, int64_t now)
{
	const struct lock *l = &t->lock;
	struct str left = STR("");
	size_t room;

	if (!l->holder.n || status_ended(t->status))
		return;
	if (!live)
		left = STR(" expired");
	else if (l->expires_at)
		left = arena_printf(c->arena, " %s left",
				    arena_cstr(c->arena, left_text(c->arena, l->expires_at - now)));
	room = c->width > text_width(left) + 4 ? c->width - text_width(left) - 1 : 4;
	board_card_add(
		c, live ? CYAN : YELLOW,
		arena_printf(c->arena, "@%s%.*s",
			     arena_cstr(c->arena,
					text_cut(c->arena, text_line(c->arena, l->holder), room)),
			     STRF(left)));
}

static void add_waits(struct card *c, const struct task *t, const struct standing *st, int64_t now)
{
	if (t->not_before > now && t->status == READY)
		board_card_add(
			c, YELLOW,
			arena_printf(c->arena, "waits until %s",
				     arena_cstr(c->arena, when_local(c->arena, t->not_before))));
	else if (st && st->on.n)
		board_card_add(c, YELLOW,
			       arena_printf(c->arena, "waits for %s%s",
					    arena_cstr(c->arena, board_card_joined(c, st->on, "")),
					    st->more ? " …" : ""));
	else if (t->status == BLOCKED || t->status == NEEDS_HELP || t->status == FAILED)
		board_card_add(c, YELLOW, text_line(c->arena, t->blocker_reason));
}

size_t card_lines(const struct column *column, size_t i, int64_t now, int width,
		  struct line out[CARD_LINES], struct arena *a)
{
	struct card c = { out, 0, width > 4 ? (size_t)width - 1 : 4, a };
	const struct standing *st = column->standing ? &column->standing[i] : NULL;
	bool live = column->allowed && column->allowed[i].live;
	const struct task *t = &column->tasks[i];

	add_head(&c, t);
	add_title(&c, t);
	add_holder(&c, t, live, now);
	add_due(&c, t, now);
	add_waits(&c, t, st, now);
	board_card_add(&c, DIM, board_card_joined(&c, t->labels, "#"));
	return c.n;
}

/* Breaks a text into lines by its display width, never inside a character. */

/* The bytes at the start of `s` that fit into `width`; at least one character. */
static size_t board_wrap_fits(struct str s, size_t width)
{
	size_t n = 0, used = 0;

	while (n < s.n) {
		uint32_t c;
		size_t len = text_char(str_n(s.p + n, s.n - n), &c);
		size_t wide = text_width(str_n(s.p + n, len ? len : 1));

		if (used + wide > width && n)
			break;
		used += wide;
		n += len ? len : 1;
	}
	return n;
}

static size_t board_wrap_leading(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] == ' ')
		n++;
	return n;
}

/* Goes back to the last space, unless the line is one long word. */
static size_t at_space(struct str s, size_t n)
{
	for (size_t i = n; i > board_wrap_leading(s); i--)
		if (s.p[i] == ' ')
			return i;
	return n;
}

static void board_wrap_push(struct arena *a, struct strs *out, struct str line)
{
	out->v = arena_grow(a, out->v, out->n, sizeof(*out->v));
	out->v[out->n++] = line;
}

/* Every line keeps the indentation of the first. */
static void wrap_one(struct arena *a, struct strs *out, struct str line, size_t width)
{
	size_t indent = board_wrap_leading(line) < width / 2 ? board_wrap_leading(line) : 0;

	line = str_n(line.p + indent, line.n - indent);
	do {
		size_t n = board_wrap_fits(line, width - indent), end;

		if (n < line.n)
			n = at_space(line, n);
		for (end = n; end > 0 && line.p[end - 1] == ' '; end--)
			;
		board_wrap_push(a, out,
				arena_printf(a, "%*s%.*s", (int)indent, "", (int)end, line.p));
		line = str_n(line.p + n, line.n - n);
		n = board_wrap_leading(line);
		line = str_n(line.p + n, line.n - n);
	} while (line.n);
}

struct strs wrap_lines(struct arena *a, struct str text, size_t width)
{
	struct strs out = { 0 };

	if (width < 1)
		width = 1;
	while (text.n)
		wrap_one(a, &out, str_cut(&text, '\n'), width);
	return out;
}
