/*
 * runtime_folder: a private folder that is shared by all processes of one user on one machine. It holds the gate and the
 * slots (gate.h, combine.h) of a store whose data is elsewhere, such as on a server.
 *
 * The folder is the first safe one of $XDG_RUNTIME_DIR/pawl, /run/user/UID/pawl and /tmp/pawl-UID. A safe folder belongs to
 * this user, no other user can write to it or read it, and it is neither a link nor on a network file system.
 */
#ifndef STORE_LOCAL_RUNTIME_FOLDER_H
#define STORE_LOCAL_RUNTIME_FOLDER_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/str.h"

/* Returns the path FOLDER/NAME, allocated in `a`, and sets *like to the owner and mode for files there. NULL: there is no
 * safe folder. */
char *runtime_folder_path(struct arena *a, struct str name, struct stat *like);

#endif
