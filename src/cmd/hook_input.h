/* hook_input: the JSON object that a coding agent writes to the standard input of its hooks. */
#ifndef CMD_HOOK_INPUT_H
#define CMD_HOOK_INPUT_H

#include "base/arena.h"

struct hook_input {
	struct str session; /* session_id; empty: unknown */
	struct str agent;   /* agent_id of a sub-agent; empty: none */
};

/* Never waits for a terminal, and at most half a second for a program. Input that is too large or is not such an
 * object counts as none. */
struct hook_input hook_input_read(struct arena *a);

#endif
