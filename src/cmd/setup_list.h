/*
 * setup_list: `pawl setup --list`: which clients are installed, and which know pawl.
 */
#ifndef CMD_SETUP_LIST_H
#define CMD_SETUP_LIST_H

#include "cmd/command.h"
#include "cmd/setup_piece.h"

/* An array with an object for each client. Reads the files, and changes nothing. */
json_t *setup_list(struct session *s);
void setup_list_show(const json_t *clients, struct view *v);

#endif
