/*
 * port: tasks as files, in four formats. JSON is an array with a task on each line, JSON Lines the same without the
 * array, CSV a row for each task, Markdown a folder with a file for each. doc/data.md has the formats.
 *
 * Writing: a file gets its name when it is whole. Reading: all of it is read and checked before anything is
 * done with it, and waits in a spool on disk; memory does not grow with it.
 */
#ifndef TRANSFER_PORT_H
#define TRANSFER_PORT_H

#include <stdio.h>

#include "format/plain.h"
#include "queue/transfer.h"

enum port_format { PORT_NONE, PORT_JSON, PORT_JSONL, PORT_CSV, PORT_MD };

/* By its name, else by what the path is or ends in. PORT_NONE: cannot be told. */
enum port_format port_format(struct str name, const char *path);

/* --- out ---------------------------------------------------------------------------------------- */

struct port_out {
	enum port_format format;
	const char *path;
	char *temp; /* the name until it is whole; NULL: written in place, such as a pipe */
	FILE *file; /* NULL: a folder */
	size_t n;
	struct arena arena;
};

/* 0, or -errno. -ENOTEMPTY: a folder with something in it. Without `force`: -EEXIST: a file that is no export of this
 * format, -ELOOP: a link to a file. */
int port_out_open(struct port_out *o, enum port_format format, const char *path, bool force,
		  struct arena *a);
int port_out_add(struct port_out *o, const struct parcel *p);
/* keep: it becomes what the path names; else nothing is left of it. */
int port_out_close(struct port_out *o, bool keep);

/* One task in a format of one file. */
void port_json(const struct parcel *p, struct buf *out, struct arena *a);
void port_csv_head(struct buf *out);
void port_csv(const struct parcel *p, struct buf *out, struct arena *a);

/* --- in ----------------------------------------------------------------------------------------- */

struct spool {
	FILE *file;
	size_t n;
};

#define PORT_LEFT_OUT 100

/* Where reading is. */
struct port_in {
	const char *path;
	FILE *file;
	size_t line; /* that is read next, from 1 */
	struct spool *spool;
	struct answer *ans;
	struct arena *arena;  /* of the caller */
	struct arena piece;   /* of the task in hand */
	struct strs left_out; /* "FILE: why", of a folder; at most PORT_LEFT_OUT of them */
	size_t n_left_out;
	size_t hidden; /* names of a folder that begin with a dot, but .git and .pawl */
	void (*progress)(void *ctx, size_t n);
	void *ctx;
};

/* SUCCESS and all tasks of the file or folder in *spool; or what is wrong, with file and line. "-" is standard
 * input. */
enum result port_read(struct port_in *in, enum port_format format);
enum result port_refuse(struct port_in *in, size_t line, struct str text);
enum result port_cannot(struct port_in *in, const char *what, int r);
/* What a reader has found goes here. */
enum result port_found(struct port_in *in, struct plain *p, size_t line);
enum result port_read_folder(struct port_in *in, const char *folder);
/* NAME below the folder `dir`, or PATH if `dir` is -1; PATH is what it is called. */
enum result port_read_md(struct port_in *in, int dir, const char *name, const char *path);
enum result port_read_json(struct port_in *in);
enum result port_read_csv(struct port_in *in);

int spool_open(struct spool *s);
int spool_add(struct spool *s, const struct parcel *p);
void spool_rewind(void *spool);
/* As struct import wants it. */
int spool_next(void *spool, struct parcel *out, struct arena *a);
void spool_close(struct spool *s);

#endif
