/*
 * The cursor and the columns of the board. The cursor stays on its task, not on its position, when
 * a read moves the tasks.
 */
#include <stdio.h>

#include "face/board/board.h"

/* From left to right, in the order of the work. */
const enum status board_order[COLUMNS] = { BACKLOG, READY,  IN_PROGRESS, BLOCKED, NEEDS_HELP,
					   REVIEW,  FAILED, DONE,        CANCELED };

void board_init(struct board *b)
{
	*b = (struct board){ .cur = 1 };
	for (size_t i = 0; i < COLUMNS; i++)
		b->col[i] = (struct column){ .status = board_order[i], .limit = PAGE };
}

bool board_filtered(const struct board *b)
{
	return b->search[0] || b->filter[0];
}

/* Is the column open? Ended tasks are many and need no attention, so their columns are collapsed at
 * first. Empty columns would waste room. */
bool column_open(const struct board *b, size_t i)
{
	const struct column *c = &b->col[i];

	if (c->wish)
		return c->wish > 0;
	return !status_ended(c->status) && (c->count != 0 || i == b->cur);
}

static void board_model_remember(struct column *c)
{
	struct str id = c->at < c->n ? c->tasks[c->at].id : STR("");

	snprintf(c->id, sizeof(c->id), "%.*s", STRF(id));
}

void column_settle(struct column *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (str_is(c->tasks[i].id, c->id)) {
			c->at = i;
			return;
		}
	if (c->at >= c->n)
		c->at = c->n ? c->n - 1 : 0;
	board_model_remember(c);
}

struct here board_task(const struct board *b)
{
	const struct column *c = &b->col[b->cur];

	if (!column_open(b, b->cur) || c->at >= c->n)
		return (struct here){ 0 };
	return (struct here){ &c->tasks[c->at], c->allowed ? &c->allowed[c->at] : NULL };
}

/* The cursor skips empty columns; a number key reaches them. */
void board_across(struct board *b, int step)
{
	size_t i = b->cur;

	while (step > 0 ? ++i < COLUMNS : i-- > 0)
		if (b->col[i].count != 0 || b->col[i].wish > 0) {
			b->cur = i;
			return;
		}
}

void board_along(struct board *b, long step)
{
	struct column *c = &b->col[b->cur];
	long at = (long)c->at + step;

	if (!c->n)
		return;
	c->at = at < 0 ? 0 : at >= (long)c->n ? c->n - 1 : (size_t)at;
	board_model_remember(c);
}

void board_go(struct board *b, size_t column)
{
	b->cur = column;
	b->col[column].wish = 1;
}

void board_fold(struct board *b)
{
	struct column *c = &b->col[b->cur];

	c->wish = column_open(b, b->cur) ? -1 : 1;
}

void board_seek(struct board *b)
{
	for (size_t k = 0; k < COLUMNS; k++) {
		size_t i = (b->cur + k) % COLUMNS;

		if (column_open(b, i) && b->col[i].n) {
			b->cur = i;
			return;
		}
	}
}

bool board_page_needed(struct board *b)
{
	struct column *c = &b->col[b->cur];

	if (!c->n || c->at + 1 < c->n || (int64_t)c->n >= c->count || c->limit > c->n)
		return false;
	c->limit += PAGE;
	return true;
}

/* --- filter ----------------------------------------------------------------------------------- */

/*
 * The filter line of the board as arguments of a list request. The queue filters, so counts and
 * pages agree with the shown tasks.
 */

static const char *add_label(struct str label, struct request *rq, struct arena *a)
{
	if (!label.n)
		return "# needs the name of a label: #bug";
	GIVE(rq, labels, arena_append(a, rq->labels, arena_str(a, label)));
	return NULL;
}

static const char *add_class(struct str name, struct request *rq)
{
	enum class_rank rank = class_parse(name);

	if (!rank)
		return "class: is expedite, fixed-date, standard or intangible";
	GIVE(rq, class_rank, rank);
	return NULL;
}

static const char *add_word(struct str w, struct str agent, struct request *rq, struct arena *a)
{
	if (str_cut_prefix(&w, STR("#")) || str_cut_prefix(&w, STR("label:")))
		return add_label(w, rq, a);
	if (str_cut_prefix(&w, STR("class:")))
		return add_class(w, rq);
	if (str_cut_prefix(&w, STR("@")) || str_cut_prefix(&w, STR("holder:"))) {
		GIVE(rq, holder, arena_str(a, w));
		return w.n ? NULL : "@ needs an agent name, for example @ann";
	}
	if (str_cut_prefix(&w, STR("type:"))) {
		GIVE(rq, type, arena_str(a, w));
		return w.n ? NULL : "type: needs a type: type:bug";
	}
	if (!str_is(w, "mine"))
		return "a filter has the words #LABEL @HOLDER class:CLASS type:TYPE mine";
	GIVE(rq, view, rq->view | VIEW_MINE);
	GIVE(rq, agent, agent);
	return NULL;
}

const char *filter_apply(struct str words, struct str agent, struct request *rq, struct arena *a)
{
	const char *fault = NULL;

	while (words.n && !fault) {
		struct str w = str_cut(&words, ' ');

		if (w.n)
			fault = add_word(w, agent, rq, a);
	}
	return fault;
}
