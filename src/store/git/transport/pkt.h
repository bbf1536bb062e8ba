/*
 * git_pkt: a connection to a `git receive-pack` or `git upload-pack`, and the pkt-lines that go through it.
 *
 * It is one socket, of a server or of a program that we have started, with one deadline for all that happens on
 * it. What the program writes for people is kept for messages. Errors are -errno, -EPIPE if the other side is gone.
 */
#ifndef STORE_GIT_TRANSPORT_PKT_H
#define STORE_GIT_TRANSPORT_PKT_H

#include <sys/types.h>

#include "base/buf.h"

struct git_conn {
	int fd;      /* -1: none */
	int err;     /* what a program writes for people; -1: none */
	pid_t pid;   /* 0: no program */
	bool late;   /* the deadline has passed */
	bool busy;   /* the program may be changing the repository */
	int64_t end; /* by os_boot_ms() */
	struct buf in, said;
	size_t at; /* what of `in` was used */
};

enum { PKT_LINE, PKT_FLUSH, PKT_END };

void git_conn_init(struct git_conn *c, int64_t timeout_ms);
/* The next line without its newline, which lives until the next call; or PKT_FLUSH, PKT_END, -errno. */
int git_pkt_read(struct git_conn *c, struct str *line);
/* Bytes that are no lines, as many as there are: 0, PKT_END, -errno. */
int git_conn_read(struct git_conn *c, struct str *bytes);
/* Are these the next bytes? */
bool git_conn_begins(struct git_conn *c, struct str bytes);
int git_conn_send(struct git_conn *c, struct str bytes);
/* A line, and the mark between lines, for git_conn_send(). */
void git_pkt_add(struct buf *out, struct str line);
void git_pkt_flush(struct buf *out);
/* The last line that the program wrote, if any. */
struct str git_conn_said(struct git_conn *c);
/* Hangs up. The program may live on to finish what is its business: its pid. One that has not answered in time is
 * ended, unless it is busy. */
pid_t git_conn_close(struct git_conn *c);

/* The last line that is not empty: of what programs say, it says most. */
struct str git_last_line(struct str text);

#endif
