/*
 * git: a queue that needs only a git repository which all agents can reach. doc/git.md explains it; in short:
 *
 *  - A record's state is a commit, whose parent is the state before (git/git_record.c). The commit's message
 *    holds the fields that claims change, and the change's log lines. Its tree holds the texts.
 *  - A live task has its own ref, PREFIX/t/ID, which names its commit. All other records, and tasks that
 *    nobody is working on, are appended to one more ref, PREFIX/base. Its tree names their commits
 *    (git/git_base.c).
 *  - A change moves refs, each from the value that was read to a new one, all or none. Its first ref by name
 *    is the leader. The leader's commit says what the other refs become, so the next process that sees it can
 *    finish an interrupted change. git/git_change.c draws the states.
 *  - A transport reaches the repository through its files (git/transport/transport_path.c), or through git's protocol
 *    and the user's git (git/transport/transport_wire.c).
 */
#ifndef STORE_GIT_GIT_H
#define STORE_GIT_GIT_H

#include <git2.h>
#include <jansson.h>

#include "store/local/gate.h"
#include "store/local/local_clock.h"
#include "store/mem/mem.h"
#include "store/store.h"

#define GIT_FORMAT 1
#define GIT_TRIES 10
#define GIT_RECORD_MAX (32u << 20)
#define GIT_OBJECT_MAX (2 * (size_t)GIT_RECORD_MAX)
#define GIT_MESSAGE_MAX (16u << 20) /* parsed JSON takes many times its length in memory */
#define GIT_REFS_WANTED 1000

#define GIT_BASE STR("base")

/* --- refs --------------------------------------------------------------------------------------- */

struct git_ref {
	struct str name; /* without the prefix: "base", "t/t1" */
	git_oid oid;
};

struct git_refs {
	struct git_ref *v; /* sorted by name */
	size_t n;
};

/* Finds a ref by name in a sorted list; NULL: it is not there. */
const git_oid *git_ref_find(const struct git_refs *refs, struct str name);
void git_refs_add(struct git_refs *refs, struct str name, const git_oid *oid, struct arena *a);
void git_refs_sort(struct git_refs *refs);

/* Moves a ref from `old` to `to`; zero: the ref does not exist. old == to: the ref must stay where it is. */
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
	/* begin() is called before a change reads the refs, end() after the change. */
	int (*begin)(struct git *s);
	void (*end)(struct git *s);
	/* Is the last list still current? NULL: the transport cannot tell. */
	bool (*same)(struct git *s);
	/* Lists the refs as they are now, by name; their commits can be read afterwards. */
	int (*list)(struct git *s, struct git_refs *out, struct arena *a);
	/* Moves all refs or none, the leader (moves[0]) first. 0; 1 if a ref has moved; a fault (see
	 * err->applied). */
	int (*push)(struct git *s, const struct git_move *moves, size_t n);
	/* Removes each ref that is still at `old`; skips a ref that it cannot remove. */
	void (*drop)(struct git *s, const struct git_move *moves, size_t n);
	/* Can a push keep a ref in its place without moving it (old == to)? */
	bool (*guards)(const struct git *s);
};

extern const struct git_transport git_transport_path, git_transport_wire;

/* --- layouts ------------------------------------------------------------------------------------ */

struct git_set;

typedef void git_root_fn(void *ctx, const git_oid *oid);

/* A layout: how the queue is stored in the repository. It fills in the view, and writes changed records as
 * commits. */
struct git_layout {
	const char *name;
	bool strangers; /* other programs' commits may lie between pawl's */
	/* Reads the refs that have changed. 0, or 1 if there is no queue. */
	int (*refresh)(struct git *s);
	/* Before a change: does what refresh() does, and also finishes interrupted changes. */
	int (*ready)(struct git *s);
	/* 0, 1 if another writer committed first, or a fault. */
	int (*commit)(struct git_set *w);
	/* Creates or removes the queue: 0, 1 if another writer committed first. */
	int (*make)(struct git *s);
	int (*drop)(struct git *s);
	/* Is the view still current for data outside the refs? NULL: the layout has none. */
	bool (*same)(struct git *s);
	/* Gives a stand-in for a record that does not exist: 0, or 1 if there is none. NULL: the layout
	 * has no stand-ins. */
	int (*stand_in)(struct git *s, struct str key, struct record *out, struct arena *a);
	/* Converts a body to its form in the view, and back; NULL: the forms are the same. */
	int (*body_put)(struct git *s, struct record *r, struct arena *a);
	int (*body_get)(struct git *s, struct record *r, struct arena *a);
	/* Calls fn for the newest commits, for one record's log or the whole log (key empty). True: the
	 * first parents of these commits hold the record's whole log. */
	bool (*roots)(struct git *s, struct str key, git_root_fn *fn, void *ctx);
};

