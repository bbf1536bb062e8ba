/*
 * place: where the queue is. The nearest .pawl folder upward from the current one; inside a
 * linked git worktree, that of the main worktree, so that all worktrees of a clone share one
 * queue.
 */
#ifndef CLIENT_PLACE_H
#define CLIENT_PLACE_H

#include "core/answer.h"

struct place {
	char *pawl_dir; /* a real path; NULL: none found */
	char *root; /* the folder in which .pawl was found; .pawl itself may be a link that leads out of it */
	char *init_dir; /* the folder in which `pawl init` would make it */
	char *worktree; /* the git worktree we are in, else the folder that has .pawl, else the current one */
};

/* SUCCESS (with or without a queue), MISCONFIGURED if something else is in a queue's place,
 * API_ERROR if the current folder is gone. */
enum result place_find(struct place *p, struct answer *ans, struct arena *a);
/* The same for another folder: a real path (fs_real). */
enum result place_find_from(struct place *p, const char *dir, struct answer *ans, struct arena *a);

/* The git repository that `dir` (a real path) is in: the real folder with the config that all its worktrees share;
 * NULL: there is none. false: a folder on the way up looks like a repository, and may have come with a clone. */
bool place_git_dir(const char *dir, char **git, struct arena *a);

#endif
