/*
 * The minimum of a self-written program: SQLite with the gate in front of it, one UPDATE and one
 * log line in a transaction that is durable before the call returns. No rules, no tokens, no names.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "bench.h"

#define LEASE 900000
#define DAY 86400000
#define TIMEOUT 60000
#define WAL_SHORT (64 * 4120)

enum { BEGIN, COMMIT, ROLLBACK, CLAIM, FIRST, END, EVENT, STATEMENTS };

static const char *const sql[STATEMENTS] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[ROLLBACK] = "ROLLBACK",
	[CLAIM] = "UPDATE task SET status=2,holder=?2,fence=fence+1,expires=?3,updated=?4"
		  " WHERE id=?1 AND (status=1 OR status=2 AND expires<=?4)",
	[FIRST] =
		"SELECT id FROM task WHERE status=1 ORDER BY class,priority DESC,updated,id LIMIT 1",
	[END] = "UPDATE task SET status=?3,holder=NULL,expires=NULL,updated=?4"
		" WHERE id=?1 AND status=2 AND holder=?2",
	[EVENT] = "INSERT INTO event(at,task,what,who) VALUES(?1,?2,?3,?4)",
};

static sqlite3 *db;
static sqlite3_stmt *statements[STATEMENTS];
static int gate = -1;
static char who[32], held[64];

static void check(int rc)
{
	if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE)
		bench_die("bare: %s", sqlite3_errmsg(db));
}

static void run(const char *text)
{
	check(sqlite3_exec(db, text, NULL, NULL, NULL));
}

static sqlite3_stmt *statement(int i)
{
	if (!statements[i])
		check(sqlite3_prepare_v3(db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &statements[i],
					 NULL));
	return statements[i];
}

static int step(int i)
{
	int rc = sqlite3_step(statement(i));

	check(rc);
	sqlite3_reset(statements[i]);
	return rc;
}

static int64_t wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void bare_open(const char *path)
{
	char name[4096];

	snprintf(who, sizeof(who), "agent-%ld", (long)getpid());
	snprintf(name, sizeof(name), "%s-gate", path);
	gate = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (gate < 0)
		bench_die("bare: %s cannot be opened", name);
	check(sqlite3_open_v2(
		path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
	sqlite3_busy_timeout(db, TIMEOUT);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	run("PRAGMA synchronous=FULL");
}

void bare_short_wal(const char *path)
{
	char name[4096];
	struct stat st;

	run("PRAGMA wal_autocheckpoint=0");
	snprintf(name, sizeof(name), "%s-wal", path);
	if (stat(name, &st) || st.st_size < WAL_SHORT)
		return;
	if (os_lock(gate, TIMEOUT))
		bench_die("bare: the gate did not open");
	run("PRAGMA user_version;PRAGMA wal_checkpoint");
	os_unlock(gate);
}

static void bare_create(const char *path)
{
	bare_open(path);
	run("PRAGMA journal_mode=WAL;"
	    "CREATE TABLE task(id TEXT PRIMARY KEY,status INT,class INT,priority INT,updated INT,holder TEXT,"
	    "fence INT,expires INT,title TEXT);"
	    "CREATE INDEX task_next ON task(status,class,priority DESC,updated,id);"
	    "CREATE TABLE event(seq INTEGER PRIMARY KEY,at INT,task TEXT,what TEXT,who TEXT);");
}

static void bare_close(void)
{
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(statements[i]);
		statements[i] = NULL;
	}
	sqlite3_close(db);
	close(gate);
}

static void enter(void)
{
	if (os_lock(gate, TIMEOUT))
		bench_die("bare: the gate did not open");
	step(BEGIN);
}

static int leave(int end)
{
	step(end);
	os_unlock(gate);
	return end == COMMIT;
}

static void bare_fill(int64_t from, int64_t n, int priority)
{
	sqlite3_stmt *st;

	run("BEGIN IMMEDIATE");
	check(sqlite3_prepare_v2(
		db, "INSERT INTO task VALUES('b'||?1,1,3,?2,?1,NULL,0,NULL,'Task number '||?1)", -1,
		&st, NULL));
	for (int64_t i = from + 1; i <= from + n; i++) {
		sqlite3_bind_int64(st, 1, i);
		sqlite3_bind_int(st, 2, priority);
		check(sqlite3_step(st));
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	run("COMMIT;PRAGMA wal_checkpoint(TRUNCATE)");
}

static void bare_hold(int64_t n)
{
	char text[400];

	snprintf(text, sizeof(text),
		 "UPDATE task SET status=2,holder='someone',fence=1,expires=%" PRId64
		 " WHERE id IN (SELECT id FROM"
		 " task WHERE status=1 ORDER BY class,priority DESC,updated,id LIMIT %" PRId64 ")",
		 wall() + DAY, n);
	run(text);
	run("PRAGMA wal_checkpoint(TRUNCATE)");
}

static int write_event(int64_t now, const char *what)
{
	sqlite3_stmt *st = statement(EVENT);

	sqlite3_bind_int64(st, 1, now);
	sqlite3_bind_text(st, 2, held, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, what, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 4, who, -1, SQLITE_STATIC);
	step(EVENT);
	return leave(COMMIT);
}

static int claim_held(void)
{
	sqlite3_stmt *st = statement(CLAIM);
	int64_t now = wall();

	sqlite3_bind_text(st, 1, held, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, who, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, now + LEASE);
	sqlite3_bind_int64(st, 4, now);
	step(CLAIM);
	return sqlite3_changes(db) ? write_event(now, "claimed") : leave(ROLLBACK);
}

static int bare_claim(const char *id)
{
	snprintf(held, sizeof(held), "%s", id);
	enter();
	return claim_held();
}

static int bare_take(void)
{
	sqlite3_stmt *st = statement(FIRST);
	int rc;

	enter();
	rc = sqlite3_step(st);
	check(rc);
	if (rc == SQLITE_ROW)
		snprintf(held, sizeof(held), "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_reset(st);
	return rc == SQLITE_ROW ? claim_held() : leave(ROLLBACK);
}

static int end(int status, const char *what)
{
	sqlite3_stmt *st = statement(END);
	int64_t now = wall();

	enter();
	sqlite3_bind_text(st, 1, held, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, who, -1, SQLITE_STATIC);
	sqlite3_bind_int(st, 3, status);
	sqlite3_bind_int64(st, 4, now);
	step(END);
	return sqlite3_changes(db) ? write_event(now, what) : leave(ROLLBACK);
}

static int bare_release(void)
{
	return end(1, "released");
}

static int bare_done(void)
{
	return end(3, "done");
}

const struct contender contender_bare = {
	.name = "bare",
	.create = bare_create,
	.open = bare_open,
	.close = bare_close,
	.fill = bare_fill,
	.hold = bare_hold,
	.claim = bare_claim,
	.release = bare_release,
	.take = bare_take,
	.done = bare_done,
};
