/*
 * git_run: runs the user's git as a process, with arguments and no shell. git never prompts, runs no hooks on
 * this side, uses no helper that a URL may name, and is killed when it takes too long.
 */
#ifndef STORE_GIT_TRANSPORT_TRANSPORT_H
#define STORE_GIT_TRANSPORT_TRANSPORT_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "store/git/git.h"

struct git_args {
	char **v;
	size_t n;
	struct arena a;
};

/* git -C DIR … VERB, in the repository DIR. */
void git_args_begin(struct git_args *g, const char *dir, const char *verb);
void git_arg(struct git_args *g, struct str arg);
void git_args_free(struct git_args *g);
/* Starts the program that the first argument names, with these descriptors (in < 0: empty input): 0 or
 * -errno. */
int git_start(struct git_args *g, int in, int out, int err, pid_t *pid);
/* Returns the exit code, -ETIMEDOUT or -errno. `text` is the output, and lives as long as the arguments. */
int git_run(struct git_args *g, int64_t timeout_ms, struct str *text);

/* --- pkt -------------------------------------------------------------------------------------- */

/*
 * git_pkt: a connection to a `git receive-pack` or `git upload-pack`, and the pkt-lines on it.
 *
 * A connection is one socket, to a server or to a program that pawl started. It has one deadline for everything
 * that it sends and receives, and keeps the program's stderr for error messages. Errors are -errno; -EPIPE: the
 * other side is gone.
 */

struct git_conn {
	int fd;      /* -1: none */
	int err;     /* the program's stderr; -1: none */
	pid_t pid;   /* 0: no program */
	bool late;   /* the deadline has passed */
	bool busy;   /* the program may be changing the repository */
	int64_t end; /* the deadline, by os_boot_ms() */
	struct buf in, said;
	size_t at; /* bytes of `in` that were consumed */
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

/* --- endpoint --------------------------------------------------------------------------------- */

/*
 * git_endpoint: how pawl reaches git's server side without git's client: a program on this machine, a TCP port, or
 * a program behind ssh. Everything else (http, helpers, proxies, an ssh that is not OpenSSH's) is ACTION_NONE, and
 * pawl runs git itself.
 */

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

/* --- raw -------------------------------------------------------------------------------------- */

/*
 * git_raw: speaks git's own protocol without git's client. A change is one connection. The server's
 * receive-pack first lists the current refs; pawl sends the commands and the pack back on the same
 * connection. Only the objects of refs that others have moved need a second connection, to upload-pack.
 *
 * A command whose old and new value are the same keeps its ref in its place without moving it. `git push` has
 * no such command.
 */

enum git_pushed {
	PUSHED,        /* all of it */
	PUSH_LATE,     /* nothing: a ref has moved, or another process has locked it */
	PUSH_DECLINED, /* nothing, and a retry would not help */
	PUSH_UNKNOWN,  /* the answer was lost */
	PUSH_NOT_HERE, /* nothing: pawl should try git itself */
	PUSH_ONE_ONLY  /* nothing: the server cannot move several refs as a whole */
};

/* false: git's client must reach this remote. */
bool git_raw_open(struct git *s);
void git_raw_close(struct git *s);
/* A change lasts from begin() to end(). A list during a change is the first half of a push. */
void git_raw_begin(struct git *s);
void git_raw_end(struct git *s);
int git_raw_list(struct git *s, struct git_refs *out, struct arena *a);
/* Makes the next push leave out the objects that were written so far. */
void git_raw_forget(struct git *s);
/* `why`: the server's message, in `a`. */
enum git_pushed git_raw_push(struct git *s, const struct git_move *moves, size_t n, bool atomic,
			     struct str *why, struct arena *a);
/* Does a refusal's reason mean that another push came first? */
bool git_is_late(struct str reason);

/* The longest time that a server may take to answer: the setting, or the timeout, but at least 10 s. */
int64_t git_net_ms(const struct git *s);
int git_unreachable(struct git *s, int rc, struct str text);

/* --- the last known refs (git/git_view.c) ----------------------------------------------------------- */

/* The refs as this clone last saw them; it has all objects that they reach. */
int git_seen_list(struct git *s, struct git_refs *out, struct arena *a);
/* Moves each ref from the known value to the new one; skips a ref that another process has moved on. */
void git_seen_note(struct git *s, const struct git_move *moves, size_t n);
/* The ref without which there is no queue. */
struct str git_main_ref(const struct git *s);
/* Did the last fetch into this clone find a queue? */
bool git_seen_before(struct git *s);
/* Records that all refs were seen just now. */
void git_seen_now(struct git *s);

/* --- one push at a time (git/git_change.c) ------------------------------------------------------------ */

/* Waits a little for other processes on this machine; true: the caller must call gate_unlock(). */
bool git_turns_take(struct gate *g, struct str repository, const struct store_env *env);

/* --- packs (git/git_objects.c) ------------------------------------------------------------------------- */

/* Packs the objects that the change has written; `out` belongs to libgit2. */
int git_pack_made(struct git *s, const git_oid *made, size_t n, git_buf *out);
/* Unpacks the pack on the connection into this clone: 0 or -errno; -EBADMSG: the pack is incomplete. */
int git_pack_take(struct git *s, struct git_conn *c);

#endif
