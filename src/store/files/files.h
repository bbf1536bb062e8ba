/*
 * files: a queue as a folder of small JSON files, which other programs may read and write as well.
 * doc/files.md explains why each step is atomic, and what a crash at each step leaves. In short:
 *
 *  - DIR/ID.lock, .done, .failed, .task: one file for each task (files_store.c maps the names,
 *    files_form.c the content).
 *  - DIR/.pawl/state: every record's index and hot part, as a snapshot and one frame for each later
 *    change (files_state.c, files_form.c). The frame is the commit (files_change.c). After it, pawl
 *    writes the task files (files_apply.c). files_compact.c turns the frames into a new snapshot.
 *  - DIR/.pawl/log: the event log up to the snapshot. Later lines are in the frames (files_log.c).
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

#define FILES_SETTLED 200          /* ms; an older mtime changes with every write */
#define FILES_TEXT_MAX (16u << 20) /* of one task's file */
#define FILES_STATE_MAX (UINT64_C(1) << 32)
#define FILES_FORMAT 1
#define FILES_ID 32

/* The state stores these numbers. */
enum file_kind {
	FILE_NONE = 0,
	FILE_TASK = 1,
	FILE_LOCK = 2,
	FILE_DONE = 3,
	FILE_FAILED = 4,
	FILE_KINDS
};

/* The metadata of a file at the time when its content was known. */
struct stamp {
	uint64_t ino;
	int64_t size, mtime; /* ns; < 0: so new that a later write may leave the same mtime */
};

/* The file that a change replaces; FILE_NONE: there was none. */
struct replaced {
	struct stamp stamp;
	uint8_t kind;
	bool archived;
};

/* A record, as committed, or as interpreted from a file that another program changed. */
struct ent {
	struct str key;
	int64_t rev;
	/* also in the file: it tells a file of an earlier or failed change from the current one */
	uint64_t commit;
	struct index ix; /* of a dropped record, only the id */
	struct str hot, body;
	struct stamp stamp;
	struct replaced old; /* if fresh */
	uint8_t kind;        /* enum file_kind of its file; FILE_NONE: it is only in the state */
	bool archived;       /* in DIR/archive */
	uint8_t had;         /* names of its files since the snapshot: a set of files_name_bit() */
	bool dropped, has_body;
	bool stranger;         /* no pawl has ever changed it */
	bool fresh;            /* from a frame: its file may not be on disk yet */
	bool found;            /* interpreted from the folder, not committed yet */
	const struct ent *was; /* found: the committed record; NULL: none */
	const char *bad;       /* why its file cannot be used; NULL: it can */
	bool occupied;         /* a file that is not a lock has the name of its lock */
	/* found: its status has changed; tasks that wait for it are not recounted yet */
	bool moved;
	bool rewrite; /* found: its file must be written again */
	/* its new file exists in .pawl; that file already has its final name */
	bool prepared, linked;
	size_t number; /* of that file */
};

struct chunk;
struct log_part;

/* A record stays raw in the snapshot until a caller needs it. */
struct slot {
	struct ent *e; /* NULL: raw */
	const char *raw;
};

/* The state as far as it was read, with the records found in the folder since. */
struct view {
	struct slot *v; /* by key */
	size_t n, room;
	struct chunk *chunks;
	struct log_part *log, **log_end; /* lines in the frames */
	/* size of the log file; the same with the lines in the frames */
	int64_t log_base, log_size;
	int fd; /* of the state; -1: none */
	uint64_t ino, check;
	int64_t first, end, seq; /* where the frames begin and end; number of the last frame */
	int64_t at;              /* time of the last frame */
	struct anchor anchor;
	char id[FILES_ID + 1];
	bool gone;      /* the queue was discarded */
	bool linked;    /* the state file has a second hard link, whose content must not change */
	bool older;     /* a record of an older pawl is in it */
	size_t n_found; /* number of records found in the folder */
	struct arena arena;
};

struct log_part {
	struct log_part *next;
	struct str bytes;
};

struct files {
	struct store base;
	char *path;            /* of the folder */
	int dir, own, archive; /* folders: DIR, .pawl, archive (-1: none) */
	struct stat place;     /* of DIR */
	struct gate gate;
	int note, watch;
	struct view view;
	struct localclock clock;
	struct anchor anchor; /* the state's, or a new one that is not saved yet */
	bool changing;        /* during a change; `now` counts */
	int64_t now;
	int depth;       /* of nested scans */
	int64_t checked; /* mtime of DIR at the last look */
	int64_t folder;  /* mtime of DIR at which this handle knows its whole content; 0: none */
	int64_t applied; /* in a change: number of the last change whose files are all written */
	bool unsynced;   /* a sync of the state has failed since the last snapshot */
	bool strange;    /* the note cannot describe the folder: look each time */
};

/* The committed record; NULL: there is none. */
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

#define FILES_NAME_MAX 256 /* no file name is longer */

