/* board: the interface of pawl-board.so, the module that shows the board in a terminal. */
#ifndef CMD_BOARD_H
#define CMD_BOARD_H

#include "cmd/command.h"

struct board_command_args {
	struct args args;
	int64_t web;
	struct str export;
};

struct board_ops {
	/* Shows the board until the user leaves it. The queue is open. */
	enum result (*run)(struct session *s, struct reply *out);
};

#endif
