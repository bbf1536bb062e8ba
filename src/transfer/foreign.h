/*
 * foreign: imports tasks from other programs. Each program has one table, sources/NAME.def, which maps its keys to
 * fields and its words to values. C code does only what a table cannot express: the syntax of the files, and tasks
 * inside other tasks.
 */
#ifndef TRANSFER_FOREIGN_H
#define TRANSFER_FOREIGN_H

#include "base/arena.h"
#include "transfer/port.h"

/* How to treat a key's value. `to` is the field, unless stated otherwise. */
enum foreign_how {
	TAKE,    /* the field gets the value */
	WORDS,   /* the field gets the table's word for the value */
	LINK,    /* an id, or several: tasks that this one waits for */
	INSIDE,  /* the parent's id */
	SECTION, /* a section of the description; `to` is its heading */
	LABEL,   /* labels, with `to` before each */
	NOTES, /* comments as objects; `to` names their keys for text, author and time, separated by commas. NULL: texts of
		  the form "time;author;text" */
	ALIAS, /* another id of this task, to which links may lead */
	DROP   /* not imported, because another key of the record has the same information */
};

struct foreign_rule {
	const char *key;
	enum foreign_how how;
	const char *to;
};

struct foreign_word {
	const char *key, *theirs, *ours;
};

enum foreign_shape { OBJECTS, FOLDER, ROWS, LINES, CHECKLIST };

struct foreign {
	const char *name;
	enum foreign_shape shape;
	const char
		*place; /* where its files usually are, below a project's folder; NULL: anywhere */
	const char *
		sign; /* a file in the folder `place` by which pawl recognises it; NULL: the folder's name is enough */
	const char *prefix; /* put before an id that is a number */
	size_t id_most;     /* characters of an id that pawl keeps; 0: all */
	bool utc;           /* times without a zone are UTC; otherwise local time */
	bool nested;        /* the tasks are inside another object */
	int rank;           /* if several tables match the files, the highest rank wins */
	const struct foreign_rule *rules;
	const struct foreign_word *words;
	const char *const *
		marks; /* a file is recognised by these keys in its first object, or names in its first row */
};

/* NULL: no table has this name. */
const struct foreign *foreign_find(struct str name);
/* Recognises a file or folder by its contents or its place; NULL: no table matches. */
const struct foreign *foreign_recognise(const char *path);
/* The file or folder to read: `path`, or the usual place below it. */
const char *foreign_path(const struct foreign *f, const char *path, struct arena *a);
/* All tables, sorted by name; the last is NULL. tools/list-sources generates this list and the next from sources/. */
extern const struct foreign *const foreign_all[];
/* "aitasks backlog beads …" */
extern const char foreign_choices[];

/* The state and the findings of a foreign import, apart from the tasks. */
struct foreign_in {
	const struct foreign *from;
	bool all; /* also import records that are not a person's task, such as agents' messages */
	bool ordered;         /* a checklist: each item waits for the one before it */
	struct strs warnings; /* "FILE:LINE: …", at most FOREIGN_WARNINGS */
	size_t n_warnings;
	struct strs dropped; /* reasons; n_dropped has their counts */
	size_t n_dropped[16];
	size_t by_status[STATUS_END];
	json_t *key_lines;  /* the line of each key of the current record; NULL: one line for all */
	bool by_place;      /* the current record's id is its position in the file */
	json_t *aliases;    /* maps each ALIAS to the task's own id; NULL: none */
	struct task *first; /* the first tasks, for a preview: at most FOREIGN_PREVIEW */
	size_t n_first;
	uint64_t *ids; /* a hash set of all task keys, as sums; 0: an empty slot */
	size_t n_ids, room;
};

#define FOREIGN_WARNINGS 100
#define FOREIGN_PREVIEW 20

/* Maps a record of the program to a task, and adds it to the spool. Borrows `o`. */
enum result foreign_found(struct port_in *in, json_t *o, size_t line);
/* Adds a stub for a refused record, so that links to it have a target. */
enum result foreign_stub(struct port_in *in, struct str their_id, size_t line);
/* Reads the top object of a JSON file: one record, or records in a program's own nesting. */
enum result foreign_object(struct port_in *in, json_t *o, struct str text, size_t line);
enum result foreign_md(struct port_in *in, struct str text, struct str name);
/* foreign_object() for Task Master, whose tasks are all in one object. */
enum result foreign_master_read(struct port_in *in, json_t *o, struct str text, size_t line);
/* Adds the texts of a Backlog.md file to its record. */
void foreign_backlog_body(json_t *o, struct str body);
/* The reason why a file below Backlog.md's folder is not a task; NULL: it is a task. */
const char *foreign_backlog_left_out(struct str path);
enum result foreign_lines(struct port_in *in);
enum result foreign_checklist(struct port_in *in);
/* The own id of the task with this alias; empty: none. Borrowed. */
struct str foreign_alias(const struct foreign_in *f, struct str id);
/* Is a task with this key in the files? */
bool foreign_has(const struct foreign_in *f, struct str key);
/* The reason for a task that the program calls blocked without giving a reason. */
struct str foreign_blocked(const struct foreign *f, struct arena *a);
/* where: "FILE:LINE" */
void foreign_warn_at(struct port_in *in, struct str where, struct str text);
void foreign_warn(struct port_in *in, size_t line, struct str text);
void foreign_drop(struct port_in *in, const char *why);

/* Copies the tasks to *to, without links whose target does not exist: these stay in `extra`, with a warning. strict: a link
 * without a target is an error. exists: SUCCESS if this id is in the queue, NOT_FOUND if it is not; any other code ends
 * the import. */
enum result foreign_links(struct port_in *in, struct spool *to, bool strict,
			  enum result (*exists)(void *ctx, struct str id, struct answer *ans),
			  void *ctx);
void foreign_end(struct foreign_in *f);

/* --- foreign when ----------------------------------------------------------------------------- */

/* foreign_when: converts the times that other programs write to ISO 8601. */

/* Reads 20261116T103000Z (Taskwarrior), 16/Nov/26 10:30 AM (Jira), and all forms that when_parse() reads. utc: a time
 * without a zone is UTC; otherwise it stays as it is, in local time. */
struct str foreign_when(struct str text, bool utc, struct arena *a);

#endif
