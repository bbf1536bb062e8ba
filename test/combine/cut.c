/*
 * A process truncates the mapped files, the slots and the gate, again and again while others use
 * them. No process dies of it, no call is lost or made twice, and every answer is true. At the end
 * the files are whole again, and calls are shared as before. A SIGBUS that does not concern these
 * files goes to the program's own handler.
 *
 * cut [MILLISECONDS]
 */
#include "ledger.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"
#include "store/local/combine_file.h"

#define PROCESSES 8
#define TIMEOUT 60000

static struct board {
	_Atomic int stop, ready, faults;
} * board;

static char slots[200], gate[200];

static int work(int me)
{
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q;

	config.opt.counting = true;
	q = kit_open_as(&config, STORE_WRITE);
	board->ready++;
	while (!board->stop)
		board->faults += !ledger_call(q, me % QUEUES, TIMEOUT);
	queue_close(q);
	return 0;
}

static int cut_for(int64_t ms)
{
	int64_t end = kit_ms() + ms;
	int cuts = 0;

	while (kit_ms() < end) {
		const char *path = random_below(2) ? slots : gate;
		struct stat st;

		if (stat(path, &st) == 0 && st.st_size) {
			off_t to = random_below(3) ? 0 : (off_t)random_below((uint32_t)st.st_size);

			cuts += truncate(path, to) == 0;
		}
		kit_sleep(random_below(4));
	}
	return cuts;
}

static void start(pid_t *pids)
{
	board->stop = board->ready = 0;
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, PROCESSES, 30000), "they do not come");
}

static bool all_run(const pid_t *pids)
{
	for (int i = 0; i < PROCESSES; i++)
		if (kit_ended(pids[i]))
			return false;
	return true;
}

static void finish(const pid_t *pids)
{
	board->stop = 1;
	kit_reap_all("cut", pids, PROCESSES);
	ledger_judge();
}

/* --- the program's own handler -------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t expected;

static void on_bus(int number)
{
	if (!expected)
		_exit(100 + number);
	expected = 0;
	siglongjmp(back, 1);
}

/* A program that installed its handler before it used the library. */
static int has_a_handler(int me)
{
	struct queue_config config = ledger_config(0, TIMEOUT);
	FILE *own = tmpfile();
	volatile char *p;
	struct queue *q;

	(void)me;
	q = kit_open_as(&config, STORE_WRITE);
	CHECK(ledger_comment(q, 0, TIMEOUT), "a call failed");
	CHECK(own && ftruncate(fileno(own), 4096) == 0, "a file of its own");
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(own), 0);
	CHECK(p != MAP_FAILED && ftruncate(fileno(own), 0) == 0, "a map of its own");
	expected = 1;
	if (sigsetjmp(back, 1) == 0) {
		CHECK(p[0] == 'x', "there is nothing, and no signal came");
		return 2;
	}
	CHECK(truncate(gate, 0) == 0, "the gate");
	CHECK(ledger_comment(q, 0, TIMEOUT), "a call failed after the gate was cut");
	queue_close(q);
	return 0;
}

int main(int argc, char **argv)
{
	int64_t began = kit_ms(), ms = ledger_option(argc, argv, 1, SCALE(2500, 4000));
	pid_t pids[PROCESSES];
	const struct ledger_counts *n;
	int cuts, faults, code;

	signal(SIGBUS, on_bus);
	board = shared_alloc(sizeof(*board));
	kit_begin();
	snprintf(slots, sizeof(slots), "%s/queue.db-slots", kit_folder());
	snprintf(gate, sizeof(gate), "%s/queue.db-gate", kit_folder());
	ledger_begin();
	n = ledger_counts();
	start(pids);
	cuts = cut_for(ms);
	for (int64_t end = kit_ms() + 60000; n->acked <= 100 && all_run(pids) && kit_ms() < end;)
		cuts += cut_for(200); /* the disk is slow */
	CHECK(all_run(pids), "a process died");
	faults = board->faults;
	step_watch("answered");
	for (int64_t end = kit_ms() + 30000; step_seen() < 50 && kit_ms() < end;)
		kit_sleep(1);
	CHECK(step_seen() >= 50, "calls are not shared any more");
	finish(pids);
	CHECK(board->faults - faults <= PROCESSES, "%d calls failed when nobody cut any more",
	      board->faults - faults);
	CHECK(cuts > 20 && n->acked > 100, "%d cuts, %d acknowledged", cuts, n->acked);
	code = kit_reap(kit_spawn(has_a_handler, 0));
	CHECK(code == 0, "a program with a handler of its own: %d", code);
	printf("cut: %d cuts; %d calls, %d acknowledged, %d in doubt, %d not applied; %.1f s\n",
	       cuts, n->asked, n->acked, n->unsure, n->not_applied,
	       (double)(kit_ms() - began) / 1000);
	kit_end();
	return 0;
}
