/*
 * Three-way merge by field: the last sync, the task and the page. It is pure: nothing here reads or
 * writes anything.
 */
#include "base/secret.h"
#include "sync/notion/notion.h"

/* A short hash of a value that the page had. */
static struct str mark_of(struct str value, struct arena *a)
{
	return arena_printf(a, "%.16s ", hash_hex(a, value).p);
}

struct str notion_was(struct str list, struct str value, struct arena *a)
{
	struct str mark = mark_of(value, a);

	return str_has_nocase(list, mark) ? list
					  : arena_printf(a, "%.*s%.*s", STRF(list), STRF(mark));
}

/* Did a person change the page since the last sync? An earlier value of the page only means that
 * the read is behind. */
static bool page_changed(const struct merge *m, enum notion_field f)
{
	struct str now = m->p->v[f];

	if (str_eq(now, m->l->p.v[f]))
		return false;
	return !m->young || !m->l->was.has[f] ||
	       !str_has_nocase(m->l->was.v[f], mark_of(now, m->arena));
}

/* Did a killed sync begin to write another value? A stale read does not show that value yet. */
static bool is_pending(const struct merge *m, enum notion_field f)
{
	return m->l->doing.push.has[f] && !str_eq(m->l->doing.push.v[f], m->p->v[f]);
}

/* The first sync of a task and its page: people filled in a field that is not empty. */
static enum field_action notion_merge_first(enum direction direction, struct str t, struct str p)
{
	if (str_eq(t, p))
		return D_SAME;
	return direction == BY_PEOPLE && p.n ? D_PULL : D_PUSH;
}

static enum field_action notion_merge_decide(const struct merge *m, enum notion_field f,
					     bool *clash)
{
	enum direction direction = notion_fields[f].direction;
	struct str t = m->t->v[f], p = m->p->v[f];
	bool here;

	if (!m->l->t.has[f] || !m->l->p.has[f])
		return notion_merge_first(direction, t, p);
	here = !str_eq(t, m->l->t.v[f]);
	if (!page_changed(m, f))
		return here || is_pending(m, f) ? D_PUSH : D_NONE;
	if (str_eq(t, p))
		return D_SAME;
	*clash = here;
	return direction == BY_PAWL ? D_BACK : D_PULL;
}

static bool is_of_lock(enum notion_field f)
{
	return notion_fields[f].direction != BY_PEOPLE && f != F_ID;
}

void notion_merge(const struct merge *m, struct plan *out)
{
	*out = (struct plan){ 0 };
	for (int i = 0; i < F_END; i++) {
		enum notion_field f = (enum notion_field)i;

		if (m->t->has[f] && m->p->has[f] && !(m->foreign && is_of_lock(f)))
			out->action[f] = notion_merge_decide(m, f, &out->clash[f]);
	}
}

struct move {
	enum status from, to;
	enum op op;
};

/* The moves that people may make on the board. */
static const struct move moves[] = {
	{ BACKLOG, READY, OP_UPDATE },
	{ READY, BACKLOG, OP_UPDATE },
	{ REVIEW, DONE, OP_APPROVE },
	{ REVIEW, IN_PROGRESS, OP_REWORK },
	{ BLOCKED, IN_PROGRESS, OP_UNBLOCK },
	{ BLOCKED, READY, OP_UPDATE },
	{ NEEDS_HELP, IN_PROGRESS, OP_UNBLOCK },
	{ NEEDS_HELP, READY, OP_UPDATE },
	{ IN_PROGRESS, READY, OP_UPDATE },
	{ FAILED, READY, OP_RETRY },
	{ DONE, READY, OP_REOPEN },
	{ CANCELED, READY, OP_REOPEN },
};

/* The moves of another program that held the page: results of its work. */
static const struct move own_moves[] = {
	{ READY, REVIEW, OP_REVIEW }, { READY, DONE, OP_DONE },
	{ READY, BLOCKED, OP_BLOCK }, { READY, NEEDS_HELP, OP_ESCALATE },
	{ READY, FAILED, OP_FAIL },
};

static enum op move_in(const struct move *list, size_t n, int64_t from, int64_t to)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].from == from && list[i].to == to)
			return list[i].op;
	return OP_NONE;
}

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

enum op notion_move(int64_t from, int64_t to, bool own)
{
	bool at_work = from == READY || from == IN_PROGRESS;
	enum op op = own && at_work ? move_in(own_moves, COUNT(own_moves), READY, to) : OP_NONE;

	if (op != OP_NONE)
		return op;
	if (to == CANCELED && !status_ended(from))
		return OP_CANCEL;
	return move_in(moves, COUNT(moves), from, to);
}
