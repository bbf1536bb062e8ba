/*
 * view: text for people. Everything that came from a task goes through text_visible() on its way out.
 */
#ifndef CMD_VIEW_H
#define CMD_VIEW_H

#include <jansson.h>

#include "base/buf.h"
#include "cmd/reply.h"

enum paint { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN };

struct view {
	struct buf *out;
	struct arena *arena;
	bool color;
	bool quiet;                            /* only what a script wants: ids, one on a line */
	size_t width;                          /* of the terminal; 0: none, do not cut */
	const char *(*status)(int64_t status); /* how they are spelt; NULL: status_name() */
};

/* Our own words only. */
void view_text(struct view *v, enum paint p, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "1 task", "2 tasks" */
void view_count(struct view *v, enum paint p, int64_t n, const char *what);
/* A task's own words, made harmless, on one line. */
void view_data(struct view *v, enum paint p, struct str text);
/* The same with its lines kept, each indented by `indent`. Ends with a newline. */
void view_lines(struct view *v, struct str text, size_t indent);

struct cell {
	enum paint paint;
	struct str text; /* harmless already, see view_cell() */
};
struct cell view_cell(struct view *v, enum paint p, struct str text);
/* Columns as wide as they need to be; on a terminal the last one is cut at its edge, and long ones before it
 * if they would leave it no room. cells: row by row. */
void view_table(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		size_t rows);
enum paint view_status_paint(int64_t status);
/* Its name in its colour; `none` if there is no status. */
void view_status(struct view *v, int64_t status, const char *none);
/* "14m 3s": what is left of so many ms */
struct str view_left(struct view *v, int64_t ms);
/* "3m 2s ago" or "in 3m 2s"; "" for 0. */
struct str view_when(struct view *v, int64_t ms);
/* How long ago; "" for 0. */
struct str view_age(struct view *v, int64_t ms);
struct str view_strs(struct view *v, struct strs list); /* "a, b" */

/* Of an object: 0 if it is not there. */
int64_t view_int(const json_t *o, const char *key);

/* The usual renderings of answers. */
void show_task(const struct reply *r, struct view *v);    /* "t1 → Review" */
void show_details(const struct reply *r, struct view *v); /* everything about one task */
void show_tasks(const struct reply *r, struct view *v);   /* a table */
void show_grant(const struct reply *r, struct view *v);   /* what a new holder needs to know */
void show_next(const struct reply *r,
	       struct view *v); /* the task that is next, or that there is none */
void show_granted_next(const struct reply *r, struct view *v); /* the same of the next task */
void show_events(const struct reply *r, struct view *v);
void show_event(const struct event *e, struct view *v);
void show_overview(const struct reply *r, struct view *v);
void show_locks(const struct reply *r, struct view *v);
void show_candidates(const struct reply *r, struct view *v);
/* The id of each task in an answer, and what was done to it. */
void show_each(const struct reply *r, struct view *v, const char *did, const char *none);
/* "t1 updated" */
void show_did(const struct reply *r, struct view *v, const char *what);
/* "t3 depends on t1, t2" */
void show_depends(const struct reply *r, struct view *v);

#endif
