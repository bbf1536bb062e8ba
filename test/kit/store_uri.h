/*
 * store_uri: the store under test, from PAWL_TEST_STORE; "{dir}" in it stands for a new folder.
 */
#ifndef KIT_STORE_URI_H
#define KIT_STORE_URI_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tmp.h"

#define FOLDER_ROOM 64

/* folder has FOLDER_ROOM bytes; it stays empty if no folder is needed. */
static inline void store_uri(char *uri, size_t room, char *folder, const char *otherwise)
{
	const char *from = getenv("PAWL_TEST_STORE"), *at;

	if (!from || !*from)
		from = otherwise;
	at = strstr(from, "{dir}");
	if (!at) {
		snprintf(uri, room, "%s", from);
		return;
	}
	if (!tmp_make(folder, FOLDER_ROOM, "store"))
		abort();
	snprintf(uri, room, "%.*s%s%s", (int)(at - from), from, folder, at + 5);
}

#endif
