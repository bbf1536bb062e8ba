/*
 * files: a queue as a folder of small JSON files, which other programs may read and write as well.
 * doc/files.md explains why each step is atomic, and what a crash at each step leaves. In short:
 *
 *  - DIR/ID.lock, .done, .failed, .task: one file for each task (files_store.c maps the names,
 *    files_form.c the content).
 *  - DIR/.pawl/state: every record's index and hot part, as a snapshot and one frame for each later
 *    change (files_state.c, files_form.c). The frame is the commit (files_change.c). After it, pawl
 *    writes the task files (files_apply.c). files_compact.c turns the frames into a new snapshot.
 *  - DIR/.pawl/log: the event log up to the snapshot. Later lines are in the frames (files_event_log.c).
 *  - DIR/.pawl/gate: the writers' lock, with a note on the folder after the last change.
 *  - Other programs may change the task files. The store finds the changed files (files_scan.c) and
 *    interprets them (files_foreign.c).
 */
#ifndef STORE_FILES_FILES_H
#define STORE_FILES_FILES_H

#include <sys/stat.h>

#include "store/local/gate.h"
#include "store/local/local_clock.h"
#include "store/store.h"

#define FILES_SETTLED 200          /* ms; if an mtime is older, any further write changes it */
#define FILES_TEXT_MAX (16u << 20) /* bytes in a task's file */
#define FILES_STATE_MAX (UINT64_C(1) << 32)
#define FILES_FORMAT 1
#define FILES_ID 32

/* The state stores these numbers, so they must not change. */
enum file_kind {
	FILE_NONE = 0,
	FILE_TASK = 1,
	FILE_LOCK = 2,
	FILE_DONE = 3,
	FILE_FAILED = 4,
	FILE_KINDS
};

/* A file's metadata when pawl last read or wrote its content. */
struct stamp {
	uint64_t ino;
	int64_t size, mtime; /* ns; < 0: so recent that a later write may leave it unchanged */
};

/* The file that a change replaces; FILE_NONE: there was no file. */
struct replaced {
	struct stamp stamp;
	uint8_t kind;
	bool archived;
};

/* A record, as committed, or as interpreted from a file that another program changed. */
struct ent {
	struct str key;
	int64_t rev;
	/* The file has this number, too. It tells the current file from an earlier or failed
	 * change's. */
	uint64_t commit;
	struct index ix; /* if dropped, only the id is set */
	struct str hot, body;
	struct stamp stamp;
	struct replaced old; /* if fresh */
	uint8_t kind;        /* its file's enum file_kind; FILE_NONE: it is only in the state */
	bool archived;       /* in DIR/archive */
	uint8_t had;         /* its files' names since the snapshot: a set of files_name_bit() */
	bool dropped, has_body;
	bool stranger;         /* no pawl has ever changed it */
	bool fresh;            /* from a frame: its file may not be on disk yet */
	bool found;            /* interpreted from the folder, not committed yet */
	const struct ent *was; /* found: the committed record; NULL: none */
	const char *bad;       /* why its file cannot be used; NULL: it can */
	bool occupied;         /* a bad file has its lock's name, so no agent can claim it */
	/* found: its status has changed, but the tasks that are waiting for it are not recounted
	 * yet */
	bool moved;
	bool rewrite; /* found: its file must be written again */
	/* its new file exists in .pawl; that file already has its final name */
	bool prepared, linked;
	size_t number; /* of the file in .pawl: new.NUMBER */
};

struct chunk;
struct log_part;

/* A record stays raw in the snapshot until a caller needs it. */
struct slot {
	struct ent *e; /* NULL: raw */
	const char *raw;
};

/* The state as this process has read it, with the records found in the folder since then. */
struct view {
	struct slot *v; /* by key */
	size_t n, room;
	struct chunk *chunks;
	struct log_part *log, **log_end; /* lines in the frames */
	/* size of the log file; its size together with the lines in the frames */
	int64_t log_base, log_size;
	int fd; /* the state file; -1: none */
	uint64_t ino, check;
	int64_t first, end, seq; /* where the frames begin and end; number of the last frame */
	int64_t at;              /* time of the last frame */
	struct anchor anchor;
	char id[FILES_ID + 1];
	bool gone;      /* the queue was discarded */
	bool linked;    /* the state file has a second hard link, so it must not be changed */
	bool older;     /* an older pawl wrote one of its records */
	size_t n_found; /* number of records found in the folder */
	struct arena arena;
};

