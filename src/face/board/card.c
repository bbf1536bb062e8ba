#include "face/board/board.h"

#include "base/text.h"
#include "base/when.h"

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

/* "t12  Expedite  p5": only values that differ from the default. */
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

/* Two lines at most: the detail view has all of it. */
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

/* The time left stays readable if the name of the holder is long. */
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
