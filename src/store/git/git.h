/*
 * git: a queue on nothing but a git repository that all can reach. doc/git.md says how and why; in short:
 *
 *  - A record's state is a commit; its parent is the record's state before (git/record.c). What claims touch,
 *    and the log lines of the change, are in the commit's message; the texts are in its tree.
 *  - A live task's commit is the value of a ref of its own, PREFIX/t/ID. All other records, and tasks that
 *    nobody works on, hang on one more ref, PREFIX/base: its tree names their commits (git/base.c).
 *  - A change moves refs, each from the value that was read to a new one, all or none. Of several, the first
 *    by name says what the others become, so that a change that was cut short is finished by who sees it next.
 *  - A transport is the way to the repository: by its files, or by the user's git (git/transport/path.c, git/transport/wire.c).
 */
#ifndef STORE_GIT_GIT_H
#define STORE_GIT_GIT_H

#include <git2.h>

#include "store/local/gate.h"
#include "store/local/clock.h"
#include "store/mem/queue.h"
#include "store/store.h"

#define GIT_FORMAT 1
#define GIT_TRIES 10
#define GIT_RECORD_MAX (32u << 20)
#define GIT_OBJECT_MAX (2 * (size_t)GIT_RECORD_MAX)
#define GIT_MESSAGE_MAX (16u << 20) /* JSON takes many times its length in memory */
#define GIT_REFS_WANTED 1000

#define GIT_BASE STR("base")

/* --- refs --------------------------------------------------------------------------------------- */

struct git_ref {
	struct str name; /* without the prefix: "base", "t/t1" */
	git_oid oid;
};

struct git_refs {
	struct git_ref *v; /* by name */
	size_t n;
};

/* By name; the list is sorted. */
const git_oid *git_ref_find(const struct git_refs *refs, struct str name);
void git_refs_add(struct git_refs *refs, struct str name, const git_oid *oid, struct arena *a);
void git_refs_sort(struct git_refs *refs);

/* From `old` to `to`, zero standing for "not there". old == to: it must not have moved. */
struct git_move {
	struct str name;
	git_oid old, to;
};

struct git_moves {
	struct git_move *v;
	size_t n;
};

struct git;
struct git_raw;

struct git_transport {
	/* Before the refs are read for a change, and after it. */
	int (*begin)(struct git *s);
	void (*end)(struct git *s);
	/* Is the last list still right? NULL: nobody knows. */
	bool (*same)(struct git *s);
	/* As they are now, by name; their commits can be read afterwards. */
	int (*list)(struct git *s, struct git_refs *out, struct arena *a);
	/* All or none, the first one first. 0; 1 if one has moved; a fault, whose err->applied counts. */
	int (*push)(struct git *s, const struct git_move *moves, size_t n);
	/* Removes those that are still at `old`, each for itself; what cannot be removed stays. */
	void (*drop)(struct git *s, const struct git_move *moves, size_t n);
	/* Does a ref that does not move hold others back all the same? */
	bool (*guards)(const struct git *s);
};

extern const struct git_transport git_transport_path, git_transport_wire;

/* --- layouts ------------------------------------------------------------------------------------ */

struct git_set;

typedef void git_root_fn(void *ctx, const git_oid *oid);

/* What the repository looks like: fills in the view, and makes commits of what a change wrote. */
struct git_layout {
	const char *name;
	bool strangers; /* others' commits may be between ours */
	/* Reads what has changed. 0, or 1 if there is no queue. */
	int (*look)(struct git *s);
	/* The same before a change, with what has to be put right for it. */
	int (*ready)(struct git *s);
	/* 0, 1 if others were quicker, or a fault. */
	int (*commit)(struct git_set *w);
	/* Begins the queue, removes it: 0, 1 if others were quicker. */
	int (*make)(struct git *s);
	int (*drop)(struct git *s);
	/* Does the view still say what is known beside the refs? NULL: there is nothing beside them. */
	bool (*same)(struct git *s);
	/* What stands for a record that is not there: 0, or 1 if nothing does. NULL: nothing ever. */
	int (*stand_in)(struct git *s, struct str key, struct record *out, struct arena *a);
	/* A body as the view has it, and back; NULL: as it is. */
	int (*body_put)(struct git *s, struct record *r, struct arena *a);
	int (*body_get)(struct git *s, struct record *r, struct arena *a);
	/* The newest commits, for the log of one record or of all (key empty). True: their first parents say
	 * all there is to know of the record. */
	bool (*roots)(struct git *s, struct str key, git_root_fn *fn, void *ctx);
};

