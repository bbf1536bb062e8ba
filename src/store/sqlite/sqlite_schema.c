/* Lays out the database, and checks that its schema and version are those that pawl makes. A process
 * that dies during the layout leaves a file that the next one recognises as unfinished and lays out
 * again; a file that pawl did not make is never changed. */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

#define PAGE_SIZE "4096"

#define ISO(ms) "strftime('%Y-%m-%dT%H:%M:%fZ'," ms "/1000.0,'unixepoch')"
#define TEXT(column) "CAST(" column " AS TEXT)"
/* Picks the name with number `column` (from 1) from a string of names, each `width` wide; before: width - 1. */
#define NAME(names, column, width, before) \
	"rtrim(substr('" names "'," column "*" width "-" before "," width "))"

/*
 * The schema is small, because every process parses it at its start. A claim touches one page each of record,
 * record_lane (twice), record_held, record_status, tally, event, event_key.
 *
 * `lane` and `status` are NULL instead of 0, and holder, token and parent NULL instead of '': this keeps rows out
 * of the partial indexes. `wake` is eligible_at where time decides (LANES_TIMED_TEXT, and LANES_WAITING_TEXT if the time is in the
 * future), and 0 where rank decides. So one index serves both orders, and a claim or a promotion moves one
 * entry in it. labels and depends are JSON; link holds the reverse direction of depends. New records begin with a
 * revision above queue.floor, which a drop raises. Columns for people: see store/columns.h and doc/data.md.
 */
/* clang-format off */
const char sq_schema[] =
	"CREATE TABLE queue(n INTEGER PRIMARY KEY,name UNIQUE,floor);"
	"CREATE TABLE clock(one INTEGER PRIMARY KEY,boot_id,wall,boot);"
	"CREATE TABLE tally(q,status,n,PRIMARY KEY(q,status))WITHOUT ROWID;"
	"CREATE TABLE record(rid INTEGER PRIMARY KEY,q,key,rev,lane,wake,status,class_rank,priority,eligible_at,"
	"updated_at,created_at,due_at,id,id_key,holder,token,parent,type,labels,depends,hot,assignee,run,attempts,"
	"fence,archived,queue_holder,host,acquired,expires,UNIQUE(q,key));"
	"CREATE TABLE body(rid INTEGER PRIMARY KEY,title,description,acceptance,blocker_reason,unblock_action,"
	"summary,rest);"
	"CREATE TABLE link(q,target,rid,PRIMARY KEY(q,target,rid))WITHOUT ROWID;"
	"CREATE TABLE event(seq INTEGER PRIMARY KEY,q,key,at,kind,task,agent,run,text,rest);"
	"CREATE TABLE batch(q INTEGER PRIMARY KEY,id);"
	"INSERT INTO clock VALUES(1,'',0,0);"
	"CREATE INDEX record_lane ON record(q,lane,wake,class_rank,priority DESC,due_at IS NULL,due_at,updated_at,id_key)"
	"WHERE lane NOT NULL;"
	"CREATE INDEX record_status ON record(q,status,created_at,id_key)WHERE status NOT NULL;"
	"CREATE INDEX record_held ON record(q,token,holder)WHERE holder NOT NULL OR token NOT NULL;"
	"CREATE INDEX record_parent ON record(q,parent)WHERE parent NOT NULL;"
	"CREATE INDEX event_key ON event(q,key);"
	"CREATE VIEW tasks AS SELECT name queue,id,id_key," TEXT("title") "title,"
	NAME("Backlog    Ready      In ProgressBlocked    Needs Help Review     Done       Failed     Canceled",
	     "status", "11", "10") "status,"
	NAME("Expedite  Fixed DateStandard  Intangible", "class_rank", "10", "9") "class,priority,"
	"date(due_at/1000,'unixepoch')due,type,ifnull(" TEXT("labels") ",'[]')labels,"
	"ifnull(replace(" TEXT("depends") ",'\"task/','\"'),'[]')depends,substr(parent,6)parent,assignee,holder,run,"
	"fence,attempts,expires expires_at," TEXT("description") "description,"
	TEXT("acceptance") "acceptance," TEXT("blocker_reason") "blocker_reason,"
	TEXT("unblock_action") "unblock_action," TEXT("summary") "summary," ISO("created_at") "created,"
	ISO("updated_at") "updated,archived "
	"FROM record JOIN queue ON n=q LEFT JOIN body USING(rid)WHERE status;"
	"CREATE VIEW locks AS SELECT name queue,iif(status,id,substr(key,6))task,ifnull(holder,queue_holder)holder,"
	"run,host,fence,acquired acquired_at,expires expires_at,expires>strftime('%Y-%m-%dT%H:%M:%fZ','now')live FROM record JOIN queue ON n=q "
	"WHERE holder NOT NULL OR queue_holder NOT NULL;"
	"CREATE VIEW events AS SELECT name queue,seq," ISO("at") "at," TEXT("task") "task," TEXT("agent") "agent,"
	TEXT("kind") "kind," TEXT("text") "text," TEXT("run") "run FROM event JOIN queue ON n=q WHERE kind NOT NULL;";
