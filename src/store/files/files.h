/*
 * files: a queue as a folder of small JSON files that other programs may read and write as well. What is
 * atomic how, and what happens when a process dies at which step, is in doc/files.md. In short:
 *
 *  - DIR/ID.lock, .done, .failed, .task: one file for each task (files/name.c, files/form.c).
 *  - DIR/.pawl/state: every record's index and hot part, first as a snapshot, then one frame for each
 *    change (files/item.c, files/state.c). The frame is the commit; the files follow it (files/apply.c). From time to
 *    time all of it becomes a new snapshot (files/compact.c).
 *  - DIR/.pawl/log: the log up to the snapshot; what came later is in the frames (files/log.c).
 *  - DIR/.pawl/gate: the writers' lock, with a note on how the folder looked after the last change.
 *  - A file that is not as pawl left it was changed by somebody else: that is found (files/look.c) and
 *    understood (files/foreign.c).
 */
#ifndef STORE_FILES_FILES_H
#define STORE_FILES_FILES_H

#include <sys/stat.h>

#include "store/local/gate.h"
#include "store/local/clock.h"
#include "store/store.h"

#define FILES_SETTLED 200 /* ms after which a mtime tells a file from a later writing of it */
#define FILES_TEXT_MAX (16u << 20) /* of one task's file */
#define FILES_STATE_MAX (UINT64_C(1) << 32)
#define FILES_FORMAT 1
#define FILES_ID 32

/* The state has it by its number. */
enum file_kind {
	FILE_NONE = 0,
	FILE_TASK = 1,
	FILE_LOCK = 2,
	FILE_DONE = 3,
	FILE_FAILED = 4,
	FILE_KINDS
};

/* How a file looked when we knew what is in it. */
struct stamp {
	uint64_t ino;
	int64_t size, mtime; /* ns; < 0: so new that a later writing may look the same */
};

/* The file that a change takes the place of; FILE_NONE: there was none. */
struct replaced {
	struct stamp stamp;
	uint8_t kind;
	bool archived;
};

/* A record: as it was committed, or as it is understood from a file that somebody else changed. */
struct ent {
	struct str key;
	int64_t rev;
	uint64_t
		commit; /* in the file as well, so that a file of an earlier or failed change is known */
	struct index ix; /* of one that was dropped only the id */
	struct str hot, body;
	struct stamp stamp;
	struct replaced old; /* if fresh */
	uint8_t kind;        /* enum file_kind: where it is; FILE_NONE: only in the state */
	bool archived;       /* in DIR/archive */
	uint8_t had; /* names that its files had since the snapshot: a set of files_name_bit() */
	bool dropped, has_body;
	bool stranger;         /* no pawl ever changed it */
	bool lacks_due;        /* version 0.1.0 wrote it: only its text knows ix.due */
	bool fresh;            /* of a frame: its file is not known to be on disk */
	bool found;            /* understood from the folder, not committed yet */
	const struct ent *was; /* found: what is committed; NULL: nothing */
	const char *bad;       /* its file cannot be used, and why */
	bool occupied;         /* a file that is no lock has the name of its lock */
	bool moved;   /* found: of another status than before; those who wait are not told yet */
	bool rewrite; /* found: its file has to follow */
	bool prepared, linked; /* its new file is written, in .pawl; it has its name already */
	size_t number;         /* of that file */
};

struct chunk;
struct log_part;

/* A record that nobody has needed yet stays as it is in the snapshot. */
struct slot {
	struct ent *e; /* NULL: raw */
	const char *raw;
};

/* The state as far as it was read, and what was found in the folder since. */
struct view {
	struct slot *v; /* by key */
	size_t n, room;
	struct chunk *chunks;
	struct log_part *log, **log_end; /* of the frames */
	int64_t log_base, log_size;      /* in the file; with the frames' */
	int fd;                          /* of the state; -1: none */
	uint64_t ino, check;
	int64_t first, end, seq; /* where the frames begin and end; the last one's number */
	int64_t at;              /* the last one's time */
	struct anchor anchor;
	char id[FILES_ID + 1];
	bool gone;      /* the queue was discarded */
	bool linked;    /* the state has another name, by which it must not change */
	bool lacks_due; /* some records do; the next snapshot will not */
	size_t n_found; /* how often something was found in the folder */
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
	struct anchor anchor; /* as the state has it, or a new one that is not saved yet */
	bool changing;        /* between the start of a change and its end; `now` counts */
	int64_t now;
	int depth;       /* of scans */
	int64_t looked;  /* mtime of DIR when we looked last */
	int64_t folder;  /* mtime of DIR at which this handle knows all about it; 0: none */
	int64_t applied; /* in a change: up to which one the files have followed the state */
	bool unsynced;   /* a sync of the state has failed since the last snapshot */
	bool strange;    /* something in the folder cannot be written down: look each time */
};