/* Gives "t1.lock"; -1: the id is not valid. */
int files_name(char *out, size_t room, struct str id, enum file_kind kind);
static inline uint8_t files_name_bit(unsigned kind, bool archived)
{
	return kind == FILE_NONE ? 0 : (uint8_t)(1u << ((kind - FILE_TASK) * 2 + archived));
}

/* The names that a record's files have or had since the snapshot. */
static inline uint8_t files_names(const struct ent *e)
{
	return !e ? 0
		  : (uint8_t)(e->had | files_name_bit(e->old.kind, e->old.archived) |
			      (e->dropped ? 0 : files_name_bit(e->kind, e->archived)));
}

/* Gives the kind and the id of a file by its name; FILE_NONE: not a file of the queue. The id may be
 * invalid. */
enum file_kind files_kind(struct str name, struct str *id);
/* The folder of a queue below DIR: "" for the default queue. */
struct str files_queue_folder(struct arena *a, struct str queue);
/* The name of the queue that has this folder. */
struct str files_queue_name(struct arena *a, struct str folder);
/* The descriptor of DIR, or of archive in it. -ENOENT: it does not exist; or another -errno. */
int files_folder(struct files *s, bool archived);

/* --- form --------------------------------------------------------------------------------------- */

struct task;

/* The content of a file. */
struct form {
	bool ours;       /* this queue wrote it */
	bool full;       /* it has all fields of a task */
	uint64_t commit; /* if ours */
	struct task *task;
	struct str agent, description, reason, status;
	/* times; 0: missing, or not readable */
	int64_t claimed_at, expires_at, completed_at, failed_at;
	const char *odd; /* a field of it has a wrong value */
	bool damaged;    /* it follows the protocol, but cannot be parsed */
};

/* The kind of file for a record, with the task in *t. FILE_NONE: it is not a task that a file can hold
 * completely. */
enum file_kind files_form_kind(const struct store_rules *rules, const struct record *r,
			       struct task *t, struct arena *a);
struct str files_form_text(const struct task *t, const char *id, uint64_t commit, struct arena *a);
/* NULL, or why the file does not count: it is damaged or foreign. */
const char *files_form_parse(struct str text, const char *id, enum file_kind kind, struct form *out,
			     struct arena *a);
/* Does an unreadable text show that pawl wrote it for this task, and that the power failed? */
bool files_form_torn(struct str text, const char *store, struct str id, struct arena *a);

/* --- records as bytes --------------------------------------------------------------------------- */

extern const size_t files_item_head; /* size of the smallest record */

void files_encode(struct buf *b, const struct ent *e);
/* Decodes the record at the start of *rest, and moves *rest behind it; -1: damaged. */
int files_decode_next(struct view *v, struct str *rest, struct ent *e);
/* The size of the first record; 0: it is not complete. */
size_t files_raw_size(struct str bytes);
/* Fields of a raw record of the snapshot, whose bounds were checked. */
struct str files_raw_key(const char *raw);
bool files_raw_older(const char *raw); /* did an older pawl write it? */
bool files_raw_has_lists(const char *raw);
enum file_kind files_raw_kind(const char *raw);
void files_decode(struct view *v, const char *raw, struct ent *out);

/* --- the state ---------------------------------------------------------------------------------- */

void files_view_free(struct view *v);
/* Opens and reads the state; 0, or 1 if there is none. */
int files_load(struct files *s);
/* Reads the frames that other processes have committed. *changed may be NULL. */
int files_refresh(struct files *s, bool *changed);
/* Appends a frame with these records and log lines; 0: it is durable. */
int files_append(struct files *s, struct ent **items, size_t n, struct str log);
/* Makes the frames that other processes appended durable; -errno. */
int files_sync_state(struct files *s);
/* Appends a frame that ends the queue. */
int files_append_end(struct files *s);
/* Writes a complete state file to `fd`. */
int files_write_state(struct files *s, int fd, int64_t log_base);

/* --- the view ----------------------------------------------------------------------------------- */

/* The record in a slot. files_peek() decodes a raw record only into `scratch`, unless it has lists. */
struct ent *files_at(struct view *v, size_t i);
const struct ent *files_peek(struct view *v, size_t i, struct ent *scratch);
struct ent *files_find(struct view *v, struct str key);
/* Replaces the record of the same key; returns the old one. */
struct ent *files_set(struct view *v, struct ent *e);
void files_unset(struct view *v, struct str key);
struct ent *files_ent_copy(struct view *v, const struct ent *e); /* in the view's arena */
int files_get(struct store *s, struct str key, struct record *out, struct arena *a);
int files_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx);
int files_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int files_count(struct store *s, const struct query *q, int64_t *n);
int files_tally(struct store *s, int64_t *counts);
/* Encodes a line of the event log. */
void files_log_add(struct buf *b, const struct entry *e);
int files_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
/* The body of a record. 1: only its file has the body, and the file no longer belongs to this record. */
int files_body(struct files *s, const struct ent *e, struct arena *a, struct str *out);

