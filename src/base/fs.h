/*
 * fs: file operations that are safe in shared folders. Errors are -errno.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

/* Reads a whole regular file; -EFBIG if larger than `max`, -ELOOP if it is a link, -EINVAL if it is
 * not a regular file. */
int fs_read(struct arena *a, const char *path, size_t max, struct str *out);
/* Reads a whole open file, with the same limits. */
int fs_read_fd(struct arena *a, int fd, size_t max, struct str *out);
/* Reads a secret. -EPERM: the file has another owner, other users can read or write it, or it is not a regular file. */
int fs_read_private(struct arena *a, const char *path, size_t max, struct str *out);
/* Replaces the whole file or nothing (temporary file, fsync, rename, fsync of the folder). */
int fs_write_atomic(const char *path, struct str data, mode_t mode);
/* Replaces the file NAME in the folder `dir`, which is open for reading. */
int fs_write_atomic_at(int dir, const char *name, struct str data, mode_t mode);
/* fs_write_atomic() with the owner, group and mode of `like`; -EPERM if the caller may not set
 * them. */
int fs_write_like(const char *path, struct str data, const struct stat *like);
/* mkdir -p */
int fs_make_dirs(const char *path, mode_t mode);
/* Makes the names in a folder durable. */
int fs_sync_dir(const char *path);
/*
 * After an open() that failed with EACCES: true if the caller should retry. Another
 * process may be creating the file for all users: between its open() and its fchmod(), its umask
 * keeps other users out. Waits a millisecond. false: the file is older than a second.
 */
bool fs_is_settling(int dir, const char *path);
struct fs_id {
	dev_t dev;
	ino_t ino;
	int64_t size;
};

/*
 * The file at a path, not a link's target. It does not ask for the times: after a stat() that does, Linux gives the
 * next write to the file an exact time of its own, and the changed inode makes that write and its sync slower.
 */
bool fs_identify(const char *path, struct fs_id *out);
struct fs_id fs_id_of(const struct stat *st);
/* Is the file still at this path? If so, *size is its current size; `size` may be NULL. */
bool fs_is_at(const char *path, const struct fs_id *file, int64_t *size);
bool fs_is_dir(const char *path);
bool fs_exists(const char *path);
/* "dir/name" */
char *fs_join(struct arena *a, struct str dir, struct str name);
struct str fs_dirname(struct str path);
/* The absolute path without links or "..". Its last component need not exist; NULL if the folder
 * does not exist. */
char *fs_real(struct arena *a, const char *path);
/* Reads from a pipe until its other end is closed; false: `end` (os_boot_ms) passed first. */
bool fs_read_until(int fd, int64_t end, struct buf *out);
int fs_write_all(int fd, struct str data);
/* The folder for this user's files of one kind: $VARIABLE/pawl, else USUAL/pawl in the home folder;
 * NULL if there is neither. A relative $VARIABLE counts as unset, as the XDG specification says. */
char *fs_user_dir(struct arena *a, const char *variable, const char *usual);

/* --- beneath ---------------------------------------------------------------------------------- */

/*
 * beneath: opens files below a folder whose content is not trusted. No component of a path may be a
 * link or "..", or lead out of the folder. So a planted link never makes us read, write or delete a
 * file elsewhere. Errors are -errno: -ELOOP for a link, -EXDEV for a path that leads out, -EINVAL
 * for a file that is not regular.
 */

/* Opens PATH below the folder DIR (a descriptor, or AT_FDCWD). Without O_DIRECTORY or O_PATH the
 * result is a regular file; a FIFO or a device is refused without blocking. */
int beneath_open(int dir, const char *path, int flags, mode_t mode);
/* A descriptor of the folder PATH below ROOT, for the *at() calls. The user named ROOT, so ROOT
 * itself may be a link. "" as PATH means ROOT. */
int beneath_dir(const char *root, const char *path);
/* Opens the folder for readdir(); NULL if it cannot be opened. */
DIR *beneath_list(const char *root, const char *path);

#endif
