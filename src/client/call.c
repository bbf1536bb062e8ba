/* One call: the request completed with who and with which token, and the keyring kept in step. */
#include "client/client.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"

/* What one call has to do with the keyring. */
struct keys {
	bool takes;     /* the call may acquire a lock */
	bool in_flight; /* under the token of `pending` */
	bool saved;     /* the proof is a saved token */
	bool contested;
	struct pending pending;
};

#define TAKE_BACK(r, name) ((r)->has &= ~(UINT64_C(1) << ARG_##name), (r)->name = (struct str){ 0 })

static bool takes(const struct request *rq)
{
	if (rq->op == OP_DONE)
		return rq->claim_next;
	if (rq->op == OP_STATUS)
		return rq->status == IN_PROGRESS;
	return op_flags(rq->op) & OP_TAKES;
}

/* Operations that get nowhere without the lock, whatever the task's status. */
static bool needs_lock(const struct request *rq)
{
	switch (rq->op) {
	case OP_HEARTBEAT:
	case OP_RELEASE:
	case OP_BLOCK:
	case OP_ESCALATE:
	case OP_REVIEW:
	case OP_DONE:
	case OP_FAIL:
	case OP_LOCK_RELEASE:
		return true;
	default:
		return false;
	}
}

static enum result check_token(const char *what, struct str token, struct answer *ans,
			       struct arena *a)
{
	if (token_valid(token))
		return SUCCESS;
	return answer_fail(ans, USAGE, arena_printf(a, "%s is no token: a token is a UUID", what),
			   STR("a claim prints its token; `uuidgen` makes one"));
}

/* Tokens that the caller named: --token, --next-token, or PAWL_TOKEN for the task in PAWL_TASK. */
static enum result named_tokens(struct client *c, struct request *rq, struct answer *ans)
{
	const char *task = getenv("PAWL_TASK"), *token = getenv("PAWL_TOKEN");
	bool held = op_flags(rq->op) & (OP_HELD | OP_TAKES);
	enum result r = SUCCESS;

	if (HAS(rq, token)) {
		r = check_token("what --token says", rq->token, ans, c->arena);
	} else if (held && task && token && *token && rq->id.n &&
		   str_eq_nocase(rq->id, str_c(task))) {
		r = check_token("what PAWL_TOKEN says", str_c(token), ans, c->arena);
		GIVE(rq, token, str_c(token));
	}
	if (r == SUCCESS && HAS(rq, new_token))
		r = check_token("what --next-token says", rq->new_token, ans, c->arena);
	if (r == SUCCESS && HAS(rq, token))
		GIVE(rq, explicit, 1);
	return r;
}

static struct str contested_hint(void)
{
	return STR(
		"pass the --token that your claim printed; with a --run of its own, each session keeps "
		"its tokens apart");
}

/* The saved token, where the caller named none. */
static enum result find_proof(struct client *c, struct request *rq, struct keys *k,
			      struct answer *ans)
{
	struct str token;
	int64_t fence;

	switch (keyring_find(&c->keyring, rq->id, &token, &fence)) {
	case KEY_SAVED:
		GIVE(rq, token, token);
		k->saved = true;
		break;
	case KEY_CONTESTED:
		k->contested = true;
		if (needs_lock(rq))
			return answer_fail(
				ans, LOST_LOCK,
				arena_printf(c->arena,
					     "two claims of %.*s were made as %.*s, so it "
					     "is not clear whose this call is",
					     STRF(rq->id), STRF(c->agent)),
				contested_hint());
		break;
	case KEY_NONE:
		break;
	}
	return SUCCESS;
}

static enum result no_keyring(struct client *c, int r, struct answer *ans)
{
	const char *why = strerror(-r), *dir = c->keyring.dir;

	if (r == -ELOOP)
		why = "it is a link";
	else if (r == -EPERM)
		why = "it belongs to another user";
	ans->applied = 'n';
	return answer_fail(
		ans, API_ERROR,
		arena_printf(c->arena, "cannot keep the token in %s: %s",
			     dir ? dir : "a home folder", dir ? why : "there is none"),
		STR("set XDG_STATE_HOME to a folder of yours, or pass a --token of your own making"));
}

/* What the acquisition shall be known by: kept before it is sent, so that a repeat is one. */
static enum result find_new_token(struct client *c, struct request *rq, struct keys *k,
				  struct answer *ans)
{
	bool any = rq->op == OP_DONE || rq->op == OP_TAKE;
	int r;

	if (HAS(rq, new_token))
		return SUCCESS;
	r = keyring_begin(&c->keyring, any ? STR("") : rq->id, &k->pending);
	if (r)
		return no_keyring(c, r, ans);
	k->in_flight = true;
	GIVE(rq, new_token, k->pending.token);
	return SUCCESS;
}

static enum result complete(struct client *c, struct request *rq, struct keys *k,
			    struct answer *ans)
{
	bool resume = rq->op == OP_CLAIM && HAS(rq, fence);
	enum result r = named_tokens(c, rq, ans);