/* What of a record the state has; NULL: nothing. */
static inline const struct ent *files_committed(const struct ent *e)
{
	return e && e->found ? e->was : e;
}

static inline struct files *files_of(struct store *s)
{
	return (struct files *)s;
}

int files_fail(struct files *s, int err, const char *what);
/* A folder inside of DIR cannot be opened or made. */
int files_fail_folder(struct files *s, int err, const char *name);
uint64_t files_random(void);
void files_new_id(char id[FILES_ID + 1]);

/* --- names -------------------------------------------------------------------------------------- */

#define FILES_NAME_MAX 256 /* as long as any name can be */

/* "t1.lock"; -1 if the id cannot be one. */
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

/* The id in a file's name and its kind; FILE_NONE: not one of ours. The id may still be no good. */
enum file_kind files_kind(struct str name, struct str *id);
/* Where a queue lives below DIR: "" for the default one. */
struct str files_queue_folder(struct arena *a, struct str queue);
/* The name of the queue whose folder is called so. */
struct str files_queue_name(struct arena *a, struct str folder);
/* DIR, or archive in it. -ENOENT: there is none; another -errno. */
int files_folder(struct files *s, bool archived);

/* --- form --------------------------------------------------------------------------------------- */

struct task;

/* What a file says. */
struct form {
	bool ours;       /* written by this queue */
	bool full;       /* all fields of a task are there */
	uint64_t commit; /* if ours */
	struct task *task;
	struct str agent, description, reason, status;
	int64_t claimed_at, expires_at, completed_at,
		failed_at; /* 0: not said, or not to be read */
	const char *odd;   /* something in it has the wrong type */
	bool damaged;      /* it was meant to be one of ours, but cannot be read */
};

void files_form_begin(void);
/* Where a record goes: FILE_NONE if it is no task of which the file alone would tell all. *t is it. */
enum file_kind files_form_kind(const struct store_rules *rules, const struct record *r,
			       struct task *t, struct arena *a);
struct str files_form_text(const struct task *t, const char *id, uint64_t commit, struct arena *a);
/* NULL, or why the file does not count: it is damaged, or another program's. */
const char *files_form_parse(struct str text, const char *id, enum file_kind kind, struct form *out,
			     struct arena *a);
/* Does a text that cannot be read show that pawl wrote it for this task, and the power failed? */
bool files_form_torn(struct str text, const char *store, struct str id, struct arena *a);

/* --- records in bytes --------------------------------------------------------------------------- */

extern const size_t files_item_head; /* bytes that each has at least */

void files_encode(struct buf *b, const struct ent *e);
/* The record that *rest begins with, which is cut off it; -1: damaged. */
int files_decode_next(struct view *v, struct str *rest, struct ent *e);
/* Its size; 0: it is not whole. */
size_t files_raw_size(struct str bytes);
/* A record as it is in the snapshot, where its bounds were checked. */
struct str files_raw_key(const char *raw);
bool files_raw_has_lists(const char *raw);
enum file_kind files_raw_kind(const char *raw);
void files_decode(struct view *v, const char *raw, struct ent *out);

/* --- the state ---------------------------------------------------------------------------------- */

void files_view_free(struct view *v);
/* Opens and reads the state; 0, 1 if there is none. */
int files_load(struct files *s);
/* Reads what others have committed since. *changed may be NULL. */
int files_refresh(struct files *s, bool *changed);
/* Appends a frame with these records and log lines; 0 if it is durable. */
int files_append(struct files *s, struct ent **items, size_t n, struct str log);
/* Appends a frame that ends the queue. */
int files_append_end(struct files *s);
/* A whole state file into `fd`. */
int files_write_state(struct files *s, int fd, int64_t log_base);

/* --- the view ----------------------------------------------------------------------------------- */

/* The record in a slot; the other way makes none of it, but for `scratch`, unless it has lists. */
struct ent *files_at(struct view *v, size_t i);
const struct ent *files_peek(struct view *v, size_t i, struct ent *scratch);
struct ent *files_find(struct view *v, struct str key);
/* Puts it in the place of what the key has; gives back that. */
struct ent *files_set(struct view *v, struct ent *e);
void files_unset(struct view *v, struct str key);
struct ent *files_ent_copy(struct view *v, const struct ent *e); /* in the view's arena */
int files_get(struct store *s, struct str key, struct record *out, struct arena *a);
int files_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx);
int files_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int files_count(struct store *s, const struct query *q, int64_t *n);
int files_tally(struct store *s, int64_t *counts);
/* A line of the log, as bytes. */
void files_log_add(struct buf *b, const struct entry *e);
int files_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
/* The body of a record; 1: its file has it, and is not that of this record any more. */
int files_body(struct files *s, const struct ent *e, struct arena *a, struct str *out);

/* --- the folder --------------------------------------------------------------------------------- */

