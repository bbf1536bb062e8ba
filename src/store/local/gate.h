/*
 * gate: one kernel lock in front of every write, so that writers queue up in the kernel instead of
 * polling, and so that no checkpoint ever overlaps a write.
 *
 * The file is never unlinked: whoever waits must wait for the same inode. Its holder's name is in it, for
 * those who lose patience. The name is stored through a mapping since that causes no inotify event:
 * somebody who waits for work, tries and is refused must not wake all the others. gate_announce() does
 * cause one. What is counted is behind it, for the same reason, and since the file is in everybody's memory
 * anyway. Beside the name there is room for a note from one holder to the next; it may be lost. And for
 * two flags: that those who wait have written down what they want (combine.h), and the mark of a commit.
 */
#ifndef STORE_GATE_H
#define STORE_GATE_H

#include <sys/stat.h>

#include "store/local/counts.h"
#include "store/store.h"

#define GATE_SIZE 256 /* behind it: what is counted */
#define GATE_NOTES 3

struct gate {
	int fd; /* -1: not open */
	char *map;
	bool whole;   /* the file has its first GATE_SIZE bytes */
	bool counted; /* it had room for what is counted, too */
	char *seen;   /* the file, for those who only read and have no gate open */
	uint32_t inside[1 + GATE_NOTES]; /* crowd and notes, as they were when it was locked */
};

struct gate_holder {
	int64_t pid, ms; /* held for so long */
	char who[160];
};

/* Opens or creates PATH, for those who may use the file that `like` is of; -errno, -EINVAL if it is no
 * regular file, -ELOOP if it is a link. */
int gate_open(struct gate *g, const char *path, const struct stat *like);
void gate_close(struct gate *g);
/* 0, -ETIMEDOUT, another -errno */
int gate_lock(struct gate *g, int64_t timeout_ms, struct str who);
/* For its holder: as if it had been left and locked again, with nobody in between. */
void gate_again(struct gate *g, struct str who);
void gate_unlock(struct gate *g);
/* Leaves a note to the next holder, and wakes those who watch the folder: to be called when the change
 * can be seen. */
void gate_announce(struct gate *g, const uint32_t notes[GATE_NOTES]);
/* What the holder before left; 0 if that is lost. */
void gate_notes(const struct gate *g, uint32_t notes[GATE_NOTES]);
/* The same for somebody who only reads: `fd` is of the gate's file. false: there is none. */
bool gate_peek(int fd, uint32_t notes[GATE_NOTES]);
/* Once somebody has said that there is a crowd, there is one for ever. As it was when it was locked: */
bool gate_was_crowded(const struct gate *g);
bool gate_crowded(const struct gate *g);
void gate_set_crowded(struct gate *g);
/* The mark that a holder sets before its commit and takes away after it: who finds it set comes after one that
 * died between the two, or whose commit failed. */
void gate_mark(struct gate *g, bool on);
bool gate_was_marked(const struct gate *g);
/* Opens or creates a file for those who may use the one that `like` is of; as gate_open(). */
int gate_file(const char *path, const struct stat *like);
/* What is counted there; NULL: nothing yet. */
struct store_counts *gate_counts(struct gate *g);
/* The same of a gate that is not open, for reading: to write there is SIGSEGV. */
struct store_counts *gate_counts_at(struct gate *g, const char *path);
/* Who holds it, as far as known. */
bool gate_holder(const struct gate *g, struct gate_holder *out);
/* Fills in env->err for one who waited in vain: STORE_BUSY, with who is in the way at `path`. */
int gate_busy(const struct gate *g, const struct store_env *env, const char *path);

#endif
