/*
 * The disk fails in the middle of a batch: writing or syncing the WAL fails. Only the holder gets
 * API_ERROR, and its answer is true; the other calls succeed all the same. The disk also fails just
 * after a holder died, when the next one settles the calls that it left.
 */
#include "ledger.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/local/combine.h"

#define PROCESSES 8
#define TIMEOUT 60000
#define FAULTS SCALE(40, 20)

static struct board {
	_Atomic int stop, fail_sync, fail_write; /* how many of the next syncs or writes fail */
	_Atomic int failed, errors, fatal, died, ready;
	_Atomic int answered; /* faults whose process has ended its call and counted the answer */
	/* writes fail only in commits that contain calls of other processes */
	_Atomic int only_shared;
} * board;

static bool serving; /* this process has run another process's call in the current change */
static int met;      /* faults that this process met in its current call */

static bool due(_Atomic int *n)
{
	int left = *n;

	while (left > 0)
		if (__atomic_compare_exchange_n((int *)n, &left, left - 1, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST)) {
			met++;
			board->failed++;
			return true;
		}
	return false;
}

/* SQLite calls this for its syncs: the program's own functions take precedence over the
 * library's. */
int fdatasync(int fd)
{
	if (board && due(&board->fail_sync)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static ssize_t failing_pwrite(int fd, const void *p, size_t n, off_t at)
{
	if ((serving || !board->only_shared) && due(&board->fail_write)) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, p, n, at);
}

static void break_writes(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	sqlite3_syscall_ptr fn = (sqlite3_syscall_ptr)failing_pwrite;

	if (vfs->xSetSystemCall(vfs, "pwrite64", fn) != SQLITE_OK)
		vfs->xSetSystemCall(vfs, "pwrite", fn);
	vfs->xSetSystemCall(vfs, "pwrite", fn);
}

/* The holder dies after its commit, and the next holder's first sync fails. */
static void die_and_fail(const char *step)
{
	int armed = 1;

	if (strcmp(step, "ran") == 0)
		serving = true;
	else if (strcmp(step, "committed") == 0 || strcmp(step, "leaving") == 0)
		serving = false; /* a batch of refused calls ends without a commit */
	if (strcmp(step, "committed") != 0 ||
	    !__atomic_compare_exchange_n((int *)&board->fatal, &armed, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	board->died = getpid();
	board->fail_sync = 1;
	raise(SIGKILL);
}

static int work(int me)
{
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	board->ready++;
	while (!board->stop) {
		board->errors += !ledger_call(q, me % QUEUES, TIMEOUT);
		board->answered += met;
		met = 0;
	}
	queue_close(q);
	return 0;
}

/* Returns when the process that met the fault has its answer: a later look at `errors` misses none. */
static void fail_once(_Atomic int *which)
{
	int64_t end = kit_ms() + 30000;
	int before = board->answered;

	*which = 1;
	while (board->answered == before && kit_ms() < end)
		kit_sleep(1);
	CHECK(board->answered > before, "nobody used the disk");
}

/* After a fault, each call of the batch is made alone, whether it caused the fault or not; so is the
 * holder's own. */
static void fail_shared(void)
{
	int before = board->errors;

	board->only_shared = 1;
	for (int i = 0; i < FAULTS; i++)
		fail_once(&board->fail_write);
	CHECK(board->errors == before, "%d calls were told of faults in others' calls",
	      board->errors - before);
	board->only_shared = 0;
}

static void kill_one(pid_t *pids)
{
	int64_t end = kit_ms() + 30000;

	board->died = 0;
	board->fatal = 1;
	while (!board->died && kit_ms() < end)
		kit_sleep(1);
	CHECK(board->died, "nobody has committed");
	for (int i = 0; i < PROCESSES; i++)
		if (pids[i] == board->died) {
			CHECK(kit_reap(pids[i]) == 1000 + SIGKILL, "it ended by itself");
			pids[i] = kit_spawn(work, i);
		}
	while (board->fail_sync && kit_ms() < end)
		kit_sleep(1);
}

int main(void)
{
	int64_t start = kit_ms();
	pid_t pids[PROCESSES];
	int acked;
	const struct ledger_counts *n;

	kit_begin();
	ledger_begin();
	break_writes();
	board = shared_alloc(sizeof(*board));
	combine_step = die_and_fail;
	n = ledger_counts();
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, PROCESSES, 30000), "they do not come");
	for (int i = 0; i < FAULTS; i++)
		fail_once(i % 2 ? &board->fail_sync : &board->fail_write);
	fail_shared();
	for (int i = 0; i < FAULTS; i++)
		kill_one(pids);
	acked = n->acked;
	for (int64_t end = kit_ms() + 30000; n->acked < acked + 100 && kit_ms() < end;)
		kit_sleep(1);
	CHECK(n->acked >= acked + 100, "it does not continue after the faults");
	board->stop = 1;
	kit_reap_all("fault", pids, PROCESSES);
	ledger_judge();
	CHECK(board->errors <= board->failed, "%d faults, and %d calls were told", board->failed,
	      board->errors);
	CHECK(board->errors && n->unsure, "%d calls were told, %d in doubt", board->errors,
	      n->unsure);
	printf("fault: %d faults of the disk, %d calls told of them; %d calls, %d acknowledged, %d in doubt, %d not "
	       "applied; %.1f s\n",
	       board->failed, board->errors, n->asked, n->acked, n->unsure, n->not_applied,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
