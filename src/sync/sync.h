/*
 * sync: keeps a queue and another program's board in step. The queue stays the truth: only it gives
 * locks. The code for each program is a module, pawl-sync-NAME.so, which uses functions of the main
 * program.
 */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "client/client.h"

#define SYNC_LINES_MAX 1000 /* changes and warnings that are listed; the counts are complete */

struct sync_job {
	struct client *client;
	struct str place; /* the part of the address after "notion:" */
	bool check;       /* say what would change, and change nothing */
	bool add_options; /* add missing properties and options to the board */
	bool watch;       /* repeat until a signal ends the process */
	int64_t every_ms; /* the pause between two rounds of --watch */
	/* Replaces the line of progress by this one; empty: removes it. */
	void (*progress)(void *ctx, struct str line);
	/* Shows a line that stays. */
	void (*note)(void *ctx, struct str line);
	/* Is the reader of the output still there? */
	bool (*listening)(void *ctx);
	void *ctx;
};

/* The work that a sync did or, with `check`, would do. */
struct sync_done {
	int64_t pages; /* read */
	int64_t tasks_made, tasks_changed, pages_made, pages_changed;
	int64_t comments;    /* people's comments that were added to tasks */
	int64_t refused;     /* people's edits that pawl took back */
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
