/*
 * parts: a program whose tests are in several files. Its arguments name the parts to run; without any it runs all.
 */
#ifndef KIT_PARTS_H
#define KIT_PARTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct part {
	const char *name;
	int (*run)(void);
};

static inline bool parts_name(char **words, const char *part)
{
	bool found = !*words;

	for (; *words; words++)
		found |= !strcmp(*words, part);
	return found;
}

/* Runs the tests that match PAWL_TEST_ONLY. Removes the folder if they pass. Returns the program's exit code. */
static inline int parts_run(const struct part *parts, size_t n, char **words, char *folder)
{
	char *remove[] = { "rm", "-rf", "--", folder, NULL };
	int failed = 0;

	if (getenv("PAWL_TEST_ONLY"))
		cmocka_set_test_filter(getenv("PAWL_TEST_ONLY"));
	for (size_t i = 0; i < n; i++)
		if (parts_name(words, parts[i].name))
			failed += parts[i].run();
	fflush(NULL);
	if (failed == 0 && folder[0])
		execvp(remove[0], remove); /* so that nothing must be forked at the end */
	return failed != 0;
}

#endif
