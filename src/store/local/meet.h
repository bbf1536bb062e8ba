/*
 * meet: a folder in which the processes of one user on one machine meet that use the same server. It holds the gate and
 * the slots (gate.h, combine.h) of a store whose data is elsewhere.
 *
 * The folder is $XDG_RUNTIME_DIR/pawl, /run/user/UID/pawl or /tmp/pawl-UID: the first that is safe. It must belong to this
 * user, nobody else may write to it or read it, and it must not be a link or lie on another machine.
 */
#ifndef STORE_LOCAL_MEET_H
#define STORE_LOCAL_MEET_H

#include <sys/stat.h>

#include "base/arena.h"

/* The path FOLDER/NAME in `a`, and owner and mode for files there in *like. NULL: there is no safe folder. */
char *meet_path(struct arena *a, struct str name, struct stat *like);

#endif
