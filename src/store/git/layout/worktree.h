/*
 * The tasks of a worktree: Markdown files that people and other programs write (aitasks/t109_words.md,
 * aitasks/t10/t10_2_words.md; ended ones in aitasks/archived). pawl reads them and writes only the value of
 * the line `status:`. It follows no link out of the worktree.
 */
#ifndef STORE_GIT_LAYOUT_WORKTREE_H
#define STORE_GIT_LAYOUT_WORKTREE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "format/task_form.h"
#include "store/git/git.h"

struct git_file {
	struct str key;  /* of its task */
	struct str path; /* from the top of the worktree */
	struct task task;
	bool archived;
	struct str fault;        /* why it cannot be read; empty: it can */
	int64_t time, size, ino; /* when it was read */
};

/* A task with its lock, as far as both are written down. */
struct git_item {
	struct str key;
	struct task task;
	const struct git_file *file; /* NULL: only its lock is known */
	struct str clock;            /* that the expiry of its lock is measured by */
	struct str name;             /* of its lock file */
	struct str fault;            /* why its lock file cannot be read */
	git_oid oid;
};

struct git_worktree {
	char *top;              /* NULL: there is no worktree */
	bool checked;           /* the worktree was searched for */
	char *tasks, *archived; /* folders in it */
	struct git_file *v;     /* by key */
	size_t n;
	uint64_t stamp; /* hash of all files; 0: not read yet */
	struct arena a; /* of the files that were read last */
	/* tasks together with the locks of the branch */
	struct git_item *items; /* by key */
	size_t n_items;
	int64_t fence; /* the greatest that was given on the branch */
	struct arena seen;
};

void git_worktree_open(struct git *s, const struct uri *uri);
void git_worktree_close(struct git *s);
/* Are the files still the same as when they were read? */
bool git_worktree_same(struct git *s);
/* Reads the files into s->worktree: 0, or a fault. */
int git_worktree_read(struct git *s);
const struct git_file *git_worktree_find(const struct git_worktree *w, struct str key);

/* Opens a folder by its path from the top; no component may be a link. -1: errno says why. */
int git_folder_open(const struct git_worktree *w, struct str path);
/* The folder and the name of a path. */
struct str git_folder_of(struct str path);
struct str git_name_of(struct str path);
/* Reads a regular file by its path from the top: 0 or -errno. */
int git_file_read(const struct git_worktree *w, struct str path, struct str *out, struct stat *st,
		  struct arena *a);
void git_file_times(struct git_file *f, const struct stat *st);

/* The text of a file. An unknown status becomes Backlog: its author may not want the task to be offered. */
struct str git_status_known(struct str text, struct arena *a);
/* A new status for a file. begin() does everything that can fail; the file changes only in end(). */
struct git_status {
	const struct git_file *file;
	const char *status;
	char *temp; /* NULL: there is no new file */
};

int git_status_begin(struct git *s, const struct git_file *f, const char *status,
		     struct git_status *out, struct arena *a);
int git_status_end(struct git *s, struct git_status *e, struct arena *a);
void git_status_drop(struct git *s, struct git_status *e);

#endif
