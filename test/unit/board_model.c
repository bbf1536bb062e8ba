/* The board without a terminal: columns, cursor, pages, cards, filters and dialogs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "core/role.h"
#include "face/board/board.h"

static struct arena arena;

static bool same(struct str s, const char *want)
{
	if (str_is(s, want))
		return true;
	print_error("got \"%.*s\", want \"%s\"\n", STRF(s), want);
	return false;
}

/* What the queue would let anybody do with it. */
static struct allowed allowed_of(const struct task *t)
{
	const struct can_caller anybody = { .agent = STR("me") };
	const struct call c = { .policy = &policy_default, .now = 1 };

	return (struct allowed){ .can = (int64_t)can_do(t, &anybody, &c) };
}

/* Tasks with the ids of `ids`, one letter each. */
static void fill(struct column *c, const char *ids)
{
	struct task *v = arena_array(&arena, struct task, strlen(ids) + 1);
	struct allowed *w = arena_array(&arena, struct allowed, strlen(ids) + 1);

	for (size_t i = 0; ids[i]; i++) {
		v[i].id = arena_str(&arena, str_n(ids + i, 1));
		v[i].title = STR("title");
		v[i].status = c->status;
		v[i].class_rank = STANDARD;
		v[i].priority = PRIORITY_DEFAULT;
		v[i].version = 4;
		w[i] = allowed_of(&v[i]);
	}
	c->tasks = v;
	c->allowed = w;
	c->n = strlen(ids);
	c->count = (int64_t)c->n;
	column_settle(c);
}

static int setup(void **state)
{
	struct ui *u = calloc(1, sizeof(*u));

	ui_init(u, STR("me"));
	*state = u;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	arena_free(&arena);
	arena = (struct arena){ 0 };
	return 0;
}

static bool cursor_on(const struct ui *u, const char *id)
{
	const struct task *t = board_task(&u->board).task;

	return t ? same(t->id, id) : !id[0];
}

static void cursor_moves(void **state)
{
	struct ui *u = *state;
	struct board *b = &u->board;

	fill(&b->col[1], "abc");
	fill(&b->col[5], "r");
	assert_true(cursor_on(u, "a"));
	ui_key(u, 'j');
	ui_key(u, K_DOWN);
	assert_true(cursor_on(u, "c"));
	ui_key(u, 'j'); /* the end holds */
	assert_true(cursor_on(u, "c"));
	ui_key(u, 'l'); /* passes over empty columns */
	assert_true(cursor_on(u, "r"));
	ui_key(u, 'l');
	assert_true(cursor_on(u, "r"));
	ui_key(u, 'h');
	assert_true(cursor_on(u, "c")); /* each column remembers its card */
	ui_key(u, 'g');
	assert_true(cursor_on(u, "a"));
	ui_key(u, 'h');
	assert_true(cursor_on(u, "a"));
}

static void cursor_stays_on_its_task(void **state)
{
	struct ui *u = *state;
	struct column *c = &u->board.col[1];

	fill(c, "abc");
	ui_key(u, 'j');
	fill(c, "xyabc");
	assert_true(cursor_on(u, "b"));
	fill(c, "xyac"); /* b is gone: the task that took its place */
	assert_true(cursor_on(u, "c"));
	fill(c, "x");
	assert_true(cursor_on(u, "x"));
	fill(c, "");
	assert_true(cursor_on(u, ""));
	fill(c, "z");
	assert_true(cursor_on(u, "z"));
}

static void seeks_a_task(void **state)
{
	struct ui *u = *state;
	struct board *b = &u->board;

	board_seek(b);
	assert_int_equal(b->cur, 1);
	fill(&b->col[0], "p");
	fill(&b->col[7], "d"); /* collapsed */
	board_seek(b);
	assert_int_equal(b->cur, 0);
	fill(&b->col[3], "q");
	board_seek(b);
	assert_int_equal(b->cur, 0);
}

static void columns_open_and_collapse(void **state)
{
	struct ui *u = *state;
	struct board *b = &u->board;

	fill(&b->col[1], "a");
	fill(&b->col[7], "d");
	assert_true(column_open(b, 1));
	assert_false(column_open(b, 0)); /* empty */
	assert_false(column_open(b, 7)); /* Done */
	assert_int_equal(ui_key(u, '8'), DO_READ);
	assert_true(column_open(b, 7));
	assert_true(cursor_on(u, "d"));
	assert_int_equal(ui_key(u, 'z'), DO_READ);
	assert_false(column_open(b, 7));
	assert_true(cursor_on(u, ""));
	assert_int_equal(ui_key(u, K_ENTER), DO_READ); /* opens it */
	assert_true(column_open(b, 7));
}

