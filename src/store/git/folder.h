/*
 * git_folder: the folders of a repository as descriptors. pawl opens, renames and removes its own files
 * (below `pawl`, and refs) relative to these descriptors. A link that somebody planted therefore cannot
 * redirect a write.
 */
#ifndef STORE_GIT_FOLDER_H
#define STORE_GIT_FOLDER_H

#include "store/git/git.h"

#define GIT_LOCKS_FOLDER "pawl/locks"

/* Sets s->top and s->refs for the repository DIR: 0 or -errno. Some tools make `refs` a link in the user's
 * own clone, so pawl follows that link; it does not in a foreign repository. */
int git_folders_open(struct git *s, const char *dir);
void git_folders_close(struct git *s);
/* Opens the folder PATH below DIR; no component may be a link. `make`: makes it if it does not exist.
 * -errno. */
int git_folder(int dir, const char *path, bool make);
/* Opens the gate NAME in the folder `pawl` of the repository TOP; 0 or -errno. */
int git_gate_open(struct gate *g, int top, const char *name);
/* Does the error say that the device is full? */
bool git_errno_full(int err);
/* Fills in err for a failed call on a local file. */
int git_fail_errno(struct git *s, int err, const char *what);

#endif
