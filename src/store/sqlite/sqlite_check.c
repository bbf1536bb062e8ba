/* The checks for doctor. They only read, so they work on a handle of STORE_READ and on a damaged database. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define WAL_BIG (64 << 20)
#define RESET_FIXED 3051003 /* SQLite 3.51.3 */

struct check {
	struct sq *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static void sq_check_tell(struct check *c, enum check_level level, const char *what,
			  struct str text, struct str fix)
{
	c->fn(c->ctx, level, what, text, fix);
}

static void tell_fault(struct check *c, const char *what)
{
	const struct store_error *err = c->s->base.env.err;

	sq_check_tell(c, CHECK_BAD, what, arena_str(&c->a, str_c(err->text)),
		      arena_str(&c->a, str_c(err->hint)));
}

/* --- the place ---------------------------------------------------------------------------------- */

static void check_fs(struct check *c)
{
	const char *network = os_network_fs(c->s->path), *advice = sq_place_refusal(network);

	if (advice)
		sq_check_tell(c, CHECK_BAD, "file system",
			      arena_printf(&c->a, "%s is on %s, where SQLite's locks do not work",
					   c->s->path, network),
			      str_c(advice));
	else
		sq_check_tell(c, CHECK_OK, "file system",
			      arena_printf(&c->a, "%s is on a local disk", c->s->path), STR(""));
}

static bool open_to_all(struct check *c, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !(st.st_mode & S_IWOTH) ||
	    (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX)))
		return false;
	sq_check_tell(c, CHECK_NOTE, "permissions",
		      arena_printf(&c->a, "every user can write to %s", path),
		      arena_printf(&c->a, "chmod o-w %s", store_word(&c->a, str_c(path)).p));
	return true;
}

/* SQLite must write to the folder and to each file in it: permission for one does not imply the other. */
static bool closed_to_us(struct check *c, const char *path)
{
	int err = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) ? errno : 0;

	if (err != EACCES && err != EPERM && err != EROFS)
		return false;
	sq_check_tell(c, CHECK_BAD, "permissions",
		      arena_printf(&c->a, "this user cannot write to %s: %s", path, strerror(err)),
		      err == EROFS
			      ? STR("mount that file system for writing")
			      : arena_printf(&c->a,
					     "join its group, and let its owner run: chmod g+w %s",
					     store_word(&c->a, str_c(path)).p));
	return true;
}

/* A clone may contain a link or a pipe at one of these paths. SQLite and the gate refuse to open it. */
static bool not_a_file(struct check *c, const char *path)
{
	struct stat st;

	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return false;
	/* without the slots file each process makes its own changes: slower, but correct */
	sq_check_tell(c, str_ends(str_c(path), STR("-slots")) ? CHECK_NOTE : CHECK_BAD, "files",
		      arena_printf(&c->a, "%s is not a regular file", path),
		      STR("move it away; pawl creates a new one"));
	return true;
}

static void check_modes(struct check *c)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-gate", "-slots" };
	const char *dir = arena_cstr(&c->a, fs_dirname(str_c(c->s->path)));
	bool any = open_to_all(c, dir);

	any |= closed_to_us(c, dir);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *file = arena_printf(&c->a, "%s%s", c->s->path, ends[i]).p;

		any |= not_a_file(c, file);
		any |= open_to_all(c, file);
		any |= closed_to_us(c, file);
	}
	if (!any)
		sq_check_tell(c, CHECK_OK, "permissions",
			      arena_printf(&c->a, "mode %03o, and this user can write",
					   c->s->file.st_mode & 0777),
			      STR(""));
}

/* --- SQLite ------------------------------------------------------------------------------------- */

static void check_version(struct check *c)
{
	const char *guarded =
		sqlite3_libversion_number() < RESET_FIXED
			? "; its WAL-reset bug (fixed in 3.51.3) cannot occur, since the gate admits one "
			  "writer or checkpoint at a time"
			: "";

	sq_check_tell(c, CHECK_OK, "SQLite",
		      arena_printf(&c->a, "version %s%s", sqlite3_libversion(), guarded), STR(""));
}

static void check_schema(struct check *c)
{
	int64_t version = 0;

	if (sq_int(c->s, "PRAGMA user_version", &version) < 0) {
		tell_fault(c, "schema");
		return;
	}
	sq_check_tell(c, CHECK_OK, "schema", arena_printf(&c->a, "version %" PRId64, version),
		      STR(""));
}

static void check_integrity(struct check *c)
{
	const struct str fix =
		STR("keep a copy; then restore a backup, or try: sqlite3 PATH .recover");
	sqlite3_stmt *st;
	int rc = sq_take(c->s, "PRAGMA integrity_check(5)", &st);

	if (rc < 0) {
		tell_fault(c, "integrity");
		return;
	}
	while ((rc = sq_step(c->s, st)) == SQLITE_ROW) {
		struct str line = arena_str(&c->a, sq_column(st, 0));
		bool ok = str_is(line, "ok");

		sq_check_tell(c, ok ? CHECK_OK : CHECK_BAD, "integrity", line, ok ? STR("") : fix);
	}
	sq_give(c->s, st);
	if (rc < 0)
		tell_fault(c, "integrity");
}

/* --- values that the database holds twice: see sqlite_check.c ------------------------------------------ */

