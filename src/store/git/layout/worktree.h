/*
 * The tasks of a worktree, as Markdown files that people and other programs write: aitasks/t109_words.md,
 * aitasks/t10/t10_2_words.md, and those that are over in aitasks/archived. They are read; all that is ever written
 * is the value of the one line `status:`. No link leads out of the worktree.
 */
#ifndef STORE_GIT_LAYOUT_WORKTREE_H
#define STORE_GIT_LAYOUT_WORKTREE_H

#include <sys/types.h>

#include "format/task.h"
#include "store/git/git.h"

struct git_file {
	struct str key;  /* of its task */
	struct str path; /* from the top of the worktree */
	struct task task;
	bool archived;
	struct str fault;        /* why it could not be read; empty: it was */
	int64_t time, size, ino; /* as it was read */
};

/* A task as the view has it, as far as that is written down. */
struct git_item {
	struct str key;
	struct task task;
	const struct git_file *file; /* NULL: it is only known by its lock */
	struct str clock, name,
		fault; /* of its lock: whose end, which file, what is wrong with it */
	git_oid oid;
};

struct git_worktree {
	char *top;              /* NULL: there is no worktree */
	bool looked;            /* for it */
	char *tasks, *archived; /* folders in it */
	struct git_file *v;     /* by key */
	size_t n;
	uint64_t stamp; /* of all of them; 0: not read yet */
	struct arena a; /* of what was read last */
	/* with the locks of the branch */
	struct git_item *items; /* by key */
	size_t n_items;
	int64_t fence; /* the greatest that was given on the branch */
	struct arena seen;
};

void git_worktree_open(struct git *s, const struct uri *uri);
void git_worktree_close(struct git *s);
/* Have the files changed since they were read? */
bool git_worktree_same(struct git *s);
/* 0 with s->worktree as the files are now, or a fault. */
int git_worktree_read(struct git *s);
const struct git_file *git_worktree_find(const struct git_worktree *w, struct str key);

/* A new status for a file: all that can fail is done by begin(), and nothing is seen of it before end(). */
struct git_status {
	const struct git_file *file;
	const char *status;
	char *temp; /* NULL: none */
};

int git_status_begin(struct git *s, const struct git_file *f, const char *status,
		     struct git_status *out, struct arena *a);
int git_status_end(struct git *s, struct git_status *e, struct arena *a);
void git_status_drop(struct git *s, struct git_status *e);

#endif
