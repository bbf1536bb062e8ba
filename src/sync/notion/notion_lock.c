/*
 * Locks of other programs. Such a program writes its own token and an expiry on a page (pull-policy). While that lock is
 * live, a manual lock of the syncer stands for it in the queue: the task is not offered, and a claim is a CONFLICT.
 */
#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/lease.h"
#include "sync/notion/notion.h"

/* When the lock of another program on the page expires; 0: there is none. */
static int64_t expires_at(const struct page *p)
{
	struct str token = str_trim(p->is.v[F_TOKEN]);
	int64_t ms = 0;

	if (!token.n || str_starts(token, STR("pawl:")) || !when_parse(p->is.v[F_EXPIRES], &ms))
		return 0;
	return ms;
}

static int64_t notion_lock_within(const struct client *c, int64_t ms)
{
	int64_t least = settings_number(&c->conn.settings, "lease.min"),
		most = settings_number(&c->conn.settings, "lease.max");

	return ms < least ? least : ms > most ? most : ms;
}

static enum result notion_lock_call(struct item *x, const struct request *rq, struct answer *ans)
{
	enum result code = notion_queue(x->r, rq, ans);

	if (code == SUCCESS && ans->task) {
		x->t = ans->task;
		x->r->now = ans->now;
	}
	return code;
}

/* The token is saved first, so that a sync that is killed can still release the lock. */
static enum result notion_lock_acquire(struct item *x, int64_t ttl)
{
	struct request rq = { .op = OP_LOCK_ACQUIRE };
	struct arena *a = x->r->arena;
	struct answer ans;
	enum result code;

	x->l->foreign = token_make(a);
	code = notion_link_save(x->r->state, x->l);
	if (code != SUCCESS)
		return code;
	GIVE(&rq, id, x->t->id);
	GIVE(&rq, new_token, x->l->foreign);
	GIVE(&rq, ttl, ttl);
	GIVE(&rq, description,
	     arena_printf(a, "held on its page in Notion (Agent Run %s)",
			  arena_cstr(a, x->p->is.v[F_RUN].n ? x->p->is.v[F_RUN] : STR("unknown"))));
	code = notion_lock_call(x, &rq, &ans);
	if (code == SUCCESS && ans.code != SUCCESS) {
		x->l->foreign = STR("");
		x->later = ans.code == CONFLICT; /* somebody was faster */
		x->foreign = !x->later;
	}
	return code;
}

static enum result notion_lock_renew(struct item *x, int64_t ttl)
{
	struct request rq = { .op = OP_HEARTBEAT };
	struct answer ans;
	enum result code;

	GIVE(&rq, id, x->t->id);
	GIVE(&rq, token, x->l->foreign);
	GIVE(&rq, ttl, ttl);
	code = notion_lock_call(x, &rq, &ans);
	return code == SUCCESS && ans.code == LOST_LOCK ? notion_lock_acquire(x, ttl) : code;
}

static enum result notion_lock_release(struct item *x)
{
	struct request rq = { .op = OP_LOCK_RELEASE };
	struct answer ans;
	enum result code;

	GIVE(&rq, id, x->t->id);
	GIVE(&rq, token, x->l->foreign);
	code = notion_lock_call(x, &rq, &ans);
	if (code != SUCCESS)
		return code;
	x->l->foreign = STR("");
	return notion_link_save(x->r->state, x->l);
}

/* The other program ended its work with a status that only a holder can give. */
static bool is_result(const struct item *x)
{
	enum status to = status_parse(x->p->is.v[F_STATUS]);

	return lease_live(&x->t->lock, x->r->now) &&
	       (x->t->status == READY || x->t->status == IN_PROGRESS) &&
	       (to == REVIEW || to == DONE || to == BLOCKED || to == NEEDS_HELP || to == FAILED);
}

enum result notion_lock(struct item *x)
{
	int64_t left = expires_at(x->p) - os_wall_ms();
	bool mine = x->l->foreign.n > 0, check = x->n->job->check;

	x->foreign = left > 0 && !x->held && !status_ended(x->t->status);
	x->n->done->foreign += x->foreign;
	if (x->foreign && !mine)
		notion_change(x->n, x->t->id, "another program holds it on its page", STR(""));
	if (check)
		return SUCCESS;
	if (x->foreign)
		return mine ? notion_lock_renew(x, notion_lock_within(x->n->job->client, left))
			    : notion_lock_acquire(x, notion_lock_within(x->n->job->client, left));
	return mine && !is_result(x) ? notion_lock_release(x) : SUCCESS;
}
