/*
 * gate: one kernel lock in front of every write. Writers wait in the kernel instead of polling, and no checkpoint
 * overlaps a write.
 *
 * pawl never unlinks the file: all processes must wait for the same inode. The file contains:
 *
 *  - the holder's name, for the error message of a process whose timeout has passed. The holder writes it through a
 *    mapping, which causes no inotify event, because a refused attempt must not wake all agents that wait for work.
 *    gate_announce() does cause an event.
 *  - a note from one holder to the next, which may be lost.
 *  - flags: a process has published a call (combine.h), a commit is in progress (gate_mark), a process is in line.
 *  - the counters (batch_counts.h). They are here because a mapped write causes no event, and each process maps the file
 *    anyway.
 *
 * The line: a process that waits in the kernel is in line, and shows this by a shared lock on one byte. The lock ends with
 * the process. A process that waits for an answer instead (combine.h) lets the line go first, but only for GATE_POLITE_MS,
 * because a process in line may be stopped. After a second without an answer it joins the line itself. In turn, a process
 * that serves no calls pauses before its next change, so that the processes with waiting calls get the gate.
 *
 * If a program truncates the file, no process dies of it (base/sigfault.h), and the next holder restores the file.
 */
#ifndef STORE_LOCAL_GATE_H
#define STORE_LOCAL_GATE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/sigfault.h"
#include "store/local/batch_counts.h"
#include "store/store.h"

#define GATE_SIZE 256 /* the counters follow */
#define GATE_NOTES 3

struct gate {
	int fd; /* -1: not open */
	struct fs_id file;
	char *map;
	bool whole;                      /* the file has its first GATE_SIZE bytes */
	bool counted;                    /* the file has room for the counters, too */
	char *seen;                      /* read-only mapping of a gate that is not open */
	uint32_t inside[1 + GATE_NOTES]; /* flags and notes, as read when we locked the gate */
	struct xfsz size_signal;         /* SIGXFSZ is held back while we hold the gate */
	struct bus *bus, *bus_seen;      /* guards of the two mappings */
	int64_t hurry_until; /* the line did not move: do not wait for it before this time */
};

/* Opens or creates PATH, with the owner and mode of the file `like`; -errno, -EINVAL if it is not a regular file,
 * -ELOOP if it is a link. */
int gate_open(struct gate *g, const char *path, const struct stat *like);
/* gate_open() below the folder `dir`. */
int gate_open_at(struct gate *g, int dir, const char *path, const struct stat *like);
void gate_close(struct gate *g);
/* Is the file open, and still at its path? A lock on a file that is not at the path excludes no other process. */
bool gate_stands(const struct gate *g, const char *path);
/* 0, -ETIMEDOUT, another -errno */
int gate_lock(struct gate *g, int64_t timeout_ms, struct str who);
/* gate_lock() without waiting; also -ETIMEDOUT if another process is in line. */
int gate_try(struct gate *g, struct str who);
/* Is a process in line? */
bool gate_line(const struct gate *g);
/* The processes in line had GATE_POLITE_MS and did not take the free gate: ignore them for a while. */
void gate_line_stuck(struct gate *g);
#define GATE_POLITE_MS 100
/* Counts the batches in which a holder served other processes' calls. */
uint32_t gate_served(const struct gate *g);
void gate_count_served(struct gate *g);
/* Waits up to `ms` until the counter differs from `seen`; false: it did not. */
bool gate_await_served(struct gate *g, uint32_t seen, int64_t ms);
/* For the holder: refreshes its data as if it had left the gate and locked it again. */
void gate_again(struct gate *g, struct str who);
void gate_unlock(struct gate *g);
/* Leaves a note to the next holder, and wakes processes that watch the folder. Call it when the change is
 * visible. */
void gate_announce(struct gate *g, const uint32_t notes[GATE_NOTES]);
/* The previous holder's note; zeros if it is lost. */
void gate_notes(const struct gate *g, uint32_t notes[GATE_NOTES]);
/* Reads the note without the lock: `fd` is an open gate file. false: there is no note. */
bool gate_peek(int fd, uint32_t notes[GATE_NOTES]);
/* Has a process ever published a call? The flag is never cleared. gate_was_crowded(): as read when we locked the gate. */
bool gate_was_crowded(const struct gate *g);
bool gate_crowded(const struct gate *g);
void gate_set_crowded(struct gate *g);
/* A holder sets the mark before its commit and clears it after success. If the mark is set when we get the gate, the
 * last holder died in its commit, or the commit failed, or the file was truncated. */
void gate_mark(struct gate *g, bool on);
bool gate_was_marked(const struct gate *g);
/* Is the mark set now? Works with or without the lock. */
bool gate_marked(const struct gate *g);
/* Opens or creates a file with the owner and mode of `like`, as gate_open() does. Returns the descriptor or -errno. */
int gate_file(const char *path, const struct stat *like);
/* The counters; NULL: there are none yet. */
struct store_counts *gate_counts(struct gate *g);
/* The counters of a gate that is not open, read-only: a write is SIGSEGV. */
struct store_counts *gate_counts_at(struct gate *g, const char *path);
/* Fills in env->err after a timeout: STORE_BUSY, with the name of the holder of `path`. */
int gate_busy(const struct gate *g, const struct store_env *env, const char *path);

#endif
