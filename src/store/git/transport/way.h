/*
 * git_way: how pawl reaches git's server side without git's client: a program on this machine, a TCP port, or
 * a program behind ssh. For everything else (http, helpers, proxies, an ssh that is not OpenSSH's) there is
 * no way, and pawl runs git itself.
 */
#ifndef STORE_GIT_TRANSPORT_WAY_H
#define STORE_GIT_TRANSPORT_WAY_H

#include "base/arena.h"
#include "store/git/transport/pkt.h"

struct git_endpoint {
	enum { ACTION_NONE, CONN_PATH, CONN_TCP, CONN_SSH } kind;
	struct str host, port, path;
	struct str ssh;    /* the command; empty: ssh */
	bool ssh_in_shell; /* the command is a line for the shell */
};

/* The user's settings for ssh and proxies; empty: not set. */
struct git_ssh_config {
	struct str command, variant, proxy;
};

/* Strings in `a`. */
void git_endpoint_find(struct git_endpoint *w, struct str remote, const struct git_ssh_config *conf,
		       struct arena *a);
/* `service` is receive-pack or upload-pack. 0 or -errno. */
int git_endpoint_connect(const struct git_endpoint *w, const char *service, int64_t timeout_ms,
			 struct git_conn *out);

#endif
