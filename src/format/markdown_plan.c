/* Reads a Markdown list as tasks with sub-tasks. Every error has a line number. A plan with an
 * error is refused as a whole, for example one with an open item inside an item that is done. */
#include <errno.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/text.h"
#include "format/markdown_plan.h"

#define TAB 4
#define CHILD \
	2 /* columns by which an item is further in than the item around it, as Markdown has it */

/* An item that is still open for text and for items inside it. */
struct level {
	size_t item, column; /* column: of the marker */
};

struct reading {
	struct plan *plan;
	struct yaml_fault *fault;
	struct arena *arena;
	struct level stack[PLAN_DEPTH];
	size_t depth;
	size_t line;
	struct buf about; /* the description of the last item */
	size_t indent; /* indentation of its first line, in columns; the same number is removed from its other lines */
	size_t blank; /* empty lines that wait for more of the description */
	bool taking;  /* text belongs to the last item */
	char fence;   /* inside a block of code: its mark, '`' or '~' */
};

static int markdown_plan_refuse(struct reading *r, struct str text)
{
	*r->fault = (struct yaml_fault){ r->line, text };
	return -EBADMSG;
}

/* Cuts at most `most` columns of blanks from *s; returns the number of columns. A tab counts up to the next stop. */
static size_t cut_blanks(struct str *s, size_t most)
{
	size_t column = 0;

	while (s->n && (*s->p == ' ' || *s->p == '\t') && column < most) {
		column = *s->p == '\t' ? (column / TAB + 1) * TAB : column + 1;
		*s = str_n(s->p + 1, s->n - 1);
	}
	return column;
}

/* Cuts the marker of an item: "-", "*", "+", "1." or "1)". */
static bool cut_marker(struct str *s)
{
	size_t n = 0;

	while (n < s->n && n < 9 && is_digit(s->p[n]))
		n++;
	if (n ? n < s->n && (s->p[n] == '.' || s->p[n] == ')') : s->n && memchr("-*+", *s->p, 3))
		n++;
	else
		return false;
	if (n < s->n && s->p[n] != ' ' && s->p[n] != '\t')
		return false;
	*s = str_n(s->p + n, s->n - n);
	return true;
}

/* A rule such as "* * *" begins with a list marker but is not an item. */
static bool is_rule(struct str s)
{
	size_t marks = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != ' ' && s.p[i] != s.p[0])
			return false;
		marks += s.p[i] == s.p[0];
	}
	return marks >= 3 && memchr("-*_", s.p[0], 3);
}

static char fence_of(struct str s)
{
	return str_starts(s, STR("```")) || str_starts(s, STR("~~~")) ? s.p[0] : '\0';
}

/* "[ ]" or "[x]" before the title. */
static bool cut_box(struct str *s, bool *done)
{
	if (s->n < 3 || s->p[0] != '[' || s->p[2] != ']' || !memchr(" xX", s->p[1], 3) ||
	    (s->n > 3 && s->p[3] != ' ' && s->p[3] != '\t'))
		return false;
	*done = s->p[1] != ' ';
	*s = str_n(s->p + 3, s->n - 3);
	return true;
}

static void end_item(struct reading *r)
{
	struct plan *p = r->plan;

	if (p->n && r->about.n)
		p->items[p->n - 1].description = arena_str(r->arena, buf_str(&r->about));
	r->about.n = 0;
	r->blank = 0;
	r->taking = false;
}

static int add_item(struct reading *r, size_t column, struct str title)
{
	struct plan *p = r->plan;
	struct plan_item item = { .line = r->line };

	end_item(r);
	while (r->depth && column < r->stack[r->depth - 1].column + CHILD)
		r->depth--;
	(void)cut_box(&title, &item.done);
	item.title = str_trim(title);
	if (!item.title.n)
		return markdown_plan_refuse(r, STR("this item has no title"));
	if (r->depth == PLAN_DEPTH)
		return markdown_plan_refuse(
			r, STR("this item is nested too deeply: 32 levels are allowed"));
	if (p->n == PLAN_ITEMS)
		return markdown_plan_refuse(r, STR("a plan has at most 10,000 items"));
	if (r->depth)
		item.under = r->stack[r->depth - 1].item + 1;
	if (item.under && p->items[item.under - 1].done && !item.done)
		return markdown_plan_refuse(
			r, arena_printf(r->arena,
					"this item is open, but the item around it (line %zu) is "
					"marked as done",
					p->items[item.under - 1].line));
	r->stack[r->depth++] = (struct level){ p->n, column };
	p->items = arena_grow(r->arena, p->items, p->n, sizeof(item));
	p->items[p->n++] = item;
	r->taking = true;
	return 0;
}

/* Adds a line to the description, without the first line's indentation. */
static void add_text(struct reading *r, struct str line, size_t column)
{
	if (!r->about.n)
		r->indent = column;
	(void)cut_blanks(&line, r->indent);
	for (; r->about.n && r->blank; r->blank--)
		buf_addc(&r->about, '\n');
	r->blank = 0;
	if (r->about.n)
		buf_addc(&r->about, '\n');
	buf_adds(&r->about, line);
}

/* Text that is further in than the item's marker, or directly below the item's text, belongs to the item. */
static bool markdown_plan_continues(const struct reading *r, size_t column, struct str rest)
{
	if (!r->taking || !r->depth)
		return false;
	return column > r->stack[r->depth - 1].column ||
	       (!r->blank && rest.p[0] != '#' && !is_rule(rest));
}

static int read_line(struct reading *r, struct str line)
{
	struct str rest = line;
	size_t column = cut_blanks(&rest, SIZE_MAX);
	char fence = fence_of(rest);

	if (r->fence || fence) {
		if (!r->fence && !markdown_plan_continues(r, column, rest))
			end_item(r);
		r->fence = !r->fence ? fence : fence == r->fence ? '\0' : r->fence;
		if (r->taking)
			add_text(r, line, column);
		return 0;
	}
	if (!rest.n) {
		r->blank++;
		return 0;
	}
	if (!is_rule(rest) && cut_marker(&rest)) {
		(void)cut_blanks(&rest, SIZE_MAX);
		return add_item(r, column, rest);
	}
	if (markdown_plan_continues(r, column, rest)) {
		add_text(r, line, column);
	} else {
		end_item(r);
		r->depth = 0;
	}
	return 0;
}

int plan_read(struct str text, struct plan *out, struct yaml_fault *fault, struct arena *a)
{
	struct reading r = {
		.plan = out, .fault = fault, .arena = a, .about = BUF_MAX(SIZE_MAX / 4)
	};
	int bad = 0;

	*out = (struct plan){ 0 };
	(void)str_cut_prefix(&text, STR("\xef\xbb\xbf"));
	while (!bad && text.n) {
		struct str line = str_cut(&text, '\n');

		r.line++;
		if (str_ends(line, STR("\r")))
			line.n--;
		bad = text_valid(line) ? read_line(&r, line)
				       : markdown_plan_refuse(&r, STR("not valid UTF-8"));
	}
	if (!bad)
		end_item(&r);
	buf_free(&r.about);
	return bad;
}
