/*
 * spawn ROUNDS @ LABEL DIR COMMAND... [@ LABEL DIR COMMAND...]: runs the commands in turn, each in
 * its folder, round after round, so that other load on the machine affects all of them equally. {n}
 * in an argument is the number of the round.
 *
 * Prints for each "label p50 p99 max": the time from start to end of its process in microseconds,
 * and its peak resident memory in KiB. The first few rounds are not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define COMMANDS 16
#define WORDS 64
#define WARM_UP 2

struct program {
	const char *label, *dir;
	char **words;
	size_t n_words;
	int64_t *times;
	long memory;
};

extern char **environ;

static struct program programs[COMMANDS];
static size_t n_programs;
static int output;

static void parse(char **argv)
{
	while (*argv) {
		struct program *p = &programs[n_programs];

		if (strcmp(*argv, "@") || !argv[1] || !argv[2] || !argv[3] ||
		    n_programs == COMMANDS)
			bench_die("usage: spawn ROUNDS @ LABEL DIR COMMAND... [@ ...]");
		n_programs++;
		p->label = argv[1];
		p->dir = argv[2];
		argv += 3;
		p->words = argv;
		while (*argv && strcmp(*argv, "@"))
			argv++;
		p->n_words = (size_t)(argv - p->words);
		if (p->n_words >= WORDS)
			bench_die("too many words for %s", p->label);
	}
}

static char *with_number(const char *word, int64_t n)
{
	const char *at = strstr(word, "{n}");
	char *out;

	if (!at) {
		out = strdup(word);
		if (!out)
			bench_die("no memory");
	} else if (asprintf(&out, "%.*s%" PRId64 "%s", (int)(at - word), word, n, at + 3) < 0) {
		bench_die("no memory");
	}
	return out;
}

static void fail(const struct program *p, int status)
{
	char text[4096];
	ssize_t n = pread(output, text, sizeof(text), 0);

	bench_die("%s failed (status %d): %.*s", p->label, status, n > 0 ? (int)n : 0, text);
}

static void run(struct program *p, int64_t round, bool counts)
{
	posix_spawn_file_actions_t actions;
	char *words[WORDS + 1] = { 0 };
	struct rusage usage;
	int64_t began;
	int status, rc;
	pid_t pid;

	for (size_t i = 0; i < p->n_words; i++)
		words[i] = with_number(p->words[i], round);
	if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
		bench_die("cannot empty the output");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, 1);
	posix_spawn_file_actions_adddup2(&actions, output, 2);
	posix_spawn_file_actions_addchdir_np(&actions, p->dir);
	began = bench_now();
	rc = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	if (rc)
		bench_die("%s cannot be started: %s", words[0], strerror(rc));
	if (wait4(pid, &status, 0, &usage) != pid)
		bench_die("wait: %s", strerror(errno));
	if (counts)
		p->times[round - WARM_UP - 1] = bench_now() - began;
	if (status)
		fail(p, status);
	if (usage.ru_maxrss > p->memory)
		p->memory = usage.ru_maxrss;
	posix_spawn_file_actions_destroy(&actions);
	for (size_t i = 0; i < p->n_words; i++)
		free(words[i]);
}

int main(int argc, char **argv)
{
	int64_t rounds;

	if (argc < 6)
		bench_die("usage: spawn ROUNDS @ LABEL DIR COMMAND... [@ ...]");
	rounds = bench_number(argv[1]);
	parse(argv + 2);
	output = memfd_create("output", MFD_CLOEXEC);
	if (output < 0)
		bench_die("no memory for the output");
	for (size_t i = 0; i < n_programs; i++) {
		programs[i].times = calloc((size_t)rounds, sizeof(int64_t));
		if (!programs[i].times)
			bench_die("no memory");
	}
	for (int64_t r = 1; r <= rounds + WARM_UP; r++)
		for (size_t i = 0; i < n_programs; i++)
			run(&programs[i], r, r > WARM_UP);
	for (size_t i = 0; i < n_programs; i++) {
		struct program *p = &programs[i];

		bench_sort(p->times, (size_t)rounds);
		printf("%s %.0f %.0f %.0f %ld\n", p->label, bench_at(p->times, (size_t)rounds, 0.5),
		       bench_at(p->times, (size_t)rounds, 0.99),
		       bench_at(p->times, (size_t)rounds, 1), p->memory);
		free(p->times);
	}
	return 0;
}
