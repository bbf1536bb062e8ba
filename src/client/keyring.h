/*
 * keyring: the tokens that this user's agents hold, in files of mode 0600 under
 * $XDG_STATE_HOME/pawl, one for each queue, task, agent, run and worktree.
 *
 * Before a claim sends its token, it writes it to a pending file, which it keeps locked. On success the file becomes
 * the saved one. A pending file whose process is gone belongs to a claim without an answer. The next claim of the same
 * kind sends the same token and so gets the same answer. A claim never sends a saved token. Its new token replaces the
 * saved one, because the earlier lock has ended.
 *
 * The id in the store identifies a queue. So a new queue that replaces an old one has none of the old tokens, and a
 * queue that is moved or migrated keeps its tokens.
 *
 * A server can claim any id. So the tokens of a queue behind a server belong to the id and to the server's origin: a server
 * that claims another queue's id neither gets nor replaces that queue's tokens. `migrate` copies them to the
 * origin that its user named. All stores that pawl opens itself have the empty origin, because no token leaves pawl there.
 */
#ifndef CLIENT_KEYRING_H
#define CLIENT_KEYRING_H

#include "base/arena.h"
#include "base/secret.h"

#define ORIGIN_MAX 320

struct keyring {
	char *dir; /* created when first needed */
	struct str queue, agent, run,
		worktree;        /* queue: its label, "sqlite:/a/q.db queue default" */
	struct str home;         /* the .pawl folder of the queue; empty: there is none */
	char id[TOKEN_LEN + 1];  /* the queue's id; empty: none, or unknown */
	char origin[ORIGIN_MAX]; /* of the queue's server; empty: pawl opens the store itself */
	bool sure;               /* the id comes from the store, not from a cache */
	struct arena *arena;
};

/* Uses a folder in $XDG_STATE_HOME or ~/.local/state. The calls below return 0 or -errno. They refuse a folder that is a
 * link (-ELOOP) or belongs to another user (-EPERM). */
int keyring_open(struct keyring *k, struct str queue, struct str agent, struct str run,
		 struct str worktree, struct arena *a);

/* Sets the queue's id; empty: none, or unknown. */
void keyring_queue(struct keyring *k, struct str id, bool sure);
/* Sets the origin of the queue's server. */
void keyring_server(struct keyring *k, struct str origin);
/* Call it after the queue of `from` was copied to `to`: saves its tokens for the origin of `to`, too. 0 or -errno. */
int keyring_copy(const struct keyring *from, const struct keyring *to);

/* Makes the folder if it is missing. Other private files of the user also go there. */
int keyring_folder(const struct keyring *k);

/* The saved token and its fence; false: there is none. */
bool keyring_find(struct keyring *k, struct str task, struct str *token, int64_t *fence);

/* The latest token that was saved for this place under any id. For a queue that was created again around the locks
 * of an older one. */
bool keyring_seek(struct keyring *k, struct str task, struct str *token, int64_t *fence);

struct pending {
	int fd;
	char *path;
	struct str token;
	bool adopted; /* the token comes from a call without an answer, which may have succeeded even if this call fails */
};

/* The token for an acquisition of `task`: a fresh one, or that of a call without an answer. */
int keyring_begin(struct keyring *k, struct str task, struct pending *p);
/* The token for an acquisition of any task that matches `filter`, a text that is equal for equal filters. of: for
 * `done --claim-next`, a text that identifies the call. Only the same call adopts its pending token; a call without `of`
 * (`next --claim`) adopts any. */
int keyring_begin_any(struct keyring *k, struct str filter, struct str of, struct pending *p);
/* Call it when the acquisition has succeeded: the pending token becomes the saved one. */
int keyring_keep(struct keyring *k, struct pending *p, struct str task, int64_t fence);
/* Call it when the token certainly holds no lock: forgets it. */
void keyring_drop(struct keyring *k, struct pending *p);
/* Call it when the call may have succeeded: keeps the file for a repeat. */
void keyring_leave(struct keyring *k, struct pending *p);
/* Saves an explicit token. */
int keyring_save(struct keyring *k, struct str task, struct str token, int64_t fence);
/* Call it when the task's locks up to this fence have ended: removes their token. */
void keyring_forget(struct keyring *k, struct str task, int64_t fence);
/* Call it when this token's lock has ended: removes the token. */
void keyring_forget_token(struct keyring *k, struct str task, struct str token);

/* For doctor: calls `fn` for every file. queue, task and agent are empty if the file cannot be
 * read. */
struct key_file {
	char *path;
	struct str queue, id, origin, task, agent, run, worktree;
	bool pending;
	int64_t fence;
	int64_t modified; /* wall ms */
};
typedef void key_file_fn(void *ctx, const struct key_file *f);
int keyring_each(struct keyring *k, key_file_fn *fn, void *ctx);
/* Removes files that are older than a month and belong to removed queues. Reads at most 200 files. */
void keyring_sweep(struct keyring *k);
/* Does the file belong to the keyring's queue? */
bool keyring_is_ours(const struct keyring *k, const struct key_file *f);
/* Does it belong to the keyring's agent and run? */
bool keyring_is_mine(const struct keyring *k, const struct key_file *f);

#endif
