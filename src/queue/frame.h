/*
 * frame: the wire format between a remote queue and a server. A body is a sequence of frames. A
 * frame is a length in four bytes, most significant byte first, and that many bytes. Both sides use
 * only these functions.
 */
#ifndef QUEUE_FRAME_H
#define QUEUE_FRAME_H

#include "format/pack.h"
#include "queue/queue.h"
#include "queue/transfer.h"

#define FRAME_TYPE "application/vnd.pawl.call"
#define FRAMES_MAX 1000      /* requests in one call */
#define BODY_MAX (64u << 20) /* of an answer or an import */

void frame_add(struct buf *b, struct str one);
/* Cuts the next frame out of *rest. false: there is none, or the bytes are damaged. */
bool frame_cut(struct str *rest, struct str *one);
/* The number of frames, at most `most`. */
size_t frame_count(struct str rest, size_t most);

/* --- requests ------------------------------------------------------------------------------------ */

/* Facts that travel with a packed request but are not part of the call. */
struct frame_extra {
	struct str pass[TYPED_END]; /* the caller's tokens for locks of the whole queue */
	struct str call;            /* identifies a change: the same in all its repetitions */
	int64_t under;              /* 1 + the index of the call that creates its parent; 0: none */
};

void frame_request(struct buf *b, const struct request *rq, const struct frame_extra *x);
int frame_request_open(struct str one, struct request *rq, struct frame_extra *x, struct arena *a);

/* --- everything else ------------------------------------------------------------------------------- */

void frame_answer(struct buf *b, const struct answer *ans);

/* The facts that a server tells about itself, the queue and the caller. */
struct frame_facts {
	int64_t now, locks_only, role;
	struct str version, identity, token, agents, queue;
	struct policy policy; /* the server's policy */
};

void frame_facts(struct buf *b, const struct frame_facts *f);
int frame_facts_open(struct str one, struct frame_facts *f);

/* The answer of queue_forecast(). */
void frame_forecast(struct buf *b, const struct forecast *p);
int frame_forecast_open(struct str one, struct forecast *p);

struct frame_finding {
	int64_t level;
	struct str what, text, fix;
};

void frame_finding(struct buf *b, const struct frame_finding *f);
int frame_finding_open(struct str one, struct frame_finding *f);

/* The head of an import, a load, a clear or an export. */
struct frame_bulk {
	int64_t n, lines, made_at, restore, force, clash, check, statuses;
	struct str agent, run;
	struct str pass[TYPED_END];
	int64_t created, updated, skipped, comments, left_out, tasks; /* in the answer */
};

void frame_bulk(struct buf *b, const struct frame_bulk *h);
int frame_bulk_open(struct str one, struct frame_bulk *h);

extern const struct shape parcel_shape;
void frame_parcel(struct buf *b, const struct parcel *p);
int frame_parcel_open(struct str one, struct parcel *p, struct arena *a);
void frame_item(struct buf *b, const struct item *it);
int frame_item_open(struct str one, struct item *it);
void frame_health(struct buf *b, const struct health *h);
int frame_health_open(struct str one, struct health *h);

#endif
