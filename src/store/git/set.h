/* A change in progress, for the layouts: the records that it touches, and their new states. */
#ifndef STORE_GIT_SET_H
#define STORE_GIT_SET_H

#include "store/git/git.h"

/* The new state of one record. */
struct git_step {
	struct str key;
	const struct record *rec; /* NULL: dropped */
	const struct git_head *head;
	struct git_line *lines, **last;
	struct str clock;
	git_oid tree, oid;
	bool put;     /* an edit wrote it; else it was only read, or named in the log */
	bool to_base; /* the base will hold it, not a ref of its own */
};

struct git_set {
	struct git *s;
	struct arena a;
	struct mem_undo *undo;
	struct git_step *steps; /* by key */
	size_t n;
	struct git_line *lines, **last; /* log lines without a record */
	unsigned n_lines;
	struct git_move *moves;
	size_t n_moves;
	struct git_link *links;
	size_t n_links;
	git_oid *appended_list; /* commits that the base must keep reachable */
	size_t n_appended;
	bool base_moves;
	struct git_compact compact;
	int64_t stamp;
	struct str nonce;
};

struct git_step *git_step_find(struct git_set *w, struct str key);
struct git_step *git_step_make(struct git_set *w, struct str key);
/* After the edits: sets rec and clock of each step, and gives each record its own log lines. */
void git_set_states(struct git_set *w);
void git_set_lines(struct git_set *w);
/* Begins a set with a stamp and a nonce, based on the view. */
void git_set_begin(struct git_set *w, struct git *s);

#endif
