/*
 * sync: keeps a queue and another program's board in step. The queue stays the truth: only it gives
 * locks. The code for each program is a module, pawl-sync-NAME.so, which uses functions of the main
 * program.
 */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "client/client.h"

#define SYNC_LINES_MAX 1000 /* changes and warnings that are named; the counts are complete */

struct sync_job {
	struct client *client;
	struct str place; /* the part of the address after "notion:" */
	bool check;       /* say what would change, and change nothing */
	bool add_options; /* add missing properties and options to the board */
	bool watch;       /* go on until a signal ends the process */
	int64_t every_ms; /* the pause between two rounds of --watch */
	/* Shows one line in the place of the line before; empty: removes it. */
	void (*progress)(void *ctx, struct str line);
	/* Shows a line that stays. */
	void (*note)(void *ctx, struct str line);
	/* Is the reader of the output still there? */
	bool (*listening)(void *ctx);
	void *ctx;
};

/* The work of a sync; with `check`, the work that it would do. */
struct sync_done {
	int64_t pages; /* read */
	int64_t tasks_made, tasks_changed, pages_made, pages_changed;
	int64_t comments;    /* of people, added to tasks */
	int64_t refused;     /* edits of people that pawl took back */
	int64_t foreign;     /* tasks that another program holds on the board */
	int64_t requests;    /* to the board */
	struct strs changes; /* one line each: "t3: title, from the page" */
	struct strs warnings;
};

struct sync_ops {
	/* SUCCESS, or the reason in *ans. *out is valid in both cases. */
	enum result (*run)(const struct sync_job *job, struct sync_done *out, struct answer *ans,
			   struct arena *a);
};

#endif