/* --- the folder --------------------------------------------------------------------------------- */

struct found {
	struct str key, id;
	char name[FILES_NAME_MAX];
	enum file_kind kind;
	bool archived;
	uint64_t ino;
	/* after it was read */
	struct stamp stamp;
	struct form form;
	const char *bad; /* why it does not count; NULL: it counts */
	bool torn;       /* bad, but pawl wrote it */
	bool closed;     /* bad, because this user may not read it */
	int64_t mtime;   /* ms */
};

int64_t files_nanoseconds(const struct stat *st); /* of its mtime */
struct stamp files_stamp(const struct stat *st);
/* Is the content certainly the same? Probably the same? */
bool files_stamp_eq(const struct stamp *a, const struct stamp *b);
bool files_stamp_like(const struct stamp *a, const struct stamp *b);
/* 0, 1 if it does not exist, -errno. */
int files_stat(int dir, const char *name, struct stat *st);
/* Reads the stamp and the form of a file; sets `bad` if it does not count. 1: it does not exist any more;
 * -errno. */
int files_read_found(struct files *s, struct found *f, struct arena *a);
/* Reads the state and, as far as needed, the folder; then the view is up to date. `all`: reads the folder
 * even if it seems unchanged. */
int files_find_changes(struct files *s, bool all);
/* Looks at the files of one record. *changed: the record has changed. 1: the state has moved on; only
 * within a scan, where the view stays as it is. */
int files_check_file(struct files *s, struct str key, bool *changed);
#define FILES_UNSYNCED (-2)
/* The mtime of the folder after the last change, and the number of the last change whose files are all
 * written: -1: unknown, FILES_UNSYNCED: a sync failed. */
void files_read_note(struct files *s, int64_t *folder, int64_t *applied);
void files_write_note(struct files *s, int64_t folder, int64_t applied);
/* Was the state written before this boot? Then files that were not synced may be lost. */
bool files_rebooted(const struct files *s);
/* After a new boot: is it the torn lock of a change that was not committed when the power failed? */
bool files_torn(struct files *s, const struct found *f, const struct ent *known);
/* Is the record's file as pawl left it? */
bool files_untouched(struct files *s, const struct ent *e);
int64_t files_folder_time(struct files *s);
/* Lists all files with a name of the protocol, in DIR and archive, sorted by key; in `a`. */
int files_list(struct files *s, bool archive, struct found **out, size_t *n, struct arena *a);

/* Is the file in the place of the record's own file? */
bool files_in_place(const struct found *f, const struct ent *known);
/* Did pawl write the file, but not in the last change of this record? Then it belongs to a failed change,
 * or was not removed yet. */
bool files_left_over(const struct found *f, const struct ent *known);
/* Interprets the files of one key, given the committed record (NULL: none). NULL: there is no record;
 * `known` itself: it is unchanged. */
const struct ent *files_understand(struct files *s, const struct ent *known, struct found *found,
				   size_t n);
/* Updates the counts of the tasks that wait for a task with `moved`. */
void files_recount(struct files *s);

/* --- changing ----------------------------------------------------------------------------------- */

int files_modify(struct store *s, struct change *changes, size_t n);
int files_discard(struct store *s);
int files_lock(struct files *s);
/* Writes the new content of a file to .pawl; `e` gets its stamp. */
int files_prepare(struct files *s, struct ent *e, const struct task *t, size_t number);
/* Gives a new .lock its name before the change is committed: 1 if another program has taken that name. */
int files_reserve(struct files *s, struct ent *e);
/* Fails if a file that does not count has the name that `e` will get. */
int files_check_name(struct files *s, const struct ent *e);
void files_take_back(struct files *s, struct ent *e);
/* After the commit: gives the file its name, and removes the old file. `was` NULL: the old file is
 * unknown. 1: a foreign file is in the way and stays. < 0: it failed. */
int files_apply(struct files *s, struct ent *e, const struct ent *was);
/* Removes the record's file, if it is still the one that pawl knows. */
void files_remove(struct files *s, const struct ent *e);
/* Finishes the work of a process that died: brings the files of all changes after `applied` (-1: since the
 * snapshot) in line with the state. After a new boot, an unreadable file counts as one that was not synced
 * in time. false: some of it failed. */
bool files_settle(struct files *s, int64_t applied, bool rebooted);
/* Sets the mtime of DIR to a value that no other program would set, so that later changes can be seen; 0:
 * no permission. */
int64_t files_mark_folder(struct files *s);
int files_compact(struct files *s);
/* Replaces the state file by one with the content of the view. */
int files_new_state(struct files *s, int64_t log_base);
int files_sync_folder(int fd);

/* Opens another handle of the same queue, for reading. */
int files_twin(struct files *s, struct files **out);
void files_close(struct store *s);
int64_t files_now(struct store *s);
/* Sets s->anchor and s->now for a change. */
void files_clock_change(struct files *s);
int files_check(struct store *s, check_fn *fn, void *ctx);

#endif
