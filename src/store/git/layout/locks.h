/*
 * Layouts of branches that other programs made, each an orphan branch with only their files:
 *
 *   locks   t109_lock.yaml for each lock (git/layout/lockfile.h); tasks are files of the worktree (git/layout/worktree.h)
 *   ids     next_id.txt, the number of the next task
 *
 * A change writes those files and leaves all others on the branch as they are.
 */
#ifndef STORE_GIT_LAYOUT_LOCKS_H
#define STORE_GIT_LAYOUT_LOCKS_H

#include "store/git/layout/branch.h"
#include "store/git/layout/worktree.h"

#define GIT_LOCKS "aitask-locks"
#define GIT_IDS "aitask-ids"
#define GIT_NEXT_ID "next_id.txt"

int git_locks_read(struct git *s);
/* NULL: there is no such task. */
const struct git_item *git_item_find(const struct git_worktree *w, struct str key);

/* --- shared by both layouts --------------------------------------------------------------------- */

int git_tip_tree(struct git *s, const git_oid *tip, git_tree **out);
/* Reads the stamp and the number of pawl's last commit, which may lie below commits of other programs. */
void git_tip_said(struct git *s, const git_oid *tip, int64_t *stamp, int64_t *number);
/* Adds a commit to the branch, with a number noted in it. `subject` counts if the change has no log lines.
 * 0, 1 if another writer was faster, or a fault. */
int git_tip_move(struct git_set *w, const git_oid *tree, const char *subject, int64_t number);
/* Begins a branch with one file, or with none (name NULL). */
int git_tip_make(struct git *s, const char *name, struct str text, const char *subject,
		 int64_t number);
int git_file_put(struct git *s, git_treebuilder *b, const char *name, struct str text);
bool git_tip_roots(struct git *s, struct str key, git_root_fn *fn, void *ctx);
int git_tip_ready(struct git *s);
int git_tip_drop(struct git *s);
/* Puts a task of the worktree into the view. */
struct git_head *git_item_put(struct git *s, const struct git_item *it, struct arena *a);

#endif
