/*
 * os: everything that differs between Linux and macOS, and nothing else. Errors are -errno.
 */
#ifndef BASE_OS_H
#define BASE_OS_H

#include <sys/types.h>

#include "base/arena.h"

int64_t os_wall_ms(void);
/* Milliseconds since boot, time asleep included; no one can set it. */
int64_t os_boot_ms(void);
/* One name for each boot of this machine. */
struct str os_boot_id(struct arena *a);
struct str os_hostname(struct arena *a);
/* Name and home folder of this user; empty where nobody knows. */
void os_user(struct str *name, struct str *home, struct arena *a);

/* Takes an exclusive flock, waiting at most `timeout_ms`: 0, -ETIMEDOUT, or another -errno. The kernel
 * does the waiting; see doc/decisions.md for how it is cut short. */
int os_lock(int fd, int64_t timeout_ms);
void os_unlock(int fd);

/* Makes one byte of a file ours until `fd` is closed or the process ends: 0, -EAGAIN if it is another's,
 * -ENOSYS where there is no such thing. */
int os_own_byte(int fd, int64_t at);
/* Sleeps while the word, in memory that processes share, is `seen`, and `ms` at the longest. */
void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms);
void os_word_wake(_Atomic uint32_t *word);

/* Syncs all of the file system that `fd` is on; -ENOSYS where that cannot be done. */
int os_sync_fs(int fd);

/* The name of the network file system that `path` is on, or NULL if it is a local one. */
const char *os_network_fs(const char *path);

/* The pid namespace we are in; empty where there is no such thing. */
struct str os_pid_space(struct arena *a);
/* When a process began, in the kernel's own ticks; 0 if there is none with that pid; < 0: cannot tell. */
int64_t os_process_start(int64_t pid);

/* This process is killed when `parent`, which forked it, ends. Where the system has no such thing: only if
 * it has ended already. */
void os_end_with(pid_t parent);
/* A pipe that no other program inherits. 0 or -errno. */
int os_pipe(int ends[2]);
/* Closes every descriptor from this one on: for a child that lives on without exec. */
void os_close_from(int fd);

/* A descriptor that becomes readable when a file in `dir` changes; -1 where there is no such thing. */
int os_watch(const char *dir);
/* The same descriptor for one more folder. */
void os_watch_also(int fd, const char *dir);
/* Forgets the changes seen so far. */
void os_watch_drain(int fd);

#endif