/* clang-format on */

/* --- layout ------------------------------------------------------------------------------------- */

static int add_queue(struct sq *s, struct str name)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "INSERT INTO queue(name,floor) VALUES(?,0)", &st);

	if (rc < 0)
		return rc;
	sq_bind(st, 1, name);
	rc = sq_finish(s, st);
	s->q = sqlite3_last_insert_rowid(s->db);
	for (int i = 1; rc == 0 && i < STORE_STATUSES; i++) {
		rc = sq_take(s, "INSERT INTO tally VALUES(?,?,0)", &st);
		if (rc < 0)
			break;
		sqlite3_bind_int64(st, 1, s->q);
		sqlite3_bind_int(st, 2, i);
		rc = sq_finish(s, st);
	}
	return rc;
}

static int run_schema(struct sq *s)
{
	char sql[100];
	int rc = sq_exec(s, sq_schema);

	if (rc == 0)
		rc = add_queue(s, STR("default"));
	snprintf(sql, sizeof(sql), "PRAGMA application_id=%d;PRAGMA user_version=%d",
		 SQ_APPLICATION, SQ_VERSION);
	return rc < 0 ? rc : sq_exec(s, sql);
}

/* Another process may have laid out the file while we waited, and the header on disk may be older than the WAL. So this
 * reads the version again. */
static int make_schema(struct sq *s)
{
	int64_t version = 0, tables = 0;
	int rc = sq_int(s, "PRAGMA user_version", &version);

	if (rc == 0 && version == 0)
		rc = sq_int(s, "SELECT count(*) FROM sqlite_schema", &tables);
	if (rc < 0)
		return rc;
	if (tables)
		return store_fail(&s->base.env, STORE_FOREIGN, "name another path",
				  "%s is a SQLite database of another program", s->path);
	if (version == 0)
		return run_schema(s);
	return version == SQ_VERSION ? sq_shape_check(s) : sq_version_fail(s, version);
}

static int in_transaction(struct sq *s, int64_t left_ms, int (*fn)(struct sq *))
{
	int rc = sq_begin(s, left_ms);

	if (rc < 0)
		return rc;
	rc = fn(s);
	if (rc == 0)
		rc = sq_run(s, "COMMIT");
	if (rc == 0)
		rc = sq_files_notice(s, sq_files_check(s));
	sq_rollback(s);
	return rc;
}

static int sq_schema_checkpointed(struct sq *s, int rc)
{
	if (rc == 0)
		sq_checkpoint(s); /* this writes the header that sq_header_read() checks */
	return rc;
}

/* No journal is needed: only bytes in the first sector of the first page change. */
static int make_wal(struct sq *s)
{
	struct sq_header h;
	int rc = sq_header_read(s, &h);

	if (rc < 0 || h.wal)
		return rc;
	return sq_exec(s, "PRAGMA page_size=" PAGE_SIZE
			  ";PRAGMA journal_mode=MEMORY;PRAGMA journal_mode=WAL");
}

static int lay_out(struct sq *s, int64_t left_ms)
{
	int rc = sq_header_clear(s);

	if (rc == 0)
		rc = make_wal(s);
	return sq_schema_checkpointed(s, rc == 0 ? in_transaction(s, left_ms, make_schema) : rc);
}

int sq_settle_layout(struct sq *s)
{
	enum store_mode mode = s->base.env.mode;
	struct sq_header h;
	int rc = sq_header_read(s, &h);

	if (rc < 0)
		return rc;
	if (h.state != SQ_OURS && mode != STORE_CREATE)
		return store_fail(&s->base.env, STORE_ABSENT, "pawl init",
				  "%s is empty: it does not contain a queue", s->path);
	if (h.state == SQ_OURS && (h.wal || mode == STORE_READ))
		return 0;
	rc = sq_under_gate(s, lay_out);
	if (rc == 0)
		rc = sq_header_read(s, &h);
	if (rc == 0 && h.state != SQ_OURS) /* another process would not recognise the file */
		return store_fail(&s->base.env, STORE_IO, "try again",
				  "the new queue could not be written to %s", s->path);
	return rc;
}