struct log_part {
	struct log_part *next;
	struct str bytes;
};

struct files {
	struct store base;
	char *path;            /* of DIR */
	int dir, own, archive; /* folders: DIR, .pawl, archive (-1: none) */
	struct stat place;     /* of DIR */
	struct gate gate;
	int note, watch;
	struct view view;
	struct localclock clock;
	struct anchor anchor; /* the state's, or a new one that is not saved yet */
	bool changing;        /* a change is running, and `now` is its time */
	int64_t now;
	int depth;       /* number of nested scans; if not 0, the state is not read again */
	int64_t checked; /* mtime of DIR when the store last checked it */
	int64_t folder;  /* if DIR has this mtime, this handle knows its whole content; 0: none */
	int64_t applied; /* in a change: the last change whose files are all written */
	bool unsynced;   /* a sync of the state has failed since the last snapshot */
	bool strange;    /* the note cannot describe the folder, so list it each time */
};

/* Returns the committed record; NULL: there is none. */
static inline const struct ent *files_committed(const struct ent *e)
{
	return e && e->found ? e->was : e;
}

static inline struct files *files_of(struct store *s)
{
	return (struct files *)s;
}

int files_fail(struct files *s, int err, const char *what);
/* Reports that a folder in DIR cannot be opened or made. */
int files_fail_folder(struct files *s, int err, const char *name);
uint64_t files_random(void);

/* --- names -------------------------------------------------------------------------------------- */

#define FILES_NAME_MAX 256 /* bytes, with the final '\0' */

/* Writes a name such as "t1.lock" to `out`. -1: the id is not valid, or the name is too long. */
int files_name(char *out, size_t room, struct str id, enum file_kind kind);
static inline uint8_t files_name_bit(unsigned kind, bool archived)
{
	return kind == FILE_NONE ? 0 : (uint8_t)(1u << ((kind - FILE_TASK) * 2 + archived));
}

/* Returns the names that a record's files have, or have had since the snapshot. */
static inline uint8_t files_names(const struct ent *e)
{
	return !e ? 0
		  : (uint8_t)(e->had | files_name_bit(e->old.kind, e->old.archived) |
			      (e->dropped ? 0 : files_name_bit(e->kind, e->archived)));
}

/* Derives a file's kind and id from its name. FILE_NONE: the name does not follow the protocol. The
 * id may be invalid. */
enum file_kind files_kind(struct str name, struct str *id);
/* Returns the queue's folder below DIR: "" for the default queue. */
struct str files_queue_folder(struct arena *a, struct str queue);
/* Returns the name of the queue in this folder. */
struct str files_queue_name(struct arena *a, struct str folder);
/* Returns a descriptor of DIR or DIR/archive, or -errno. -ENOENT: it is missing, or not a
 * folder. */
int files_folder(struct files *s, bool archived);

/* --- form --------------------------------------------------------------------------------------- */

struct task;

/* A task file's content. */
struct form {
	bool ours;       /* this queue wrote it */
	bool full;       /* it has all fields of a task */
	uint64_t commit; /* if ours */
	struct task *task;
	struct str agent, description, reason, status;
	/* 0: the time is missing or cannot be parsed */
	int64_t claimed_at, expires_at, completed_at, failed_at;
	const char *odd; /* which field has a wrong value; NULL: none */
	bool damaged;    /* it follows the protocol, but cannot be parsed */
};

/* Returns the kind of file that a record needs, and decodes its task into *t. FILE_NONE: a file
 * cannot hold the whole record. */
enum file_kind files_form_kind(const struct store_rules *rules, const struct record *r,
			       struct task *t, struct arena *a);
