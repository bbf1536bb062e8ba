/* Finds, checks, opens and lays out the database. A process that dies during the layout leaves a file that the next one
 * recognises as unfinished and lays out again; a file that pawl did not make is never changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define PAGE_SIZE "4096"
#define VALUE_MAX (64 << 20) /* bytes in a row: more than any record that pawl writes */

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

/* --- the place ---------------------------------------------------------------------------------- */

static int fail_missing(struct sq *s)
{
	struct arena a = { 0 };
	const char *dir = arena_cstr(&a, fs_dirname(str_c(s->path)));
	int rc;

	if (fs_is_dir(dir))
		rc = store_fail(&s->base.env, STORE_ABSENT, "pawl init", "there is no queue at %s",
				s->path);
	else
		rc = store_fail(&s->base.env, STORE_UNREACHABLE,
				"create the folder, or name another path", "there is no folder %s",
				dir);
	arena_free(&a);
	return rc;
}

static int fail_path(struct sq *s, int err)
{
	const struct store_env *env = &s->base.env;

	switch (err) {
	case ENOENT:
	case ENOTDIR:
		return fail_missing(s);
	case EACCES:
	case EPERM:
	case EROFS:
		return store_fail(env, STORE_READONLY,
				  "check the owner and mode of the file and its folder",
				  "cannot open %s: %s", s->path, strerror(err));
	case ENOSPC:
	case EDQUOT:
		return store_fail(env, STORE_FULL, "free some space on the device",
				  "no space is left for %s: %s", s->path, strerror(err));
	default:
		return store_fail(env, STORE_IO, NULL, "%s: %s", s->path, strerror(err));
	}
}

/* Like SQLite, but with mode 0666 before the umask: agents share a queue by a umask of 002. */
static int make_file(struct sq *s)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? 0 : fail_path(s, errno);
	close(fd); /* the file is new, so this drops no lock that this process has on it */
	return 0;
}

static int sq_schema_read(struct sq *s, bool *there)
{
	const struct store_env *env = &s->base.env;
	mode_t mode;

	*there = lstat(s->path, &s->file) == 0;
	if (!*there)
		return errno == ENOENT ? 0 : fail_path(s, errno);
	mode = s->file.st_mode;
	if (S_ISREG(mode))
		return 0;
	if (S_ISLNK(mode))
		return store_fail(env, STORE_FOREIGN, "name the file that it points to",
				  "%s is a symbolic link, not a database", s->path);
	return store_fail(env, STORE_FOREIGN, "name a file", "%s is %s, not a database", s->path,
			  S_ISDIR(mode) ? "a folder" : "a pipe, a socket or a device");
}

const char *sq_place_refusal(const char *network_fs)
{
	if (!network_fs)
		return NULL;
	return "put the queue on a local disk, or share it through git:";
}

static int check_place(struct sq *s)
{
	const char *network = os_network_fs(s->path), *advice = sq_place_refusal(network);

	if (!advice)
		return 0;
	return store_fail(&s->base.env, STORE_UNSUPPORTED, advice,
			  "%s is on a network file system (%s), where SQLite's locks do not work",
			  s->path, network);
}

static int find_file(struct sq *s)
{
	bool there;
	int rc = sq_schema_read(s, &there);

	if (rc < 0 || there)
		return rc < 0 ? rc : check_place(s);
	if (s->base.env.mode != STORE_CREATE)
		return fail_missing(s);
	rc = check_place(s);
	if (rc == 0)
		rc = make_file(s);
	if (rc == 0)
		rc = sq_schema_read(s, &there);
	return rc;
}

/* --- the connection ----------------------------------------------------------------------------- */

static int count_pages(void *ctx, sqlite3 *db, const char *name, int pages)
{
	(void)db, (void)name;
	((struct sq *)ctx)->wal_pages = (uint32_t)pages;
	return SQLITE_OK;
}

/* The file may be hostile: https://sqlite.org/security.html. Only a schema can make SQLite run code from the file,
 * and sqlite/sqlite_check.c compares the schema before the store uses it. */
static void sq_schema_distrust(sqlite3 *db)
{
	static const int off[] = { SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
				   SQLITE_DBCONFIG_TRUSTED_SCHEMA,
				   SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION };

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		sqlite3_db_config(db, off[i], 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_exec(db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
}

int sq_connect(struct sq *s)
{
	bool reads = s->base.env.mode == STORE_READ;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

	flags |= reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
	s->next_due = 0;
	if (sqlite3_open_v2(s->path, &s->db, flags, sq_vfs()) != SQLITE_OK)
		return s->db ? fail_path(s, sqlite3_system_errno(s->db)) : fail_path(s, ENOMEM);
	if (!reads && sqlite3_db_readonly(s->db, "main") == 1)
		return fail_path(s, EACCES);
	sqlite3_busy_timeout(s->db, SQ_READ_WAIT_MS);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sq_schema_distrust(s->db);
	sqlite3_wal_hook(s->db, count_pages, s); /* replaces SQLite's automatic checkpoints */
	return 0;
}

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
		sq_checkpoint(s); /* writes the header that sq_header_read() checks */
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

static int settle_layout(struct sq *s)
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

static int settle_queue(struct sq *s)
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

/* The file may have been replaced after sq_schema_read() and before SQLite opened it. */
static int same_file(struct sq *s)
{
	const struct stat *st = sq_main_stat(s);

	if (!st || (st->st_ino == s->file.st_ino && st->st_dev == s->file.st_dev))
		return 0;
	return sq_files_fail(s, SQ_DATABASE_GONE);
}

int sq_attach(struct sq *s)
{
	int rc = find_file(s);

	if (rc == 0)
		rc = sq_connect(s);
	if (rc == 0)
		rc = same_file(s);
	if (rc == 0)
		rc = settle_layout(s);
	if (rc == 0)
		rc = settle_queue(s);
	return rc;
}
