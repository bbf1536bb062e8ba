/*
 * view: text for people. Everything that came from a task goes through text_visible() on its way out.
 */
#ifndef CMD_VIEW_H
#define CMD_VIEW_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"

enum paint { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN };

struct view {
	struct buf *out;
	struct arena *arena;
	bool color;
	bool quiet;   /* only what a script wants: ids, one on a line */
	size_t width; /* of the terminal; 0: none, do not cut */
};

/* Our own words only. */
void view_text(struct view *v, enum paint p, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "1 task", "2 tasks" */
void view_count(struct view *v, enum paint p, int64_t n, const char *what);
/* A task's own words, made harmless, on one line. NULL is shown as nothing. */
void view_data(struct view *v, enum paint p, const char *text);
/* The same with its lines kept, each indented by `indent`. Ends with a newline. */
void view_lines(struct view *v, const char *text, size_t indent);

struct cell {
	enum paint paint;
	struct str text; /* harmless already, see view_cell() */
};
struct cell view_cell(struct view *v, enum paint p, const char *text);
/* Columns as wide as they need to be; on a terminal the last one is cut at its edge, and long ones before it
 * if they would leave it no room. cells: row by row. */
void view_table(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		size_t rows);
enum paint view_status_paint(const char *status);
/* "14m 3s", from a JSON number of seconds */
struct str view_seconds(struct view *v, const json_t *seconds);
/* "3m 2s ago" or "in 3m 2s", from a time in JSON; "" if it is none. */
struct str view_when(struct view *v, const char *time);
/* How long ago, "" if unknown. */
struct str view_age(struct view *v, const char *time);

/* Of an object: NULL or 0 if it is not there. */
const char *view_get(const json_t *o, const char *key);
int64_t view_int(const json_t *o, const char *key);
struct str view_list(struct view *v, const json_t *array); /* "a, b" */

/* The usual renderings of answers. */
void show_task(const json_t *o, struct view *v);    /* "t1 → Review" */
void show_details(const json_t *o, struct view *v); /* everything about one task */
void show_tasks(const json_t *o, struct view *v);   /* a table */
void show_grant(const json_t *o, struct view *v);   /* what a new holder needs to know */
void show_next(const json_t *o, struct view *v); /* the task that is next, or that there is none */
void show_events(const json_t *o, struct view *v); /* of a log, or one event */
void show_overview(const json_t *o, struct view *v);
void show_locks(const json_t *o, struct view *v);
void show_candidates(const json_t *o, struct view *v);
/* "t1 updated" */
/* The id of each task in an answer, and what was done to it. */
void show_each(const json_t *o, struct view *v, const char *did, const char *none);
void show_did(const json_t *o, struct view *v, const char *what);
/* "t3 depends on t1, t2" */
void show_depends(const json_t *o, struct view *v);

#endif
