/*
 * keyring: the tokens that this user's agents hold, in files of mode 0600 under
 * $XDG_STATE_HOME/pawl, one for each queue, task, agent, run and worktree.
 *
 * A token is kept in a pending file, locked by its process, before it is sent; success makes it
 * the saved one. A pending file whose process is gone is what an unanswered claim left: the next
 * such claim sends the same token and so gets the same answer. A saved token never answers a
 * claim: the token of a new claim takes the place of what is saved, since the earlier lock is over.
 *
 * A queue is known by its id, which is in its store: a queue that takes the place of another has none of
 * its tokens, and one that is moved or migrated keeps them.
 */
#ifndef CLIENT_KEYRING_H
#define CLIENT_KEYRING_H

#include "base/arena.h"
#include "base/secret.h"

struct keyring {
	char *dir; /* made when first needed */
	struct str queue, agent, run,
		worktree; /* queue: its label, "sqlite:/a/q.db queue default" */
	struct str home;  /* the folder .pawl that the queue was found by; empty: there is none */
	char id[TOKEN_LEN + 1]; /* of the queue; empty: it has none, or it is not known */
	bool sure;              /* the id is what the store says now */
	struct arena *arena;
};

/* In $XDG_STATE_HOME or ~/.local/state. Calls below return 0 or -errno; -ELOOP and -EPERM say that the
 * folder is a link or another user's, and is not used. */
int keyring_open(struct keyring *k, struct str queue, struct str agent, struct str run,
		 struct str worktree, struct arena *a);

/* What the queue is, as far as known: empty if there is no id. */
void keyring_queue(struct keyring *k, struct str id, bool sure);

/* Its folder, made where it is missing: for what else belongs to this user alone. */
int keyring_folder(const struct keyring *k);

/* The saved token and its fence; false: there is none. */
bool keyring_find(struct keyring *k, struct str task, struct str *token, int64_t *fence);

/* The same for a queue that was made anew around the locks of an older one at the same place: the latest token that
 * was saved there, whatever the queue's id was. */
bool keyring_seek(struct keyring *k, struct str task, struct str *token, int64_t *fence);

struct pending {
	int fd;
	char *path;
	struct str token;
	bool adopted; /* an unanswered call's: what becomes of this call says nothing about that one */
};

/* The token for an acquisition of `task`: a fresh one, or that of an unanswered call. */
int keyring_begin(struct keyring *k, struct str task, struct pending *p);
/* The same for whichever task fits `filter`, which is anything that is the same for the same wish.
 * of: for `done --claim-next`, what tells that call from all others. Only the same call takes over
 * what it left; one without `of` (`next --claim`) also what those left. */
int keyring_begin_any(struct keyring *k, struct str filter, struct str of, struct pending *p);
/* The acquisition succeeded. */
int keyring_keep(struct keyring *k, struct pending *p, struct str task, int64_t fence);
/* The token holds nothing for certain: forget it. */
void keyring_drop(struct keyring *k, struct pending *p);
/* Its fate is unknown: keep the file for a repeat. */
void keyring_leave(struct keyring *k, struct pending *p);
/* Saves an explicit token. */
int keyring_save(struct keyring *k, struct str task, struct str token, int64_t fence);
/* The locks of the task up to this fence are over. */
void keyring_forget(struct keyring *k, struct str task, int64_t fence);
/* That lock is over, whatever its fence. */
void keyring_forget_token(struct keyring *k, struct str task, struct str token);

/* For doctor: every file, with what it is for; queue, task and agent are empty if it cannot be
 * read. */
struct key_file {
	char *path;
	struct str queue, id, task, agent;
	bool pending;
	int64_t modified; /* wall ms */
};
typedef void key_file_fn(void *ctx, const struct key_file *f);
int keyring_each(struct keyring *k, key_file_fn *fn, void *ctx);
/* Removes files of queues that are gone, if they are older than a month; looks into 200 at most. */
void keyring_sweep(struct keyring *k);
/* Is it of the keyring's queue? */
bool keyring_is_ours(const struct keyring *k, const struct key_file *f);

#endif