extern const struct git_layout git_layout_refs, git_layout_branch, git_layout_locks, git_layout_ids;
/* Which of those with a branch it is, by what is on it. */
int git_recognise(struct git *s);

/* --- records ------------------------------------------------------------------------------------ */

/* A line of the log, and which one of its change it is. */
struct git_line {
	struct git_line *next;
	struct entry entry;
	unsigned n;
};

/* What a commit of ours says. */
struct git_state {
	int64_t stamp; /* of the change: greater than any that its author had seen */
	struct record rec;
	bool has_rec, lacks_due; /* see git_record_parse() */
	struct str clock;        /* whose clock the record's lock goes by */
	struct str lead; /* the ref that says what belongs to this change; empty: this one */
	struct git_move *moves;
	size_t n_moves; /* what the other refs become */
	struct git_line *lines;
	git_oid tree;
	git_oid *parents;
	size_t n_parents;
};

/* Where the state of a record is. */
struct git_head {
	struct str key;
	git_oid oid;
	bool on_base;
	bool bad;          /* nobody can read it */
	uint64_t recalled; /* the sum of what the memo said; 0: the commit was read */
	git_oid lease;     /* stands for its lock as it is, for when that was seen first */
	/* on a branch */
	struct str file, lock; /* where it is, and where its lock is or would be */
	struct str fault;      /* what is wrong with it */
	size_t at;             /* among the heads, while they are counted */
	int64_t counts[3];     /* of what it waits for, as written */
	struct str
		lead; /* of its last change, if that had several refs and this was not the first */
	struct git_moves moves; /* if it was the first: what the others become */
	int64_t stamp;
	struct str clock;      /* the boot whose clock its lock goes by */
	int64_t end, shown;    /* of its lock: as written, as it counts here; 0: the same */
	git_oid link;          /* what the base names */
	unsigned seen, linked; /* at which look */
};

/* All that is known of the queue. */
struct git_view {
	struct mem_queue q;
	struct git_head **heads; /* by key */
	size_t n, room;
	size_t n_refs;    /* of tasks */
	size_t n_strange; /* refs among them that are spelt in another way than pawl spells them */
	git_oid base, base_tree;
	int64_t base_stamp;
	struct git_moves base_moves;
	struct git_move *owed; /* of changes that were cut short */
	size_t n_owed, owed_room;
	int64_t stamp; /* the greatest */
	unsigned look;
	struct arena arena; /* keys and such; grows with what was ever seen */
};

/* path: how the folders of the refs looked before they were read. */
struct git_stamps {
	int64_t time[3], size, ino;
	bool good;
};

/* What commits say, without taking them out of the objects (git/memo.c). */
struct git_memo {
	bool off;                /* what the objects say is what is wanted */
	bool tried;              /* to open it */
	bool whole;              /* all of the file makes sense: more can be written behind it */
	bool late;               /* it was read before this look */
	int fd;                  /* -1: there is none */
	struct buf bytes, fresh; /* as in the file, and what is to be added */
	uint32_t *slots;         /* where an entry begins; 0: free */
	size_t n_slots, n;
	size_t noted; /* commits since the look, which the view does not have yet */
};

