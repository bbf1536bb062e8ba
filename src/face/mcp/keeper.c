/* The locks that were taken through this server: their tokens, and heartbeats without the model. */
#include "face/mcp/mcp.h"

#include <unistd.h>

#include "base/os.h"
#include "base/proc.h"
#include "core/lease.h"

#define RETRY_MS 1000  /* after a store that failed */
#define MARGIN_MS 1000 /* our clock and the store's are not read at the same moment */

static struct str own_agent(const struct mcp *m)
{
	return m->session.client.agent;
}

struct held *keeper_find(struct mcp *m, struct str agent, struct str task)
{
	if (!agent.n)
		agent = own_agent(m);
	for (struct held *h = m->held; h; h = h->next)
		if (str_eq(h->agent, agent) && str_eq_nocase(h->task, task))
			return h;
	return NULL;
}

static void drop(struct mcp *m, struct held *gone)
{
	struct held **at = &m->held;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	arena_free(&gone->arena);
	free(gone);
}

/* The keyring as this agent has it. */
static struct keyring ring_of(const struct mcp *m, const struct held *h, struct arena *a)
{
	struct keyring k = m->session.client.keyring;

	k.agent = h->agent;
	k.arena = a;
	return k;
}

/* A lock that is over: what is saved for it would only be in the way of the next claim. */
static void forget(struct mcp *m, struct held *h)
{
	struct arena a = { 0 };
	struct keyring k = ring_of(m, h, &a);

	keyring_forget_token(&k, h->task, h->token);
	arena_free(&a);
	drop(m, h);
}

static bool live(const struct held *h)
{
	return os_boot_ms() < h->expires + MARGIN_MS;
}

bool keeper_holds(struct mcp *m, const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *l = &t->lock;
	struct held own = { .agent = own_agent(m) };
	struct keyring k = ring_of(m, &own, a);
	struct str token;
	int64_t fence;

	if (!lease_live(l, now))
		return false;
	if (keeper_find(m, own.agent, t->id))
		return true;
	return keyring_find(&k, t->id, &token, &fence) == KEY_SAVED && fence == t->fence &&
	       (l->pid == getpid() ||
		proc_life(l->host, l->boot_id, l->pid, l->pid_start) != PROC_ALIVE);
}

/* --- calls ---------------------------------------------------------------------------------------- */

/* Whose process is it that has the lock? Ours: it ends with the agent's connection. */
static void name_process(struct mcp *m, struct request *rq)
{
	if (!m->pid) {
		m->pid = getpid();
		m->pid_start = os_process_start(m->pid);
		m->boot_id = proc_here(&m->self);
	}
	GIVE(rq, pid, m->pid);
	GIVE(rq, pid_start, m->pid_start);
	GIVE(rq, boot_id, m->boot_id);
}

static bool names_process(const struct request *rq)
{
	if (rq->op == OP_STATUS)
		return HAS(rq, status);
	return op_flags(rq->op) & OP_TAKES || rq->op == OP_NEXT || rq->op == OP_HEARTBEAT;
}

static bool shows_token(const struct mcp *m, const struct request *rq, const struct held *h)
{
	if (op_flags(rq->op) & OP_OWN)
		return true;
	switch (rq->op) {
	case OP_UPDATE:
	case OP_CANCEL:
	case OP_REMOVE:
		return live(h);
	case OP_STATUS:
		if (!HAS(rq, status))
			return false;
		/* Work under one's own manual lock, if it is clear who asks. */
		return rq->status != IN_PROGRESS ||
		       (h->manual && live(h) && (!h->own || m->profile->tools == pm_tools));
	default:
		return false;
	}
}

void keeper_prove(struct mcp *m, struct request *rq)
{
	const struct held *h = rq->id.n ? keeper_find(m, rq->agent, rq->id) : NULL;

	if (names_process(rq))
		name_process(m, rq);
	if (h && !HAS(rq, token) && shows_token(m, rq, h))
		GIVE(rq, token, h->token);
}

static int64_t ms_of(const json_t *o, const char *key)
{
	return (int64_t)(json_number_value(json_object_get(o, key)) * 1000);
}

static void set_times(struct held *h, const json_t *lock)
{
	h->ttl = ms_of(lock, "ttl");
	h->expires = os_boot_ms() + ms_of(lock, "expires_in");
	h->renew = os_boot_ms() + h->ttl / 3;
	h->touched = os_boot_ms();
}

static void took(struct mcp *m, const struct request *rq, const json_t *task, const json_t *lock)
{
	struct str id = mcp_text(task, "id"), token = mcp_text(lock, "token");
	struct held *h = token.n ? keeper_find(m, rq->agent, id) : NULL;

	if (!token.n)
		return;
	if (h)
		drop(m, h);
	h = mem_alloc(sizeof(*h));
	*h = (struct held){ .next = m->held, .own = !HAS(rq, agent) };
	h->agent = arena_str(&h->arena, HAS(rq, agent) ? rq->agent : own_agent(m));
	h->task = arena_str(&h->arena, id);
	h->token = arena_str(&h->arena, token);
	h->fence = json_integer_value(json_object_get(lock, "fence"));
	h->manual = json_is_true(json_object_get(json_object_get(task, "lock"), "manual"));
	set_times(h, lock);
	m->held = h;
}

/* Is it still held after a call about it? */
static bool still(const struct held *h, const json_t *task)
{
	const json_t *lock = json_object_get(task, "lock");

	return json_is_true(json_object_get(lock, "live")) &&
	       json_integer_value(json_object_get(lock, "fence")) == h->fence &&
	       status_parse(mcp_text(task, "status")) != BLOCKED;
}