static void pages(void **state)
{
	struct ui *u = *state;
	struct column *c = &u->board.col[1];

	fill(c, "abc");
	assert_int_equal(ui_key(u, K_END), DO_NOTHING); /* all are here */
	c->count = 100;
	c->limit = 3;
	assert_int_equal(ui_key(u, K_END), DO_READ);
	assert_int_equal(c->limit, 3 + PAGE);
	assert_int_equal(ui_key(u, K_END), DO_NOTHING); /* asked for already */
	assert_int_equal(ui_key(u, K_UP), DO_NOTHING);
}

static void layout_fits(void **state)
{
	struct ui *u = *state;
	struct board *b = &u->board;
	struct span s[COLUMNS];

	for (size_t i = 0; i < COLUMNS; i++)
		fill(&b->col[i], "a");
	for (int width = 1; width < 300; width++)
		for (b->cur = 0; b->cur < COLUMNS; b->cur++) {
			size_t n = board_layout(b, width, s);
			int x = 0;

			assert_true(n >= 1);
			assert_in_range(b->cur, s[0].column, s[n - 1].column);
			for (size_t i = 0; i < n; i++) {
				assert_int_equal(s[i].x, x);
				assert_int_equal(s[i].column, s[0].column + i);
				x += s[i].width;
			}
			assert_true(x <= width);
		}
	b->cur = 0;
	assert_int_equal(board_layout(b, 80, s), 3);
	assert_int_equal(s[2].x + s[2].width, 80); /* no room is wasted */
	assert_int_equal(board_layout(b, 200, s), COLUMNS);
	assert_true(s[7].strip && !s[6].strip);
}

static void scrolls_along(void **state)
{
	struct ui *u = *state;
	struct column *c = &u->board.col[1];

	fill(c, "abcdefghij"); /* three lines each */
	for (int i = 0; i < 4; i++)
		ui_key(u, 'j');
	column_scroll(c, 0, 30, 9);
	assert_int_equal(c->top, 2);
	ui_key(u, 'k');
	column_scroll(c, 0, 30, 9);
	assert_int_equal(c->top, 2); /* no further than needed */
	ui_key(u, 'g');
	column_scroll(c, 0, 30, 9);
	assert_int_equal(c->top, 0);
	ui_key(u, 'G');
	column_scroll(c, 0, 30, 1); /* not even one fits */
	assert_int_equal(c->top, 9);
	column_scroll(c, 0, 30, 12); /* a larger screen */
	assert_int_equal(c->top, 6);
	column_scroll(c, 0, 30, 100);
	assert_int_equal(c->top, 0);
}

static void wraps(void **state)
{
	struct strs w = wrap_lines(&arena, STR("one two  three\n\nfour"), 8);

	(void)state;
	assert_int_equal(w.n, 4);
	assert_true(same(w.v[0], "one two"));
	assert_true(same(w.v[1], "three"));
	assert_true(same(w.v[2], ""));
	assert_true(same(w.v[3], "four"));
	w = wrap_lines(&arena, STR("日本語日本語"), 5); /* two columns each */
	assert_int_equal(w.n, 3);
	assert_true(same(w.v[0], "日本"));
	w = wrap_lines(&arena, STR("日"), 0);
	assert_int_equal(w.n, 1);
	w = wrap_lines(&arena, STR("abcdefgh ij"), 4);
	assert_true(same(w.v[1], "efgh"));
	assert_true(same(w.v[2], "ij"));
	assert_int_equal(wrap_lines(&arena, STR(""), 4).n, 0);
	w = wrap_lines(&arena, STR("  one two three"), 9);
	assert_int_equal(w.n, 2);
	assert_true(same(w.v[0], "  one two"));
	assert_true(same(w.v[1], "  three"));
	w = wrap_lines(&arena, STR("          deep"), 6);
	assert_true(same(w.v[w.n - 1], "deep"));
}

#define NOW INT64_C(1800000000000)

static size_t lines_of(const struct task *t, const struct standing *st, int width, struct line *out)
{
	const struct allowed w = { .live = t->lock.expires_at > NOW };
	const struct column c = { .tasks = t, .standing = st, .allowed = &w, .n = 1 };

	return card_lines(&c, 0, NOW, width, out, &arena);
}

