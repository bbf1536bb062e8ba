/*
 * foreign_out: writes tasks for other programs, by the same tables that read them. A task that came from that program
 * gets its own id back. What the program has no place for is left out, and counted.
 */
#ifndef TRANSFER_FOREIGN_OUT_H
#define TRANSFER_FOREIGN_OUT_H

#include "transfer/foreign.h"

struct foreign_task {
	struct parcel parcel;
	struct str theirs;           /* its id in the other program */
	struct foreign_task *inside; /* the task around it; NULL: none */
	struct foreign_task *first, *last,
		*next; /* the tasks inside it, and the next one beside it */
	size_t depth;  /* 0: not inside another */
};

struct foreign_out {
	const struct foreign *to;
	struct foreign_task *tasks;
	struct foreign_task **by_id;
	size_t n;
	int64_t next; /* the next free number, for programs with numbers as ids */
	struct arena arena;
};

/* A copy of the task waits until all are known. */
void foreign_out_add(struct foreign_out *o, const struct parcel *p);
/* Gives each task its id there, and finds the task around it. */
void foreign_out_settle(struct foreign_out *o);
/* The file for programs that have one; for a folder: the file of one task. */
void foreign_out_text(struct foreign_out *o, struct buf *out);
void foreign_out_file(struct foreign_out *o, const struct foreign_task *t, struct buf *out);
/* "task-7 - Title.md" */
struct str foreign_out_name(const struct foreign_task *t, struct arena *a);
void foreign_out_end(struct foreign_out *o);

/* The record of a task: the table read backwards. */
json_t *foreign_record(struct foreign_out *o, const struct foreign_task *t);
void foreign_out_sort(struct foreign_out *o);
/* After the sort: NULL if this id is not among the tasks. */
struct foreign_task *foreign_out_find(const struct foreign_out *o, struct str id);

#endif
