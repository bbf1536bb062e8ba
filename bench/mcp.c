/*
 * mcp rate PAWL DB ROUNDS: claims and finishes tasks, in turns through the bare queue (no saved
 * tokens, no JSON), through the library and through one `pawl mcp`. DB has a queue with 3 × 50 ×
 * ROUNDS tasks b1, b2, … Prints the tasks a second of each round: "queue library mcp".
 *
 * mcp start ROUNDS PAWL [NODE]: the time from the start of `pawl mcp` to its first answer, and of
 * node to its first line, in turns. Prints "pawl p50 p99 max" and the same for node, in
 * microseconds.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl.h>

#include "bench.h"
#include "kit/peer.h"

#define PART 50 /* tasks in one go */
#define WARM_UP 2

/* --- rate ----------------------------------------------------------------------------------------- */

static void by_queue(int64_t from)
{
	char id[32];

	for (int64_t i = 0; i < PART; i++) {
		snprintf(id, sizeof(id), "b%" PRId64, from + i);
		if (!contender_pawl.claim(id) || !contender_pawl.done())
			bench_die("the queue could not do %s", id);
	}
}

static void by_library(struct pawl *p, int64_t from)
{
	struct pawl_lock *lock;
	char id[32];

	for (int64_t i = 0; i < PART; i++) {
		snprintf(id, sizeof(id), "b%" PRId64, from + i);
		if (pawl_claim(p, id, NULL, &lock) || pawl_done(p, lock, NULL))
			bench_die("the library could not do %s: %s", id, pawl_message(p));
		pawl_lock_free(lock);
	}
}

static void call(struct peer *p, const char *tool, const char *id)
{
	json_t *o = peer_call(p, tool, json_pack("{s:s}", "id", id));

	if (!json_is_true(json_object_get(o, "ok")))
		bench_die("%s %s failed", tool, id);
	json_decref(o);
}

static void by_mcp(struct peer *p, int64_t from)
{
	char id[32];

	for (int64_t i = 0; i < PART; i++) {
		snprintf(id, sizeof(id), "b%" PRId64, from + i);
		call(p, "claim", id);
		call(p, "done", id);
	}
}

/* Tasks a second since *since, which becomes now. */
static double rate(int64_t *since)
{
	int64_t from = *since;

	*since = bench_now();
	return PART * 1e9 / (double)(*since - from);
}

static void measure_rate(char *pawl, const char *db, int64_t rounds)
{
	char uri[4096];
	char *argv[] = { pawl, "mcp", "--store", uri, "--agent", "mcp", NULL };
	struct pawl_options options = PAWL_OPTIONS;
	struct pawl *library;
	struct peer p;

	snprintf(uri, sizeof(uri), "sqlite:%s", db);
	options.store = uri;
	options.agent = "library";
	if (!peer_open(&p, argv))
		bench_die("%s mcp cannot be started", pawl);
	if (pawl_open(&library, &options, NULL))
		bench_die("the library cannot open %s", uri);
	contender_pawl.open(db);
	for (int64_t i = 0; i < rounds; i++) {
		int64_t from = 3 * PART * i + 1, since = bench_now();
		double rates[3];

		by_queue(from);
		rates[0] = rate(&since);
		by_library(library, from + PART);
		rates[1] = rate(&since);
		by_mcp(&p, from + 2 * PART);
		rates[2] = rate(&since);
		printf("%.1f %.1f %.1f\n", rates[0], rates[1], rates[2]);
	}
	contender_pawl.close();
	pawl_close(library);
	peer_close(&p);
}

/* --- start ---------------------------------------------------------------------------------------- */

static json_t *discover(void)
{
	return json_pack("{s:{s:s, s:{}}}", "_meta", "io.modelcontextprotocol/protocolVersion",
			 "2026-07-28", "io.modelcontextprotocol/clientCapabilities");
}

static int64_t start_pawl(char *pawl)
{
	char *argv[] = { pawl, "mcp", NULL };
	int64_t start = bench_now(), took;
	struct peer p;
	json_t *o;

	if (!peer_open(&p, argv) || !(o = peer_ask(&p, "server/discover", discover())))
		bench_die("%s mcp does not answer", pawl);
	took = bench_now() - start;
	if (!json_object_get(o, "result"))
		bench_die("%s mcp does not know server/discover", pawl);
	json_decref(o);
	peer_close(&p);
	return took;
}

static int64_t start_node(char *node)
{
	char *argv[] = { node, "-e", "console.log(1)", NULL };
	char line[16];
	int64_t start = bench_now(), took;
	struct peer p;

	if (!peer_open(&p, argv) || !fgets(line, sizeof(line), p.from))
		bench_die("%s cannot be started", node);
	took = bench_now() - start;
	peer_close(&p);
	return took;
}

static void print(const char *name, int64_t *times, size_t n)
{
	bench_sort(times, n);
	printf("%s %.0f %.0f %.0f\n", name, bench_at(times, n, 0.5), bench_at(times, n, 0.99),
	       bench_at(times, n, 1));
}

static void measure_start(int64_t rounds, char *pawl, char *node)
{
	size_t n = (size_t)rounds;
	int64_t *ours = calloc(n, sizeof(*ours)), *theirs = calloc(n, sizeof(*theirs));

	if (!ours || !theirs)
		bench_die("no memory");
	for (int64_t i = -WARM_UP; i < rounds; i++) {
		int64_t a = start_pawl(pawl), b = node ? start_node(node) : 0;

		if (i >= 0) {
			ours[i] = a;
			theirs[i] = b;
		}
	}
	print("pawl", ours, n);
	if (node)
		print("node", theirs, n);
	free(ours);
	free(theirs);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "rate"))
		measure_rate(argv[2], argv[3], bench_number(argv[4]));
	else if ((argc == 4 || argc == 5) && !strcmp(argv[1], "start"))
		measure_start(bench_number(argv[2]), argv[3], argc == 5 ? argv[4] : NULL);
	else
		bench_die("usage: mcp rate PAWL DB ROUNDS | mcp start ROUNDS PAWL [NODE]");
	return 0;
}
