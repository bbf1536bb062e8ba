/*
 * Locks of other programs. Another program can lock a page by its own token and an expiry on the
 * page (pull-policy). While that lock is live, a manual lock of the syncer represents it in the
 * queue: the task is not offered, and a claim is a CONFLICT.
 */
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/lease.h"
#include "sync/notion/notion.h"

/* The expiry of another program's lock on the page; 0: there is none. */
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

/* Saves the token first, so that the sync after a killed one can still release the lock. */
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
		x->later = ans.code == CONFLICT; /* an agent claimed it first */
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

/* Did the other program end its work with a status that only a holder can set? */
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

/* --- turns ------------------------------------------------------------------------------------ */

/* The queue's lock @sync admits one sync at a time. It excludes only other syncs; agents keep
 * working. */

#define LOCK_ID STR("@sync")
#define LEASE_MS 180000 /* longer than RENEW_MS, a request and a Retry-After together */
#define RENEW_MS 15000

static enum result notion_sync_lock_call(struct notion *n, const struct request *rq,
					 struct answer *ans, struct arena *a)
{
	return client_call_in(n->job->client, rq, ans, a);
}

static int64_t notion_sync_lock_lease(const struct notion *n)
{
	const struct settings *s = &n->job->client->conn.settings;
	int64_t ms = LEASE_MS, least = settings_number(s, "lease.min"),
		most = settings_number(s, "lease.max");

	return ms < least ? least : ms > most ? most : ms;
}

/* Breaks the lock that a killed sync on this machine left behind. */
static void break_dead(struct notion *n, struct arena *a)
{
	struct request read = { .op = OP_LOCK_STATUS }, cut = { .op = OP_LOCK_BREAK };
	struct answer ans;
	const struct lock *l;

	GIVE(&read, id, LOCK_ID);
	if (notion_sync_lock_call(n, &read, &ans, a) != SUCCESS || !ans.task)
		return;
	l = &ans.task->lock;
	if (!lease_live(l, ans.now) ||
	    proc_life(l->host, l->boot_id, l->pid, l->pid_start) != PROC_DEAD)
		return;
	GIVE(&cut, id, LOCK_ID);
	GIVE(&cut, reason, STR("its process is dead"));
	(void)notion_sync_lock_call(n, &cut, &ans, a);
}

static enum result notion_sync_lock_failed(struct notion *n, const struct answer *ans)
{
	enum result code = ans->code == LOST_LOCK ? CONFLICT : ans->code;

	(void)notion_fail(n, code, ans->message,
			  ans->hint.n ? ans->hint : STR("run the same command again"));
	n->ans->fault = arena_str(n->arena, ans->fault);
	return code;
}

enum result notion_sync_lock(struct notion *n)
{
	struct request rq = { .op = OP_LOCK_ACQUIRE };
	struct arena a = { 0 };
	struct answer ans;
	enum result code;

	if (n->job->check)
		return SUCCESS;
	break_dead(n, &a);
	n->sync_token = token_make(n->arena);
	GIVE(&rq, id, LOCK_ID);
	GIVE(&rq, new_token, n->sync_token);
	GIVE(&rq, ttl, notion_sync_lock_lease(n));
	GIVE(&rq, operation, STR("sync"));
	GIVE(&rq, pid, getpid());
	GIVE(&rq, pid_start, proc_start(getpid()));
	GIVE(&rq, boot_id, proc_here(&a));
	GIVE(&rq, queue_id, token_make(&a)); /* the state file belongs to the queue's id */
	code = notion_sync_lock_call(n, &rq, &ans, &a);
	if (code != SUCCESS) {
		code = notion_sync_lock_failed(n, &ans);
		n->sync_token = STR("");
	} else {
		n->fence = ans.lock ? ans.lock->fence : 0;
		if (!n->identity.n &&
		    !queue_identity(n->job->client->conn.queue, &n->identity, n->arena))
			n->identity = arena_str(n->arena, ans.queue_id);
	}
	n->renewed_at = os_boot_ms();
	arena_free(&a);
	return code;
}

enum result notion_renew(struct notion *n)
{
	struct request rq = { .op = OP_HEARTBEAT };
	struct arena a = { 0 };
	struct answer ans;
	enum result code;

	if (!n->sync_token.n || os_boot_ms() - n->renewed_at < RENEW_MS)
		return SUCCESS;
	GIVE(&rq, id, LOCK_ID);
	GIVE(&rq, token, n->sync_token);
	GIVE(&rq, ttl, notion_sync_lock_lease(n));
	code = notion_sync_lock_call(n, &rq, &ans, &a);
	if (code != SUCCESS)
		code = notion_sync_lock_failed(n, &ans);
	else
		n->renewed_at = os_boot_ms();
	arena_free(&a);
	return code;
}