/* A lock that an earlier process of this agent took is ours from its first heartbeat on. */
static void adopt(struct mcp *m, const struct request *rq, const json_t *answer)
{
	struct arena a = { 0 };
	struct held who = { .agent = HAS(rq, agent) ? rq->agent : own_agent(m) };
	struct keyring k = ring_of(m, &who, &a);
	json_t *lock = json_copy(json_object_get(answer, "lock"));
	struct str token = rq->token;
	int64_t fence;

	if (!token.n && keyring_find(&k, rq->id, &token, &fence) != KEY_SAVED)
		token = STR("");
	json_object_set_new(lock, "token", json_str(token));
	took(m, rq, json_object_get(answer, "task"), lock);
	json_decref(lock);
	arena_free(&a);
}

static void learn_about(struct mcp *m, const struct request *rq, struct held *h,
			const json_t *answer)
{
	const json_t *task = json_object_get(answer, "task"),
		     *lock = json_object_get(answer, "lock");
	bool ok = json_is_true(json_object_get(answer, "ok"));
	bool lost = str_is(mcp_text(json_object_get(answer, "error"), "code"),
			   result_name(LOST_LOCK));

	h->touched = os_boot_ms();
	if (lost && str_eq(rq->token, h->token))
		forget(m, h);
	else if (ok && json_is_object(task) && json_object_get(task, "lock") && !still(h, task))
		drop(m, h);
	else if (ok && rq->op == OP_HEARTBEAT)
		set_times(h, lock);
}

void keeper_learn(struct mcp *m, const struct request *rq, const json_t *answer)
{
	const json_t *next = json_object_get(answer, "next");
	struct held *h = rq->id.n ? keeper_find(m, rq->agent, rq->id) : NULL;

	if (h)
		learn_about(m, rq, h, answer);
	else if (rq->op == OP_HEARTBEAT && json_is_true(json_object_get(answer, "ok")))
		adopt(m, rq, answer);
	took(m, rq, json_object_get(answer, "task"), json_object_get(answer, "lock"));
	took(m, rq, json_object_get(next, "task"), json_object_get(next, "lock"));
}

/* --- heartbeats ----------------------------------------------------------------------------------- */

static void tell(struct mcp *m, struct str text)
{
	json_array_append_new(m->news, json_str(text));
}

static void lose(struct mcp *m, struct held *h, struct str why, struct arena *a)
{
	tell(m, arena_printf(a, "the lock on %.*s is lost: %.*s", STRF(h->task), STRF(why)));
	forget(m, h);
}

static void renew(struct mcp *m, struct held *h)
{
	struct arena a = { 0 };
	struct request rq = { .op = OP_HEARTBEAT };
	struct answer ans = { 0 };

	GIVE(&rq, id, h->task);
	GIVE(&rq, agent, h->agent);
	GIVE(&rq, token, h->token);
	name_process(m, &rq);
	mcp_ask(m, &rq, &ans, &a);
	if (ans.code == SUCCESS) {
		h->expires = os_boot_ms() + (ans.lock->expires_at - ans.now);
		h->renew = os_boot_ms() + h->ttl / 3;
	} else if (ans.task &&
		   ans.task->status == BLOCKED) { /* from elsewhere: it is left to run out */
		drop(m, h);
	} else if (ans.code == API_ERROR || ans.code == MISCONFIGURED) {
		h->renew = os_boot_ms() + RETRY_MS; /* the store may come back in time */
	} else {
		lose(m, h, ans.message, &a);
	}
	arena_free(&a);
}

static bool renewed(const struct mcp *m, const struct held *h)
{
	return h->own && h->renew - h->touched < m->options.max_hold;
}

void keeper_tick(struct mcp *m)
{
	struct held *next;
	struct arena a = { 0 };

	for (struct held *h = m->held; h; h = next) {
		next = h->next;
		if (!live(h))
			lose(m, h, STR("its lease ran out"), &a);
		else if (renewed(m, h) && h->renew <= os_boot_ms())
			renew(m, h);
	}
	arena_free(&a);
}

int64_t keeper_next(const struct mcp *m)
{
	int64_t soonest = -1;

	for (const struct held *h = m->held; h; h = h->next) {
		int64_t at = renewed(m, h) ? h->renew : h->expires + MARGIN_MS;
		int64_t left = at > os_boot_ms() ? at - os_boot_ms() : 0;

		if (soonest < 0 || left < soonest)
			soonest = left;
	}
	return soonest;
}

/* --- the end -------------------------------------------------------------------------------------- */

static void give_back(struct mcp *m, struct held *h)
{
	struct arena a = { 0 };
	struct request rq = { .op = h->manual ? OP_LOCK_RELEASE : OP_RELEASE };
	struct answer ans = { 0 };

	GIVE(&rq, id, h->task);
	GIVE(&rq, agent, h->agent);
	GIVE(&rq, token, h->token);
	if (!h->manual)
		GIVE(&rq, reason, STR("its agent disconnected"));
	mcp_ask(m, &rq, &ans, &a);
	if (ans.code == SUCCESS) {
		struct keyring k = ring_of(m, h, &a);

		keyring_forget_token(&k, h->task, h->token);
	}
	arena_free(&a);
}

void keeper_end(struct mcp *m, bool release)
{
	while (m->held) {
		if (release)
			give_back(m, m->held);
		drop(m, m->held);
	}
}
