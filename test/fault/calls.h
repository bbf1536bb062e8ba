/*
 * calls: every system call that a store makes on files, through one table.
 *
 * A program that is linked with calls.c has these functions of libc in itself. The dynamic linker finds them
 * there first, so that they also serve SQLite's shared library; test/fault/escape.c shows that no call
 * goes past them. Each can be made to fail, and what it did to the disk is told to who wants to know.
 * What is armed is this process's alone, and its children's.
 */
#ifndef TEST_FAULT_CALLS_H
#define TEST_FAULT_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum call_kind {
#define KIND(name) CALL_##name,
#include "calls.def"
#undef KIND
	CALL_KINDS
};

extern const char *const call_names[CALL_KINDS];

#define FAULT_SHORT (-1) /* not an errno: only a part is read or written */

/* The nth call of its kind since it was armed fails, or all from that one on. */
struct call_fault {
	enum call_kind kind;
	int err;
	int64_t nth; /* 0: none fails, they are only counted */
	bool always;
};

extern struct calls {
	bool armed;
	struct call_fault fault;
	int64_t seen[CALL_KINDS], fired;
	volatile int inside; /* a real call is under way */
} calls;

void calls_arm(const struct call_fault *fault);
void calls_disarm(void);

/* --- what a call did ----------------------------------------------------------------------------- */

enum effect_kind {
	EFFECT_CREATED, /* path in dir, open as fd */
	EFFECT_WROTE,   /* data, n, at */
	EFFECT_CUT,     /* at: the new size */
	EFFECT_SYNCED,  /* fd, a file or a folder */
	EFFECT_SYNCED_ALL,
	EFFECT_LINKED,   /* path in dir, from path2 in dir2 */
	EFFECT_RENAMED,  /* path in dir, from path2 in dir2 */
	EFFECT_REMOVED,  /* path in dir */
	EFFECT_MADE_DIR, /* path in dir */
	EFFECT_MAPPED    /* fd, to be written to */
};

struct effect {
	enum effect_kind kind;
	int fd, dir, dir2;
	const char *path, *path2;
	const void *data;
	size_t n;
	int64_t at;
};

/* Called after a call that succeeded. NULL: nobody asks. */
extern void (*calls_effect)(const struct effect *e);
/* May change what stat() says of a path. */
extern void (*calls_stat)(const char *path, struct stat *st);

#endif
