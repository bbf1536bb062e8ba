/*
 * kill [EACH [RANDOM]]: kills processes with kill -9 at each step of the protocol, EACH times, and
 * RANDOM times at any moment. The slots are deleted now and then. Two queues share one database, so
 * that the next holder often belongs to another queue.
 */
#include "ledger.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

#define PROCESSES 8
#define TIMEOUT 60000

static const char *const steps[] = {
	/* steps of the holder of the gate */
	"taking", "taken", "ran", "replied", "committing", "committed", "answered", "serving on",
	"leaving", "nudging",
	/* steps of a waiting process */
	"published", "sleeping", "woken",
	/* with a server: COMMIT is on its way */
	"sent"
};
#define STEPS ((int)(sizeof(steps) / sizeof(*steps)) - !ledger_far())

static struct board {
	_Atomic int stop, deleted;
} * board;
static pid_t pids[PROCESSES];

static int work(int me)
{
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	alarm(600);
	/* if the slots vanish and the holder dies, the outcome of a call stays unknown */
	while (!board->stop)
		CHECK(ledger_call(q, me % QUEUES, TIMEOUT) || board->deleted, "a fault");
	queue_close(q);
	return 0;
}

static void spawn(int i)
{
	pids[i] = kit_spawn(work, i);
}

static int find(pid_t pid)
{
	for (int i = 0; i < PROCESSES; i++)
		if (pids[i] == pid)
			return i;
	return -1;
}

static void replace_dead(const char *why)
{
	int status, i;
	pid_t pid = waitpid(-1, &status, 0);

	i = find(pid);
	CHECK(i >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "%s: a worker ended by itself: %x", why, (unsigned)status);
	spawn(i);
}

static void kill_at(const char *step)
{
	int64_t end = kit_ms() + 30000;

	step_arm(step, (int)random_below(6), SIGKILL);
	while (!step_hit()) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		CHECK(pid <= 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
		      "%s: a worker ended by itself: %x", step, (unsigned)status);
		if (pid > 0) {
			spawn(find(pid));
			return;
		}
		CHECK(kit_ms() < end, "nobody came to %s", step);
		usleep(200);
	}
	replace_dead(step);
}

static void kill_any(void)
{
	int i = (int)random_below(PROCESSES);

	char slots[200];

	usleep(random_below(3000));
	ledger_file(slots, sizeof(slots), "slots");
	if (!random_below(8)) {
		board->deleted = 1;
		unlink(slots);
	}
	kill(pids[i], SIGKILL);
	replace_dead("at random");
}

/* All processes must wait for the same file, so the gate is never created again. */
static ino_t gate_file_number(void)
{
	char path[200];
	struct stat st;

	ledger_file(path, sizeof(path), "gate");
	CHECK(stat(path, &st) == 0, "there is no gate");
	return st.st_ino;
}

int main(int argc, char **argv)
{
	int64_t start = kit_ms();
	int each = ledger_option(argc, argv, 1, SCALE(12, 4));
	int random = ledger_option(argc, argv, 2, SCALE(150, 40));
	const struct ledger_counts *n;
	ino_t gate;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	ledger_begin();
	gate = gate_file_number();
	for (int i = 0; i < PROCESSES; i++)
		spawn(i);
	for (int k = 0; k < each; k++)
		for (int i = 0; i < STEPS; i++)
			kill_at(steps[i]);
	for (int i = 0; i < random; i++)
		kill_any();
	step_disarm();
	board->stop = 1;
	kit_reap_all("kill", pids, PROCESSES);
	ledger_judge();
	CHECK(gate_file_number() == gate, "the gate is another file");
	n = ledger_counts();
	CHECK(!n->not_applied, "%d calls were refused", n->not_applied);
	printf("kill: %d killed at %d steps, %d at random; %d calls, %d acknowledged, %d in doubt, %d claims; none "
	       "lost, none twice; %.1f s\n",
	       each * STEPS, STEPS, random, n->asked, n->acked, n->unsure, n->claims,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