struct str files_form_text(const struct task *t, const char *id, uint64_t commit, struct arena *a);
/* Returns NULL, or why the file does not count: it is damaged or foreign. */
const char *files_form_parse(struct str text, const char *id, enum file_kind kind, struct form *out,
			     struct arena *a);
/* Does an unreadable text show that pawl was writing it for this task when the power failed? */
bool files_form_torn(struct str text, const char *store, struct str id, struct arena *a);

/* --- records as bytes --------------------------------------------------------------------------- */

extern const size_t files_item_head; /* size of the smallest record */

void files_encode(struct buf *b, const struct ent *e);
/* Decodes the record at the start of *rest, and moves *rest past it. -1: the record is damaged. */
int files_decode_next(struct view *v, struct str *rest, struct ent *e);
/* Returns the first record's size; 0: the record is not complete. */
size_t files_raw_size(struct str bytes);
/* These read a raw record of the snapshot without checks, because take_snapshot() has checked its
 * size. */
struct str files_raw_key(const char *raw);
bool files_raw_older(const char *raw); /* did an older pawl write it? */
bool files_raw_has_lists(const char *raw);
enum file_kind files_raw_kind(const char *raw);
void files_decode(struct view *v, const char *raw, struct ent *out);

/* --- the state ---------------------------------------------------------------------------------- */

void files_view_free(struct view *v);
/* Opens and reads the state. 1: there is no state. */
int files_load(struct files *s);
/* Reads the frames that other processes have committed. *changed may be NULL. */
int files_refresh(struct files *s, bool *changed);
/* Appends a frame with these records and log lines. 0: the frame is durable, unless opt.relaxed. */
int files_append(struct files *s, struct ent **items, size_t n, struct str log);
/* Makes the frames that other processes appended durable; -errno. */
int files_sync_state(struct files *s);
/* Appends a frame that ends the queue. */
int files_append_end(struct files *s);
/* Writes a complete state file to `fd`. */
int files_write_state(struct files *s, int fd, int64_t log_base);

/* --- the view ----------------------------------------------------------------------------------- */

/* Return the record in a slot. files_peek() saves memory: it decodes a raw record into `scratch`,
 * unless the record has lists. */
struct ent *files_at(struct view *v, size_t i);
const struct ent *files_peek(struct view *v, size_t i, struct ent *scratch);
struct ent *files_find(struct view *v, struct str key);
/* Adds the record, or replaces the record with the same key. Returns the old record, or NULL. */
struct ent *files_set(struct view *v, struct ent *e);
void files_unset(struct view *v, struct str key);
struct ent *files_ent_copy(struct view *v, const struct ent *e); /* in the view's arena */
int files_get(struct store *s, struct str key, struct record *out, struct arena *a);
int files_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx);
int files_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int files_count(struct store *s, const struct query *q, int64_t *n);
int files_tally(struct store *s, int64_t *counts);
/* Appends an encoded line of the event log to `b`. */
void files_log_add(struct buf *b, const struct entry *e);
int files_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
/* Reads a record's body. 1: only its file has the body, and the file no longer belongs to the
 * record. */
int files_body(struct files *s, const struct ent *e, struct arena *a, struct str *out);

/* --- the folder --------------------------------------------------------------------------------- */

struct found {
	struct str key, id;
	char name[FILES_NAME_MAX];
	enum file_kind kind;
	bool archived;
	uint64_t ino;
	/* set by files_read_found() */
	struct stamp stamp;
	struct form form;
	const char *bad; /* why it does not count; NULL: it counts */
	bool torn;       /* bad, but pawl wrote it */
	bool closed;     /* bad, because this user may not read it */
	int64_t mtime;   /* ms */
};

int64_t files_nanoseconds(const struct stat *st); /* the mtime */
struct stamp files_stamp(const struct stat *st);
/* Is the content certainly the same? Probably the same? */
bool files_stamp_eq(const struct stamp *a, const struct stamp *b);
bool files_stamp_like(const struct stamp *a, const struct stamp *b);
/* 1: the file does not exist; -errno. */
int files_stat(int dir, const char *name, struct stat *st);
/* Reads a file's stamp and content, and sets `bad` if the file does not count. 1: the file no
 * longer exists; -errno. */
