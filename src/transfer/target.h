/*
 * target: may a command replace the file that the user names? A clone may contain a link there that leads anywhere,
 * and a file that pawl did not write may hold someone's work.
 */
#ifndef TRANSFER_TARGET_H
#define TRANSFER_TARGET_H

#include "base/arena.h"

/* 0: no file, an empty file, or a file that begins with one of the texts (the list ends with n == 0). -EEXIST: another
 * file; -ELOOP: a link to a file, or a dangling link. 1: a pipe, a terminal or a link to one; the caller decides. */
int target_check(const char *path, const struct str *beginnings);

#endif
