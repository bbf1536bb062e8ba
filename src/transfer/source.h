/*
 * source: a file that somebody names to be read from its start to its end, whatever it is. A FIFO to which
 * nobody writes and a device do not keep a command waiting for ever.
 */
#ifndef TRANSFER_SOURCE_H
#define TRANSFER_SOURCE_H

#include <stdio.h>

/* A regular file, a pipe or a terminal. NULL: *r is -errno; -EINVAL: it is something else, -ETIMEDOUT: a pipe to
 * which nobody writes. */
FILE *source_open(const char *path, int *r);

#endif
