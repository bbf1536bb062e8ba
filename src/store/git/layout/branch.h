/*
 * The layout on one branch, for people and for programs that read files there:
 *
 *   tasks/ID.md        a task: YAML front matter, then its description (format/markdown.h)
 *   tID_lock.yaml      its lock, if it has one (git/layout/lockfile.h)
 *   .pawl/KEY.json     everything else that the queue keeps
 *
 * All other files on the branch belong to other programs, and pawl does not touch them. A change is one
 * commit; its message holds the log.
 */
#ifndef STORE_GIT_LAYOUT_BRANCH_H
#define STORE_GIT_LAYOUT_BRANCH_H

#include "store/git/layout/lockfile.h"
#include "store/git/set.h"

#define GIT_TASKS "tasks"
#define GIT_OWN ".pawl"
#define GIT_MARK "queue.json"

/* A record as files. */
struct git_form {
	struct str folder, name, text;
	struct str lock_name, lock; /* empty: none */
};

void git_form_write(const struct store_rules *rules, const struct record *r, struct str clock,
		    struct git_form *out, struct arena *a);

/* The content of a task's two files; git_form_task() returns 0, or -EBADMSG with *fault. */
struct git_read {
	struct record rec;
	struct task task;
	struct str clock;
};

int git_form_task(struct str text, struct str name, struct git_read *out, struct yaml_fault *fault,
		  struct arena *a);
void git_form_lock(struct git_read *r, const struct git_lockfile *lock);
/* Makes the record, after the task and the lock have been read. */
void git_form_record(const struct store_rules *rules, struct git_read *r, struct arena *a);

int git_branch_read(struct git *s);
/* The commit at the tip of the branch; zero: there is no branch. */
int git_branch_tip(struct git *s, git_oid *out);
/* Moves the branch. */
int git_branch_push(struct git *s, const struct git_move *m);
/* Writes a commit with this tree, and moves the branch to it. The commit's message holds `rec`, unless it
 * is NULL. */
int git_branch_commit(struct git_set *w, const git_oid *tree, const struct record *rec);

#endif
