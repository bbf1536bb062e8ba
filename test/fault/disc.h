/*
 * disc: the state of a disk after a loss of power.
 *
 * While it records, every effect of this process and its children on the files below a folder goes
 * into one list. They take turns, so the order is unique. From the list, the disc can be rebuilt as
 * if the power had failed after any step. Synced data is there. Of the rest, each write, each
 * 512-byte sector of it, and each change of a folder is there or not; the seed decides. A file's
 * fsync does not save its name: that takes an fsync of the folder. Only disc_snapshot() sees stores
 * through a mapping, as one write.
 */
#ifndef TEST_FAULT_DISC_H
#define TEST_FAULT_DISC_H

#include "tree.h"

/* Everything below `root` counts as synced. */
void disc_record(const char *root);
/* Pauses recording in this process and its later children. */
void disc_pause(void);
void disc_go_on(void);
/* Kills this process right after its nth effect from now on. */
void disc_kill_after(int n);
/* From now on state `begun` may be there, and state `acked` must be there. */
void disc_mark(int begun, int acked);
/* Only while this process has none of the files open. */
void disc_snapshot(void);
/* Gives all WALs the same inode, one after the other, as ext4 may do. */
void disc_same_inode(const char *ending);

int disc_steps(void);
/* Moves on to the state after this number of steps: once in any process, and only forward. */
void disc_play(int steps);
/* The latest mark before that step. */
void disc_marks(int *begun, int *acked);
void disc_image(uint64_t seed, struct tree *out);

#endif