static void cards(void **state)
{
	struct str labels[] = { STR("bug"), STR("\x1b[2J") }, on[] = { STR("t3") };
	struct task t = { .id = STR("t1"),
			  .title = STR("a\x1b]0;x"),
			  .status = READY,
			  .class_rank = EXPEDITE,
			  .priority = 9,
			  .due = NOW - INT64_C(3) * 24 * 3600 * 1000,
			  .labels = { labels, 2 } };
	struct standing st = { .waits = true, .on = { on, 1 }, .more = true };
	struct line out[CARD_LINES];
	size_t n = lines_of(&t, &st, 40, out);

	(void)state;
	assert_int_equal(n, 5);
	assert_true(same(out[0].text, "t1  Expedite  p9"));
	assert_true(same(out[1].text, "a\\x1b]0;x"));
	assert_true(str_starts(out[2].text, STR("! overdue 20")));
	assert_true(same(out[3].text, "waits for t3 …"));
	assert_true(same(out[4].text, "#bug #\\x1b[2J"));
	t.status = DONE; /* an ended task is not late and waits for nothing */
	assert_int_equal(lines_of(&t, NULL, 40, out), 3);
}

static void card_of_a_held_task(void **state)
{
	struct task t = { .id = STR("t1"),
			  .title = STR("one two three four five six seven eight"),
			  .status = IN_PROGRESS,
			  .class_rank = STANDARD,
			  .priority = PRIORITY_DEFAULT };
	struct line out[CARD_LINES];

	(void)state;
	t.lock.holder = STR("a-very-long-name-of-an-agent");
	t.lock.token = STR("x");
	t.lock.expires_at = NOW + 90000;
	assert_int_equal(lines_of(&t, NULL, 22, out), 4);
	assert_true(same(out[0].text, "t1"));
	assert_true(same(out[1].text, "one two three four"));
	assert_true(same(out[2].text, "five six seven eight"));
	assert_true(str_ends(out[3].text, STR(" 1m 30s left")));
	assert_true(text_width(out[3].text) <= 21);
	t.lock.expires_at = NOW;
	lines_of(&t, NULL, 22, out);
	assert_true(str_ends(out[3].text, STR(" expired")));
	for (int width = 1; width < 40; width++)
		for (size_t i = 0, n = lines_of(&t, NULL, width, out); i < n; i++)
			assert_true(text_width(out[i].text) <= (size_t)(width > 4 ? width - 1 : 4));
}

static void filters(void **state)
{
	struct request rq = { .op = OP_LIST };

	(void)state;
	GIVE(&rq, view, VIEW_GROUPS);
	assert_null(filter_apply(STR(" #bug  label:ui @ann class:expedite type:fix mine"),
				 STR("me"), &rq, &arena));
	assert_int_equal(rq.labels.n, 2);
	assert_true(same(rq.labels.v[1], "ui"));
	assert_true(same(rq.holder, "ann"));
	assert_int_equal(rq.class_rank, EXPEDITE);
	assert_true(same(rq.type, "fix"));
	assert_int_equal(rq.view, VIEW_GROUPS | VIEW_MINE);
	assert_true(same(rq.agent, "me"));
	assert_non_null(filter_apply(STR("bug"), STR(""), &rq, &arena));
	assert_non_null(filter_apply(STR("#"), STR(""), &rq, &arena));
	assert_non_null(filter_apply(STR("@"), STR(""), &rq, &arena));
	assert_non_null(filter_apply(STR("type:"), STR(""), &rq, &arena));
	assert_non_null(filter_apply(STR("class:x"), STR(""), &rq, &arena));
}

static void type_text(struct ui *u, const char *s)
{
	struct str rest = str_c(s);

	while (rest.n) {
		uint32_t c;
		size_t n = text_char(rest, &c);

		ui_key(u, c);
		rest = str_n(rest.p + n, rest.n - n);
	}
}

