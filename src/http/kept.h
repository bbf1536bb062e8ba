/*
 * kept: the file of a TLS session that a later process can resume.
 */
#ifndef HTTP_KEPT_H
#define HTTP_KEPT_H

#include "base/str.h"

/* Returns the number of bytes; 0: there is no file, or it may not be used. */
size_t kept_read(const char *path, void *p, size_t room);
void kept_write(const char *path, struct str bytes);
void kept_forget(const char *path);

#endif
