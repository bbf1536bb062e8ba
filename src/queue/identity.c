/*
 * The id of a queue identifies it wherever it is stored: a random id in a record of its own. The first acquisition by
 * a client proposes an id and writes it in its own commit; after that the id never changes. `migrate` copies it with
 * all other records; `restore` keeps the id of the queue that it fills.
 */
#include "base/secret.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

bool queue_identity(struct queue *q, struct str *id, struct arena *a)
{
	struct frame_facts f = { 0 };
	struct answer ans = { 0 };
	struct record rec;

	*id = STR("");
	if (q->remote) {
		if (q->far->facts(q->remote, &f, &ans, a) != SUCCESS || !token_valid(f.identity))
			return false;
		*id = f.identity;
		return true;
	}
	if (q->config.policy.locks_only ||
	    q->store->ops->get(q->store, IDENTITY_KEY, &rec, a) != 0 || !token_valid(rec.hot))
		return false;
	*id = rec.hot;
	return true;
}

bool queue_is_far(const struct queue *q)
{
	return q->remote || q->store->traits & STORE_FAR;
}

struct str queue_origin(const struct queue *q, struct arena *a)
{
	char ignored[400];

	return q->remote ? q->far->origin(q->config.uri, ignored, sizeof(ignored), a) : STR("");
}

int identity_find(struct act *w)
{
	struct record *rec;
	int r;

	if (!w->call.rq->queue_id.n || !token_valid(w->call.rq->queue_id) ||
	    w->call.policy->locks_only)
		return 0;
	r = edit_get(w->e, IDENTITY_KEY, &rec);
	if (r < 0)
		return r;
	w->nameless = r > 0 || !token_valid(rec->hot);
	w->ans->queue_id = w->nameless ? w->call.rq->queue_id : arena_str(w->call.arena, rec->hot);
	return 0;
}

void identity_keep(struct act *w)
{
	struct record *rec;

	if (!w->nameless)
		return;
	if (!w->writes) { /* a repeat writes nothing, so the queue still has no id */
		w->ans->queue_id = STR("");
		return;
	}
	rec = arena_new(w->call.arena, struct record);
	rec->key = IDENTITY_KEY;
	rec->hot = w->call.rq->queue_id;
	edit_put(w->e, rec);
	w->writes++;
}