extern const struct git_layout git_layout_refs, git_layout_branch, git_layout_locks, git_layout_ids;
/* Recognises a branch's layout by its content. */
int git_recognise(struct git *s);

/* --- records ------------------------------------------------------------------------------------ */

/* A line of the event log, and its position within its change. */
struct git_line {
	struct git_line *next;
	struct entry entry;
	unsigned n;
};

/* The content of one of pawl's commits. */
struct git_state {
	int64_t stamp; /* the change's stamp: greater than any stamp that its author had seen */
	struct record rec;
	bool has_rec;
	bool older;        /* pawl 0.1 wrote its record */
	struct str clock;  /* the clock that the lease is measured by */
	struct str leader; /* the change's leader; empty: this ref is the leader */
	struct git_move *moves;
	size_t n_moves; /* in the leader's commit: the other refs' moves */
	struct git_line *lines;
	git_oid tree;
	git_oid *parents;
	size_t n_parents;
};

/* Where a record's state is. */
struct git_head {
	struct str key;
	git_oid oid;
	bool on_base;
	bool bad;          /* the record cannot be read */
	bool older;        /* the record is bad because pawl 0.1 wrote it */
	uint64_t recalled; /* checksum of the memo's entry; 0: the commit was read */
	git_oid lease;     /* identifies the lock, to record when it was first seen */
	/* layouts on a branch */
	struct str file, lock; /* path of the task's file, and of its lock file */
	struct str fault;      /* why it cannot be read */
	/* the written counts of open dependencies, canceled ones and sub-tasks */
	int64_t counts[3];
	/* its last change's leader; empty: this ref was the leader, or the only ref */
	struct str leader;
	struct git_moves moves; /* if this ref was the leader: the other refs' moves */
	int64_t stamp;
	struct str clock;      /* the clock that the lease is measured by */
	int64_t end, shown;    /* the lock's expiry, as written and as shown; 0: no difference */
	git_oid link;          /* the commit that the base names */
	unsigned seen, linked; /* numbers of the reads that saw its ref and its link */
};

/* Everything that this handle knows about the queue. */
struct git_view {
	struct mem_queue q;
	struct git_head **heads; /* by key */
	size_t n, room;
	size_t n_refs;    /* refs of tasks */
	size_t n_strange; /* refs below t/ whose name pawl would spell differently */
	git_oid base, base_tree;
	int64_t base_stamp;
	struct git_moves base_moves;
	struct git_move *pending_moves; /* an interrupted change's pending moves */
	size_t n_pending, pending_room;
	int64_t stamp; /* the greatest stamp seen */
	unsigned refresh;
	struct arena arena; /* keys and similar; grows with every key ever seen */
};

/* path: the state of the ref folders before the refs were read. */
struct git_stamps {
	int64_t time[3], size, ino;
	bool good;
};

/* The memo: the content of commits, without reading them from the objects (git/git_memo.c). */
struct git_memo {
	bool off;                /* read the commits themselves instead */
	bool tried;              /* opening the file was tried */
	bool whole;              /* the whole file is well-formed: entries can be appended */
	bool late;               /* the file was last read before the refs were */
	int fd;                  /* -1: there is none */
	struct buf bytes, fresh; /* the bytes of the file, and entries to append */
	uint32_t *slots;         /* offset of an entry; 0: free */
	size_t n_slots, n;
	size_t noted; /* commits written since the refs were read; the view does not have them */
};

