/*
 * endpoint: MCP over HTTP at /mcp, for clients of both protocol versions: with sessions up to
 * 2025-11-25, without them from 2026-07-28 on (face/mcp/mcp.h has the protocol itself).
 *
 *   mcp_http.c          the loop's part: request headers, answers and event streams
 *   protocol_version.c  the protocol version of a message, and the headers that repeat its content
 *   mcp_session.c       the worker's part: one struct mcp for each session, or for each caller without a session
 *   session_id.c        session ids, which outlive the server
 *
 * A session consists of three parts, which end independently. A caller without sessions has only 2 and 3.
 *
 * 1. The session id: signed, so the server keeps no list of valid ids. The loop checks it with each request.
 *
 *                a              b
 *      (none) -------> VALID -------> ENDED      A request with an ENDED, EXPIRED or foreign id gets 404.
 *                        |
 *                        |    c
 *                        +----------> EXPIRED
 *
 *    a  the client sends `initialize`, and it succeeds    session_id_begin(), then name_session() and session_id_make()
 *    b  the client sends DELETE                           prepare() calls session_id_end(), which records the end
 *    c  90 days after `initialize`                        session_id_find() refuses the id
 *    Only the client can end its id early. The id outlives part 2, and a server with a state folder.
 *
 * 2. The worker's session (struct mcp_session): a cache that can be dropped at any time, because everything that must
 *    last is in the store, in the keyring and in the session id. Dropping it never releases a lock: the next
 *    request creates it again and finds its locks, or their leases expire.
 *
 *                 d               e
 *      ABSENT ---------> IDLE ---------> IN USE   IN USE: it has an open exchange or holds a lock.
 *        ^ ^              | ^             |  |
 *        | |      g       | |      f      |  |
 *        | +--------------+ +-------------+  |
 *        |                  h                |
 *        +-----------------------------------+
 *
 *    d  any message or GET of the caller                  mcp_session_of() calls mcp_session_new() and keeper_restore()
 *    e  a call waits, a stream opens, or a lock is taken  keep_open(); mcp_take()
 *    f  the last exchange ends and no lock is held        forget(); keeper_learn() and keeper_tick()
 *    g  10 minutes of silence                             sweep()
 *       a new session needs the place                     make room (mcp_session_expiry.c): the session that was silent longest
 *    h  no session is idle, and its caller has the most   make room, with largest_loses()
 *    g and h also:
 *       the client sent DELETE                            mcp_session_run(), for POST_END
 *       the token was revoked                             check(), mcp_sessions_drain()
 *       the worker ends                                   mcp_sessions_end()
 *    A subscription without a stream keeps a session IN USE for 10 minutes after the last message.
 *    Each end goes through mcp_session_free(), in the worker's thread only.
 *
 * 3. The exchange: one job of JOB_MCP. The worker answers it at once, or keeps it OPEN: a call that waits, or a
 *    stream. An OPEN job belongs to its session until the worker ends it, even if its peer is gone.
 *
 *              i
 *      NEW ---------------> ENDED ----------> (freed)
 *       |   j          k     ^  |      m
 *       +------> OPEN -------+  |  n            o
 *                               +-----> SETTLE -----> (freed)
 *
 *    i  the answer is ready at once                       mcp_session_run() returns true
 *    j  the call waits or listens                         keep_open()
 *    k  the answer or the stream's end was made           send_message()
 *       the client cancelled the call                     drop_cancelled(), then hang_up()
 *       the peer is gone, or a stream's token is revoked  worker_gone() by the loop; drop_gone(), then hang_up()
 *       the session or the server ends                    mcp_session_free(), mcp_sessions_drain(), each with hang_up()
 *    m  the answer gives no lock                          endpoint_done() or send_piece(), then finish(), in the loop
 *    n  the answer gives a lock                           finish() sends the job back as JOB_SETTLE
 *    o  the worker learns whether the answer arrived      mcp_sessions_settle() calls client_delivered()
 */
#ifndef FACE_SERVE_MCP_HTTP_H
#define FACE_SERVE_MCP_HTTP_H

#include "face/mcp/mcp.h"
#include "face/serve/serve.h"

/* --- session ids (session_id.c) ------------------------------------------------------------------------- */

/* The owner of a session. Another token, agent or queue cannot use its id. */
struct session_owner {
	struct str token; /* the token's hash; empty: no token is needed here */
	struct str agent, queue;
};

struct session_id {
	struct str run;
	const char *version;
};

