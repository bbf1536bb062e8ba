/*
 * sim [--seeds N|FROM-TO] [--ops N] [--agents N] [--seconds N] [--seed S [-v] [--history FILE]]
 * [--twice] [--store URI]: runs seeds until one fails or all are done. In the URI, {dir} stands for
 * a new folder and {n} for the number of the run: each run needs an empty store. --twice: runs each
 * seed a second time; it must go the same way. --history: lets calls overlap, and records them in a
 * new file for `pawl torture --check`.
 */
#include <getopt.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kit/store_uri.h"
#include "sim.h"

struct options {
	int64_t from, to, ops, agents, seconds;
	bool verbose, twice;
	const char *history;
};

static const char usage[] = "usage: sim [--seeds N|FROM-TO] [--ops N] [--agents N] [--seconds N] "
			    "[--seed S [-v] [--history FILE]] [--twice] [--store URI]\n";

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- a failing seed ------------------------------------------------------------------------------ */

static void report(uint64_t seed, int64_t ops, struct script *script, struct str why)
{
	struct buf again = BUF_MAX(1 << 16);
	size_t n = script->n, done;
	struct str said;

	printf("not ok 1 - seed %llu\n", (unsigned long long)seed);
	printf("# seed %llu, entry %zu: %.*s\n", (unsigned long long)seed, n, STRF(why));
	printf("# again: sim --seed %llu --ops %lld -v\n", (unsigned long long)seed,
	       (long long)ops);
	script_shrink(script);
	printf("# it still fails with %zu of the %zu entries"
	       " (lease %lld ms, lock %lld ms, max_abandoned %lld%s%s%s%s%s):\n",
	       script->n, n, (long long)script->policy.lease, (long long)script->policy.lock_ttl,
	       (long long)script->policy.max_abandoned,
	       script->policy.keep_abandoned ? ", abandoned = keep" : "",
	       script->policy.ignore_depends ? ", depends = ignore" : "",
	       script->policy.offer_parents ? ", subtasks = offer" : "",
	       script->policy.handback ? ", work handed back is reserved" : "",
	       script->policy.claim_creates ? ", a claim makes its task" : "");
	(void)sim_run(script, stdout, &again, &done);
	said = buf_str(&again);
	printf("# %.*s\n", STRF(said));
	buf_free(&again);
}

static bool run_seed(uint64_t seed, const struct options *o, FILE *tell, size_t *calls)
{
	struct script script;
	struct buf why = BUF_MAX(1 << 16);
	struct sim_plan plan = { .seed = seed,
				 .ops = (size_t)o->ops,
				 .agents = (uint32_t)o->agents,
				 .tell = tell,
				 .history = o->history,
				 .loss = 1 };
	bool right = agents_run(&plan, &script, &why, calls);

	if (!right)
		report(seed, o->ops, &script, buf_str(&why));
	buf_free(&why);
	script_free(&script);
	return right;
}

/* The exact trace of the seed's actions. */
static char *trace_of(uint64_t seed, const struct options *o, bool *right, size_t *calls)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	*right = f && run_seed(seed, o, f, calls);
	if (f)
		fclose(f);
	return text;
}

static bool run_twice(uint64_t seed, const struct options *o, size_t *calls)
{
	bool right, again = true;
	char *first = trace_of(seed, o, &right, calls), *second = NULL;

	if (right)
		second = trace_of(seed, o, &again, calls);
	if (second && strcmp(first, second) != 0) {
		printf("not ok 1 - seed %llu goes another way the second time\n",
		       (unsigned long long)seed);
		again = false;
	}
	free(first);
	free(second);
	return right && again;
}

/* --- all seeds ----------------------------------------------------------------------------------- */

static void progress(int64_t seeds, int64_t of, double calls, double took)
{
	fprintf(stderr, "\rsim: %lld of %lld seeds, %.0f calls, %.0f/s ", (long long)seeds,
		(long long)of, calls, calls / took);
}

static bool run_all(const struct options *o)
{
	double start = seconds_now(), shown = start, calls = 0, took = 0;
	bool terminal = isatty(2);
	int64_t seed = o->from;

	for (; seed <= o->to && (!o->seconds || took < (double)o->seconds); seed++) {
		size_t n;

		if (!(o->twice ? run_twice((uint64_t)seed, o, &n)
			       : run_seed((uint64_t)seed, o, o->verbose ? stdout : NULL, &n)))
			return false;
		calls += (double)n;
		took = seconds_now() - start;
		if (terminal && start + took - shown > 0.2) {
			shown = start + took;
			progress(seed - o->from + 1, o->to - o->from + 1, calls, took);
		}
	}
	if (terminal)
		fputc('\n', stderr);
	printf("ok 1 - seeds %lld to %lld on %s: %.0f calls in %.1f s, %.0f/s\n",
	       (long long)o->from, (long long)seed - 1, sim_store, calls, took,
	       calls / (took > 0 ? took : 1));
	return true;
}

/* --- the program --------------------------------------------------------------------------------- */

static bool number(const char *text, int64_t *out)
{
	return str_to_i64(str_c(text), out) && *out >= 0;
}

static bool seed_range(const char *text, struct options *o)
{
	struct str rest = str_c(text), first = str_cut(&rest, '-');

	if (!rest.n) {
		o->from = 1;
		return str_to_i64(first, &o->to);
	}
	return str_to_i64(first, &o->from) && str_to_i64(rest, &o->to);
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "seeds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, '1' },
		{ "ops", required_argument, NULL, 'o' },
		{ "agents", required_argument, NULL, 'a' },
		{ "seconds", required_argument, NULL, 't' },
		{ "store", required_argument, NULL, 'u' },
		{ "history", required_argument, NULL, 'h' },
		{ "twice", no_argument, NULL, '2' },
		{ 0 },
	};
	bool good = true;
	int c;

	while (good && (c = getopt_long(argc, argv, "v", names, NULL)) != -1) {
		if (c == 's') {
			good = seed_range(optarg, o);
		} else if (c == '1') {
			good = number(optarg, &o->from);
			o->to = o->from;
		} else if (c == 'o') {
			good = number(optarg, &o->ops);
		} else if (c == 'a') {
			good = number(optarg, &o->agents) && o->agents <= UINT32_MAX;
		} else if (c == 't') {
			good = number(optarg, &o->seconds);
		} else if (c == 'u') {
			good = setenv("PAWL_TEST_STORE", optarg, 1) == 0;
		} else if (c == 'h') {
			o->history = optarg;
		} else if (c == 'v') {
			o->verbose = true;
		} else if (c == '2') {
			o->twice = true;
		} else {
			good = false;
		}
	}
	return good && optind == argc;
}

int main(int argc, char **argv)
{
	struct options o = { .from = 1, .to = 2000, .ops = 200 };
	char uri[600], folder[FOLDER_ROOM] = "";
	char *clean[] = { "rm", "-rf", "--", folder, NULL };

	if (!parse(argc, argv, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	store_uri(uri, sizeof(uri), folder, "mem:");
	sim_store = uri;
	printf("1..1\n");
	if (!run_all(&o))
		return 1;
	fflush(NULL);
	if (folder[0])
		execvp(clean[0], clean);
	return 0;
}