int files_read_found(struct files *s, struct found *f, struct arena *a);
/* Brings the view up to date: reads the state, and the folder as far as needed. `all`: reads the
 * folder and the archive even if the folder seems unchanged. */
int files_find_changes(struct files *s, bool all);
/* Checks one record's files. *changed: the record has changed. 1: another process has committed a
 * change since; only within a scan, which must keep its view. */
int files_check_file(struct files *s, struct str key, bool *changed);
#define FILES_UNSYNCED (-2)
/* The note holds the folder's mtime after the last change, and the number of the last change whose
 * files are all written. -1: unknown; FILES_UNSYNCED: a sync failed. */
void files_read_note(struct files *s, int64_t *folder, int64_t *applied);
void files_write_note(struct files *s, int64_t folder, int64_t applied);
/* Was the state written before this boot? If so, files that were not synced may be lost. */
bool files_rebooted(const struct files *s);
/* After a reboot: was this torn lock made by a change that was not committed when the power
 * failed? */
bool files_torn(struct files *s, const struct found *f, const struct ent *known);
/* Is the record's file certainly unchanged since pawl last read or wrote it? */
bool files_untouched(struct files *s, const struct ent *e);
int64_t files_folder_time(struct files *s);
/* Lists all files whose names follow the protocol, sorted by key, in DIR and, if `archive`, in
 * archive. */
int files_list(struct files *s, bool archive, struct found **out, size_t *n, struct arena *a);

/* Does the file have the name that the record's own file has? */
bool files_in_place(const struct found *f, const struct ent *known);
/* Did pawl write the file, but not in the record's last change? If so, a failed change left it, or
 * pawl has not removed it yet. */
bool files_left_over(const struct found *f, const struct ent *known);
/* Interprets one key's files, given the committed record (NULL: none). Returns NULL if there is no
 * record, and `known` itself if the record is unchanged. */
const struct ent *files_understand(struct files *s, const struct ent *known, struct found *found,
				   size_t n);
/* Updates the counts of the tasks that are waiting for a task with `moved`. */
void files_recount(struct files *s);

/* --- changing ----------------------------------------------------------------------------------- */

int files_modify(struct store *s, struct change *changes, size_t n);
int files_discard(struct store *s);
int files_lock(struct files *s);
int files_begin_change(struct files *s, bool again);
/* Writes a file's new content to .pawl, and stores its stamp in `e`. */
int files_prepare(struct files *s, struct ent *e, const struct task *t, size_t number);
/* Assigns a new .lock its name before the commit. 1: another program has taken that name. */
int files_reserve(struct files *s, struct ent *e);
/* Fails if a file that does not count has the name that `e` will get. */
int files_check_name(struct files *s, const struct ent *e);
/* Removes a prepared file, and its reserved .lock unless another program has changed it. */
void files_take_back(struct files *s, struct ent *e);
/* After the commit: assigns the file its name, and removes the old file. `was` NULL: the old file
 * is unknown. 1: a foreign file has the name and stays; -errno. */
int files_apply(struct files *s, struct ent *e, const struct ent *was);
/* Removes the record's file, unless another program has replaced it. */
void files_remove(struct files *s, const struct ent *e);
/* Finishes a dead process's work: brings the files of all changes after `applied` (-1: since the
 * snapshot) in line with the state. After a reboot, an unreadable file counts as one that was not
 * synced in time. false: some files could not be written or removed. */
bool files_settle(struct files *s, int64_t applied, bool rebooted);
/* Sets DIR's mtime to a random value, so that any later change of DIR is visible. 0: no
 * permission. */
int64_t files_mark_folder(struct files *s);
int files_compact(struct files *s);
/* Replaces the state file with a snapshot of the view. */
int files_new_state(struct files *s, int64_t log_base);
int files_sync_folder(int fd);

/* Opens another handle on the same queue, for reading. */
int files_twin(struct files *s, struct files **out);
void files_close(struct store *s);
int64_t files_now(struct store *s);
/* Sets s->anchor and s->now for a change. */
void files_clock_change(struct files *s);
int files_check(struct store *s, check_fn *fn, void *ctx);

#endif
