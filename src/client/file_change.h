/*
 * file_change: several files changed together, after they were shown. Each is replaced as a whole, and if
 * one of them cannot be, those before it are put back.
 */
#ifndef CLIENT_FILE_CHANGE_H
#define CLIENT_FILE_CHANGE_H

#include <sys/types.h>

#include "base/buf.h"
#include "core/answer.h"

struct file_change {
	char *name; /* as it is shown */
	char *path; /* where it really is */
	struct str before, after;
	bool existed, stays; /* stays: it shall exist */
	mode_t mode;
};

/* Reads `name` under `root`. A link is followed, but not out of root. MISCONFIGURED, nothing changed: what
 * is there cannot be read, is no file, or may not be written to. */
enum result file_change_load(struct file_change *f, const char *root, const char *name,
			     struct answer *ans, struct arena *a);
bool file_change_any(const struct file_change *f);
/* What would change, as diff -u has it: one hunk, three lines around it. */
void file_change_diff(const struct file_change *f, struct buf *out, struct arena *scratch);
/* All or none. API_ERROR: one of them cannot be written, or is not what it was when it was loaded. Folders are made as they are
 * needed; those up to root that are empty afterwards go. */
enum result file_change_write(const struct file_change *list, size_t n, const char *root,
			      struct answer *ans, struct arena *a);

#endif
