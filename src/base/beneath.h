/*
 * beneath: opens files below a folder whose content is not trusted. No component of a path may be a
 * link or "..", or lead out of the folder. So a planted link never makes us read, write or delete a
 * file elsewhere. Errors are -errno: -ELOOP for a link, -EXDEV for a path that leads out, -EINVAL
 * for a file that is not regular.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <dirent.h>
#include <sys/types.h>

/* Opens PATH below the folder DIR (a descriptor, or AT_FDCWD). Without O_DIRECTORY or O_PATH the
 * result is a regular file; a FIFO or a device is refused without blocking. */
int beneath_open(int dir, const char *path, int flags, mode_t mode);
/* A descriptor of the folder PATH below ROOT, for the *at() calls. The user named ROOT, so ROOT
 * itself may be a link. "" as PATH means ROOT. */
int beneath_dir(const char *root, const char *path);
/* The same folder for readdir(); NULL if it cannot be opened. */
DIR *beneath_list(const char *root, const char *path);

#endif
