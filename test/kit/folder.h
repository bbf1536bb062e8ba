/*
 * folder: a new folder for each test, which is its current folder and is removed after it.
 */
#ifndef KIT_FOLDER_H
#define KIT_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "tmp.h"

#define FOLDER_PATH 200

/* Sets *state to its path. NULL: it could not be made. */
static inline const char *folder_enter(void **state)
{
	char *dir = malloc(FOLDER_PATH);

	*state = dir;
	return tmp_make(dir, FOLDER_PATH, "test") && chdir(dir) == 0 ? dir : NULL;
}

static inline int folder_leave(void **state)
{
	char command[FOLDER_PATH + 16];
	int r;

	snprintf(command, sizeof(command), "/bin/rm -rf %s", (char *)*state);
	r = chdir("/") || system(command);
	free(*state);
	return r;
}

/* The number of files in `dir` whose name ends with `ending`. */
static inline int folder_count(const char *dir, const char *ending)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += str_ends(str_c(e->d_name), str_c(ending));
	if (d)
		closedir(d);
	return n;
}

#endif
