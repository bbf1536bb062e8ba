/*
 * git_pkt: a connection to a `git receive-pack` or `git upload-pack`, and the pkt-lines on it.
 *
 * A connection is one socket, to a server or to a program that pawl started, with one deadline for everything
 * on it. It keeps the program's stderr for error messages. Errors are -errno; -EPIPE: the other side is gone.
 */
#ifndef STORE_GIT_TRANSPORT_PKT_H
#define STORE_GIT_TRANSPORT_PKT_H

#include <sys/types.h>

#include "base/buf.h"

struct git_conn {
	int fd;      /* -1: none */
	int err;     /* the program's stderr; -1: none */
	pid_t pid;   /* 0: no program */
	bool late;   /* the deadline has passed */
	bool busy;   /* the program may be changing the repository */
	int64_t end; /* the deadline, by os_boot_ms() */
	struct buf in, said;
	size_t at; /* bytes of `in` that were used */
};

enum { PKT_LINE, PKT_FLUSH, PKT_END };

void git_conn_init(struct git_conn *c, int64_t timeout_ms);
/* Reads the next line without its newline, valid until the next call; or PKT_FLUSH, PKT_END, -errno. */
int git_pkt_read(struct git_conn *c, struct str *line);
/* Reads the bytes that have arrived, which are not lines: 0, PKT_END, -errno. */
int git_conn_read(struct git_conn *c, struct str *bytes);
/* Are these the next bytes? */
bool git_conn_begins(struct git_conn *c, struct str bytes);
int git_conn_send(struct git_conn *c, struct str bytes);
/* Add a line, or the flush mark between lists, for git_conn_send(). */
void git_pkt_add(struct buf *out, struct str line);
void git_pkt_flush(struct buf *out);
/* The last line that the program wrote to stderr, if any. */
struct str git_conn_said(struct git_conn *c);
/* Hangs up, and returns the program's pid: the program may still finish its own work. A program that has
 * not answered in time is killed, unless it is busy. */
pid_t git_conn_close(struct git_conn *c);

/* The last line that is not empty: usually the most useful one of a program's messages. */
struct str git_last_line(struct str text);

#endif
