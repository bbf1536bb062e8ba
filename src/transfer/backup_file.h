/*
 * backup: a whole queue as one file. The first line names the format and its version; then come the records, the log,
 * the number of each, and a checksum. pawl reads a file to its end and checks it before it uses any part of it.
 */
#ifndef TRANSFER_BACKUP_FILE_H
#define TRANSFER_BACKUP_FILE_H

#include <stdio.h>

#include "client/client.h"
#include "queue/transfer.h"
#include "store/store.h"

struct backup {
	FILE *file;
	int64_t size; /* the file's, in bytes */
	int64_t made_at, tasks;
	size_t records, lines;
};

/* Writes the backup to `path`, which appears only when it is complete. NULL: writes to an unnamed file, which stays
 * open. */
enum result backup_write(struct queue *q, const char *path, struct backup *out, struct answer *ans,
			 struct arena *a);
/* A backup's default name: .pawl/backups/TIME.pawl, or TIME.pawl in the current folder. Makes the folder;
 * API_ERROR in *ans if it is a link, since a clone may contain one. */
enum result backup_name(struct client *c, int64_t now, char **path, struct answer *ans);
/* Can a backup be written here? CONFLICT: a file that is not a backup, or a link, already has this name. */
enum result backup_check(const char *path, bool force, struct answer *ans, struct arena *a);
/* Opens the backup and checks all of it: SUCCESS, or the reason for a refusal. */
enum result backup_open(struct backup *b, const char *path, struct answer *ans, struct arena *a);
void backup_close(struct backup *b);
/* Callbacks for struct load. */
void backup_rewind(void *backup);
int backup_next(void *backup, struct item *out, struct arena *a);

/* --- salvage ---------------------------------------------------------------------------------- */

/*
 * salvage: a file for records that `doctor --fix` removes from a queue because nothing can use them. It is JSON Lines: one
 * object for each record, with its name, the reason and its parts. doc/data.md describes the format.
 */

struct salvage {
	char *path; /* the wanted path; the first record changes it if another file has that name */
	FILE *file; /* NULL: nothing was saved yet */
	size_t n;
	struct arena *arena;
};

/* `path`: the wanted path. The first record creates the file. */
void salvage_init(struct salvage *s, struct str path, struct arena *a);
struct repair_sink salvage_sink(struct salvage *s);
void salvage_close(struct salvage *s);

#endif