struct git {
	struct store base;
	const struct git_transport *transport;
	const struct git_layout *layout;
	git_repository *repo; /* reads and writes objects */
	git_odb *odb;
	char *url;    /* a path or a URL */
	char *remote; /* url without passwords, for messages */
	bool foreign; /* path: the repository may have come with a clone (see git_trust below) */
	char *prefix; /* of refs: "refs/pawl/default/" */
	char *only;   /* the one ref after the prefix that counts; NULL: all */
	bool guess;   /* recognise the layout by the branch's content */
	/* layouts on a branch: the worktree's tasks (git/layout/layout.h) */
	struct git_worktree *worktree;
	char *dir;   /* path: the repository's folder */
	char *local; /* wire: the folder that `git` runs in */
	/* descriptors of `dir` or `local`, and of `refs` and `pawl/locks` in it */
	int top, refs, locks;
	char *seen;          /* wire: prefix of the refs that record the last fetch */
	bool no_fetch;       /* wire: --cached, so use the last fetch */
	struct git_raw *raw; /* wire: git's protocol; NULL: pawl runs `git` */
	size_t refs_wanted;
	int64_t skew; /* largest difference between the clocks of machines */
	struct gate gate;
	struct git_stamps stamps;
	int watch, depth;
	struct localclock clock;
	struct anchor anchor;
	struct git_view view;
	struct git_memo memo;
	bool changing;
	int64_t now;
	struct strs reads;  /* keys that the change has read */
	struct arena arena; /* holds those keys */
};

static inline struct git *git_of(struct store *s)
{
	return (struct git *)s;
}

/* --- names -------------------------------------------------------------------------------------- */

/* Encodes any bytes as one component of a ref name or a file name, and decodes it. */
struct str git_name(struct arena *a, struct str bytes);
bool git_unname(struct arena *a, struct str name, struct str *out);
struct str git_ref_of(struct arena *a, struct str key); /* "t/t1" */
struct str git_full(struct git *s, struct str name, struct arena *a);
#define GIT_PACKED "packed-refs"
#define GIT_PACKED_MAX (256u << 20)
/* Lists the queue's refs after `prefix` in the repository s->top: 0 or -errno. */
int git_refs_list(struct git *s, const char *prefix, struct git_refs *out, struct arena *a);
/* Does the ref, named without the prefix, belong to the queue? */
bool git_ours(const struct git *s, struct str name);
struct str git_hex(struct arena *a, const git_oid *oid);
int git_move_cmp(const void *a, const void *b);

/* The line of `text` that says that a device is full; empty: there is none. Programs and libraries all
 * report a full device with the system's message. */
struct str git_full_line(struct str text);
/* Fills in err from libgit2's last error; STORE_IO becomes STORE_FULL if a device is full. */
int git_fail(struct git *s, int fault, const char *what);

/* --- objects ------------------------------------------------------------------------------------ */

struct git_draft {
	const struct record *rec; /* NULL: none */
	int64_t stamp;
	struct str nonce, leader, clock;
	const struct git_move *moves;
	size_t n_moves;
	const struct git_line *lines;
	git_oid tree;
	const git_oid *parents;
	size_t n_parents;
};

/* Makes libgit2 read the loose objects in the folder through pawl's own reader; libgit2's codes. */
int git_loose_add(git_odb *odb, const char *objects);
/* Is the object small enough to be pawl's? The functions below open only such objects; they return
 * libgit2's codes. */
bool git_object_fits(git_odb *odb, const git_oid *oid);
int git_tree_open(struct git *s, git_tree **out, const git_oid *oid);
int git_blob_open(struct git *s, git_blob **out, const git_oid *oid);
int git_commit_open(struct git *s, git_commit **out, const git_oid *oid);
/* Writes an object and adds it to the change's pack; libgit2's codes. */
int git_object_put(struct git *s, struct str bytes, git_object_t type, git_oid *out);
int git_tree_put(struct git *s, git_treebuilder *t, git_oid *out);
int git_commit_write(struct git *s, const struct git_draft *d, git_oid *out, struct arena *a);
/* 0, 1 if it does not exist, 2 if it is not one of pawl's commits; strings in `a`. */
int git_commit_read(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a);
/* Parses a commit's bytes; false: it is not one of pawl's. */
bool git_commit_parse(struct str text, struct git_state *out, struct arena *a);
/* Packs a state without its log and parents, and unpacks it. */
void git_state_pack(struct buf *b, const struct git_state *st, struct arena *a);
bool git_state_unpack(struct str bytes, struct git_state *out, struct arena *a);
/* Could pawl have written it? It must move only pawl's refs, and its stamp and status must be in range. */
bool git_state_sane(const struct git_state *st, struct arena *a);
/* Gets the state, without its log and parents, from the memo. Returns the entry's checksum, or 0 if there
 * is none. */
