/*
 * Processes with little to spare among others: a limit on the size of files, on descriptors or on
 * memory, no right to write, a strict umask. Each of them may lead the shared commit and fail in
 * it. Then its own calls report the failure, and no other process's call fails. SIGXFSZ has its
 * default action: it must not end a leader.
 *
 * limits [MILLISECONDS]
 */
#include "ledger.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS 6
#define TIMEOUT 60000
#define NOBODY 65534
#define NOT_FOUND 30 /* exit code of a process without memory */

enum poor { SMALL_FILES, NO_MORE_FILES, NO_MORE_MEMORY, NO_RIGHT, STRICT_UMASK, POOR };

static struct board {
	_Atomic int stop, ready, failures[POOR], calls[POOR], of_others;
} * board;

static void limit(int what, rlim_t n)
{
	struct rlimit r;

	CHECK(getrlimit(what, &r) == 0, "getrlimit");
	r.rlim_cur = n;
	CHECK(setrlimit(what, &r) == 0, "setrlimit");
}

static rlim_t memory_now(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f && fscanf(f, "%ld", &pages) == 1, "statm");
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void become_poor(enum poor kind)
{
	if (kind == SMALL_FILES)
		limit(RLIMIT_FSIZE, 24576);
	else if (kind == NO_MORE_FILES)
		limit(RLIMIT_NOFILE, 3);
	else if (kind == NO_MORE_MEMORY)
		limit(RLIMIT_AS, memory_now());
	else if (kind == STRICT_UMASK)
		umask(0777);
	else if (geteuid() == 0)
		CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "still root");
}

static int work_poorly(int kind)
{
	struct queue_config config = ledger_config(0, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	signal(SIGXFSZ, SIG_DFL);
	CHECK(kind == NO_RIGHT || ledger_comment(q, 0, TIMEOUT), "before it is poor");
	become_poor((enum poor)kind);
	board->ready++;
	while (!board->stop) {
		board->calls[kind]++;
		if (!ledger_call(q, 0, TIMEOUT)) {
			board->failures[kind]++;
			kit_sleep(1);
		}
	}
	queue_close(q);
	return 0;
}

static int work(int me)
{
	struct queue_config config = ledger_config(0, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	(void)me;
	board->ready++;
	while (!board->stop) {
		board->of_others++;
		CHECK(ledger_call(q, 0, TIMEOUT),
		      "a call failed because another process is limited");
	}
	queue_close(q);
	return 0;
}

/* A sanitizer that gets no memory ends the process with its own exit code. */
static bool ended_without_memory(int code)
{
	return code == NOT_FOUND || SCALE(false, true);
}

static bool met_limit_or_died(pid_t pid)
{
	return board->failures[SMALL_FILES] > 10 || kit_ended(pid);
}

/* A process without memory ends; another one replaces it. A slow disk needs longer than `end`. */
static void keep_alive(pid_t *pids, int64_t end)
{
	while (kit_ms() < end ||
	       (!met_limit_or_died(pids[SMALL_FILES]) && kit_ms() < end + 60000)) {
		kit_sleep(5);
		if (!kit_ended(pids[NO_MORE_MEMORY]))
			continue;
		CHECK(ended_without_memory(kit_reap(pids[NO_MORE_MEMORY])), "it ended otherwise");
		board->failures[NO_MORE_MEMORY]++;
		pids[NO_MORE_MEMORY] = kit_spawn(work_poorly, NO_MORE_MEMORY);
	}
}

int main(int argc, char **argv)
{
	int64_t start = kit_ms(), ms = ledger_option(argc, argv, 1, SCALE(2500, 5000));
	pid_t pids[OTHERS + POOR];

	kit_begin();
	ledger_begin();
	board = shared_alloc(sizeof(*board));
	for (int i = 0; i < POOR; i++)
		pids[i] = kit_spawn(work_poorly, i);
	for (int i = POOR; i < POOR + OTHERS; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, OTHERS + POOR, 30000), "they do not come");
	keep_alive(pids, kit_ms() + ms);
	board->stop = 1;
	for (int i = 0; i < OTHERS + POOR; i++) {
		int code = kit_reap(pids[i]);

		CHECK(code == 0 || (i == NO_MORE_MEMORY && ended_without_memory(code)),
		      "process %d: %d", i, code);
	}
	ledger_judge();
	CHECK(board->failures[SMALL_FILES] > 10, "the limit was met %d times",
	      board->failures[SMALL_FILES]);
	printf("limits: %d calls of others, none failed; failed of those with small files %d of %d, few descriptors %d of "
	       "%d, little memory %d of %d, no right %d of %d, umask %d of %d; %.1f s\n",
	       board->of_others, board->failures[0], board->calls[0], board->failures[1],
	       board->calls[1], board->failures[2], board->calls[2], board->failures[3],
	       board->calls[3], board->failures[4], board->calls[4],
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
