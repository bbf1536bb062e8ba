/*
 * disc: what a loss of power leaves behind.
 *
 * While it records, every effect of this process and its children on the files below a folder goes into one
 * list, in order; they take turns, so there is one order. From that list the disc can be had as it may be if
 * the power fails after any step: what was synced is there; of what was only written, each write, each
 * 512-byte sector of it, and each change of a folder is there or not, as the seed says. A file's fsync
 * does not save its name: that takes one of its folder.
 * Stores through a mapping are seen only by disc_snapshot(), as one write.
 */
#ifndef TEST_FAULT_DISC_H
#define TEST_FAULT_DISC_H

#include "tree.h"

/* All below `root` counts as synced. */
void disc_record(const char *root);
/* For this process and its later children. */
void disc_pause(void);
void disc_go_on(void);
/* This process is killed right after its nth effect from now on. */
void disc_kill_after(int n);
/* State number `begun` may come to be from now on, `acked` must be there. */
void disc_mark(int begun, int acked);
/* Only while nobody in this process has one of the files open. */
void disc_snapshot(void);
/* All WALs have the same inode, one after the other, as happens on ext4. */
void disc_same_inode(const char *ending);

int disc_steps(void);
/* Once, in any process: goes on to the state after so many steps; forward only. */
void disc_play(int steps);
/* The latest mark before that. */
void disc_marks(int *begun, int *acked);
void disc_image(uint64_t seed, struct tree *out);

#endif