struct found {
	struct str key, id;
	char name[FILES_NAME_MAX];
	enum file_kind kind;
	bool archived;
	uint64_t ino;
	/* once it has been read */
	struct stamp stamp;
	struct form form;
	const char *bad; /* it does not count, and why */
	bool torn;       /* bad, and pawl wrote it */
	bool closed;     /* bad, since this user may not read it */
	int64_t mtime;   /* ms */
};

int64_t files_nanoseconds(const struct stat *st); /* of its mtime */
struct stamp files_stamp(const struct stat *st);
/* Is the content still `a`'s for certain? As far as can be told? */
bool files_stamp_eq(const struct stamp *a, const struct stamp *b);
bool files_stamp_like(const struct stamp *a, const struct stamp *b);
/* 0, 1 if there is none, -errno. */
int files_stat(int dir, const char *name, struct stat *st);
/* Stamp and form of a file; `bad` if it has none. 1: it is not there any more; -errno. */
int files_read_found(struct files *s, struct found *f, struct arena *a);
/* Reads the state and, as far as needed, the folder: after it the view is up to date. `all`: look even if
 * the folder seems unchanged. */
int files_look(struct files *s, bool all);
/* Has something been committed that the view does not have? */
bool files_moved_on(struct files *s);
/* One record's file. *changed: it is not as it was. 1: because the state has moved on; only within a scan,
 * where the view stays as it is. */
int files_look_at(struct files *s, struct str key, bool *changed);
#define FILES_UNSYNCED (-2)
/* How the folder looked after the last change, and up to which one the files have followed: -1 unknown,
 * FILES_UNSYNCED if a sync failed. */
void files_read_note(struct files *s, int64_t *folder, int64_t *applied);
void files_write_note(struct files *s, int64_t folder, int64_t applied);
/* The state was written before this boot: files that were not synced may be lost. */
bool files_rebooted(const struct files *s);
/* After a new boot: what a loss of power left of a lock that no record has. */
bool files_torn(struct files *s, const struct found *f, const struct ent *known);
/* Is the record's file as pawl left it? */
bool files_untouched(struct files *s, const struct ent *e);
int64_t files_folder_time(struct files *s);
/* Every file with a name of the protocol, in DIR and archive, sorted by key; in `a`. */
int files_list(struct files *s, bool archive, struct found **out, size_t *n, struct arena *a);

/* In the place of the record's own file. */
bool files_in_place(const struct found *f, const struct ent *known);
/* Ours, but not of the last change of this record: a failed change's, or one that is not removed yet. */
bool files_left_over(const struct found *f, const struct ent *known);
/* What the files of one key mean, given what is committed (NULL: nothing). NULL: nothing is there;
 * `known` itself: it is as it was. */
const struct ent *files_understand(struct files *s, const struct ent *known, struct found *found,
				   size_t n);
/* Counts anew, for those who wait for a task whose status has `moved`, what they wait for. */
void files_recount(struct files *s);

/* --- changing ----------------------------------------------------------------------------------- */

int files_modify(struct store *s, struct change *changes, size_t n);
int files_discard(struct store *s);
int files_queues(struct store *s, name_fn *fn, void *ctx);
int files_lock(struct files *s);
/* Writes the new content of a file into .pawl; its stamp goes into `e`. */
int files_prepare(struct files *s, struct ent *e, const struct task *t, size_t number);
/* Gives a new .lock its name before the change is committed: 1 if somebody else has that name. */
int files_reserve(struct files *s, struct ent *e);
/* Fails if a file that does not count has the name that `e` is going to have. */
int files_check_name(struct files *s, const struct ent *e);
void files_take_back(struct files *s, struct ent *e);
/* After the commit: the file gets its name, and what was there before goes. NULL: nobody knows what was.
 * 1: somebody else's file is in the way; it stays. < 0: it could not be done. */
int files_apply(struct files *s, struct ent *e, const struct ent *was);
/* Removes the record's file, if it is still the one that pawl knows. */
void files_remove(struct files *s, const struct ent *e);
/* Finishes what a process that died left behind: the files of changes after `applied` (-1: of all since
 * the snapshot) follow the state. After a new boot, what cannot be read was not written in time. false: not
 * all of it could be done. */
bool files_settle(struct files *s, int64_t applied, bool rebooted);
/* The mtime of DIR becomes one that nobody else would set, so that later changes can be seen: 0 if we may
 * not. */
int64_t files_mark_folder(struct files *s);
int files_compact(struct files *s);
/* A state with what the view has, in the place of the old one. */
int files_new_state(struct files *s, int64_t log_base);
int files_sync_folder(int fd);

/* Another handle of the same queue, to read with. */
int files_twin(struct files *s, struct files **out);
void files_close(struct store *s);
int64_t files_now(struct store *s);
/* s->anchor and s->now for a change. */
void files_clock_change(struct files *s);
int files_check(struct store *s, check_fn *fn, void *ctx);

#endif
