/*
 * Requests that arrive after their repetition. A proxy may deliver a change long after the client
 * got the answer to a repeated request: a refusal, or a task that it has completed since. A late
 * duplicate looks like a new request: the queue would lock a task for a client that has gone.
 *
 * So attempts have numbers, and an attempt is refused after a later one. If only a proxy repeats a
 * request, the repetition has the number of the first. It is refused if it acquired a lock that its
 * holder has ended. If somebody else ended that lock, the answer is that the outcome is unknown. A
 * repeated `done` by the holder gets that answer, too, if the task was acquired again before the
 * repetition. Other changes have request ids, which the queue itself remembers.
 *
 * The tables have a fixed size, and a newer entry may replace an older one: a request is late by
 * seconds, not by hours. All queues share the tables, because ids are unique: a queue that was
 * closed and opened again still recognises a late request.
 */
#include <stdlib.h>

#include "face/serve/serve.h"

#define SLOTS 32768
#define ID_BYTES 40 /* a UUID and a NUL */

struct late {
	pthread_mutex_t lock;
	struct {
		char call[ID_BYTES];
		int64_t attempt; /* the number of the last attempt that arrived */
	} tried[SLOTS];
	struct {
		char call[ID_BYTES], token[ID_BYTES]; /* this call got a lock with this token */
	} granted[SLOTS];
	struct {
		char call[ID_BYTES],
			token[ID_BYTES]; /* the holder has ended the lock with this token */
	} ended[SLOTS];
};

struct late *late_new(void)
{
	struct late *l = mem_alloc(sizeof(*l));

	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void late_free(struct late *l)
{
	if (l)
		pthread_mutex_destroy(&l->lock);
	free(l);
}

static size_t slot_of(struct str id)
{
	return str_hash(id) % SLOTS;
}

static void late_keep(char *to, struct str id)
{
	memset(to, 0, ID_BYTES);
	memcpy(to, str_p(id), id.n < ID_BYTES ? id.n : 0);
}

static bool late_granted(const struct late *l, const struct request *rq, struct str call)
{
	size_t i = slot_of(call);

	return call.n && rq->new_token.n && str_is(call, l->granted[i].call) &&
	       str_is(rq->new_token, l->granted[i].token);
}

static bool has_ended(const struct late *l, const struct request *rq, struct str call)
{
	return late_granted(l, rq, call) &&
	       str_is(rq->new_token, l->ended[slot_of(rq->new_token)].token);
}

static bool late_ended(const struct late *l, const struct request *rq, struct str call)
{
	size_t i = slot_of(rq->token);

	return call.n && rq->token.n && str_is(call, l->ended[i].call) &&
	       str_is(rq->token, l->ended[i].token);
}

bool late_settled(struct late *l, const struct request *rq, struct str call)
{
	bool settled;

	pthread_mutex_lock(&l->lock);
	settled = late_granted(l, rq, call) || late_ended(l, rq, call);
	pthread_mutex_unlock(&l->lock);
	return settled;
}

static enum arrival late_decide(struct late *l, const struct request *rq, struct str call,
				int64_t attempt)
{
	size_t i = slot_of(call);
	bool again;

	if (!call.n)
		return ARRIVAL_FIRST;
	again = str_is(call, l->tried[i].call);
	if ((again && attempt < l->tried[i].attempt) || has_ended(l, rq, call))
		return ARRIVAL_LATE;
	late_keep(l->tried[i].call, call);
	l->tried[i].attempt = attempt;
	return again ? ARRIVAL_AGAIN : ARRIVAL_FIRST;
}

enum arrival late_check(struct late *l, const struct request *rq, struct str call, int64_t attempt)
{
	enum arrival arrival;

	pthread_mutex_lock(&l->lock);
	arrival = late_decide(l, rq, call, attempt);
	pthread_mutex_unlock(&l->lock);
	return arrival;
}

static void late_note_call(struct late *l, const struct request *rq, struct str call,
			   const struct answer *ans)
{
	size_t i = slot_of(call);

	if (op_flags(rq->op) & OP_ENDS && rq->token.n) {
		late_keep(l->ended[slot_of(rq->token)].call, call);
		late_keep(l->ended[slot_of(rq->token)].token, rq->token);
	}
	if (!call.n || !ans->lock || !str_eq(ans->lock->token, rq->new_token))
		return;
	late_keep(l->granted[i].call, call);
	late_keep(l->granted[i].token, rq->new_token);
	if (str_is(rq->new_token, l->ended[slot_of(rq->new_token)].token))
		late_keep(l->ended[slot_of(rq->new_token)].token,
			  STR("")); /* the caller may use its token again later */
}

void late_note(struct late *l, const struct request *rq, struct str call, const struct answer *ans)
{
	if (ans->code != SUCCESS)
		return;
	pthread_mutex_lock(&l->lock);
	late_note_call(l, rq, call, ans);
	pthread_mutex_unlock(&l->lock);
}