/* --- the queue in it ---------------------------------------------------------------------------- */

static int find_queue(struct sq *s)
{
	struct str name = s->base.env.opt.queue;
	sqlite3_stmt *st;
	int rc;

	rc = sq_take(s, "SELECT n FROM queue WHERE name=?", &st);
	if (rc < 0)
		return rc;
	sq_bind(st, 1, name);
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		s->q = sqlite3_column_int64(st, 0);
	sq_give(s, st);
	return rc == SQLITE_ROW ? 0 : rc < 0 ? rc : 1;
}

static int make_queue(struct sq *s)
{
	int rc = find_queue(s);

	return rc > 0 ? add_queue(s, s->base.env.opt.queue) : rc;
}

static int lay_out_queue(struct sq *s, int64_t left_ms)
{
	return sq_schema_checkpointed(s, in_transaction(s, left_ms, make_queue));
}

int sq_settle_queue(struct sq *s)
{
	struct str name = s->base.env.opt.queue;
	struct arena a = { 0 };
	int rc;

	if (!name.n || str_is(name, "default"))
		return 0;
	rc = sq_shape_check(s);
	if (rc < 0)
		return rc;
	rc = find_queue(s);
	if (rc > 0 && s->base.env.mode == STORE_CREATE)
		return sq_under_gate(s, lay_out_queue);
	if (rc <= 0)
		return rc;
	rc = store_fail(&s->base.env, STORE_ABSENT,
			arena_printf(&a, "pawl init --queue %s", store_word(&a, name).p).p,
			"there is no queue '%.*s' in %s", STRF(name), s->path);
	arena_free(&a);
	return rc;
}

int sq_queues(struct store *base, name_fn *fn, void *ctx)
{
	struct sq *s = sq_of(base);
	sqlite3_stmt *st;
	int rc = sq_read_guard(s);

	if (rc == 0)
		rc = sq_take(s, "SELECT name FROM queue WHERE name IS NOT NULL", &st);
	if (rc < 0)
		return rc;
	while ((rc = sq_step(s, st)) == SQLITE_ROW)
		fn(ctx, sq_column(st, 0));
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

/*
 * A queue's number is never reused, because a handle that is still open must not end up in another queue. So the queue's
 * row stays, without a name. The default queue keeps its name, because every handle assumes that it exists. The log's last
 * entry also stays, without a queue, so that the next entry gets a greater number, and the clock does not go back before
 * that entry after a boot.
 */
static int empty_queue(struct sq *s)
{
	static const char *const sql[] = {
		"DELETE FROM body WHERE rid IN (SELECT rid FROM record WHERE q=?1)",
		"DELETE FROM link WHERE q=?1",
		"UPDATE queue SET floor=(SELECT max(floor,ifnull(max(rev),0)) FROM record WHERE q=?1) WHERE n=?1",
		"UPDATE queue SET name=NULL WHERE n=?1 AND n<>1",
		"DELETE FROM record WHERE q=?1",
		"UPDATE tally SET n=0 WHERE q=?1",
		"DELETE FROM tally WHERE q=?1 AND q<>1",
		"DELETE FROM event WHERE q IN (0,?1) AND seq<(SELECT max(seq) FROM event)",
		"UPDATE event SET q=0,key='',kind=NULL,task=NULL,agent=NULL,run=NULL,text=NULL,rest=NULL WHERE seq=(SELECT max(seq) FROM event) AND q=?1",
	};
	int rc = sq_shape_check(s);

	for (size_t i = 0; rc == 0 && i < sizeof(sql) / sizeof(sql[0]); i++) {
		sqlite3_stmt *st;

		rc = sq_take(s, sql[i], &st);
		if (rc < 0)
			break;
		sqlite3_bind_int64(st, 1, s->q);
		rc = sq_finish(s, st);
	}
	return rc;
}

static int discard_under_gate(struct sq *s, int64_t left_ms)
{
	return sq_schema_checkpointed(s, in_transaction(s, left_ms, empty_queue));
}

int sq_discard(struct store *base)
{
	int rc = sq_may_write(sq_of(base));

	return rc < 0 ? rc : sq_under_gate(sq_of(base), discard_under_gate);
}

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
