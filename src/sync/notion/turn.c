/* One sync at a time: the lock @sync of the queue, which keeps nobody else out. */
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "core/lease.h"
#include "sync/notion/notion.h"

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

/* A sync that was killed on this machine left its lock behind. */
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
	GIVE(&rq, pid_start, os_process_start(getpid()));
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
