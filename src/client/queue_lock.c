/* Acquires and releases locks of the whole queue. The holder's own calls, and those of programs that it starts, must pass the
 * lock: each sends the token from client_pass(). */
#include "client/queue_lock.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "client/caller.h"

static struct str id_of(enum typed kind, struct arena *a)
{
	return arena_printf(a, "@%s", typed_name(kind));
}

struct str client_pass(void *client, enum typed kind, struct arena *a)
{
	struct client *c = client;
	const char *given = getenv("PAWL_LOCK_TOKEN");
	struct str token;
	int64_t fence;

	if (c->conn.held[kind].n)
		return c->conn.held[kind];
	if (c->self.bare)
		return STR("");
	if (given && !c->self.afar && token_valid(str_c(given)))
		return str_c(given);
	client_know_queue(c);
	return keyring_find(&c->keyring, id_of(kind, a), &token, &fence) ? token : STR("");
}

void client_sign(struct client *c, struct request *rq)
{
	bool takes = rq->op == OP_LOCK_ACQUIRE && typed_is(rq);

	if (!takes && rq->op != OP_EMERGENCY_ON)
		return;
	if (!HAS(rq, user))
		GIVE(rq, user, client_user(c->arena));
	if (takes && !HAS(rq, operation))
		GIVE(rq, operation, STR("lock acquire"));
}

/* Do we hold the lock already? Only the queue knows whether a saved token is stale. */
static bool queue_lock_have(struct client *c, enum typed kind)
{
	struct request rq = { .op = OP_HEARTBEAT };
	struct answer ans;

	if (!client_pass(c, kind, c->arena).n)
		return false;
	GIVE(&rq, id, id_of(kind, c->arena));
	GIVE(&rq, token, client_pass(c, kind, c->arena));
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS;
}

static void sign_process(struct request *rq, struct arena *a)
{
	GIVE(rq, pid, getpid());
	GIVE(rq, pid_start, proc_start(getpid()));
	GIVE(rq, boot_id, proc_here(a));
}

/* QUEUE_LOCK_MS, within the settings' limits. */
static int64_t queue_lock_lease(const struct client *c)
{
	int64_t least = settings_number(&c->conn.settings, "lease.min"),
		most = settings_number(&c->conn.settings, "lease.max");

	return QUEUE_LOCK_MS < least ? least : QUEUE_LOCK_MS > most ? most : QUEUE_LOCK_MS;
}

enum result client_lock_queue(struct client *c, enum typed kind, const char *operation,
			      struct queue_lock *l, struct answer *ans)
{
	struct request rq = { .op = OP_LOCK_ACQUIRE };

	*l = (struct queue_lock){ .kind = kind };
	*ans = (struct answer){ 0 };
	if (client_open(c, STORE_WRITE, ans) != SUCCESS) /* the keyring needs the queue's id */
		return ans->code;
	if (queue_lock_have(c, kind))
		return SUCCESS;
	GIVE(&rq, id, id_of(kind, c->arena));
	GIVE(&rq, ttl, queue_lock_lease(c));
	GIVE(&rq, operation, str_c(operation));
	sign_process(&rq, c->arena);
	client_call(c, &rq, ans);
	if (ans->code != SUCCESS)
		return ans->code;
	c->conn.held[kind] = ans->lock->token;
	l->ours = true;
	return SUCCESS;
}

void client_unlock_queue(struct client *c, const struct queue_lock *l)
{
	struct request rq = { .op = OP_LOCK_RELEASE };
	struct answer ans;

	if (!l->ours)
		return;
	GIVE(&rq, id, id_of(l->kind, c->arena));
	GIVE(&rq, token, client_pass(c, l->kind, c->arena));
	client_call(c, &rq, &ans);
	c->conn.held[l->kind] = STR("");
}