/* Makes or reads the key in the state folder. 0 or -errno. */
int session_ids_open(struct session_ids *v, const char *dir);
void session_ids_close(struct session_ids *v);
/* Makes a name for a new session. */
struct str session_id_begin(struct arena *a);
/* The session id of this name. Any thread may call it. */
struct str session_id_make(const struct session_ids *v, const struct session_owner *who,
			   struct str run, const char *version, struct arena *a);
/* Finds the session of this id. false: this visitor has no session with this id, or it has
 * ended. */
bool session_id_find(struct session_ids *v, const struct session_owner *who, struct str id,
		     struct session_id *out, struct arena *a);
int session_id_end(struct session_ids *v, struct str run);

/* --- one exchange ----------------------------------------------------------------------------------- */

enum post_kind { POST_MESSAGE, POST_LISTEN, POST_END };

/* The parts of a request that the worker needs besides its body. All texts are in the arena. */
struct post {
	struct arena arena;
	enum post_kind kind;
	struct session_owner who;
	struct str run, profile;          /* from the query */
	struct str version, method, name; /* headers */
	bool has_version, has_method, has_name;
	bool has_session, knows_session; /* the request has an id, and the id is valid */
	struct session_id session_id;
	bool streams; /* the client accepts an event stream */
	/* only for the worker */
	struct job *next; /* the session's next open exchange */
	bool modern;
	bool open, streaming;
	struct str session; /* the new session's id */
	/* the lock that the answer gives; the loop tells the worker whether the answer arrived */
	struct granted *granted;
	bool arrived;
	/* only for the loop */
	bool counted; /* counts as one of its token's streams */
	bool started, broken;
	struct http_timer *ping;
};

void endpoint_serve(struct serve *s, struct http_exchange *x, struct http_caller *c);
/* The loop has the answer of a job that was not streamed. */
void endpoint_done(struct serve *s, struct job *j);
/* Sends a part of an event stream; last: also ends the stream. Any thread may call it. */
void endpoint_send(struct job *j, struct str text, bool last);
void post_free(struct post *p);

/* --- protocol versions (mcp_http.c) ---------------------------------------------------------------------- */

/* Does the message use the protocol version without sessions? */
bool protocol_version_is_modern(const struct post *p, const json_t *message);
/* Checks the headers and the members that every message of its protocol version needs. 0, or the
 * status of a refusal and the error message in *error. */
int protocol_version_check(const struct post *p, json_t *message, json_t **error);
/* The HTTP status of an answer. */
int protocol_version_status(bool modern, int error);

/* --- sessions in memory (mcp_session.c) -------------------------------------------------------------------- */

struct mcp_session {
	struct mcp_session *next;
	struct worker *worker;
	struct str key;
	struct arena arena;
	struct mcp m;
	struct mcp_host host;
	struct str agents, token;
	const char *hash, *only; /* the token's hash; its only queue, or empty */
	struct meter *caller;
	enum role role;
	struct job *open; /* exchanges that are not answered yet */
	struct arena passes;
	int64_t due;              /* when to do the next due work, in boot time; -1: never */
	bool untold;              /* this round has not reached it yet */
	const struct job *asking; /* the job that is being run: its caller sends its answer */
};

void mcp_session_free(struct mcp_session *t);
/* Gives the session the worker's open queue, for one call; mcp_session_take_back() returns it. */
void mcp_session_lend(struct mcp_session *t);
void mcp_session_take_back(struct mcp_session *t);
/* Ends an exchange that is still open. */
void mcp_session_hang_up(struct mcp_session *t, struct job *j);
/* Drops the sessions that have been idle for too long. */
void mcp_sessions_sweep(struct worker *d);
/* Makes room for one more session of this caller. An idle session can be created again at any time.
 * If none is idle, the caller with the most sessions loses one, so that no caller can occupy all
 * places. false: this caller itself has the most. */
bool mcp_session_make_room(struct worker *d, const struct meter *caller);
/* Takes the jobs of JOB_SETTLE out of the list, and settles them. */
struct job *mcp_sessions_settle(struct job *list);
/* true: the job has its answer. false: it stays open, or a stream has answered it; do not touch it
 * any more. */
bool mcp_session_run(struct worker *d, struct job *j);
/* Does the work that is due; changed: the queue may have changed. */
void mcp_sessions_check(struct worker *d, bool changed);
/* Time until mcp_sessions_check() is due; -1: nothing is due. */
int64_t mcp_sessions_next(const struct worker *d);
/* Is a session waiting for changes of the queue? */
bool mcp_sessions_await(const struct worker *d);
/* Answers all open exchanges, because the server is ending. */
void mcp_sessions_drain(struct worker *d);
void mcp_sessions_end(struct worker *d);

#endif
