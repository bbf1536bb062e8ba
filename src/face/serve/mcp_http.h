/*
 * endpoint: MCP over HTTP at /mcp, for clients of both eras (face/mcp/mcp.h has the protocol itself).
 *
 *   endpoint.c  the loop's part: headers of the request, answers and streams
 *   era.c       which era a message is of, and the headers that repeat its content
 *   seat.c      the desk's part: one struct mcp for each session, or for each caller that has no session
 *   visit.c     ids of sessions, which outlive the server
 *
 * A job of JOB_MCP is one exchange. Its desk answers it at once, or keeps it open: a call that waits, or a stream. An open
 * job belongs to its seat until the desk ends it, also if its peer is gone.
 */
#ifndef FACE_SERVE_MCP_HTTP_H
#define FACE_SERVE_MCP_HTTP_H

#include "face/mcp/mcp.h"
#include "face/serve/serve.h"

/* --- sessions (visit.c) ---------------------------------------------------------------------------- */

/* The owner of a session. */
struct session_owner {
	struct str token; /* the hash of the token; empty: no token is needed here */
	struct str agent, queue;
};

struct session_id {
	struct str run;
	const char *version;
};

/* Makes or reads the key in the state folder. 0 or -errno. */
int session_ids_open(struct session_ids *v, const char *dir);
void session_ids_close(struct session_ids *v);
/* A name for a new session. */
struct str session_id_begin(struct arena *a);
/* Its id. Any thread may call it. */
struct str session_id_make(const struct session_ids *v, const struct session_owner *who,
			   struct str run, const char *version, struct arena *a);
/* The session of this id; false: there is none for this visitor, or it has ended. */
bool session_id_find(struct session_ids *v, const struct session_owner *who, struct str id,
		     struct session_id *out, struct arena *a);
int session_id_end(struct session_ids *v, struct str run);

/* --- one exchange ----------------------------------------------------------------------------------- */

enum post_kind { POST_MESSAGE, POST_LISTEN, POST_END };

/* The parts of a request that the desk needs besides its body. All texts are in the arena. */
struct post {
	struct arena arena;
	enum post_kind kind;
	struct session_owner who;
	struct str run, profile;          /* of the query */
	struct str version, method, name; /* headers */
	bool has_version, has_method, has_name;
	bool has_session, knows_session; /* there is an id; it is that of `visit` */
	struct session_id session_id;
	bool streams; /* the client accepts an event stream */
	/* of the desk */
	struct job *next; /* the next open exchange of the seat */
	bool modern;
	bool open, streaming;
	struct str session; /* the id of the new session */
	/* the lock that the answer gives; the loop tells the desk whether it arrived */
	struct granted *granted;
	bool arrived;
	/* of the loop */
	bool counted; /* it is one of the streams of its token */
	bool started, broken;
	struct http_timer *ping;
};

void endpoint_serve(struct serve *s, struct http_exchange *x, struct http_caller *c);
/* The loop has the answer of a job that was not streamed. */
void endpoint_done(struct serve *s, struct job *j);
/* Sends a part of an event stream; last: and ends it. Any thread may call it. */
void endpoint_send(struct job *j, struct str text, bool last);
void post_free(struct post *p);

/* --- eras (era.c) ----------------------------------------------------------------------------------- */

/* Is the message of the era without sessions? */
bool protocol_version_is_modern(const struct post *p, const json_t *message);
/* Checks the headers and the members that every message of its era needs. 0, or the status of a refusal and the message in
 * *error. */
int protocol_version_check(const struct post *p, json_t *message, json_t **error);
/* The status of an answer. */
int protocol_version_status(bool modern, int error);

/* --- seats (seat.c) --------------------------------------------------------------------------------- */

/* Takes the jobs of JOB_SETTLE out of the list, and does them. */
struct job *mcp_sessions_settle(struct job *list);
/* true: the job has its answer. false: it stays open, or was answered by a stream; do not touch it any more. */
bool mcp_session_run(struct worker *d, struct job *j);
/* Does the work that is due; changed: the queue may have changed. */
void mcp_sessions_check(struct worker *d, bool changed);
/* Time until seats_look() is due; -1: nothing is. */
int64_t mcp_sessions_next(const struct worker *d);
/* Does anybody wait for changes of the queue? */
bool mcp_sessions_await(const struct worker *d);
/* Answers all that is open: the server ends. */
void mcp_sessions_drain(struct worker *d);
void mcp_sessions_end(struct worker *d);

#endif
