/*
 * combine: group commit. The holder of the gate runs the calls of the processes that wait for it, all in one commit.
 *
 * A file beside the store holds slots, in memory that all processes share. A process that finds the gate taken writes
 * its call into its slot and sleeps. The holder takes the calls, runs them after its own, commits once, and
 * answers. Invariants:
 *
 *  1. A slot belongs to its owner while the owner lives: the owner has a kernel lock on one byte of the file.
 *  2. The `word` of a slot is a generation and a state. The owner begins a generation with PENDING and may end it
 *     at any time. Only the holder of the gate sets TAKEN and DONE, and only the holder writes a reply. Both ignore
 *     a word of another generation.
 *  3. The holder writes a reply before the commit, together with the number of the batch. The commit stores that
 *     number, and then the holder sets the slot to DONE. If the holder dies, the next one learns from the store
 *     whether a TAKEN call was committed, and finds its reply. So no call runs twice, no call is lost, and no call is
 *     answered before it is durable.
 *     A holder whose commit may have failed answers no call, as if it had died there. If its change failed before
 *     the commit, it tells each owner to run its call alone: the fault may come from the holder's own limits,
 *     permissions or memory.
 *  4. An owner sets PENDING before it tries the gate, and every holder searches for PENDING after it has left the gate.
 *     So the owner gets the gate, or a holder nudges it. If the nudged process is stopped, or the holder dies, the
 *     others try the gate when their sleep times out.
 *  5. A process that finds the file deleted, replaced or truncated stops using it before it takes or publishes a call:
 *     two groups with a file each would not see each other's batches. The owner of a call in the old file gets
 *     COMBINE_UNKNOWN.
 *  6. No process trusts a slot: it copies the bytes before it checks them, and it checks lengths. The holder does not
 *     run a call of another boot, or one past its deadline.
 *
 * The states of a slot. Each arrow names its function, and the process that calls it: (o) the owner, (h) the holder of
 * the gate, (l) a process that has just left the gate.
 *
 *          combine_publish (o)           combine_take (h)         combine_answer (h)
 *    IDLE ---------------------> PENDING ---------------> TAKEN --------------------> DONE
 *     ^                          |  |  ^                  ^   |
 *     |         combine_nudge (l)|  |  |combine_wait (o)  |   |
 *     |                          |  v  |                  |   |
 *     |                          | NUDGED ----------------+   |
 *     |                          |    |   combine_take (h)    |
 *     |   combine_result or      |    |                       |
 *     |   combine_wait (o)       |    |                       |  combine_result (o)
 *     +--------------------------+----+-----------------------+
 *
 *    DONE  -> PENDING  combine_publish (o): the owner's next call. Reading a reply does not change the state.
 *    TAKEN -> TAKEN    combine_take (h): the next holder adopts the call after its holder died or left it in doubt.
 *    any   -> IDLE     combine_close (o), if the file is still at its path; and combine_publish, when a process gets a
 *                      slot, whose last owner may have died in any state.
 *
 * combine_publish and each step to IDLE begin a generation; the other steps keep it. PENDING and NUDGED become IDLE when
 * the owner withdraws its call: the call did not run and will not run. TAKEN becomes IDLE at the deadline: the owner
 * cannot know whether the call runs (COMBINE_UNKNOWN).
 *
 * What a crash leaves, by the slot's state at that time:
 *
 *    state            the holder dies                            the owner dies
 *    IDLE             nothing                                    nothing; the slot is free
 *    PENDING          the call; its owner, or another process,   the call; a holder may run it until its deadline,
 *                     gets the gate and runs it                  and no process reads the reply
 *    NUDGED           as PENDING                                 as PENDING; the nudge is lost (invariant 4)
 *    TAKEN, batch 0   no commit has the call; the next holder    the holder, or the next one, finishes the call as
 *                     runs it                                    usual; no process reads the reply
 *    TAKEN, batch N   if the store's last batch is N, the next   as above
 *                     holder makes that commit durable and
 *                     answers; if not, it runs the call
 *                     (batch_settle() in local_batch.c)
 *    DONE             the reply; if the wake-up was lost, the    the reply, which no process reads
 *                     owner finds it when its sleep times out
 *
 * An owner that dies frees its slot in each state, because the kernel drops its lock. After a reboot or a loss of power
 * every slot is free, and `boot` keeps holders from running the calls in it.
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
	struct fs_id id; /* of the file */
	struct bus *bus; /* guards the mapping */
	bool hopeless;   /* group commit does not work here: do not try again */
	int slot;        /* our slot; -1: none yet */
	uint32_t word;   /* word of our latest call */
	bool asked;      /* our latest call has no result yet */
	uint64_t boot;
	/* ms; after this time the owner withdraws a call that no holder has taken, and runs it; 0: wait until the deadline */
	int64_t patience;
	/* The store reads the clock once for each batch. A call that arrives later must not get this time, because its owner
	 * may have seen a later one. So the holder lists the calls first, and takes only the listed ones. */
	bool checks;
	uint32_t checked[COMBINE_SLOTS]; /* by slot: the listed call's word, as TAKEN; 0: none */
};

