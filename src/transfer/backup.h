/*
 * backup: all of a queue as one file: a line that says what it is and of which version, then records and the log,
 * then how many there are and a checksum. A file is read to its end and checked before anything is done with it.
 */
#ifndef TRANSFER_BACKUP_H
#define TRANSFER_BACKUP_H

#include <stdio.h>

#include "client/client.h"
#include "queue/transfer.h"

struct backup {
	FILE *file;
	int64_t size; /* of the file */
	int64_t made_at, tasks;
	size_t records, lines;
};

/* To the file, which gets its name when it is whole; NULL: to one without a name, which stays open. */
enum result backup_write(struct queue *q, const char *path, struct backup *out, struct answer *ans,
			 struct arena *a);
/* Where a backup goes that nobody named: .pawl/backups/TIME.pawl, or TIME.pawl here. The folder is made; API_ERROR in
 * *ans if it is a link, as a clone can bring one. */
enum result backup_name(struct client *c, int64_t now, char **path, struct answer *ans);
/* May a backup have this name? CONFLICT: a file that is no backup has it, or a link. */
enum result backup_check(const char *path, bool force, struct answer *ans, struct arena *a);
/* Opens it and reads all of it: SUCCESS, or what is wrong with it. */
enum result backup_open(struct backup *b, const char *path, struct answer *ans, struct arena *a);
void backup_close(struct backup *b);
/* As struct load wants them. */
void backup_rewind(void *backup);
int backup_next(void *backup, struct item *out, struct arena *a);

#endif
