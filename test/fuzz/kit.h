/*
 * kit: functions that the fuzzers share. Each fuzzer is one file that feeds bytes to one part of
 * the program and checks its invariants. test/fuzz/corpus/NAME has its first inputs; tools/fuzz
 * runs them.
 */
#ifndef FUZZ_KIT_H
#define FUZZ_KIT_H

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                           \
		}                                                                          \
	} while (0)

/* A folder in TMPDIR for a fuzzer that needs files; it is removed at exit. */
const char *fuzz_dir(void);
void fuzz_write(const char *path, struct str bytes);
/* Does the folder contain only `names` (ends with NULL)? */
bool fuzz_only(const char *dir, const char *const *names);

/* Valid UTF-8 without control characters or invisible ones that change the direction of a line. */
bool fuzz_harmless(struct str s);

#endif
