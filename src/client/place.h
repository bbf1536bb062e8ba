/*
 * place: where the queue is. The nearest .pawl folder upward from the current one; inside a
 * linked git worktree, that of the main worktree, so that all worktrees of a clone share one
 * queue.
 */
#ifndef CLIENT_PLACE_H
#define CLIENT_PLACE_H

#include "core/answer.h"

struct place {
	char *pawl_dir; /* NULL: none found */
	char *init_dir; /* the folder in which `pawl init` would make it */
	char *work_tree; /* the git work tree we are in, else the folder that has .pawl, else the current one */
};

/* SUCCESS (with or without a queue), MISCONFIGURED if something else is in a queue's place,
 * API_ERROR if the current folder is gone. */
enum result place_find(struct place *p, struct answer *ans, struct arena *a);
/* The same for another folder: a real path (fs_real). */
enum result place_find_from(struct place *p, const char *dir, struct answer *ans, struct arena *a);

#endif
