/*
 * serve: the arguments of `pawl serve`, and the module that serves (pawl-serve.so).
 */
#ifndef CMD_SERVE_H
#define CMD_SERVE_H

#include "cmd/command.h"

struct serve_args {
	struct args args;
	struct strs listen, host_names;
	struct str tls_cert, tls_key, auth, log;
	int64_t behind_proxy, read_only;
};

struct serve_ops {
	/* Serves until a signal ends it. */
	enum result (*run)(struct session *s, const struct serve_args *a, struct reply *out);
};

#endif
