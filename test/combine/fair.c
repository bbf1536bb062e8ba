/*
 * Processes with `combine = off` compete with others that share their commits, all in a loop. One
 * of them gets about as many calls through as each of the others. So do two of them, and one among
 * few. A sync takes as long as on a disk, wherever the test runs.
 *
 * fair [MILLISECONDS]
 */
#include "ledger.h"

#include <signal.h>
#include <unistd.h>

#define MOST 12
#define TIMEOUT 60000
#define FACTOR 3
#define SYNC_US 400

static struct board {
	_Atomic int stop, ready, go, calls[MOST];
	int alone; /* the first `alone` processes have `combine = off` */
} * board;

/* SQLite calls this for its syncs: the program's own functions take precedence over the
 * library's. */
int fdatasync(int fd)
{
	(void)fd;
	usleep(SYNC_US);
	return 0;
}

static int work(int me)
{
	struct queue_config config = ledger_config(0, TIMEOUT);
	struct queue *q;

	config.alone = me < board->alone;
	q = kit_open_as(&config, STORE_WRITE);
	board->ready++;
	kit_await(&board->go, 1, 60000);
	while (!board->stop) {
		CHECK(ledger_comment(q, 0, TIMEOUT), "a call failed");
		board->calls[me]++;
	}
	queue_close(q);
	return 0;
}

static int mean(int from, int to)
{
	int sum = 0;

	for (int i = from; i < to; i++)
		sum += board->calls[i];
	return sum / (to - from);
}

/* Compares the two kinds; within one kind the differences are random. */
static bool compete(int alone, int all, int64_t ms)
{
	pid_t pids[MOST];
	int lone, other;

	memset(board, 0, sizeof(*board));
	board->alone = alone;
	for (int i = 0; i < all; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, all, 30000), "they do not come");
	board->go = 1;
	kit_sleep(ms);
	board->stop = 1;
	kit_reap_all("fair", pids, all);
	lone = mean(0, alone);
	other = mean(alone, all);
	printf("fair: %d with combine = off, %d calls each; %d others, %d each\n", alone, lone,
	       all - alone, other);
	return lone * FACTOR >= other && other * FACTOR >= lone;
}

/* Tries several times: other load on the machine may spoil a run, but not every run. */
static void must_be_fair(int alone, int all, int64_t ms)
{
	for (int i = 0; i < 3; i++)
		if (compete(alone, all, ms))
			return;
	CHECK(false, "%d with combine = off among %d: more than a factor of %d apart", alone, all,
	      FACTOR);
}

int main(int argc, char **argv)
{
	int64_t ms = ledger_option(argc, argv, 1, SCALE(1000, 2000));

	kit_begin();
	ledger_begin();
	board = shared_alloc(sizeof(*board));
	must_be_fair(1, 9, ms);
	must_be_fair(1, 3, ms);
	must_be_fair(2, 8, ms);
	ledger_judge();
	kit_end();
	return 0;
}
