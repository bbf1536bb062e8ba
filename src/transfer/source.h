/*
 * source: opens a file that the user names, to read it from start to end. A FIFO without a writer, or a device, does
 * not block a command forever.
 */
#ifndef TRANSFER_SOURCE_H
#define TRANSFER_SOURCE_H

#include <stdio.h>

/* Opens a regular file, a pipe or a terminal. NULL: *r is -errno; -EINVAL: another kind of file, -ETIMEDOUT: a pipe
 * without a writer. */
FILE *source_open(const char *path, int *r);

#endif
