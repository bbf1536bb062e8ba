/*
 * settle: three orders of events at the gate of a queue on a server, step by step.
 *
 * A call that arrives after the holder got the time of its change does not get this time: its owner may have seen a later
 * one. And if the next holder cannot settle the calls that a dead holder left, its own change is made all the same, and a
 * later holder settles these calls. And a holder that serves the calls of others does not wait for a session of another
 * machine: its own call returns.
 */
#include "ledger.h"

#include <libpq-fe.h>
#include <signal.h>
#include <unistd.h>

#define TIMEOUT 60000
#define LATER 30 /* ms */

static struct board {
	_Atomic int ready, go, asked, made;
} * board;

static void await_hit(const char *step)
{
	int64_t end = kit_ms() + 30000;

	while (!step_hit() && kit_ms() < end)
		kit_sleep(1);
	CHECK(step_hit(), "nobody came to %s", step);
}

static void await_seen(int n)
{
	int64_t end = kit_ms() + 30000;

	while (step_seen() < n && kit_ms() < end)
		kit_sleep(1);
	CHECK(step_seen() >= n, "only %d calls are published", step_seen());
}

/* Connects first, and calls when it may. */
static int comment(int at_once)
{
	struct queue_config config = ledger_config(0, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	board->ready++;
	if (!at_once)
		CHECK(kit_await(&board->go, 1, 60000), "it may not continue");
	board->asked = ledger_counts()->asked;
	CHECK(ledger_comment(q, 0, TIMEOUT), "the call failed");
	board->made++;
	queue_close(q);
	return 0;
}

static int64_t ask(PGconn *db, const char *sql)
{
	PGresult *r = PQexec(db, sql);
	int64_t n = -1;

	CHECK(PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1, "%s", PQerrorMessage(db));
	CHECK(str_to_i64(str_c(PQgetvalue(r, 0, 0)), &n), "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return n;
}

#define CLOCK "SELECT floor(extract(epoch FROM clock_timestamp())*1000)::bigint"

/* The holder has the time of its change, and is stopped. The other call comes later. */
static void come_late(PGconn *db)
{
	struct gate g = { 0 };
	char sql[120];
	pid_t late = kit_spawn(comment, 0), first;
	int64_t before, now;

	CHECK(kit_await(&board->ready, 1, 60000), "it does not come");
	ledger_hold_gate(&g);
	step_watch("published");
	first = kit_spawn(comment, 1);
	await_seen(1);
	step_arm("taking", 0, SIGSTOP);
	ledger_leave_gate(&g);
	await_hit("taking");
	before = now = ask(db, CLOCK);
	while (now < before + LATER)
		now = ask(db, CLOCK);
	board->go = 1;
	await_seen(2);
	kill(first, SIGCONT);
	CHECK(kit_reap(first) == 0 && kit_reap(late) == 0, "a call failed");
	snprintf(sql, sizeof(sql), "SELECT at FROM pawl.log WHERE convert_from(text,'UTF8')='n%d'",
		 board->asked);
	CHECK(ask(db, sql) >= now, "the call has a time %d ms before it was made",
	      (int)(now - ask(db, sql)));
}

static void run(PGconn *db, const char *sql)
{
	PGresult *r = PQexec(db, sql);

	CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(db));
	PQclear(r);
}

/* A session in another database of the same server: it can close this one to new sessions. */
static PGconn *connect_beside(void)
{
	const char *const names[] = { "dbname", "dbname", NULL };
	const char *const values[] = { kit_uri(), "template1", NULL };
	PGconn *db = PQconnectdbParams(names, values, 1);

	CHECK(PQstatus(db) == CONNECTION_OK, "%s", PQerrorMessage(db));
	return db;
}

/* Two calls are committed together; the holder dies before it answers. Returns the owner of the other one, stopped since
 * it asked: it must not stand in line for the gate. */
static pid_t leave_in_doubt(void)
{
	pid_t dead, other;
	struct gate g = { 0 };

	ledger_hold_gate(&g);
	step_arm("published", 1, SIGSTOP);
	for (int i = 0; i < 2; i++)
		(void)kit_spawn(comment, 1);
	await_hit("published");
	other = step_hit();
	step_arm("committed", 0, SIGSTOP);
	ledger_leave_gate(&g);
	await_hit("committed");
	dead = step_hit();
	kill(dead, SIGKILL);
	CHECK(kit_reap(dead) == 1000 + SIGKILL, "it ended by itself");
	return other;
}

static void cannot_settle(void)
{
	PGconn *beside = connect_beside();
	pid_t next, other;

	board->ready = board->go = 0;
	next = kit_spawn(comment, 0);
	CHECK(kit_await(&board->ready, 1, 60000), "it does not come");
	other = leave_in_doubt();
	/* the holder needs a second session to settle a call */
	run(beside, "ALTER DATABASE postgres ALLOW_CONNECTIONS false");
	board->go = 1;
	CHECK(kit_reap(next) == 0, "a call failed because of another one");
	run(beside, "ALTER DATABASE postgres ALLOW_CONNECTIONS true");
	kill(other, SIGCONT);
	CHECK(kit_reap(other) == 0, "the call was not settled");
	PQfinish(beside);
}

static void await_queued(PGconn *db)
{
	int64_t end = kit_ms() + 30000;

	while (ask(db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 && kit_ms() < end)
		kit_sleep(1);
	CHECK(kit_ms() < end, "no session waits");
}

/* Asks, and is stopped: it must not stand in line for the gate. */
static pid_t ask_and_stop(void)
{
	pid_t pid;

	step_arm("published", 0, SIGSTOP);
	pid = kit_spawn(comment, 1);
	await_hit("published");
	return pid;
}

/* A session of another machine gets the row when the holder commits, before it serves the others. */
static void leave_row(PGconn *db)
{
	PGconn *elsewhere = PQconnectdb(kit_uri());
	pid_t first, others[2];

	CHECK(PQstatus(elsewhere) == CONNECTION_OK, "%s", PQerrorMessage(elsewhere));
	step_arm("committing", 0, SIGSTOP);
	first = kit_spawn(comment, 1);
	await_hit("committing");
	CHECK(PQsendQuery(elsewhere, "BEGIN; SELECT 1 FROM pawl.queue FOR UPDATE"), "%s",
	      PQerrorMessage(elsewhere));
	await_queued(db);
	for (int i = 0; i < 2; i++)
		others[i] = ask_and_stop();
	step_watch("leaving");
	step_arm("serving on", 0, SIGCONT);
	kill(first, SIGCONT);
	await_hit("serving on");
	await_seen(1);
	CHECK(kit_reap(first) == 0, "the call failed");
	for (PGresult *r; (r = PQgetResult(elsewhere));)
		PQclear(r);
	run(elsewhere, "COMMIT");
	for (int i = 0; i < 2; i++)
		kill(others[i], SIGCONT);
	CHECK(kit_reap(others[0]) == 0 && kit_reap(others[1]) == 0, "a call failed");
	PQfinish(elsewhere);
}

int main(void)
{
	int64_t start = kit_ms();
	PGconn *db;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	ledger_begin();
	db = PQconnectdb(kit_uri());
	come_late(db);
	cannot_settle();
	leave_row(db);
	PQfinish(db);
	ledger_judge();
	CHECK(board->made == 7, "%d calls were made", board->made);
	printf("settle: a late call got a later time; a call of a dead holder was settled by the second that tried; "
	       "a holder left the row to another machine; %.1f s\n",
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