void notion_leave(struct notion *n)
{
	struct request rq = { .op = OP_LOCK_RELEASE };
	struct arena a = { 0 };
	struct answer ans;

	if (!n->sync_token.n)
		return;
	GIVE(&rq, id, LOCK_ID);
	GIVE(&rq, token, n->sync_token);
	(void)notion_sync_lock_call(n, &rq, &ans, &a);
	arena_free(&a);
}

/* --- owner of a database ---------------------------------------------------------------------- */

/* The queue that a database belongs to. Its mark is a hash, because the queue's id stays secret. */

#define MARK "pawl queue "
#define DIGITS 16

/* The digits after the mark, in a text that people can edit; empty: there is no mark. */
static struct str mark_in(struct str text)
{
	size_t n = strlen(MARK);

	for (size_t i = 0; i + n + DIGITS <= text.n; i++)
		if (!memcmp(text.p + i, MARK, n) &&
		    strspn(text.p + i + n, "0123456789abcdef") >= DIGITS)
			return str_n(text.p + i + n, DIGITS);
	return STR("");
}

/* A hash of the queue's id, which stays secret. */
static struct str mark_of(const struct notion *n)
{
	return arena_printf(
		n->arena, "%.*s", DIGITS,
		hash_hex(n->arena, arena_printf(n->arena, "notion owner\n%.*s", STRF(n->identity)))
			.p);
}

static enum result notion_owner_decide(struct notion *n)
{
	if (!n->owner.n || (n->identity.n && str_eq(n->owner, mark_of(n))))
		return SUCCESS;
	return notion_fail(
		n, MISCONFIGURED,
		arena_printf(n->arena, "this database belongs to another queue (" MARK "%.*s)",
			     STRF(n->owner)),
		arena_printf(
			n->arena,
			"sync each queue with a database of its own; to let this queue take over, delete the "
			"description of the property '%s' in Notion",
			n->names[F_ID]));
}

/* Reads the queue's id. The queue may have none yet, but a store that fails must not be taken for
 * another queue. */
static enum result know_queue(struct notion *n)
{
	struct client *c = n->job->client;
	struct request rq = { .op = OP_LOCK_STATUS };
	struct answer ans;

	if (n->identity.n || queue_identity(c->conn.queue, &n->identity, n->arena) || !n->owner.n)
		return SUCCESS;
	GIVE(&rq, id, STR("@sync"));
	if (client_call_in(c, &rq, &ans, n->arena) == API_ERROR)
		return notion_fail(n, API_ERROR, ans.message, ans.hint);
	(void)queue_identity(c->conn.queue, &n->identity, n->arena);
	return SUCCESS;
}

enum result notion_owner_read(struct notion *n, const json_t *properties)
{
	const json_t *text = json_object_get(json_object_get(properties, n->names[F_ID]),
					     "description");
	enum result code;

	n->owner_text = arena_str(n->arena,
				  str_n(json_string_value(text), json_string_length(text)));
	n->owner = mark_in(n->owner_text);
	code = know_queue(n);
	return code == SUCCESS ? notion_owner_decide(n) : code;
}

static const char *target_of(const struct notion *n)
{
	return arena_printf(n->arena, "/v1/data_sources/%.*s", STRF(n->source)).p;
}

static enum result put_mark(struct notion *n)
{
	struct str text = arena_printf(
		n->arena,
		"%.*s%s" MARK
		"%s keeps these pages. Delete this line to let another queue take over.",
		STRF(n->owner_text), n->owner_text.n ? " " : "", arena_cstr(n->arena, mark_of(n)));
	json_t *body = json_pack("{s:{s:{s:{}, s:s%}}}", "properties", n->names[F_ID], "rich_text",
				 "description", text.p, text.n);

	return notion_ask(n, "PATCH", target_of(n), body, false, NULL);
}

enum result notion_still_own(struct notion *n)
{
	json_t *o = NULL;
	enum result code = notion_ask(n, "GET", target_of(n), NULL, false, &o);

	if (code != SUCCESS)
		return code;
	code = notion_owner_read(n, json_object_get(o, "properties"));
	json_decref(o);
	return code;
}

enum result notion_own(struct notion *n)
{
	enum result code = notion_owner_decide(n);

	if (code != SUCCESS || n->owner.n || n->job->check || !n->identity.n)
		return code;
	/* two queues may begin at the same time, and the last mark counts: do not replace a mark */
	code = notion_still_own(n);
	if (code != SUCCESS || n->owner.n)
		return code;
	n->marked = true;
	code = put_mark(n);
	return code == SUCCESS ? notion_still_own(n) : code;
}

enum result notion_owned(struct notion *n)
{
	return n->marked ? notion_still_own(n) : SUCCESS;
}
