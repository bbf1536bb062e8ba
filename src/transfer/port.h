/*
 * port: tasks as files, in four formats. JSON is an array with a task on each line; JSON Lines is the same without the
 * array. CSV has a row for each task, and Markdown is a folder with a file for each task. doc/data.md describes the
 * formats.
 *
 * Export: a file gets its name when it is complete. Import: pawl reads and checks the whole file before it changes
 * the queue. The tasks wait in a spool on disk, so memory does not grow with their number.
 */
#ifndef TRANSFER_PORT_H
#define TRANSFER_PORT_H

#include <stdio.h>

#include "base/arena.h"
#include "format/plain.h"
#include "queue/transfer.h"

enum port_format { PORT_NONE, PORT_JSON, PORT_JSONL, PORT_CSV, PORT_MD };

/* The format called `name`; if `name` is empty, the format of a folder or of the path's ending. PORT_NONE: unknown. */
enum port_format port_format(struct str name, const char *path);

/* --- out ---------------------------------------------------------------------------------------- */

struct port_out {
	enum port_format format;
	const char *path;
	char *temp; /* the name until the file is complete; NULL: a pipe or terminal, written in place */
	FILE *file; /* NULL: a folder */
	size_t n;
	struct arena arena;
	struct foreign_out *foreign; /* NULL: one of pawl's own formats */
};

struct foreign_out;

/* "-" is standard output. 0, or -errno. -ENOTEMPTY: the folder is not empty. Without `force`: -EEXIST: the file exists and is
 * not an export in this format; -ELOOP: it is a link to a file. */
int port_out_open(struct port_out *o, enum port_format format, const char *path, bool force,
		  struct arena *a);
/* port_out_open() for another program's format. port_out_close() writes the file, when all tasks are known. */
int port_out_open_foreign(struct port_out *o, struct foreign_out *foreign, const char *path,
			  bool force, struct arena *a);
int port_out_add(struct port_out *o, const struct parcel *p);
/* keep: gives the result its final name; otherwise removes it. */
int port_out_close(struct port_out *o, bool keep);

/* Writes one task, in a format that keeps all tasks in one file. */
void port_json(const struct parcel *p, struct buf *out, struct arena *a);
void port_csv_head(struct buf *out);
void port_csv(const struct parcel *p, struct buf *out, struct arena *a);

/* --- in ----------------------------------------------------------------------------------------- */

struct spool {
	FILE *file;
	size_t n;
};

#define PORT_LEFT_OUT 100
#define PORT_REFUSALS 1000

struct foreign_in;

/* The state of an import. */
struct port_in {
	const char *path;
	FILE *file;
	size_t line; /* the next line to read, from 1 */
	struct spool *spool;
	struct answer *ans;
	struct arena *arena; /* the caller's */
	struct arena piece;  /* for the current task */
	struct strs
		left_out; /* "FILE: why" for each file that was left out; at most PORT_LEFT_OUT of them */
	size_t n_left_out;
	size_t hidden; /* number of names that begin with a dot, except .git and .pawl */
	struct foreign_in *foreign; /* NULL: pawl's own formats */
	/* Continue after a refusal. A stub then replaces the refused task, so that links to it have a target. */
	bool check;
	struct answer refused; /* the first refusal */
	struct strs refusals;  /* "FILE:LINE: why" for each refusal; at most PORT_REFUSALS */
	size_t n_refusals;
	void (*progress)(void *ctx, size_t n);
	void *ctx;
};

/* SUCCESS, with all tasks of the file or folder in *spool; otherwise *ans has the reason, with file and line. "-" is
 * standard input. */
enum result port_read(struct port_in *in, enum port_format format);
/* Refuses one task. With in->check it only records the refusal, and returns SUCCESS. */
enum result port_refuse(struct port_in *in, size_t line, struct str text);
enum result port_refuse_as(struct port_in *in, enum result code, struct str where, struct str text,
			   struct str hint);
/* Refuses the rest of a file, because nothing after this line can be read. */
enum result port_refuse_rest(struct port_in *in, size_t line, struct str text);
/* Call it after port_refuse(): adds a stub for the refused task, which has this id. */
enum result port_stub(struct port_in *in, struct str id, size_t line);
enum result port_cannot(struct port_in *in, const char *what, int r);
/* Each reader passes its tasks to this function. */
enum result port_found(struct port_in *in, struct plain *p, size_t line);
enum result port_read_folder(struct port_in *in, const char *folder);
/* Reads NAME below the folder `dir`, or PATH if `dir` is -1. Messages show PATH. */
enum result port_read_md(struct port_in *in, int dir, const char *name, const char *path);
enum result port_read_json(struct port_in *in);
enum result port_read_csv(struct port_in *in);

int spool_open(struct spool *s);
int spool_add(struct spool *s, const struct parcel *p);
void spool_rewind(void *spool);
/* A callback for struct import. */
int spool_next(void *spool, struct parcel *out, struct arena *a);
void spool_close(struct spool *s);

/* --- source ----------------------------------------------------------------------------------- */

/*
 * source: opens a file that the user names, to read it from start to end. A FIFO without a writer, or a device, does
 * not block a command forever.
 */

/* Opens a regular file, a pipe or a terminal. NULL: *r is -errno; -EINVAL: another kind of file, -ETIMEDOUT: a pipe
 * without a writer. */
FILE *source_open(const char *path, int *r);

/* --- target ----------------------------------------------------------------------------------- */

/*
 * target: may a command replace the file that the user names? A clone may contain a link there that leads anywhere,
 * and a file that pawl did not write may hold someone's work.
 */

/* 0: no file, an empty file, or a file that begins with one of the texts (the list ends with n == 0). -EEXIST: another
 * file; -ELOOP: a link to a file, or a dangling link. 1: a pipe, a terminal or a link to one; the caller decides. */
int target_check(const char *path, const struct str *beginnings);

#endif
