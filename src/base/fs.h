/*
 * fs: files, with the care that shared folders need. Errors are -errno.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <sys/types.h>

#include "base/arena.h"

/* The whole of a regular file; -EFBIG past `max`, -ELOOP if it is a link, -EINVAL if no regular file. */
int fs_read(struct arena *a, const char *path, size_t max, struct str *out);
/* Replaced as a whole or not at all (temp, fsync, rename, fsync of the folder). */
int fs_write_atomic(const char *path, struct str data, mode_t mode);
/* mkdir -p */
int fs_make_dirs(const char *path, mode_t mode);
/* The names in a folder are on disk. */
int fs_sync_dir(const char *path);
bool fs_is_dir(const char *path);
bool fs_exists(const char *path);
/* "dir/name" */
char *fs_join(struct arena *a, struct str dir, struct str name);
struct str fs_dirname(struct str path);
/* Absolute and without links or "..": of a path whose last part may not exist yet. NULL if its folder does not. */
char *fs_real(struct arena *a, const char *path);
int fs_write_all(int fd, struct str data);
/* Where this user's files of one kind are: $VARIABLE/pawl, else USUAL/pawl in the home folder; NULL where there is
 * none. A relative path counts as not set: so the XDG specification has it. */
char *fs_user_dir(struct arena *a, const char *variable, const char *usual);

#endif
