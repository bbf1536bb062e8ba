/*
 * gate: one kernel lock in front of every write, so that writers queue up in the kernel instead of
 * polling, and so that no checkpoint ever overlaps a write.
 *
 * The file is never unlinked: whoever waits must wait for the same inode. Its holder's name is in it, for
 * those who lose patience. The name is stored through a mapping since that causes no inotify event:
 * somebody who waits for work, tries and is refused must not wake all the others. gate_announce() does
 * cause one. What is counted is behind it, for the same reason, and since the file is in everybody's memory
 * anyway. Beside the name there is room for a note from one holder to the next; it may be lost. And for
 * flags: that those who wait have written down what they want (combine.h), the mark of a commit, and that
 * somebody stands in line.
 *
 * Turns: a process that waits in the kernel stands in line, which a shared lock on one byte says for as long as
 * it lives. A process that can wait otherwise (combine.h) lets it go first, for GATE_POLITE_MS: the one in line may be
 * stopped. The other way round, a holder that served nobody lets those go first whose calls wait.
 *
 * Whoever cuts the file costs nobody its life (bus.h), and the next holder makes it anew.
 */
#ifndef STORE_LOCAL_GATE_H
#define STORE_LOCAL_GATE_H

#include <sys/stat.h>

#include "base/bus.h"
#include "base/xfsz.h"
#include "store/local/counts.h"
#include "store/store.h"

#define GATE_SIZE 256 /* behind it: what is counted */
#define GATE_NOTES 3

struct gate {
	int fd;       /* -1: not open */
	dev_t device; /* of the file */
	ino_t inode;
	char *map;
	bool whole;   /* the file has its first GATE_SIZE bytes */
	bool counted; /* it had room for what is counted, too */
	char *seen;   /* the file, for those who only read and have no gate open */
	uint32_t inside[1 + GATE_NOTES]; /* crowd and notes, as they were when it was locked */
	struct xfsz size_signal;         /* held back while it is locked */
	struct bus *bus, *bus_seen;      /* of the two maps */
	int64_t hurry_until; /* those in line did not move: no use in waiting for them */
};

struct gate_holder {
	int64_t pid, ms; /* held for so long */
	char who[160];
};

/* Opens or creates PATH, for those who may use the file that `like` is of; -errno, -EINVAL if it is no
 * regular file, -ELOOP if it is a link. */
int gate_open(struct gate *g, const char *path, const struct stat *like);
/* The same below the folder `dir`. */
int gate_open_at(struct gate *g, int dir, const char *path, const struct stat *like);
void gate_close(struct gate *g);
/* Is it open, and still the file at its path? Who holds another one keeps nobody out. */
bool gate_stands(const struct gate *g, const char *path);
/* 0, -ETIMEDOUT, another -errno */
int gate_lock(struct gate *g, int64_t timeout_ms, struct str who);
/* The same without waiting, and -ETIMEDOUT if somebody stands in line. */
int gate_try(struct gate *g, struct str who);
/* Does anybody? */
bool gate_line(const struct gate *g);
/* Those in line had GATE_POLITE_MS and did not take the free gate. */
void gate_line_stuck(struct gate *g);
#define GATE_POLITE_MS 100
/* How often calls of others were run, as a number that changes with it. */
uint32_t gate_served(const struct gate *g);
void gate_count_served(struct gate *g);
/* Waits until it is no longer `seen`, and `ms` at the longest: false. */
bool gate_await_served(struct gate *g, uint32_t seen, int64_t ms);
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
/* The same at this moment, with or without the lock. */
bool gate_marked(const struct gate *g);
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