	k->takes = takes(rq);
	if (r != SUCCESS)
		return r;
	if (k->takes && rq->op != OP_DONE && HAS(rq, token)) {
		if (!HAS(rq, new_token))
			GIVE(rq, new_token, rq->token);
		TAKE_BACK(rq, token);
		rq->explicit = 0;
		rq->has &= ~(UINT64_C(1) << ARG_explicit);
	}
	if (!HAS(rq, token) && rq->id.n && (resume || op_flags(rq->op) & OP_HELD))
		r = find_proof(c, rq, k, ans);
	if (r == SUCCESS && k->takes)
		r = find_new_token(c, rq, k, ans);
	return r;
}

/* --- after the answer ---------------------------------------------------------------------- */

static void warn_unsaved(struct client *c, struct str task, int r, struct answer *ans)
{
	struct str text = arena_printf(
		c->arena,
		"the token of %.*s could not be saved in %s (%s): pass it with "
		"--token",
		STRF(task), c->keyring.dir ? c->keyring.dir : "a home folder", strerror(-r));

	ans->warnings = arena_append(c->arena, ans->warnings, text);
}

static void settle_taken(struct client *c, const struct request *rq, struct keys *k,
			 struct answer *ans)
{
	const struct task *task = rq->op == OP_DONE ? ans->next : ans->task;
	const struct grant *lock = rq->op == OP_DONE ? ans->next_lock : ans->lock;
	bool resumed = rq->op == OP_CLAIM && HAS(rq, fence);
	int r;

	/* A lock without a token is an earlier call's, repeated by its request id: its token is
	 * kept. */
	if (ans->code != SUCCESS || !task || !lock || !lock->token.n) {
		if (k->in_flight && ans->code == API_ERROR && ans->applied != 'n')
			keyring_leave(&c->keyring, &k->pending);
		else if (k->in_flight)
			keyring_drop(&c->keyring, &k->pending);
		return;
	}
	if (k->in_flight && str_eq(lock->token, k->pending.token)) {
		r = keyring_keep(&c->keyring, &k->pending, task->id, lock->fence, resumed);
	} else {
		if (k->in_flight)
			keyring_drop(&c->keyring, &k->pending);
		r = keyring_save(&c->keyring, task->id, lock->token, lock->fence, resumed);
	}
	if (r)
		warn_unsaved(c, task->id, r, ans);
}

/* Does the task still have the lock that `token` is for? Where the store keeps the hash to
 * itself, any lock counts: a token too many is found out by the next call. */
static bool still_locked(const struct task *t, struct str token, struct arena *a)
{
	if (!t || !t->lock.holder.n)
		return false;
	return !t->lock.token.n || (token.n && secret_eq(t->lock.token, token_hash(a, token)));
}

static bool lock_is_over(struct client *c, const struct request *rq, const struct keys *k,
			 const struct answer *ans)
{
	/* A wrong --resume leaves the lock that is there alone, and with it its token. */
	if (ans->code == LOST_LOCK)
		return k->saved && !(k->takes && still_locked(ans->task, rq->token, c->arena));
	if (ans->code != SUCCESS)
		return false;
	if (rq->op == OP_STATUS)
		return !k->takes && !still_locked(ans->task, rq->token, c->arena);
	return op_flags(rq->op) & OP_ENDS || rq->op == OP_LOCK_BREAK;
}

static void settle(struct client *c, const struct request *rq, struct keys *k, struct answer *ans)
{
	bool blocked = rq->op == OP_BLOCK || (rq->op == OP_STATUS && rq->status == BLOCKED);

	if (rq->id.n && lock_is_over(c, rq, k, ans))
		keyring_forget(&c->keyring, rq->id);
	else if (blocked && ans->code == SUCCESS)
		keyring_park(&c->keyring, rq->id);
	if (k->takes)
		settle_taken(c, rq, k, ans);
	if (k->contested && (ans->code == LOST_LOCK || ans->code == CONFLICT))
		ans->hint = contested_hint();
}

void client_call(struct client *c, const struct request *rq, struct answer *ans)
{
	enum store_mode mode = op_flags(rq->op) & OP_READS ? STORE_READ : STORE_WRITE;
	struct request full = *rq;
	struct keys k = { .pending.fd = -1 };

	*ans = (struct answer){ 0 };
	c->keyring.arena = c->arena;
	if (!HAS(rq, agent))
		GIVE(&full, agent, c->agent);
	if (!HAS(rq, run) && c->run.n)
		GIVE(&full, run, c->run);
	if (!HAS(rq, host))
		GIVE(&full, host, c->host);
	if (client_open(c, mode, ans) != SUCCESS)
		return;
	if (complete(c, &full, &k, ans) != SUCCESS)
		return;
	queue_call(c->queue, &full, ans, c->arena);
	settle(c, &full, &k, ans);
}
