/* What the parts of the keyring share. */
#ifndef CLIENT_KEYRING_PART_H
#define CLIENT_KEYRING_PART_H

#include "base/buf.h"
#include "client/keyring.h"

#define KEY_FILE_MAX (64 * 1024)

/* What a file holds. */
struct key {
	struct str queue, id, task, agent, run, worktree, home, token;
	int64_t fence;
};

void key_describe(struct buf *b, const struct keyring *k, struct str task, struct str token);
/* false: there is no such file, or it is not one of ours; *out then holds the fields that could be read. */
bool key_read(const char *path, struct key *out, struct arena *a);

/* Under which of its names the queue is meant. */
enum key_by { KEY_BY_ID, KEY_BY_LABEL };
/* What file names of these keys begin with; filter: of acquisitions of any task that fits it. */
struct str key_name(const struct keyring *k, enum key_by by, struct str task, struct str filter);
/* The same for every worktree: the first KEY_HEAD characters of a name by id. */
#define KEY_HEAD 16
struct str key_head(const struct keyring *k, struct str task);
char *key_path(const struct keyring *k, struct str name, const char *ending);
/* Where its token is saved. */
char *key_saved(const struct keyring *k, enum key_by by, struct str task);

/* 0 if the folder is there and only ours, else -errno. */
int keyring_check(const struct keyring *k);
/* A saved token of the same queue, agent, run and worktree, from before the queue was moved: true, and it has the
 * name of today. */
bool keyring_moved(struct keyring *k, struct str task, struct key *out);
/* The same for keyring_seek(). */
bool keyring_older(struct keyring *k, struct str task, struct key *out);

#endif
