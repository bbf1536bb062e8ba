/*
 * foreign: imports tasks from other programs. Each program has one table, sources/NAME.def, which maps its keys to
 * fields and its words to values. C code does only what a table cannot express: the syntax of the files, and tasks
 * inside other tasks.
 */
#ifndef TRANSFER_FOREIGN_H
#define TRANSFER_FOREIGN_H

#include "base/arena.h"
#include "transfer/port.h"

/* The treatment of the value of a key. `to` is the field, unless said otherwise. */
enum foreign_how {
	TAKE,    /* the field gets the value */
	WORDS,   /* the field gets the word of the table for it */
	LINK,    /* an id, or several: tasks that this one waits for */
	INSIDE,  /* the id of the task around this one */
	SECTION, /* a section of the description; `to` is its heading */
	LABEL,   /* labels, with `to` before each */
	NOTES, /* comments: objects; `to` names their keys for text, author and time, with commas. NULL: texts of the form
		  "time;author;text" */
	ALIAS, /* another id of this task, to which links may lead */
	DROP   /* not imported: the record says the same elsewhere */
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
		sign; /* a name in the folder `place`, by which pawl knows it; NULL: its own name is enough */
	const char *prefix; /* put before an id that is a number */
	size_t id_most;     /* characters of an id that pawl keeps; 0: all */
	bool utc;           /* times without a zone are UTC, else local time */
	bool nested;        /* the tasks are inside another object */
	int rank;           /* of several that could have written the files, the highest counts */
	const struct foreign_rule *rules;
	const struct foreign_word *words;
	const char *const *
		marks; /* a file is recognised by these keys of its first object, or names of its first row */
};

/* NULL: there is no such program in the tables. */
const struct foreign *foreign_find(struct str name);
/* By its contents or its place; NULL: not one of these. */
const struct foreign *foreign_recognise(const char *path);
/* The file or folder to read: `path`, or the usual place below it. */
const char *foreign_path(const struct foreign *f, const char *path, struct arena *a);
/* All of them, by name; the last is NULL. tools/list-sources makes these two from sources/. */
extern const struct foreign *const foreign_all[];
/* "aitasks backlog beads …" */
extern const char foreign_choices[];

/* The findings of an import of foreign tasks, beside the tasks. */
struct foreign_in {
	const struct foreign *from;
	bool all; /* also records that are not a person's task, such as the messages of agents */
	bool ordered;         /* a checklist: each item waits for the one before it */
	struct strs warnings; /* "FILE:LINE: …", at most FOREIGN_WARNINGS */
	size_t n_warnings;
	struct strs dropped; /* reasons; n_dropped has their counts */
	size_t n_dropped[16];
	size_t by_status[STATUS_END];
	json_t *key_lines;  /* the line of each key of the current record; NULL: all are on one */
	bool by_place;      /* the id of the current record is its place in the file */
	json_t *aliases;    /* ids of ALIAS, with the task's own; NULL: none */
	struct task *first; /* the first tasks, for a preview: at most FOREIGN_PREVIEW */
	size_t n_first;
	uint64_t *ids; /* a set of the sums of all keys; 0: an empty place */
	size_t n_ids, room;
};

#define FOREIGN_WARNINGS 100
#define FOREIGN_PREVIEW 20

/* A record of the program: adds the task to the spool. Borrows `o`. */
enum result foreign_found(struct port_in *in, json_t *o, size_t line);
/* A record that was refused: links to it lead somewhere. */
enum result foreign_stub(struct port_in *in, struct str their_id, size_t line);
/* The top object of a JSON file: one record, or a program's own nesting of them. */
enum result foreign_object(struct port_in *in, json_t *o, struct str text, size_t line);
enum result foreign_md(struct port_in *in, struct str text, struct str name);
/* The same for Task Master, whose tasks are all in one object. */
enum result foreign_master_read(struct port_in *in, json_t *o, struct str text, size_t line);
/* Adds the texts of a file of Backlog.md to its record. */
void foreign_backlog_body(json_t *o, struct str body);
/* Why a file below the folder of Backlog.md is not a task; NULL: it is. */
const char *foreign_backlog_left_out(struct str path);
enum result foreign_lines(struct port_in *in);
enum result foreign_checklist(struct port_in *in);
/* The id of the task that has this other id; empty: none. Borrowed. */
struct str foreign_alias(const struct foreign_in *f, struct str id);
/* Is a task with this key in the files? */
bool foreign_has(const struct foreign_in *f, struct str key);
/* The reason of a task that is blocked there, without a reason of its own. */
struct str foreign_blocked(const struct foreign *f, struct arena *a);
/* where: "FILE:LINE" */
void foreign_warn_at(struct port_in *in, struct str where, struct str text);
void foreign_warn(struct port_in *in, size_t line, struct str text);
void foreign_drop(struct port_in *in, const char *why);

/* Copies the tasks to *to, without links that lead nowhere: these stay in `extra`, with a warning. strict: such a link
 * is an error. exists: SUCCESS if this id is in the queue, NOT_FOUND if it is not; any other code ends the import. */
enum result foreign_links(struct port_in *in, struct spool *to, bool strict,
			  enum result (*exists)(void *ctx, struct str id, struct answer *ans),
			  void *ctx);
void foreign_end(struct foreign_in *f);

/* Knows 20261116T103000Z (Taskwarrior), 16/Nov/26 10:30 AM (Jira), and what when_parse() knows. utc: a time without a
 * zone is UTC; else it stays as it is: local time. */
struct str foreign_when(struct str text, bool utc, struct arena *a);

#endif
