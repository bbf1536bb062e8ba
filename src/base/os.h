/*
 * os: everything that differs between Linux and macOS, and nothing else. Errors are -errno.
 */
#ifndef BASE_OS_H
#define BASE_OS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/str.h"

int64_t os_wall_ms(void);
/* Measures intervals, because no user can set this clock. It may stop while the machine sleeps. */
int64_t os_monotonic_ns(void);
/* Milliseconds since boot, including sleep; no user can set it. In a container with a time
 * namespace it is the machine's value (see timespace below). */
int64_t os_boot_ms(void);
/* A name that is unique to this boot of this machine. */
struct str os_boot_id(struct arena *a);
struct str os_hostname(struct arena *a);
/* Name and home folder of this user; empty if unknown. */
void os_user(struct str *name, struct str *home, struct arena *a);

/* Takes an exclusive flock, waiting up to `timeout_ms`: 0, -ETIMEDOUT, or another -errno. The
 * kernel does the waiting; doc/decisions.md says how the wait is cut short. */
int os_lock(int fd, int64_t timeout_ms);
void os_unlock(int fd);

/* Locks one byte of a file until `fd` is closed or the process ends. Returns 0, -EAGAIN if another
 * process has it, -ENOSYS if the system does not support byte locks. */
int os_own_byte(int fd, int64_t at);
/* Takes a shared lock on the byte, and releases either kind. */
int os_share_byte(int fd, int64_t at);
void os_leave_byte(int fd, int64_t at);
/* Does another process share the byte? */
bool os_byte_shared(int fd, int64_t at);
/* Sleeps while the word, in shared memory, equals `seen`, up to `ms`. */
void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms);
void os_word_wake(_Atomic uint32_t *word);
void os_word_wake_all(_Atomic uint32_t *word);

/* Syncs the whole file system that `fd` is on; -ENOSYS if the system cannot. */
int os_sync_fs(int fd);

/* The name of the network file system that `path` is on; NULL if it is local. */
const char *os_network_fs(const char *path);

/* The pid namespace of this process; empty if the system has none. */
struct str os_pid_space(struct arena *a);
/* When a process began, in the kernel's ticks. In a time namespace it may be one tick off. 0: the
 * process does not exist; < 0: unknown. */
int64_t os_process_start(int64_t pid);

/* Makes the kernel kill this process when `parent`, which forked it, ends. On systems that cannot,
 * it ends this process only if the parent has already ended. */
void os_end_with(pid_t parent);
/* With `yes`, a descendant whose parent has ended becomes a child of this process, on systems that can. */
void os_adopt_orphans(bool yes);
/* Kills every child of this process, and every descendant that thereby becomes one; waits for all. */
void os_end_children(void);
/* A pipe that no other program inherits. 0 or -errno. */
int os_pipe(int ends[2]);
/* Closes every descriptor from `fd` on, for a child that does not call exec. */
void os_close_from(int fd);

/* A descriptor that becomes readable when a file in `dir` changes; -1 if the system has none. */
int os_watch(const char *dir);
/* Makes the same descriptor watch one more folder. */
void os_watch_also(int fd, const char *dir);
/* Discards the changes seen so far. */
void os_watch_drain(int fd);

/* --- host ------------------------------------------------------------------------------------- */

/*
 * host: does an address lead to this machine? A token may go there without TLS.
 */

/* Is HOST or HOST:PORT certainly an address of this machine? A name that only begins like one may lead elsewhere. */
bool host_is_loopback(struct str place);

/* --- proc ------------------------------------------------------------------------------------- */

/*
 * proc: is the process that holds a lock still alive? Never sends a signal.
 */

/* The start of the process as a lock notes it; 0: unknown. */
int64_t proc_start(int64_t pid);
enum proc_life { PROC_UNKNOWN, PROC_ALIVE, PROC_DEAD };

/* Identifies where this process's pids are valid: this boot of this machine, this pid namespace. */
struct str proc_here(struct arena *a);
/* `host` and `place` were recorded with the pid. The result is known only on the same host and in
 * the same place. */
enum proc_life proc_life(struct str host, struct str place, int64_t pid, int64_t start);
/* Is the process provably dead? Stricter than proc_life(): two machines may have one name, so the
 * place must be this one, and a process of another boot is unknown. */
bool proc_died_here(struct str host, struct str place, int64_t pid, int64_t start);

/* --- time namespaces -------------------------------------------------------------------------- */

/*
 * timespace: the distance of this process's boot-time clock from the machine's.
 *
 * A container may have a time namespace. It shifts CLOCK_BOOTTIME and the start times in /proc by a
 * fixed offset, while the boot id is the same for all. Processes that share a store must agree on
 * the time, so each subtracts the offset (os_boot_ms, os_process_start). This costs one readlink
 * for each process.
 */

/* In nanoseconds; 0 outside a time namespace, or if its offset cannot be read. */
int64_t timespace_offset(void);
/* false: this process is in a time namespace whose offset cannot be read. */
bool timespace_known(void);
/* Makes the next call read the offset again; for forks and tests. */
void timespace_forget(void);

#endif
