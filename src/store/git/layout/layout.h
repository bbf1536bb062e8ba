/*
 * The tasks of a worktree: Markdown files that people and other programs write (aitasks/t109_words.md,
 * aitasks/t10/t10_2_words.md; ended ones in aitasks/archived). pawl reads them and writes only the value of
 * the line `status:`. It follows no link out of the worktree.
 */
#ifndef STORE_GIT_LAYOUT_LAYOUT_H
#define STORE_GIT_LAYOUT_LAYOUT_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "format/task_form.h"
#include "format/yaml.h"
#include "store/git/git.h"

struct git_file {
	struct str key;  /* its task's */
	struct str path; /* from the top of the worktree */
	struct task task;
	bool archived;
	struct str fault;        /* why it cannot be read; empty: it can */
	int64_t time, size, ino; /* when it was read */
};

/* A task with its lock, as far as files record them. */
struct git_item {
	struct str key;
	struct task task;
	const struct git_file *file; /* NULL: only its lock is known */
	struct str clock;            /* the clock that measures its lock's expiry */
	struct str name;             /* its lock file's name */
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
	struct arena a; /* holds the files that were read last */
	/* tasks together with the branch's locks */
	struct git_item *items; /* by key */
	size_t n_items;
	int64_t fence; /* the greatest fence issued on the branch */
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
/* A path's folder and name. */
struct str git_folder_of(struct str path);
struct str git_name_of(struct str path);
/* Reads a regular file by its path from the top: 0 or -errno. */
int git_file_read(const struct git_worktree *w, struct str path, struct str *out, struct stat *st,
		  struct arena *a);
void git_file_times(struct git_file *f, const struct stat *st);

/* A file's text, with an unknown status as Backlog, because its author may not want the task to be offered. */
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

/* --- lockfile --------------------------------------------------------------------------------- */

/*
 * A lock as a file that other programs know: t<id>_lock.yaml with task_id, locked_by, locked_at and hostname,
 * in their form, followed by pawl's own fields. A file without pawl's fields is a foreign lock: it has no
 * token, and does not expire unless it names an expiry.
 */

struct git_lockfile {
	struct str id; /* the task's: t109, for both 109 and t109 in the file */
	struct lock lock;
	int64_t fence;    /* 0: the file has none */
	struct str clock; /* the clock that the expiry is measured by */
};

/* t109 has t109_lock.yaml, abc has tabc_lock.yaml; 109 is not t109 and has t%3109_lock.yaml. */
struct str git_lockfile_name(struct arena *a, struct str id);
/* Is `name` a lock file's name? *id: its task. */
bool git_lockfile_named(struct arena *a, struct str name, struct str *id);
void git_lockfile_write(const struct git_lockfile *f, struct buf *out, struct arena *a);
/* `id` is the id in the file's name. 0, or -EBADMSG with *fault. */
int git_lockfile_read(struct str text, struct str id, struct git_lockfile *out,
		      struct yaml_fault *fault, struct arena *a);

/* --- branch ----------------------------------------------------------------------------------- */

/*
 * The layout on one branch, for people and for programs that read files there:
 *
 *   tasks/ID.md        a task: YAML front matter, then its description (format/markdown.h)
 *   tID_lock.yaml      its lock, if it has one (git/layout/layout.h)
 *   .pawl/KEY.json     the queue's other records
 *
 * All other files on the branch belong to other programs, and pawl does not touch them. A change is one
 * commit; its message holds the log.
 */

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

/* The content of a task's two files. git_form_task() returns 0, or -EBADMSG with *fault. */
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

/* --- locks ------------------------------------------------------------------------------------ */

/*
 * Layouts for branches that other programs made. Each is an orphan branch with only their files:
 *
 *   locks   t109_lock.yaml for each lock (layout_locks.c); tasks are files of the worktree (layout_worktree.c)
 *   ids     next_id.txt, the number of the next task
 *
 * A change writes those files and leaves all others on the branch as they are.
 */

#define GIT_LOCKS "aitask-locks"
#define GIT_IDS "aitask-ids"
#define GIT_NEXT_ID "next_id.txt"

int git_locks_read(struct git *s);
/* NULL: there is no task with this key. */
const struct git_item *git_item_find(const struct git_worktree *w, struct str key);

/* --- shared by both layouts --------------------------------------------------------------------- */

int git_tip_tree(struct git *s, const git_oid *tip, git_tree **out);
/* Reads the stamp and the number of pawl's last commit, which may lie below other programs' commits. */
void git_tip_said(struct git *s, const git_oid *tip, int64_t *stamp, int64_t *number);
/* Adds a commit that holds the number to the branch. `subject` counts if the change has no log lines.
 * 0, 1 if another writer committed first, or a fault. */
int git_tip_move(struct git_set *w, const git_oid *tree, const char *subject, int64_t number);
/* Begins a branch with one file, or with none (name NULL). */
int git_tip_make(struct git *s, const char *name, struct str text, const char *subject,
		 int64_t number);
int git_file_put(struct git *s, git_treebuilder *b, const char *name, struct str text);
bool git_tip_roots(struct git *s, struct str key, git_root_fn *fn, void *ctx);
int git_tip_ready(struct git *s);
int git_tip_drop(struct git *s);
/* Puts one of the worktree's tasks into the view. */
struct git_head *git_item_put(struct git *s, const struct git_item *it, struct arena *a);

#endif
