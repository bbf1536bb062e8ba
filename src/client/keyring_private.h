/* keyring_part: declarations that the keyring's files share. */
#ifndef CLIENT_KEYRING_PRIVATE_H
#define CLIENT_KEYRING_PRIVATE_H

#include "base/buf.h"
#include "client/keyring.h"

#define KEY_FILE_MAX (64 * 1024)

/* The content of a file. */
struct key {
	struct str queue, id, origin, task, agent, run, worktree, home, token;
	int64_t fence;
};

void key_describe(struct buf *b, const struct keyring *k, struct str task, struct str token);
/* false: the file does not exist or is not valid; *out then has the fields that could be read. */
bool key_read(const char *path, struct key *out, struct arena *a);

/* Does the file name the queue by its id, or by its label? */
enum key_by { KEY_BY_ID, KEY_BY_LABEL };
/* The beginning of a key's file names. filter: for acquisitions of any task that matches it. */
struct str key_name(const struct keyring *k, enum key_by by, struct str task, struct str filter);
/* The first KEY_HEAD characters of a name by id: equal for all worktrees. */
#define KEY_HEAD 16
struct str key_head(const struct keyring *k, struct str task);
char *key_path(const struct keyring *k, struct str name, const char *ending);
/* The path of the saved token's file. */
char *key_saved(const struct keyring *k, enum key_by by, struct str task);

/* Locks the file unless another process has it locked. 0, or -1 with errno. */
int key_lock_now(int fd);
/* Does the path still name the open file? */
bool key_same_file(int fd, const char *path);

/* 0 if the folder exists and only its owner has access, else -errno. */
int keyring_check(const struct keyring *k);
/* Finds a token of the same queue, agent, run and worktree that was saved before the queue was moved. Renames its
 * file, so that keyring_find() finds it. */
bool keyring_moved(struct keyring *k, struct str task, struct key *out);
/* Finds the latest token that was saved for this place under any queue id, for keyring_seek(). Renames its file, too. */
bool keyring_older(struct keyring *k, struct str task, struct key *out);

#endif
