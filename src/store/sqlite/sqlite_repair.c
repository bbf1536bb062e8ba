/*
 * Finds and repairs, for doctor and `doctor --fix`, values that the database holds twice and texts without a task. All
 * repairs are one transaction. Each computes its values from the records, and pawl reads a record from no other place, so
 * a repair loses nothing. Texts that must be deleted are saved first.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"

#define SAVED_MAX "50331648" /* a text larger than this cannot be saved, so it stays */
#define SIZE                                                                                           \
	"(ifnull(length(title),0)+ifnull(length(description),0)+ifnull(length(acceptance),0)"          \
	"+ifnull(length(blocker_reason),0)+ifnull(length(unblock_action),0)+ifnull(length(summary),0)" \
	"+ifnull(length(rest),0))"

/* The packed part of a task or of a lock; NULL for other records. */
#define HOT "CASE WHEN key GLOB'task/*'OR key GLOB'lock/*'THEN hot END"

#define BAD_STATUS "status NOT NULL AND(typeof(status)<>'integer'OR status NOT BETWEEN 1 AND 15)"
#define STATUS_IN_TASK "CASE WHEN key GLOB'task/*'THEN packed(hot,'status')END"

#define WAKE                                                                                       \
	"CASE WHEN lane IN(" LANES_TIMED_TEXT ")THEN eligible_at WHEN lane IN(" LANES_WAITING_TEXT \
	")AND wake IS eligible_at THEN wake "                                                      \
	"ELSE 0 END"

/* `depends` is JSON that another program may have broken. */
#define DEPENDS                                                                 \
	"record r,json_each(CASE WHEN json_valid(CAST(r.depends AS TEXT))THEN " \
	"CAST(r.depends AS TEXT)ELSE'[]'END)j"
#define ONE_WAY                                                                         \
	"NOT EXISTS(SELECT 1 FROM " DEPENDS " WHERE r.rid=link.rid AND r.q=link.q AND " \
	"j.type='text'AND j.value=link.target)"
#define OTHER_WAY                                                                              \
	" FROM " DEPENDS " WHERE r.depends NOT NULL AND j.type='text'AND NOT EXISTS(SELECT 1 " \
	"FROM link l WHERE l.q=r.q AND l.target=j.value AND l.rid=r.rid)"

#define STATUSES \
	"WITH s(x)AS(VALUES(1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(11),(12),(13),(14),(15))"
#define COUNTED "(SELECT count(*)FROM record r WHERE r.q=queue.n AND r.status=x)"

#define ORPHANS "rid NOT IN(SELECT rid FROM record)"
#define LARGE SIZE ">1835008 AND rid IN(SELECT rid FROM record WHERE status NOT NULL)"

#define COPIES_DIFFER                                                                                        \
	"id_key IS NOT id_key(id)OR assignee IS NOT packed(h,'assignee')OR run IS NOT packed(h,'agent_run')" \
	"OR attempts IS NOT packed(h,'attempts')OR fence IS NOT packed(h,'fence')"                           \
	"OR archived IS NOT packed(h,'archived_at')"                                                         \
	"OR(holder IS NULL AND queue_holder IS NOT packed(h,'holder'))"                                      \
	"OR host IS NOT packed(h,'host')OR acquired IS NOT packed(h,'acquired_at')"                          \
	"OR expires IS NOT packed(h,'expires_at')"

