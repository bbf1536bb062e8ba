/*
 * git_raw: speaks git's own protocol without git's client. A change is one connection. The server's
 * receive-pack first lists the current refs; pawl sends the commands and the pack back on the same
 * connection. Only the objects of refs that others have moved need a second connection, to upload-pack.
 *
 * A command whose old and new value are the same keeps its ref in its place without moving it. `git push` has
 * no such command.
 */
#ifndef STORE_GIT_TRANSPORT_RAW_H
#define STORE_GIT_TRANSPORT_RAW_H

#include "store/git/git.h"
#include "store/git/transport/pkt.h"

enum git_pushed {
	PUSHED,        /* all of it */
	PUSH_LATE,     /* nothing: a ref has moved, or another process has locked it */
	PUSH_DECLINED, /* nothing, and a retry would not help */
	PUSH_UNKNOWN,  /* the answer was lost */
	PUSH_NOT_HERE, /* nothing: pawl should try git itself */
	PUSH_ONE_ONLY  /* nothing: the server cannot do all or nothing */
};

/* false: the remote cannot be reached this way. */
bool git_raw_open(struct git *s);
void git_raw_close(struct git *s);
/* A change lasts from begin() to end(). A list during a change is the first half of a push. */
void git_raw_begin(struct git *s);
void git_raw_end(struct git *s);
int git_raw_list(struct git *s, struct git_refs *out, struct arena *a);
/* The next push does not send the objects that were written so far. */
void git_raw_forget(struct git *s);
/* `why`: the server's message, in `a`. */
enum git_pushed git_raw_push(struct git *s, const struct git_move *moves, size_t n, bool atomic,
			     struct str *why, struct arena *a);
/* Does the reason of a refusal mean that another push was faster? */
bool git_is_late(struct str reason);

/* How long a server may take to answer: the setting, or at least 10 s even if the timeout is shorter. */
int64_t git_net_ms(const struct git *s);
int git_unreachable(struct git *s, int rc, struct str text);

/* --- the last known refs (git/seen.c) ----------------------------------------------------------- */

/* The refs as this clone last saw them; it has all objects that they reach. */
int git_seen_list(struct git *s, struct git_refs *out, struct arena *a);
/* Moves each ref from the known value to the new one; skips a ref that another process has moved on. */
void git_seen_note(struct git *s, const struct git_move *moves, size_t n);
/* The ref without which there is no queue. */
struct str git_main_ref(const struct git *s);
/* Was there a queue when this clone last looked? */
bool git_seen_before(struct git *s);
/* Records that all refs were seen just now. */
void git_seen_now(struct git *s);

/* --- turns (git/turn.c) ------------------------------------------------------------------------- */

/* Waits a little for other processes of this machine; true: call gate_unlock() when done. */
bool git_turns_take(struct gate *g, struct str repository, const struct store_env *env);

/* --- packs (git/pack.c) ------------------------------------------------------------------------- */

/* Packs all objects that the change has written; `out` belongs to libgit2. */
int git_pack_made(struct git *s, const git_oid *made, size_t n, git_buf *out);
/* Unpacks the pack on the connection into this clone: 0 or -errno; -EBADMSG: the pack is incomplete. */
int git_pack_take(struct git *s, struct git_conn *c);

#endif