uint64_t git_memo_recall(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a);
/* Adds a state that was read from its commit. */
void git_memo_put(struct git *s, const git_oid *oid, const struct git_state *st);
/* Do the commits of these keys match the entries that were used? If not, the memo is forgotten. */
bool git_memo_sure(struct git *s, struct strs keys);
/* After git_memo_doubt() this handle reads only commits, from the next read on; git_memo_forget() also removes the file. */
void git_memo_doubt(struct git *s);
void git_memo_forget(struct git *s);
/* A read of the refs begins. Other processes may have appended entries since the last one. */
void git_memo_check(struct git *s);
/* Adds a commit that this change wrote, for the processes that follow. */
void git_memo_note(struct git *s, const git_oid *oid);
void git_memo_save(struct git *s);
void git_memo_close(struct git *s);
/* Writes the tree that holds a record's body, and reads it. */
int git_body_write(struct git *s, const struct record *r, git_oid *tree, struct arena *a);
int git_body_read(struct git *s, const git_oid *tree, struct str *out, struct arena *a);
/* A record with its body as one JSON text, and back. */
struct str git_record_text(const struct record *r, struct arena *a);
bool git_record_read(struct str text, struct record *out, struct arena *a);

/* --- the base ----------------------------------------------------------------------------------- */

struct git_link {
	struct str key;
	git_oid oid; /* zero: remove the link */
};

/* Calls fn for each record that the base's tree names. */
int git_base_each(struct git *s, const git_oid *tree,
		  int (*fn)(struct git *s, struct str key, const git_oid *oid, void *ctx),
		  void *ctx);
/* Writes a tree with the links changed; `from` zero: begins with an empty tree. */
int git_base_change(struct git *s, const git_oid *from, const struct git_link *links, size_t n,
		    git_oid *out);

/* --- the view ----------------------------------------------------------------------------------- */

/* Reads the refs that have changed. 0, or 1 if there is no queue. */
int git_refresh(struct git *s);
struct git_head *git_head(const struct git_view *v, struct str key);
struct git_head *git_head_make(struct git_view *v, struct str key);
/* Forgets the records that the last read did not see. */
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
int git_refs_read(struct git *s);

/* --- changing ----------------------------------------------------------------------------------- */

int git_modify(struct store *s, struct change *changes, size_t n);
int git_begin_queue(struct git *s);
int git_discard(struct store *s);

/* Compaction: tasks that move to the base and lose their refs; the heads belong to the view. */
struct git_compact {
	const struct git_head **v;
	size_t n;
};

/* If there are too many refs, chooses idle tasks that are not in `busy`. */
void git_compact_plan(struct git *s, struct strs busy, struct git_compact *out, struct arena *a);
/* Removes their refs, after the base names their commits. */
void git_compact_finish(struct git *s, const struct git_compact *f, struct arena *a);

/* --- places ------------------------------------------------------------------------------------- */

int git_find(struct git *s, const struct uri *uri);
/* Makes a bare repository at this path, whole or not at all. libgit2's codes; GIT_EEXISTS: there is one. */
int git_make_repository(const char *path);
int git_path_open(struct git *s);
void git_path_close(struct git *s);
int git_check(struct store *s, check_fn *fn, void *ctx);
/* Reports ref locks that a dead process left behind (git/git_doctor.c). */
void git_stale_check(struct git *s, check_fn *fn, void *ctx);
int git_repair_blocks(struct store *s, enum repair_step step, const struct repair_sink *sink);
int git_queues(struct store *s, name_fn *fn, void *ctx);
int git_wire_open(struct git *s);
/* Takes the result of a read. If this clone is damaged, fetches the queue again and returns the result of
 * a new read. */
int git_repair(struct git *s, int rc);

/* --- time --------------------------------------------------------------------------------------- */

int64_t git_now(struct store *s);
void git_clock_open(struct git *s);
/* Before a change: sets the clock to the wall clock if the two differ and no task is waiting for a time. */
void git_clock_change(struct git *s);
/* Takes the skew from the URI's parameter, which may be empty. false: it is not a duration. */
bool git_clock_skew(struct git *s, struct str text);
/* show() converts a record's expiry from its writer's clock to ours, hide() back; hide() returns the clock to
 * write with the record. */
void git_clock_show(struct git *s, struct git_head *h, struct record *r, struct arena *a);
struct str git_clock_hide(struct git *s, const struct git_head *h, struct record *r,
			  struct arena *a);

/* --- folder ----------------------------------------------------------------------------------- */

/*
 * git_folder: a repository's folders as descriptors. pawl opens, renames and removes its own files
 * (below `pawl`, and refs) relative to these descriptors. A link that somebody planted therefore cannot
 * redirect a write.
 */

