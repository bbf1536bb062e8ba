/* Temporary folders: in TMPDIR, by default /tmp. tools/check puts them into memory, where syncs
 * cost nothing. */
#ifndef TEST_KIT_TMP_H
#define TEST_KIT_TMP_H

#include <stdio.h>
#include <stdlib.h>

/* Makes a folder; NULL: it failed. */
static inline char *tmp_make(char *out, size_t room, const char *name)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(out, room, "%s/pawl-%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", name);
	return mkdtemp(out);
}

#endif
