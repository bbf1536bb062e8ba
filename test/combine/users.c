/*
 * Four users of one group share a queue, in a folder of that group with the setgid bit. Each has a
 * umask of its own. Files that one of them creates (the gate, the slots, SQLite's files) work for
 * the others. No call fails, no matter which user leads the shared commit. Skipped without root.
 *
 * users [MILLISECONDS]
 */
#include "ledger.h"

#include <grp.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS 4
#define EACH 2 /* processes of each user */
#define FIRST_USER 64201
#define GROUP 64200
#define TIMEOUT 60000

static struct board {
	_Atomic int stop, ready;
} * board;

static int work(int me)
{
	static const mode_t masks[USERS] = { 0077, 0022, 0002, 0777 };
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q;

	umask(masks[me % USERS]);
	CHECK(setgroups(0, NULL) == 0 && setgid(GROUP) == 0 &&
		      setuid(FIRST_USER + (uid_t)me % USERS) == 0,
	      "another user");
	q = kit_open_as(&config, STORE_WRITE);
	board->ready++;
	while (!board->stop)
		CHECK(ledger_call(q, me % QUEUES, TIMEOUT), "a call failed");
	queue_close(q);
	return 0;
}

/* The files beside the database are gone: the first process that comes creates them. */
static void hand_over(void)
{
	char path[300];
	sqlite3 *db = NULL;

	snprintf(path, sizeof(path), "%s/queue.db-gate", kit_folder());
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/queue.db", kit_folder());
	CHECK(sqlite3_open(path, &db) == SQLITE_OK &&
		      sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) ==
			      SQLITE_OK &&
		      sqlite3_close(db) == SQLITE_OK,
	      "a checkpoint"); /* the last process to close removes the -wal and the -shm */
	CHECK(chown(kit_folder(), 0, GROUP) == 0 && chmod(kit_folder(), 02770) == 0, "the folder");
	CHECK(chown(path, FIRST_USER, GROUP) == 0 && chmod(path, 0660) == 0, "the database");
}

static void share(int64_t ms)
{
	int64_t end;
	pid_t pids[USERS * EACH];

	board->stop = board->ready = 0;
	for (int i = 0; i < USERS * EACH; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, USERS * EACH, 30000), "they do not come");
	step_watch("answered");
	kit_sleep(ms);
	for (end = kit_ms() + 30000;
	     step_seen() <= 10 && kit_ms() < end;) /* a slow disk makes few calls */
		kit_sleep(10);
	board->stop = 1;
	kit_reap_all("users", pids, USERS * EACH);
	CHECK(step_seen() > 10, "only %d calls were made by another", step_seen());
}

int main(int argc, char **argv)
{
	int64_t ms = ledger_option(argc, argv, 1, SCALE(1000, 2000));
	const struct ledger_counts *n;

	if (geteuid() != 0) {
		printf("needs root to become other users\n");
		return 77;
	}
	kit_begin();
	ledger_begin();
	board = shared_alloc(sizeof(*board));
	hand_over();
	share(ms);
	share(ms / 4); /* later processes find the files of other users */
	ledger_judge();
	n = ledger_counts();
	printf("users: %d calls of %d users, %d acknowledged\n", n->asked, USERS, n->acked);
	kit_end();
	return 0;
}
