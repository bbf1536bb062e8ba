/*
 * target: may a command write the file that somebody named? A link there may have come with a clone, and leads
 * anywhere; a file that pawl did not write is somebody's work.
 */
#ifndef TRANSFER_TARGET_H
#define TRANSFER_TARGET_H

#include "base/arena.h"

/* 0: there is nothing, an empty file, or one that begins with one of the texts (they end with n == 0). -EEXIST: another
 * file; -ELOOP: a link to a file, or to nothing. Pipes, terminals and links to them are for the caller to judge: 1. */
int target_check(const char *path, const struct str *beginnings);

#endif
