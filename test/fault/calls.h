/*
 * calls: every system call that a store makes on files goes through one table.
 *
 * A program that is linked with calls.c contains these functions of libc itself. The dynamic linker
 * finds them there first, so that SQLite's shared library uses them too; test/fault/escape.c shows
 * that no call bypasses them. Each can be made to fail, and reports its effect on the disk to a
 * callback. An armed fault applies to this process and its children.
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

#define FAULT_SHORT (-1) /* not an errno: the call reads or writes only a part */

/* Makes the nth call of its kind after arming fail, or all from that one on. */
struct call_fault {
	enum call_kind kind;
	int err;
	int64_t nth; /* 0: no call fails, they are only counted */
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

/* --- effects of a call --------------------------------------------------------------------------- */

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

/* Called after a call that succeeded. May be NULL. */
extern void (*calls_effect)(const struct effect *e);
/* May change the result of stat() for a path. */
extern void (*calls_stat)(const char *path, struct stat *st);

#endif
