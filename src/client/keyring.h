/*
 * keyring: the tokens that this user's agents hold, in files of mode 0600 under
 * $XDG_STATE_HOME/pawl, one for each queue, task, agent, run and work tree.
 *
 * A token is kept in a pending file, locked by its process, before it is sent; success makes it
 * the saved one. A pending file whose process is gone is what an unanswered claim left: the next
 * such claim sends the same token and so gets the same answer. A saved token never answers a
 * claim; where a claim replaced a saved token that was not finished, the file is marked as
 * contested and gives out nothing.
 */
#ifndef CLIENT_KEYRING_H
#define CLIENT_KEYRING_H

#include "base/arena.h"

struct keyring {
	char *dir; /* made when first needed */
	struct str queue, agent, run, work_tree;
	struct arena *arena;
};

/* In $XDG_STATE_HOME or ~/.local/state. Calls below return 0 or -errno; -ELOOP and -EPERM say that the
 * folder is a link or another user's, and is not used. */
int keyring_open(struct keyring *k, struct str queue, struct str agent, struct str run,
		 struct str work_tree, struct arena *a);

/* Its folder, made where it is missing: for what else belongs to this user alone. */
int keyring_folder(const struct keyring *k);

enum key_found { KEY_NONE, KEY_SAVED, KEY_CONTESTED };
enum key_found keyring_find(struct keyring *k, struct str task, struct str *token, int64_t *fence);

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
/* The acquisition came off. resumed: it continued the saved one, so nothing is contested. */
int keyring_keep(struct keyring *k, struct pending *p, struct str task, int64_t fence,
		 bool resumed);
/* The token holds nothing for certain: forget it. */
void keyring_drop(struct keyring *k, struct pending *p);
/* Its fate is unknown: keep the file for a repeat. */
void keyring_leave(struct keyring *k, struct pending *p);
/* Saves an explicit token. */
int keyring_save(struct keyring *k, struct str task, struct str token, int64_t fence, bool resumed);
/* Its holder put the work down (blocked): the token stays, but a claim that replaces it is no
 * contest. Like below, not if what is saved by now is a later lock's. */
void keyring_park(struct keyring *k, struct str task, int64_t fence);
/* The locks of the task up to this fence are over. */
void keyring_forget(struct keyring *k, struct str task, int64_t fence);
/* That lock is over, whatever its fence. */
void keyring_forget_token(struct keyring *k, struct str task, struct str token);

/* For doctor: every file, with what it is for; queue, task and agent are empty if it cannot be
 * read. */
struct key_file {
	char *path;
	struct str queue, task, agent;
	bool pending;
	int64_t modified; /* wall ms */
};
typedef void key_file_fn(void *ctx, const struct key_file *f);
int keyring_each(struct keyring *k, key_file_fn *fn, void *ctx);

#endif