static void action_asks_and_carries_the_version(void **state)
{
	struct ui *u = *state;
	struct request rq;

	fill(&u->board.col[5], "r");
	u->board.cur = 5;
	ui_key(u, 'r');
	assert_int_equal(u->mode, UI_INPUT);
	ui_key(u, K_ENTER);
	assert_true(u->bad);
	type_text(u, "é日😀x");
	ui_key(u, K_ERASE);
	ui_key(u, K_ERASE);
	assert_string_equal(u->input, "é日");
	ui_key(u, K_ENTER);
	assert_int_equal(u->mode, UI_CONFIRM);
	assert_true(same(draft_command(&u->draft, &arena),
			 "pawl rework r --reason 'é日' --if-version 4"));
	fill(&u->board.col[5], ""); /* the draft keeps the task that the user saw */
	assert_int_equal(ui_key(u, K_ENTER), DO_NOTHING);
	assert_int_equal(ui_key(u, 'y'), DO_CALL);
	rq = draft_request(&u->draft);
	assert_int_equal(rq.op, OP_REWORK);
	assert_true(same(rq.id, "r"));
	assert_true(same(rq.reason, "é日"));
	assert_int_equal(rq.if_version, 4);
	assert_false(HAS(&rq, force));
}

static void action_can_be_left(void **state)
{
	struct ui *u = *state;

	fill(&u->board.col[5], "r");
	u->board.cur = 5;
	ui_key(u, 'a');
	assert_int_equal(u->mode, UI_CONFIRM);
	assert_int_equal(ui_key(u, 'n'), DO_NOTHING);
	assert_int_equal(u->mode, UI_BOARD);
	ui_key(u, 'x');
	type_text(u, "why");
	assert_int_equal(ui_key(u, K_ESC), DO_NOTHING);
	assert_int_equal(u->mode, UI_BOARD);
	ui_key(u, 'u'); /* wrong status */
	assert_int_equal(u->mode, UI_BOARD);
	assert_true(u->bad);
	ui_key(u, 'b'); /* nobody holds it */
	assert_true(u->bad);
	u->board.cur = 1;
	ui_key(u, 'm'); /* no task here */
	assert_true(u->bad);
	assert_int_equal(ui_key(u, 'e'), DO_NOTHING);
	assert_int_equal(ui_key(u, 'q'), DO_QUIT);
}

static void input_has_a_limit(void **state)
{
	struct ui *u = *state;

	ui_key(u, 'n');
	for (int i = 0; i < INPUT_MAX; i++)
		ui_key(u, 0x1f600);
	assert_in_range(u->length, INPUT_MAX - 3, INPUT_MAX);
	assert_true(text_valid(str_c(u->input)));
	ui_key(u, 21);
	assert_int_equal(u->length, 0);
	ui_key(u, K_ERASE);
	assert_int_equal(u->length, 0);
	ui_key(u, 7); /* control keys are no text */
	assert_int_equal(u->length, 0);
}

/* With the texts that it insists on, the draft is a request that the queue does not refuse as incomplete. */
static void assert_complete(struct draft *p)
{
	const struct text_ask *ask;
	struct request rq;
	struct policy policy = { 0 };

	for (; (ask = draft_ask(p)); p->asked++)
		snprintf(p->text[p->asked], sizeof(p->text[0]), "%s", ask->must ? "x" : "");
	rq = draft_request(p);
	GIVE(&rq, agent, STR("bob"));
	if (op_flags(rq.op) & OP_TAKES)
		GIVE(&rq, new_token, STR("11111111-1111-4111-8111-111111111111"));
	assert_null(request_fault(&rq, &policy, &arena));
}

/* The menu has the moves that the queue allows, and no other. */
static void moves_are_allowed(void **state)
{
	static const char *const menus[COLUMNS] = {
		[0] = "Ready:update Canceled:cancel",
		[1] = "Backlog:update In Progress:claim Canceled:cancel",
		[2] = "Ready:update In Progress:claim Canceled:cancel",
		[3] = "Ready:update In Progress:unblock Canceled:cancel",
		[4] = "Ready:update In Progress:unblock Canceled:cancel",
		[5] = "In Progress:rework Done:approve Canceled:cancel",
		[6] = "Ready:retry In Progress:claim Canceled:cancel",
		[7] = "Ready:reopen",
		[8] = "Ready:reopen",
	};
	struct ui *u = *state;

	for (size_t i = 0; i < COLUMNS; i++) {
		struct column *c = &u->board.col[i];
		struct str text = STR("");
		struct move list[MOVES];
		size_t n;

		fill(c, "a");
		n = moves_of(c->allowed, list);
		board_go(&u->board, i);
		for (size_t k = 0; k < n; k++) {
			text = arena_printf(&arena, "%.*s%s%s:%s", STRF(text), k ? " " : "",
					    status_name(list[k].to), list[k].action->name);
			ui_key(u, 'm');
			assert_int_equal(u->mode, UI_MENU);
			ui_key(u, (uint32_t)('1' + k));
			assert_true(u->mode == UI_INPUT || u->mode == UI_CONFIRM);
			assert_ptr_equal(u->draft.action, list[k].action);
			assert_complete(&u->draft);
			ui_key(u, K_ESC);
		}
		assert_true(same(text, menus[i]));
	}
	assert_int_equal(moves_of(NULL, (struct move[MOVES]){ 0 }), 0);
}

