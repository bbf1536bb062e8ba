/*
 * file_change: changes several files together, after the user has seen the changes. It replaces each file as a whole.
 * If it cannot replace one, it restores those before it.
 */
#ifndef CLIENT_FILE_CHANGE_H
#define CLIENT_FILE_CHANGE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "core/answer.h"

struct file_change {
	char *name; /* for messages */
	char *path; /* the real path */
	struct str before, after;
	bool existed, stays; /* stays: the file exists after the change */
	struct stat was;     /* if it existed: its owner and mode */
	const char *root;    /* folders below it that become empty are removed */
};

/* Reads `name` under `root`, which must live as long as *f. It follows a link, but not out of root. MISCONFIGURED: `name`
 * cannot be read, is not a file, or is read-only. */
enum result file_change_load(struct file_change *f, const char *root, const char *name,
			     struct answer *ans, struct arena *a);
bool file_change_any(const struct file_change *f);
/* Writes the change in the format of diff -u: one hunk with three lines of context. */
void file_change_diff(const struct file_change *f, struct buf *out, struct arena *scratch);
/* Writes all files or none. API_ERROR: a file cannot be written, or has changed since it was loaded. Makes missing
 * folders, and removes folders below root that become empty. Owner, group and mode of a file stay. */
enum result file_change_write(const struct file_change *list, size_t n, struct answer *ans,
			      struct arena *a);

#endif
