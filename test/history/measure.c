/* measure HISTORIES CALLS [plain]: how long the checker takes for histories of a correct store. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "proof/check/checker.h"
#include "recorded.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sim_plan plan = { .loss = 1 };
	size_t bad = 0, undecided = 0, unanswered = 0;
	double spent = 0;
	struct rusage use;
	long n;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: measure HISTORIES CALLS [plain]\n");
		return 2;
	}
	n = strtol(argv[1], NULL, 10);
	plan.ops = strtoul(argv[2], NULL, 10);
	plan.plain = argc == 4 && strcmp(argv[3], "plain") == 0;
	for (plan.seed = 1; plan.seed <= (uint64_t)n; plan.seed++) {
		struct history_log log;
		struct check_report r;
		struct arena a = { 0 };
		double from;

		record(plan, &log);
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
	       n, plan.ops, spent, bad, undecided, unanswered, use.ru_maxrss / 1024);
	return bad > 0;
}
