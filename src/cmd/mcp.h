/*
 * mcp: the arguments of the command, for the face that serves it.
 */
#ifndef CMD_MCP_H
#define CMD_MCP_H

#include "cmd/command.h"

struct mcp_args {
	struct args args;
	struct str profile;
	int64_t max_hold, release_on_exit;
};

#endif