#define GIT_LOCKS_FOLDER "pawl/locks"

/* Sets s->top and s->refs for the repository DIR: 0 or -errno. Some tools make `refs` a link in the user's
 * own clone, so pawl follows it there, but not in a foreign repository. */
int git_folders_open(struct git *s, const char *dir);
void git_folders_close(struct git *s);
/* Opens the folder PATH below DIR; no component may be a link. `make`: makes it if it does not exist.
 * Returns a descriptor or -errno. */
int git_folder(int dir, const char *path, bool make);
/* Opens the gate NAME in the folder `pawl` of the repository TOP; 0 or -errno. */
int git_gate_open(struct gate *g, int top, const char *name);
/* Does the error say that the device is full? */
bool git_errno_full(int err);
/* Fills in err for a failed call on a local file. */
int git_fail_errno(struct git *s, int err, const char *what);

/* --- trust ------------------------------------------------------------------------------------ */

/*
 * git_trust: which repositories are the user's own, and which are foreign.
 *
 * Git never checks out a path with the component ".git". So a repository in a folder of that name is the
 * user's own: `git clone`, `git init` or the user made it, and its remotes and settings count. Any other
 * repository inside a worktree is foreign, because it may have come with the clone. pawl uses a foreign
 * repository by its files only: pawl runs none of its hooks, reads none of its settings, and follows no link
 * and no alternate in it.
 */

/* Is the repository at PATH foreign? PATH need not exist yet. */
bool git_is_foreign(const char *path);
/* Can pawl use the foreign repository at s->remote safely? 0, or a fault. 0 if it does not exist. */
int git_foreign_vet(struct git *s);
/* Opens the foreign repository without its settings: 0, or a code of libgit2. */
int git_foreign_open(struct git *s);
/* The user's own repository around `dir`; NULL: there is none. `skipped`: there is a foreign one. */
git_repository *git_own_repository(const char *dir, bool *skipped);

/* --- json ------------------------------------------------------------------------------------- */

/* The parts of a commit message that git/git_record.c and git/git_message.c share. */

/* An index's fields. A field's position is its tag in git/git_memo.c, so append new fields at the end. */
struct git_field {
	const char *name; /* NULL: the last one */
	size_t offset;
	bool wide;
};

enum { GIT_INDEX_NUMBERS = 8, GIT_INDEX_TEXTS = 5 };
extern const struct git_field git_index_numbers[], git_index_texts[];
int64_t git_index_number(const struct index *ix, const struct git_field *f);
void git_index_set(struct index *ix, const struct git_field *f, int64_t n);
struct str *git_index_text(struct index *ix, const struct git_field *f);

/* The whole record except its body. */
json_t *git_record_json(const struct record *r, struct arena *a);
/* *older: pawl 0.1 wrote the record. */
bool git_record_parse(const json_t *o, struct record *r, bool *older, struct arena *a);

/* --- set -------------------------------------------------------------------------------------- */

/* A change in progress, for the layouts: the records that it touches, and their new states. */

/* One record's new state. */
struct git_step {
	struct str key;
	const struct record *rec; /* NULL: dropped */
	const struct git_head *head;
	struct git_line *lines, **last;
	struct str clock;
	git_oid tree, oid;
	bool put; /* an edit wrote the record; else the change only read it, or named it in the log */
	bool to_base; /* the base will hold the record; it will have no ref of its own */
};

struct git_set {
	struct git *s;
	struct arena a;
	struct mem_undo *undo;
	struct git_step *steps; /* by key */
	size_t n;
	struct git_line *lines, **last; /* log lines without a record */
	unsigned n_lines;
	struct git_move *moves;
	size_t n_moves;
	struct git_link *links;
	size_t n_links;
	git_oid *appended_list; /* commits appended to the base, which keeps them reachable */
	size_t n_appended;
	bool base_moves;
	struct git_compact compact;
	int64_t stamp;
	struct str nonce;
};

struct git_step *git_step_find(struct git_set *w, struct str key);
struct git_step *git_step_make(struct git_set *w, struct str key);
/* After the edits: sets each step's rec and clock, and gives each record its own log lines. */
void git_set_states(struct git_set *w);
void git_set_lines(struct git_set *w);
/* Begins a set with a stamp and a nonce, based on the view. */
void git_set_begin(struct git_set *w, struct git *s);

#endif