struct git {
	struct store base;
	const struct git_transport *transport;
	const struct git_layout *layout;
	git_repository *repo; /* where objects are read and written */
	git_odb *odb;
	char *url;    /* a path or a URL */
	char *remote; /* the same for people to see: without passwords */
	bool foreign; /* path: it may have come with a clone (git/trust.h) */
	char *prefix; /* of refs: "refs/pawl/default/" */
	char *only;   /* the one ref behind the prefix that counts; NULL: all */
	bool guess;   /* what the branch is, is to be seen by what is on it */
	struct git_worktree
		*worktree;    /* of a branch: the worktree's tasks (git/layout/worktree.h) */
	char *dir;            /* path: of the repository */
	char *local;          /* wire: where `git` runs */
	int top, refs, locks; /* folders: `dir` or `local`, and `refs` and `pawl/locks` in it */
	char *seen;           /* wire: prefix of what was fetched */
	bool no_fetch;        /* wire: what was fetched before is good enough */
	struct git_raw *raw;  /* wire: git's protocol, if it can be spoken to this remote */
	size_t refs_wanted;
	int64_t skew; /* between the clocks of machines, at most */
	struct gate gate;
	struct git_stamps stamps;
	int watch, depth;
	struct localclock clock;
	struct anchor anchor;
	struct git_view view;
	struct git_memo memo;
	bool changing;
	int64_t now;
	struct strs reads;  /* keys that the change has looked at */
	struct arena arena; /* of those keys */
};

static inline struct git *git_of(struct store *s)
{
	return (struct git *)s;
}

/* --- names -------------------------------------------------------------------------------------- */

/* Any bytes as one part of a ref's name or a file's, and back. */
struct str git_name(struct arena *a, struct str bytes);
bool git_unname(struct arena *a, struct str name, struct str *out);
struct str git_ref_of(struct arena *a, struct str key); /* "t/t1" */
struct str git_full(struct git *s, struct str name, struct arena *a);
#define GIT_PACKED "packed-refs"
#define GIT_PACKED_MAX (256u << 20)
/* Those of the queue behind `prefix` in the repository s->top: 0 or -errno. */
int git_refs_list(struct git *s, const char *prefix, struct git_refs *out, struct arena *a);
/* Is the ref, named without the prefix, one of the queue's? */
bool git_ours(const struct git *s, struct str name);
struct str git_hex(struct arena *a, const git_oid *oid);
int git_move_cmp(const void *a, const void *b);

/* The line in which a program or a library says that a device has no room; empty: none. All of them use the
 * system's words for it. */
struct str git_full_line(struct str text);
/* Fills in err from libgit2's last one; STORE_IO becomes STORE_FULL where that is the reason. */
int git_fail(struct git *s, int fault, const char *what);

/* --- objects ------------------------------------------------------------------------------------ */

struct git_draft {
	const struct record *rec; /* NULL: none */
	int64_t stamp;
	struct str nonce, lead, clock;
	const struct git_move *moves;
	size_t n_moves;
	const struct git_line *lines;
	git_oid tree;
	const git_oid *parents;
	size_t n_parents;
};

/* Is it as small as those of pawl? The others open such objects and no larger ones; libgit2's codes. */
bool git_object_fits(git_odb *odb, const git_oid *oid);
int git_tree_open(struct git *s, git_tree **out, const git_oid *oid);
int git_blob_open(struct git *s, git_blob **out, const git_oid *oid);
int git_commit_open(struct git *s, git_commit **out, const git_oid *oid);
/* An object that the change's pack takes along; libgit2's codes. */
int git_object_put(struct git *s, struct str bytes, git_object_t type, git_oid *out);
int git_tree_put(struct git *s, git_treebuilder *t, git_oid *out);
int git_commit_write(struct git *s, const struct git_draft *d, git_oid *out, struct arena *a);
/* 0, 1 if it is not there, 2 if it is none of ours; strings in `a`. */
int git_commit_read(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a);
/* What the bytes of a commit say: false if it is none of ours. */
bool git_commit_parse(struct str text, struct git_state *out, struct arena *a);
/* A state without its log and parents as bytes, and back. */
void git_state_pack(struct buf *b, const struct git_state *st, struct arena *a);
bool git_state_unpack(struct str bytes, struct git_state *out, struct arena *a);
/* Could it be one of ours: does it lead to no other refs, to no end of time? */
bool git_state_sane(const struct git_state *st, struct arena *a);
/* The same without its log and parents, if the memo knows it: gives its sum, else 0. */
uint64_t git_memo_recall(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a);
/* What was read from its commit. */
void git_memo_put(struct git *s, const git_oid *oid, const struct git_state *st);
/* Do the commits say of these keys what the memo said? If not, it is forgotten. */
bool git_memo_sure(struct git *s, struct strs keys);
/* From the next look on only the commits count; it is removed as well. */
void git_memo_doubt(struct git *s);
void git_memo_forget(struct git *s);
/* A look begins: others may have added to it. */
void git_memo_look(struct git *s);
/* A commit that others will want to know about. */
void git_memo_note(struct git *s, const git_oid *oid);
void git_memo_save(struct git *s);
void git_memo_close(struct git *s);
/* The tree that holds a record's body. */
int git_body_write(struct git *s, const struct record *r, git_oid *tree, struct arena *a);
int git_body_read(struct git *s, const git_oid *tree, struct str *out, struct arena *a);
/* A record with its body as one JSON text, and back. */
struct str git_record_text(const struct record *r, struct arena *a);
bool git_record_read(struct str text, struct record *out, struct arena *a);

