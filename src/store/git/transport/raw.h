/*
 * git_raw: git's own protocol, spoken without git's client. A change is one connection: what the server's
 * receive-pack says first is a list of the refs as they are now, and the commands and the pack go back on the same one.
 * Only the objects of refs that others have moved come through a second one, from upload-pack.
 *
 * A command whose old and new value are the same keeps its ref where it is without moving it, which `git push`
 * cannot say.
 */
#ifndef STORE_GIT_TRANSPORT_RAW_H
#define STORE_GIT_TRANSPORT_RAW_H

#include "store/git/git.h"
#include "store/git/transport/pkt.h"

enum git_pushed {
	PUSHED,        /* all of it */
	PUSH_LATE,     /* nothing: a ref has moved, or is locked by another */
	PUSH_DECLINED, /* nothing, nor will it ever */
	PUSH_UNKNOWN,  /* the answer was lost */
	PUSH_NOT_HERE, /* nothing: git itself may know how */
	PUSH_ONE_ONLY  /* nothing: the server cannot do all or nothing */
};

/* false: there is no such way to the remote. */
bool git_raw_open(struct git *s);
void git_raw_close(struct git *s);
/* For a change, until it ends: lists are the first half of a push. */
void git_raw_begin(struct git *s);
void git_raw_end(struct git *s);
int git_raw_list(struct git *s, struct git_refs *out, struct arena *a);
/* What was written so far need not be sent any more. */
void git_raw_forget(struct git *s);
/* `why`: in `a`, what the server said. */
enum git_pushed git_raw_push(struct git *s, const struct git_move *moves, size_t n, bool atomic,
			     struct str *why, struct arena *a);
/* Why a server refused a ref: is it that others were there at the same time? */
bool git_is_late(struct str reason);

/* How long a server may take to answer, however short the patience with others is. */
int64_t git_net_ms(const struct git *s);
int git_unreachable(struct git *s, int rc, struct str text);

/* --- what this clone has seen (git/seen.c) ------------------------------------------------------ */

/* The refs as they were when last seen; all that they reach is here. */
int git_seen_list(struct git *s, struct git_refs *out, struct arena *a);
/* Each from what was known to what is; where another process knows more, that stays. */
void git_seen_note(struct git *s, const struct git_move *moves, size_t n);
/* The ref without which there is no queue. */
struct str git_main_ref(const struct git *s);
/* Was there a queue when this clone last looked? */
bool git_seen_before(struct git *s);
/* All of them have been seen just now. */
void git_seen_now(struct git *s);

/* --- turns (git/turn.c) ------------------------------------------------------------------------- */

/* Waits a little for others of this machine; true: gate_unlock() when done. */
bool git_turn_take(struct gate *g, struct str repository, const struct store_env *env);

/* --- packs (git/pack.c) ------------------------------------------------------------------------- */

/* All that was written since the change began, as a pack; `out` belongs to libgit2. */
int git_pack_made(struct git *s, const git_oid *made, size_t n, git_buf *out);
/* The pack that comes on the connection becomes objects of this clone: 0, or -errno; -EBADMSG if it is not
 * whole. */
int git_pack_take(struct git *s, struct git_conn *c);

#endif
