/* measure HISTORIES CALLS TASKS AGENTS: how long the checker takes for histories of a correct
 * store. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "gen.h"
#include "proof/check/check.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct gen g = gen_default;
	size_t bad = 0, undecided = 0, unanswered = 0;
	double spent = 0;
	struct rusage use;
	long n;

	if (argc != 5) {
		fprintf(stderr, "usage: measure HISTORIES CALLS TASKS AGENTS\n");
		return 2;
	}
	n = strtol(argv[1], NULL, 10);
	g.calls = strtoul(argv[2], NULL, 10);
	g.tasks = strtoul(argv[3], NULL, 10);
	g.agents = strtoul(argv[4], NULL, 10);
	if (g.tasks > 5)
		g.links = 0; /* otherwise most tasks would be one family */
	for (g.seed = 1; g.seed <= (uint64_t)n; g.seed++) {
		struct history_log log;
		struct check_report r;
		struct arena a = { 0 };
		double from;

		gen_run(&g, &log);
		from = seconds();
		history_check(&log, &r, &a);
		spent += seconds() - from;
		bad += check_violations(&r);
		undecided += r.undecided;
		unanswered += r.unanswered;
		arena_free(&a);
		history_free(&log);
	}
	getrusage(RUSAGE_SELF, &use);
	printf("%ld histories of %zu calls: %.2f s, %zu violations, %zu undecided, %zu unanswered, %ld MB\n",
	       n, g.calls, spent, bad, undecided, unanswered, use.ru_maxrss / 1024);
	return bad > 0;
}