/* -errno if group commit does not work here. */
int combine_open(struct combine *c, const char *path, const struct stat *like);
void combine_close(struct combine *c);
/* Is the file open, and still at its path? */
bool combine_stands(const struct combine *c);
/* The unique number of this slots file. */
uint64_t combine_number(struct combine *c);

/* --- in a waiting process ------------------------------------------------------------------------ */

/* Writes the call into our slot; false: no slot is free, or the call is too large. deadline: by os_boot_ms(). */
bool combine_publish(struct combine *c, uint32_t queue, struct str call, int64_t deadline);

/* The slots hold these numbers: they must not change. */
enum combine_end {
	COMBINE_GATE = 0,  /* we hold the gate; we must run our call and all other waiting calls */
	COMBINE_RAN = 1,   /* the holder ran the call: rc and the report */
	COMBINE_ALONE = 2, /* the holder did not run the call; its owner must */
	COMBINE_FAULT =
		3, /* only from a pawl before 0.2: its commit failed, the report is a struct store_error */
	COMBINE_LATE = 4,   /* the deadline has passed: the call did not run and will not run */
	COMBINE_UNKNOWN = 5 /* a holder had taken it at the deadline, or the file is damaged */
};

struct combine_reply {
	int rc;
	struct str report; /* in the caller's arena */
};

enum combine_end combine_wait(struct combine *c, struct gate *g, struct str who, int64_t deadline,
			      struct combine_reply *out, struct arena *a);
/* The result of our call, after we held the gate ourselves. Withdraws a call that no holder has answered. */
enum combine_end combine_result(struct combine *c, struct combine_reply *out, struct arena *a);

/* --- in the holder of the gate ------------------------------------------------------------------- */

struct combine_call {
	struct str bytes;
	unsigned slot;
	uint32_t word;
	uint64_t batch; /* not 0: a holder that died may have committed the call, in this batch */
};

/*
 * For a store whose data is not beside the gate. If a program deletes the gate, two processes can hold two gates and
 * share one slots file. So the holder also owns the file while it takes and answers calls. false: another process owns it.
 */
bool combine_own(struct combine *c);
void combine_disown(struct combine *c);
/* Lists the calls that wait for this queue, without taking them. combine_take() may return fewer. */
size_t combine_check(struct combine *c, uint32_t queue, struct combine_call *out, size_t room,
		     struct arena *a);
/* Takes the calls that wait for this queue. first: the first take of this batch, so every TAKEN slot is left over from an
 * earlier holder. Then `out` must have room for all COMBINE_SLOTS calls. */
size_t combine_take(struct combine *c, uint32_t queue, bool first, struct combine_call *out,
		    size_t room, struct arena *a);
/* Before the commit. A report that does not fit becomes COMBINE_ALONE. Does nothing if the owner has ended its call. */
void combine_reply(struct combine *c, const struct combine_call *call, uint64_t batch,
		   enum combine_end end, int rc, struct str report);
/* After the commit, for each taken call: sets DONE and wakes the owner. */
void combine_answer(struct combine *c, const struct combine_call *call);
/* Are several calls waiting for this queue? */
bool combine_crowd(const struct combine *c, uint32_t queue);
/* After leaving the gate: wakes one process that is waiting for it. false: no process is waiting. */
bool combine_nudge(struct combine *c);
/* How many calls of other processes recent batches had. A holder waits a moment for this many. */
uint32_t combine_expected(const struct combine *c);
void combine_learn(struct combine *c, uint32_t calls);

/* For tests: combine_at() calls it at each step, so that a test can kill or stop a process there. */
extern void (*combine_step)(const char *step);
void combine_at(const char *step);

#endif