/* Only the way that the queue names has --force. A task that the caller may not move has no menu. */
static void force_comes_from_the_queue(void **state)
{
	struct allowed w = { .can = (int64_t)ACTION_BIT(action_find(OP_CANCEL, 0) + 1), .live = 1 };
	struct ui *u = *state;
	struct request rq;

	fill(&u->board.col[2], "h");
	u->board.col[2].allowed = &w;
	u->board.cur = 2;
	ui_key(u, 'x');
	type_text(u, "why");
	ui_key(u, K_ENTER);
	rq = draft_request(&u->draft);
	assert_true(HAS(&rq, force));
	ui_key(u, K_ESC);
	w.can = 0;
	ui_key(u, 'x');
	assert_string_equal(u->message,
			    "cancel is not possible: h is In Progress, and an agent holds it");
	ui_key(u, 'm');
	assert_true(u->bad && u->mode == UI_BOARD);
}

static void pauses_and_resumes(void **state)
{
	struct ui *u = *state;
	struct notice paused = { .by = STR("ann") };

	ui_key(u, 'p');
	ui_key(u, K_ENTER); /* without a reason */
	assert_true(same(draft_command(&u->draft, &arena), "pawl pause"));
	ui_key(u, 'n');
	u->board.paused = &paused;
	ui_key(u, 'p');
	assert_true(same(draft_command(&u->draft, &arena), "pawl resume"));
	assert_false(HAS(&(struct request){ .has = draft_request(&u->draft).has }, if_version));
}

/* A click or a turn of the wheel on a screen of 80x24. */
static enum effect mouse(struct ui *u, int what, int y, int x, int64_t at)
{
	struct mouse m = { .y = y, .x = x, .rows = 24, .cols = 80, .at = at };

	m.what = what;
	return ui_mouse(u, &m);
}

static void clicks_select_and_open(void **state)
{
	struct ui *u = *state;
	struct column *c = &u->board.col[1];

	fill(&u->board.col[0], "z");
	fill(c,
	     "abcdefghij"); /* three lines each; the first two columns are open, the others are strips */
	assert_int_equal(mouse(u, MOUSE_CLICK, 5, 45, 1000), DO_NOTHING);
	assert_true(cursor_on(u, "b"));
	mouse(u, MOUSE_CLICK, 4, 45, 1100); /* between two cards */
	assert_true(cursor_on(u, "b"));
	mouse(u, MOUSE_CLICK, 2, 5, 1200);
	assert_true(cursor_on(u, "z"));
	mouse(u, MOUSE_CLICK, 6, 45, 1300);
	assert_true(cursor_on(u, "b"));
	assert_int_equal(mouse(u, MOUSE_CLICK, 5, 45, 1701), DO_NOTHING); /* too late */
	assert_int_equal(u->mode, UI_BOARD);
	assert_int_equal(mouse(u, MOUSE_CLICK, 5, 45, 2101), DO_SHOW);
	assert_int_equal(u->mode, UI_DETAIL);
	assert_string_equal(u->shown, "b");
	assert_int_equal(mouse(u, MOUSE_CLICK, 5, 45, 2102),
			 DO_NOTHING); /* not through the detail */
	ui_key(u, 'q');
	assert_int_equal(mouse(u, MOUSE_CLICK, 5, 45, 2103),
			 DO_NOTHING); /* a third click is a first one */
	assert_int_equal(mouse(u, MOUSE_DOUBLE, 2, 45, 2500), DO_SHOW);
	assert_string_equal(u->shown, "a");
	ui_key(u, 'q');
	mouse(u, MOUSE_CLICK, 5, 45, 2600);
	for (int y = 0; y < 24; y += 23) { /* header and footer */
		mouse(u, MOUSE_CLICK, y, 5, 9000);
		assert_true(cursor_on(u, "b"));
	}
	mouse(u, MOUSE_CLICK, 20, 5, 9000); /* below the cards of another column */
	assert_int_equal(u->board.cur, 0);
	assert_int_equal(mouse(u, MOUSE_CLICK, 10, 79, 9000), DO_READ); /* a collapsed column */
	assert_int_equal(u->board.cur, 8);
	assert_int_equal(u->board.col[8].wish, 1);
}

