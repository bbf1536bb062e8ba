/* A change in the making, for the layouts: which records it touches, and what it says about them. */
#ifndef STORE_GIT_SET_H
#define STORE_GIT_SET_H

#include "store/git/git.h"

/* What becomes of one record. */
struct git_step {
	struct str key;
	const struct record *rec; /* NULL: dropped */
	const struct git_head *head;
	struct git_line *lines, **last;
	struct str clock;
	git_oid tree, oid;
	bool put;     /* by an edit; else only logged about, or read */
	bool to_base; /* where it will be */
};

struct git_set {
	struct git *s;
	struct arena a;
	struct mem_undo *undo;
	struct git_step *steps; /* by key */
	size_t n;
	struct git_line *lines, **last; /* that belong to no record */
	unsigned n_lines;
	struct git_move *moves;
	size_t n_moves;
	struct git_link *links;
	size_t n_links;
	git_oid *hung; /* commits that the base must keep */
	size_t n_hung;
	bool base_moves;
	struct git_fold fold;
	int64_t stamp;
	struct str nonce;
};

struct git_step *git_step_find(struct git_set *w, struct str key);
struct git_step *git_step_make(struct git_set *w, struct str key);
/* After the edits: what each record has become (rec and clock of the steps), and which lines are its own. */
void git_set_states(struct git_set *w);
void git_set_lines(struct git_set *w);
/* A set with a stamp and a nonce, on what the view says. */
void git_set_begin(struct git_set *w, struct git *s);

#endif
