/*
 * view: text for people. All output but the colours passes through text_visible().
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
	bool quiet;   /* print only ids for scripts, one per line */
	size_t width; /* of the terminal; 0: there is none, so do not cut */
	const char *(*status)(int64_t status); /* the spelling of statuses; NULL: status_name() */
};

/* Only for pawl's own words: line breaks stay. */
void view_text(struct view *v, enum paint p, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "1 task", "2 tasks" */
void view_count(struct view *v, enum paint p, int64_t n, const char *what);
/* Text of a task on one line, with control characters escaped. */
void view_data(struct view *v, enum paint p, struct str text);
/* Like view_data(), but keeps the lines, each indented by `indent`. Ends with a newline. */
void view_lines(struct view *v, struct str text, size_t indent);

struct cell {
	enum paint paint;
	struct str text; /* escaped already, see view_cell() */
};
struct cell view_cell(struct view *v, enum paint p, struct str text);
/* Each column is as wide as its longest cell. On a terminal the widest ones are cut until a row
 * fits. cells: row by row. */
#define VIEW_SHRUNK 16 /* columns do not shrink further */
void view_table(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		size_t rows);
/* Like view_table(), but if a row does not fit, the last column moves to lines of its own below the
 * rows. Changes the cells. */
void view_noted(struct view *v, const char *const *heads, size_t columns, struct cell *cells,
		size_t rows);
/* view_table() with a heading before each row whose heading is not empty. */
void view_groups(struct view *v, const char *const *heads, size_t columns, const struct cell *cells,
		 size_t rows, const struct cell *headings);
/* Aligned columns without heads, each row indented by two. */
void view_rows(struct view *v, size_t columns, const struct cell *cells, size_t rows);
enum paint view_status_paint(int64_t status);
/* The name of the status in its colour; `none` if there is no status. */
void view_status(struct view *v, int64_t status, const char *none);
/* "14m 3s": ms as a remaining time */
struct str view_left(struct view *v, int64_t ms);
/* "3m 2s ago" or "in 3m 2s"; "" for 0. */
struct str view_when(struct view *v, int64_t ms);
/* The age; "" for 0. */
struct str view_age(struct view *v, int64_t ms);
/* "2m ago": when the lease expired, by the store's time; "" if it has no expiry. */
struct str view_lost(struct view *v, const struct lock *l, int64_t now);
struct str view_strs(struct view *v, struct strs list); /* "a, b" */

/* A number in an object; 0 if it is missing. */
int64_t view_int(const json_t *o, const char *key);

/* The facts for the lines around a list. */
struct list_shown {
	bool open;          /* ended tasks are left out */
	bool filtered;      /* a filter was given */
	bool archived;      /* archived tasks are not left out */
	struct str command; /* the call, without its limit */
	struct str all;     /* the call that shows ended tasks as well */
};

/* The facts that `tree` and `graph` need besides their tasks. */
struct graph_shown {
	bool one;           /* the first task is the root */
	bool mermaid;       /* else dot */
	struct str command; /* the call, without its limit */
};

/* The relations between an answer's tasks: task i has subs and depends on others, by their places
 * in tasks[]. */
struct graph_node {
	size_t *subs, *depends;
	size_t n_subs, n_depends;
	bool has_parent, is_dependency;
};
struct graph_node *view_graph(struct arena *a, const struct answer *ans);

/* The sub-tasks and dependencies of a shown task, and its attempts. */
void view_links(struct view *v, const struct related *r);
void view_attempts(struct view *v, const struct related *r, const struct task *t);
/* The numbers of an overview, the same wherever they are shown. view_count_of(): tasks of a status,
 * without archived ones, and for Ready without those that wait. view_for_people(): tasks that wait
 * for a person. */
int64_t view_count_of(const struct answer *ans, int64_t status);
int64_t view_for_people(const struct answer *ans);
/* Is the task's due date over? */
bool view_overdue(const struct task *t, int64_t now);

/* The usual renderings of answers. */
void show_task(const struct reply *r, struct view *v);    /* "t1 → Review" */
void show_details(const struct reply *r, struct view *v); /* everything about one task */
void show_tasks(const struct reply *r, struct view *v);   /* a table; r->own: struct list_shown */
void show_grant(const struct reply *r, struct view *v);   /* the brief for a new holder */
void show_next(const struct reply *r, struct view *v);    /* the next task, or that there is none */
void show_granted_next(const struct reply *r, struct view *v); /* for --claim-next */
void show_events(const struct reply *r, struct view *v);
void show_event(const struct event *e, struct view *v);
void show_overview(const struct reply *r, struct view *v);
void show_tree(const struct reply *r, struct view *v);  /* r->own: struct graph_shown */
void show_graph(const struct reply *r, struct view *v); /* r->own: struct graph_shown */
/* Shows the agent that paused the queue, the time and the reason. */
void show_paused(const struct notice *p, struct view *v);
void show_locks(const struct reply *r, struct view *v);
void show_candidates(const struct reply *r, struct view *v);
/* The id of each task in an answer, with a verb for the change. none: the text if there are no
 * tasks. */
void show_each(const struct reply *r, struct view *v, const char *did, const char *none);
/* "t1 updated" */
void show_did(const struct reply *r, struct view *v, const char *what);
/* "t3 depends on t1, t2" */
void show_depends(const struct reply *r, struct view *v);

#endif
