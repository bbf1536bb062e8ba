/*
 * far [KILLS]: two machines, which two runtime folders stand for, share two queues on one server. Processes are killed,
 * sessions are ended by the server, gates and slots are deleted. No call is lost or made twice, and every answer is true.
 */
#include "ledger.h"

#include <libpq-fe.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

#define PROCESSES 12
#define TIMEOUT 60000

static struct board {
	_Atomic int stop, ready;
} * board;
static pid_t pids[PROCESSES];
static char other[200]; /* the runtime folder of the second machine */

static int work(int me)
{
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q;

	alarm(600);
	if (me / QUEUES % 2)
		CHECK(setenv("XDG_RUNTIME_DIR", other, 1) == 0, "setenv");
	q = kit_open_as(&config, STORE_WRITE);
	board->ready++;
	/* the session of a holder may have ended in its COMMIT: its own caller is in doubt then */
	while (!board->stop)
		(void)ledger_call(q, me % QUEUES, TIMEOUT);
	queue_close(q);
	return 0;
}

static void replace(int i)
{
	int code = kit_reap(pids[i]);

	CHECK(code == 1000 + SIGKILL, "a worker ended by itself: %d", code);
	pids[i] = kit_spawn(work, i);
}

static void kill_holder(const char *step)
{
	int64_t end = kit_ms() + 30000;

	step_arm(step, (int)random_below(4), SIGKILL);
	while (!step_hit() && kit_ms() < end)
		usleep(200);
	CHECK(step_hit(), "nobody came to %s", step);
	for (int i = 0; i < PROCESSES; i++)
		if (pids[i] == step_hit())
			replace(i);
}

/* The name of a session begins like this while it changes a queue. */
static int end_session(PGconn *db)
{
	PGresult *r = PQexec(db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
				 "application_name LIKE 'pawl[%' ORDER BY random() LIMIT 1");
	int n = PQntuples(r);

	CHECK(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(db));
	PQclear(r);
	return n;
}

static void let_them_work(void)
{
	int before = ledger_counts()->acked;
	int64_t end = kit_ms() + 30000;

	while (ledger_counts()->acked < before + 60 && kit_ms() < end)
		usleep(500);
	CHECK(ledger_counts()->acked > before, "they do not continue");
}

static void delete_files(void)
{
	char path[200];

	ledger_file(path, sizeof(path), random_below(2) ? "gate" : "slots");
	unlink(path);
}

static void finish(void)
{
	step_disarm();
	board->stop = 1;
	kit_reap_all("far", pids, PROCESSES);
	ledger_judge();
}

int main(int argc, char **argv)
{
	static const char *const steps[] = { "committed", "replied", "sent", "answered" };
	int64_t start = kit_ms();
	int kills = ledger_option(argc, argv, 1, SCALE(40, 15)), ended = 0;
	const struct ledger_counts *n;
	PGconn *db;

	kit_begin();
	board = shared_alloc(sizeof(*board));
	ledger_begin();
	snprintf(other, sizeof(other), "%s2", getenv("XDG_RUNTIME_DIR"));
	CHECK(mkdir(other, 0700) == 0, "%s", other);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, PROCESSES, 60000), "they do not come");
	db = PQconnectdb(kit_uri());
	for (int i = 0; i < kills; i++) {
		let_them_work();
		kill_holder(steps[i % 4]);
		ended += end_session(db);
		if (i % 2)
			delete_files();
	}
	PQfinish(db);
	finish();
	n = ledger_counts();
	CHECK(ended && n->acked > 100, "%d sessions ended, %d acknowledged", ended, n->acked);
	printf("far: 2 machines, %d holders killed, %d sessions ended; %d calls, %d acknowledged, %d in doubt, %d not "
	       "applied, %d claims; none lost, none twice; %.1f s\n",
	       kills, ended, n->asked, n->acked, n->unsure, n->not_applied, n->claims,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
