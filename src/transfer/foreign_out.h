/*
 * foreign_out: writes tasks for other programs, using the tables that also read them. A task that came from that program
 * gets its old id back. A field for which the program has no place is left out and counted.
 */
#ifndef TRANSFER_FOREIGN_OUT_H
#define TRANSFER_FOREIGN_OUT_H

#include "transfer/foreign.h"

struct foreign_task {
	struct parcel parcel;
	struct str theirs;           /* its id in the other program */
	struct foreign_task *inside; /* the task's parent; NULL: none */
	struct foreign_task *first, *last,
		*next; /* its first and last sub-task, and its next sibling */
	size_t depth;  /* 0: it has no parent */
};

struct foreign_out {
	const struct foreign *to;
	struct foreign_task *tasks;
	struct foreign_task **by_id;
	size_t n;
	int64_t next; /* the next free number, for programs whose ids are numbers */
	struct {
		const char *field;
		size_t n; /* tasks with a value that has no place in the program */
	} lost[16];
	struct arena arena;
};

/* Copies the task. The copy waits until all tasks are known. */
void foreign_out_add(struct foreign_out *o, const struct parcel *p);
/* Gives each task its id in the other program, and finds its parent. */
void foreign_out_settle(struct foreign_out *o);
/* Writes the whole file, for programs that keep all tasks in one file. */
void foreign_out_text(struct foreign_out *o, struct buf *out);
/* Task Master: the whole file. */
json_t *foreign_master_write(struct foreign_out *o);
/* Backlog.md: one task's file, and its name, such as "task-7 - Title.md". */
void foreign_backlog_file(struct foreign_out *o, const struct foreign_task *t, struct buf *out);
struct str foreign_backlog_name(const struct foreign_task *t, struct arena *a);
/* Counts a task that loses a value. */
void foreign_out_lost(struct foreign_out *o, const char *field);
void foreign_out_end(struct foreign_out *o);

/* The task's record, made by reading the table backwards. */
json_t *foreign_record(struct foreign_out *o, const struct foreign_task *t);
void foreign_out_sort(struct foreign_out *o);
/* After the sort: NULL if this id is not among the tasks. */
struct foreign_task *foreign_out_find(const struct foreign_out *o, struct str id);

#endif