/* --- the base ----------------------------------------------------------------------------------- */

struct git_link {
	struct str key;
	git_oid oid; /* zero: it goes */
};

/* Calls fn for each record that hangs on the tree. */
int git_base_each(struct git *s, const git_oid *tree,
		  int (*fn)(struct git *s, struct str key, const git_oid *oid, void *ctx),
		  void *ctx);
/* A tree with the links changed; `from` zero: an empty one. */
int git_base_change(struct git *s, const git_oid *from, const struct git_link *links, size_t n,
		    git_oid *out);

/* --- the view ----------------------------------------------------------------------------------- */

/* Reads what has changed. 0, or 1 if there is no queue. */
int git_look(struct git *s);
struct git_head *git_head(const struct git_view *v, struct str key);
struct git_head *git_head_make(struct git_view *v, struct str key);
/* Forgets what was not seen at the last look. */
void git_view_prune(struct git_view *v);
void git_view_free(struct git_view *v);
void git_view_clear(struct git_view *v);
int git_get(struct store *s, struct str key, struct record *out, struct arena *a);
int git_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx);
int git_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int git_count(struct store *s, const struct query *q, int64_t *n);
int git_tally(struct store *s, int64_t *counts);
int git_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
int git_absent(struct git *s);
int git_refs_look(struct git *s);

/* --- changing ----------------------------------------------------------------------------------- */

int git_modify(struct store *s, struct change *changes, size_t n);
int git_begin_queue(struct git *s);
int git_discard(struct store *s);

/* Tasks whose refs are to go; the heads are the view's. */
struct git_fold {
	const struct git_head **v;
	size_t n;
};

/* If there are too many refs: some of those that nobody works on, without the busy ones. */
void git_fold_plan(struct git *s, struct strs busy, struct git_fold *out, struct arena *a);
/* After the base names them. */
void git_fold_finish(struct git *s, const struct git_fold *f, struct arena *a);

/* --- places ------------------------------------------------------------------------------------- */

int git_find(struct git *s, const struct uri *uri);
int git_path_open(struct git *s);
void git_path_close(struct git *s);
int git_check(struct store *s, check_fn *fn, void *ctx);
int git_queues(struct store *s, name_fn *fn, void *ctx);
int git_wire_open(struct git *s);
/* What a look came to; where this clone was damaged, of another one after what is lost was fetched again. */
int git_mend(struct git *s, int rc);

/* --- time --------------------------------------------------------------------------------------- */

int64_t git_now(struct store *s);
void git_clock_open(struct git *s);
/* The clock by its name: this boot's, and how its time was set. Clones have each their own. */
struct str git_clock_name(const struct git *s, struct arena *a);
bool git_clock_same(const struct git *s, struct str name);
/* Before a change: the wall clock's time again, if the clock has come to differ and nothing waits for a time. */
void git_clock_change(struct git *s);
/* Takes the skew from the text of the URI's parameter, which may be empty. false: it is not a time. */
bool git_clock_skew(struct git *s, struct str text);
/* A record as it counts here, and back again: gives the clock to be written with it. */
void git_clock_show(struct git *s, struct git_head *h, struct record *r, struct arena *a);
struct str git_clock_hide(struct git *s, const struct git_head *h, struct record *r,
			  struct arena *a);

#endif
