/*
 * place: finds the queue: the nearest .pawl folder upward from the current folder. In a linked
 * git worktree it searches the main worktree, so that all worktrees of a clone share one
 * queue.
 */
#ifndef CLIENT_PLACE_H
#define CLIENT_PLACE_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/answer.h"

struct place {
	char *pawl_dir; /* a real path; NULL: none found */
	char *root;     /* the folder in which .pawl was found */
	char *init_dir; /* the folder in which `pawl init` would create .pawl */
	char *worktree; /* the current git worktree, else the folder that has .pawl, else the current folder */
	char *linked; /* git's name for the linked worktree that we are in, else NULL */
};

/* SUCCESS with or without a queue; MISCONFIGURED if .pawl is not a folder; API_ERROR if the
 * current folder does not exist. */
enum result place_find(struct place *p, struct answer *ans, struct arena *a);
/* Does what place_find() does, from another folder, given as a real path (fs_real). */
enum result place_find_from(struct place *p, const char *dir, struct answer *ans, struct arena *a);

/* Finds the git repository of `dir` (a real path): the folder with the config that all its worktrees share; NULL:
 * none. false: a folder on the way up looks like a bare repository, which a clone may contain. */
bool place_git_dir(const char *dir, char **git, struct arena *a);

/* --- line ------------------------------------------------------------------------------------- */

/*
 * line: the "name=value" lines in the files of the keyring and of saved trust.
 */

/* Adds a line. A value may be a path with any bytes, so control characters and '%' are written as %0a and so on. */
void line_add(struct buf *b, const char *name, struct str value);
/* Decodes the value of a line. */
struct str line_value(struct str coded, struct arena *a);

#endif