const struct sq_rule sq_rules[] = {
	{ "statuses", "SELECT count(*)FROM record WHERE " BAD_STATUS,
	  "each task has a status that pawl knows",
	  "some tasks have a status that no command finds", "take the status from the task", NULL,
	  "UPDATE record SET status=CASE WHEN " STATUS_IN_TASK
	  " BETWEEN 1 AND 15 THEN " STATUS_IN_TASK " END WHERE " BAD_STATUS },
	{ "order", "SELECT count(*)FROM record WHERE wake IS NOT " WAKE,
	  "each task has its place in the order", "some tasks have a wrong place in the order",
	  "compute the places again", NULL,
	  "UPDATE record SET wake=" WAKE " WHERE wake IS NOT " WAKE },
	{ "links",
	  "SELECT(SELECT count(*)FROM link WHERE " ONE_WAY ")+(SELECT count(*)" OTHER_WAY ")",
	  "each dependency is stored in both directions",
	  "some dependencies are stored in one direction only",
	  "store each dependency of a task in both directions", NULL,
	  "DELETE FROM link WHERE " ONE_WAY
	  ";INSERT OR IGNORE INTO link SELECT r.q,j.value,r.rid" OTHER_WAY },
	{ "counts",
	  STATUSES
	  "SELECT count(*)FROM queue JOIN s LEFT JOIN tally t ON t.q=queue.n AND t.status=x "
	  "WHERE name NOT NULL AND t.n IS NOT " COUNTED,
	  "the number of tasks of each status is right",
	  "the number of tasks is wrong for some statuses", "count the tasks of each status again",
	  NULL,
	  STATUSES "REPLACE INTO tally SELECT queue.n,x," COUNTED
		   "FROM queue JOIN s WHERE name NOT NULL" },
	{ "texts", "SELECT count(*)FROM body WHERE " ORPHANS, "each text belongs to a task",
	  "some texts do not belong to a task", "move these texts to a file",
	  "SELECT rid," SQ_BODY " FROM body WHERE " ORPHANS " AND " SIZE "<=" SAVED_MAX,
	  "DELETE FROM body WHERE " ORPHANS " AND " SIZE "<=" SAVED_MAX },
	{ "large texts", "SELECT count(*)FROM body WHERE " LARGE, NULL,
	  "some tasks have texts larger than the limit", "move these texts to a file",
	  "SELECT rid," SQ_BODY " FROM body WHERE " LARGE " AND " SIZE "<=" SAVED_MAX,
	  "DELETE FROM body WHERE " LARGE " AND " SIZE "<=" SAVED_MAX },
	{ "views",
	  "SELECT count(*)FROM record,(SELECT rid r," HOT
	  " h FROM record)WHERE rid=r AND(" COPIES_DIFFER ")",
	  "the views show the same values as pawl",
	  "the views show other values than pawl for some tasks", "write these values again", NULL,
	  "UPDATE record SET id_key=id_key(id),assignee=packed(h,'assignee'),run=packed(h,'agent_run'),"
	  "attempts=packed(h,'attempts'),fence=packed(h,'fence'),archived=packed(h,'archived_at'),"
	  "queue_holder=CASE WHEN holder IS NULL THEN packed(h,'holder')END,host=packed(h,'host'),"
	  "acquired=packed(h,'acquired_at'),expires=packed(h,'expires_at')"
	  "FROM(SELECT rid r," HOT " h FROM record)WHERE rid=r AND(" COPIES_DIFFER ")" },
	{ 0 },
};

struct mending {
	struct sq *s;
	const struct repair_sink *sink;
	int failed; /* -errno of the sink */
};

static int save_row(struct mending *m, const struct sq_rule *r, sqlite3_stmt *st)
{
	static const char *const names[COLUMN_TEXTS + 1] = {
		"title",          "description", "acceptance", "blocker_reason",
		"unblock_action", "summary",     "rest"
	};
	struct repair_part parts[COLUMN_TEXTS + 1];
	struct arena a = { 0 };
	int rc;

	for (int i = 0; i <= COLUMN_TEXTS; i++)
		parts[i] = (struct repair_part){ names[i], sq_column(st, 1 + i) };
	rc = m->sink->keep(m->sink->ctx, r->what,
			   arena_printf(&a, "body %lld", sqlite3_column_int64(st, 0)), r->bad,
			   parts, COLUMN_TEXTS + 1);
	arena_free(&a);
	return rc;
}

static int save_rows(struct mending *m, const struct sq_rule *r)
{
	sqlite3_stmt *st;
	int rc = sq_prepare(m->s, r->saves, &st);

	if (rc < 0)
		return rc;
	while ((rc = sq_step(m->s, st)) == SQLITE_ROW && m->failed == 0)
		m->failed = save_row(m, r, st);
	sqlite3_finalize(st);
	return rc < 0 ? rc : 0;
}

static int cannot_save(struct mending *m)
{
	return store_fail(&m->s->base.env, STORE_IO, "nothing was changed",
			  "the records that cannot be repaired cannot be saved: %s",
			  strerror(-m->failed));
}

/* Saves all rows before the first one is deleted. */
static int save_all(struct mending *m)
{
	int rc = 0;

	m->failed = 0;
	for (const struct sq_rule *r = sq_rules; r->what && rc == 0 && m->failed == 0; r++)
		if (r->saves)
			rc = save_rows(m, r);
	if (rc == 0 && m->failed == 0)
		m->failed = m->sink->settle(m->sink->ctx);
	return rc < 0 ? rc : m->failed ? cannot_save(m) : 0;
}

/* Runs as an edit, so it has the gate, the transaction and the durable commit like any change. */
static int repair_edit(struct edit *e, void *ctx)
{
	struct mending *m = ctx;
	int rc = sq_tally_flush(m->s);

	(void)e;
	sq_functions(m->s, true);
	if (rc == 0)
		rc = save_all(m);
	for (const struct sq_rule *r = sq_rules; r->what && rc == 0; r++)
		rc = sq_exec(m->s, r->repair);
	sq_functions(m->s, false);
	m->s->next_due = 0; /* a repair may have set an earlier time */
	return rc;
}

int sq_repair(struct store *base, enum repair_step step, const struct repair_sink *sink)
{
	struct mending m = { .s = sq_of(base), .sink = sink };
	struct change c = { .fn = repair_edit, .ctx = &m };

	return step == REPAIR_DATA ? sq_modify(base, &c, 1) : 0;
}
