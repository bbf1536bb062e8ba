/*
 * combine: whoever holds the gate does the work of those who wait for it, all of it in one commit.
 *
 * A file beside the store holds slots, in memory that all processes share. Who finds the gate taken writes
 * its call into its slot and sleeps. The holder takes the calls, runs them after its own, commits once, and
 * answers. What always holds:
 *
 *  1. A slot is its owner's as long as that lives: a kernel lock on one byte of the file says so.
 *  2. A slot's `word` is a generation and a state. The owner begins a generation with PENDING and may end it
 *     at any time. Only the holder of the gate makes TAKEN and DONE, and only it writes a reply. What is of
 *     another generation concerns neither.
 *  3. A reply is written before the commit, together with the number of the batch; the commit puts that
 *     number into the store, and after it the reply is DONE. So if the holder dies, the next one learns from
 *     the store whether a TAKEN call has happened, and finds its reply: no call is run twice, none is lost,
 *     and none is answered that is not durable.
 *     A holder whose commit may have failed answers nobody, as if it had died there. One whose change failed
 *     before that sends everybody away to run their calls alone: its limits, rights and memory are its own
 *     trouble, and no other call's.
 *  4. PENDING can be seen before its owner tries the gate, and every holder looks for PENDING after it has
 *     left the gate. So the owner gets the gate, or somebody nudges it. A nudge that goes to a process which
 *     is stopped, or a holder that dies, costs the others one nap.
 *  5. A file that was deleted, replaced or cut is given up by each that notices, before it takes or asks
 *     anything: two crowds with a file each would not know of each other's batches. An owner whose call was in
 *     it learns that nobody knows what became of it.
 *  6. Nothing in a slot is trusted: it is copied before it is looked at, and lengths are checked. A call of
 *     another boot, or past its deadline, is not run.
 */
#ifndef STORE_LOCAL_COMBINE_H
#define STORE_LOCAL_COMBINE_H

#include "store/local/gate.h"
#include "store/store.h"

#define COMBINE_SLOTS 128
#define COMBINE_CALL_MAX 2048
#define COMBINE_REPLY_MAX 6144

struct combine {
	struct combine_file *file; /* NULL: not mapped */
	char *path;
	int fd;
	ino_t inode; /* of the file */
	dev_t device;
	struct bus *bus; /* of the file in memory */
	bool hopeless;   /* it cannot work here: not to be tried again */
	int slot;        /* ours; -1: none yet */
	uint32_t word;   /* of our latest call */
	bool asked;      /* and it is not over yet */
	uint64_t boot;
};

/* -errno if it cannot work here. */
int combine_open(struct combine *c, const char *path, const struct stat *like);
void combine_close(struct combine *c);
/* Is it open, and still the file at its path? */
bool combine_stands(const struct combine *c);

/* --- who waits ---------------------------------------------------------------------------------- */

/* Puts the call into our slot; false: there is no slot, or no room in it. deadline: os_boot_ms(). */
bool combine_publish(struct combine *c, uint32_t queue, struct str call, int64_t deadline);

/* In the slots, by its number. */
enum combine_end {
	COMBINE_GATE = 0,  /* we hold the gate; the call is still to be run, like all that wait */
	COMBINE_RAN = 1,   /* it was run: rc and the report */
	COMBINE_ALONE = 2, /* it was not, and has to be run by its owner */
	COMBINE_FAULT =
		3, /* only from a pawl before 0.2: its commit failed, the report is a struct store_error */
	COMBINE_LATE = 4,   /* the deadline has come: it was not run and will not be */
	COMBINE_UNKNOWN = 5 /* the deadline has come while somebody runs it */
};

struct combine_reply {
	int rc;
	struct str report; /* in the caller's arena */
};

enum combine_end combine_wait(struct combine *c, struct gate *g, struct str who, int64_t deadline,
			      struct combine_reply *out, struct arena *a);
/* What became of our call, after we held the gate ourselves; if nothing did, it is taken back. */
enum combine_end combine_result(struct combine *c, struct combine_reply *out, struct arena *a);

/* --- who holds the gate ------------------------------------------------------------------------- */

struct combine_call {
	struct str bytes;
	unsigned slot;
	uint32_t word;
	uint64_t batch; /* not 0: a holder that died may have committed it, in this batch */
};

/* Takes what waits for this queue. first: nothing of this batch was taken before, so what is TAKEN was
 * left by the dead, and there is room for COMBINE_SLOTS calls: all of those have to be in it. */
size_t combine_take(struct combine *c, uint32_t queue, bool first, struct combine_call *out,
		    size_t room, struct arena *a);
/* Before the commit. What does not fit is COMBINE_ALONE; what was answered stays as it is. */
void combine_reply(struct combine *c, const struct combine_call *call, uint64_t batch,
		   enum combine_end end, int rc, struct str report);
/* After it, for each call that was taken. */
void combine_answer(struct combine *c, const struct combine_call *call);
/* Do several wait for this queue? */
bool combine_crowd(const struct combine *c, uint32_t queue);
/* After the gate was left: wakes one that waits for it. false: nobody does. */
bool combine_nudge(struct combine *c);
/* How many calls the last batches had: a holder waits a moment for that many. */
uint32_t combine_expected(const struct combine *c);
void combine_learn(struct combine *c, uint32_t calls);

/* For tests: called at each step, so that a process can be killed or stopped there. */
extern void (*combine_step)(const char *step);
void combine_at(const char *step);

#endif