/* The last card that is cut off by the end of the screen is not there to be clicked. */
static void clicks_hit_what_is_drawn(void **state)
{
	struct ui *u = *state;
	struct column *c = &u->board.col[1];

	fill(c, "abcdefghij");
	c->top = 3;
	mouse(u, MOUSE_CLICK, 2, 45, 0);
	assert_true(cursor_on(u, "d"));
	mouse(u, MOUSE_CLICK, 18, 45, 0);
	assert_true(cursor_on(u, "i")); /* 2, 5, 8, 11, 14, 17: the seventh would end at 22 */
	mouse(u, MOUSE_CLICK, 20, 45, 0);
	assert_true(cursor_on(u, "j"));
	c->top = 2;
	mouse(u, MOUSE_CLICK, 22, 45, 0); /* "… more" */
	assert_true(cursor_on(u, "j"));
	/* with a line less, the card at 20 would end below "… more" */
	ui_mouse(u,
		 &(struct mouse){ .what = MOUSE_CLICK, .y = 20, .x = 45, .rows = 23, .cols = 80 });
	assert_true(cursor_on(u, "j"));
}

static void wheel_scrolls(void **state)
{
	struct ui *u = *state;

	fill(&u->board.col[0], "xyz");
	fill(&u->board.col[1], "abc");
	mouse(u, MOUSE_DOWN, 10, 5, 0); /* the column under the pointer */
	assert_true(cursor_on(u, "y"));
	mouse(u, MOUSE_DOWN, 0, 5, 0);
	assert_true(cursor_on(u, "y"));
	mouse(u, MOUSE_DOWN, 10, 79, 0); /* a collapsed column has nothing to scroll */
	assert_true(cursor_on(u, "y"));
	mouse(u, MOUSE_UP, 10, 5, 0);
	assert_true(cursor_on(u, "x"));
	ui_key(u, '?');
	u->lines = 100;
	u->height = 20;
	mouse(u, MOUSE_DOWN, 10, 5, 0);
	assert_int_equal(u->scroll, 3);
	ui_key(u, 'q');
	ui_key(u, 'm');
	mouse(u, MOUSE_DOWN, 10, 40, 0);
	assert_int_equal(u->menu_at, 1);
	mouse(u, MOUSE_CLICK, 10, 5, 0);  /* beside the menu */
	mouse(u, MOUSE_CLICK, 10, 40, 0); /* the question */
	assert_int_equal(u->mode, UI_MENU);
	mouse(u, MOUSE_CLICK, 11, 40, 0); /* the first of two: to Ready */
	assert_int_equal(u->mode, UI_CONFIRM);
	assert_true(same(draft_command(&u->draft, &arena),
			 "pawl update x --status ready --if-version 4"));
	assert_int_equal(mouse(u, MOUSE_CLICK, 12, 40, 0),
			 DO_NOTHING); /* no click makes a change */
	assert_int_equal(mouse(u, MOUSE_DOWN, 12, 40, 0), DO_NOTHING);
	assert_int_equal(u->mode, UI_CONFIRM);
}

static void mouse_is_given_back(void **state)
{
	struct ui *u = *state;

	assert_int_equal(ui_key(u, 't'), DO_MOUSE);
	assert_true(u->mouse);
	assert_int_equal(ui_key(u, 't'), DO_MOUSE);
	assert_false(u->mouse);
	assert_non_null(strstr(u->message, "select text"));
	assert_int_equal(ui_key(u, K_MOUSE), DO_NOTHING);
	assert_non_null(strstr(u->message, "select text"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(cursor_moves),
		TEST(cursor_stays_on_its_task),
		TEST(seeks_a_task),
		TEST(columns_open_and_collapse),
		TEST(pages),
		TEST(clicks_select_and_open),
		TEST(clicks_hit_what_is_drawn),
		TEST(wheel_scrolls),
		TEST(mouse_is_given_back),
		TEST(layout_fits),
		TEST(scrolls_along),
		TEST(wraps),
		TEST(cards),
		TEST(card_of_a_held_task),
		TEST(filters),
		TEST(action_asks_and_carries_the_version),
		TEST(action_can_be_left),
		TEST(input_has_a_limit),
		TEST(moves_are_allowed),
		TEST(force_comes_from_the_queue),
		TEST(pauses_and_resumes),
	};

	return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
