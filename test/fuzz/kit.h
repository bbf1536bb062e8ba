/*
 * kit: what the fuzzers share. Each is one file that feeds bytes to one part of the program and checks
 * what always holds there; test/fuzz/corpus/NAME has its first inputs, tools/fuzz runs them.
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

/* A folder of its own for a fuzzer that needs files, in TMPDIR; it is removed at exit. */
const char *fuzz_dir(void);
void fuzz_write(const char *path, struct str bytes);
/* Is there anything but `names` (ends with NULL) in the folder? */
bool fuzz_only(const char *dir, const char *const *names);

/* No control characters, no invisible ones that change the direction of a line, valid UTF-8. */
bool fuzz_harmless(struct str s);

#endif