static void check_rule(struct check *c, const struct sq_rule *r)
{
	int64_t n = 0;

	if (sq_int(c->s, r->sql, &n) < 0)
		tell_fault(c, r->what);
	else if (n)
		sq_check_tell(c, CHECK_BAD, r->what,
			      arena_printf(&c->a, "%s (%" PRId64 ")", r->bad, n),
			      arena_printf(&c->a, CHECK_REPAIRS "%s", r->does));
	else if (r->good)
		sq_check_tell(c, CHECK_OK, r->what, str_c(r->good), STR(""));
}

static void check_wal(struct check *c)
{
	struct stat st;
	int64_t size = 0;

	if (stat(arena_printf(&c->a, "%s-wal", c->s->path).p, &st) == 0)
		size = st.st_size;
	if (size < WAL_BIG)
		sq_check_tell(c, CHECK_OK, "WAL",
			      arena_printf(&c->a, "%" PRId64 " KiB", size >> 10), STR(""));
	else
		sq_check_tell(
			c, CHECK_NOTE, "WAL",
			arena_printf(&c->a,
				     "%" PRId64 " MiB: it grows while a program keeps a read open, "
				     "and by a very large change",
				     size >> 20),
			STR("end the programs that read for a long time; the next change then reuses the file"));
}

int sq_check(struct store *base, check_fn *fn, void *ctx)
{
	struct check c = { .s = sq_of(base), .fn = fn, .ctx = ctx };
	int rc = sq_read_guard(c.s);

	if (rc < 0)
		return rc;
	check_fs(&c);
	check_modes(&c);
	check_version(&c);
	check_schema(&c);
	check_integrity(&c);
	sq_functions(c.s, true);
	for (const struct sq_rule *r = sq_rules; r->what; r++)
		check_rule(&c, r);
	sq_functions(c.s, false);
	check_wal(&c);
	sq_now(base);
	localclock_check(&c.s->clock, &c.s->anchor, fn, ctx);
	arena_free(&c.a);
	return 0;
}

/* --- repair ----------------------------------------------------------------------------------- */

/*
 * Finds and repairs, for doctor and `doctor --fix`, values that the database holds twice and texts without a task. All
 * repairs are one transaction. Each computes its values from the records, and pawl reads a record from no other place, so
 * a repair loses nothing. Texts that must be deleted are saved first.
 */

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

/* --- repair --------------------------------------------------------------------------------------- */

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

/* --- shape ------------------------------------------------------------------------------------ */

/*
 * Checks that the schema is the one that pawl makes. A database in a clone may have a hostile schema: a virtual table, a
 * generated column or an index that calls functions at each of our statements. The store compares each part of
 * the schema, word for word, before it uses any of them.
 */

/* SQLite's own tables, which ANALYZE makes. */
static const char *const tolerated[] = {
	"CREATE TABLE sqlite_stat1(tbl,idx,stat)",
	"CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
};

/* The next CREATE statement of the schema. */
static bool next_part(struct str *rest, struct str *out)
{
	while (rest->n) {
		*out = str_cut(rest, ';');
		if (str_starts(*out, STR("CREATE ")))
			return true;
	}
	return false;
}

static bool made_by_us(struct str sql)
{
	struct str rest = str_c(sq_schema), part;

	while (next_part(&rest, &part))
		if (str_eq(part, sql))
			return true;
	return false;
}

static bool is_tolerated(struct str sql)
{
	for (size_t i = 0; i < sizeof(tolerated) / sizeof(tolerated[0]); i++)
		if (str_is(sql, tolerated[i]))
			return true;
	return false;
}

static int count_parts(void)
{
	struct str rest = str_c(sq_schema), part;
	int n = 0;

	while (next_part(&rest, &part))
		n++;
	return n;
}

static int fail_shape(struct sq *s, const char *what)
{
	return store_fail(
		&s->base.env, STORE_FOREIGN,
		"do not trust this file; use another store, or move the file away and run pawl "
		"init",
		"the schema of %s is not the one that pawl makes: %s", s->path, what);
}

/* The index that SQLite makes for UNIQUE has no SQL text. */
static bool sq_shape_harmless(struct str sql, struct str name)
{
	return sql.n ? is_tolerated(sql) : str_starts(name, STR("sqlite_autoindex_"));
}

static int compare_shape(struct sq *s)
{
	int missing = count_parts(), rc;
	bool foreign = false;
	sqlite3_stmt *st;

	rc = sq_prepare(s, "SELECT sql,name FROM sqlite_schema", &st);
	if (rc < 0)
		return rc;
	while (!foreign && (rc = sq_step(s, st)) == SQLITE_ROW) {
		struct str sql = sq_column(st, 0);

		if (made_by_us(sql))
			missing--;
		else
			foreign = !sq_shape_harmless(sql, sq_column(st, 1));
	}
	sqlite3_finalize(st);
	if (rc < 0)
		return rc;
	return foreign   ? fail_shape(s, "it has a foreign table, index, view or trigger")
	       : missing ? fail_shape(s, "a part of it is missing")
			 : 0;
}

int sq_shape_check(struct sq *s)
{
	int rc = s->shape_known ? 0 : compare_shape(s);

	s->shape_known = rc == 0;
	return rc;
}

int sq_version_fail(struct sq *s, int64_t version)
{
	if (version < SQ_VERSION)
		return store_fail_older(&s->base.env, s->path);
	return store_fail(&s->base.env, STORE_NEWER, "use the newer pawl",
			  "%s has schema version %lld; this pawl reads version %d", s->path,
			  (long long)version, SQ_VERSION);
}

int sq_version_check(struct sq *s)
{
	int64_t version = 0;
	int rc = sq_int(s, "PRAGMA user_version", &version);

	return rc < 0 || version == SQ_VERSION ? rc : sq_version_fail(s, version);
}
