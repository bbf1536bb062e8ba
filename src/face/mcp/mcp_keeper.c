/*
 * Keeps the locks that were taken through this server: saves their tokens and renews them without
 * the model. A lock is renewed only while its agent counts as alive, so that another agent can get
 * the task of a dead one.
 */
#include <unistd.h>

#include "base/os.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"

#define RETRY_MS 1000  /* delay after a failure of the store */
#define MARGIN_MS 1000 /* our clock and the store's clock are not read at the same moment */
#define PAST 64        /* ended locks that are remembered */

static struct str own_agent(const struct mcp *m)
{
	return m->session.client.self.agent;
}

static struct str own_run(const struct mcp *m)
{
	return m->session.client.self.run;
}

static struct held *find_in(struct mcp *m, struct held *list, struct str agent, struct str task)
{
	if (!agent.n)
		agent = own_agent(m);
	while (list && !(str_eq(list->agent, agent) && str_eq(list->run, own_run(m)) &&
			 str_eq_nocase(list->task, task)))
		list = list->next;
	return list;
}

struct held *keeper_find(struct mcp *m, struct str agent, struct str task)
{
	return find_in(m, m->held, agent, task);
}

/* Frees all but the first n locks of a list. */
static void mcp_keeper_cut(struct held **list, size_t n)
{
	struct held *gone;

	while (*list && n--)
		list = &(*list)->next;
	while ((gone = *list)) {
		*list = gone->next;
		arena_free(&gone->arena);
		free(gone);
	}
}

static void mcp_keeper_remember(struct mcp *m, struct held *h)
{
	h->next = m->past;
	m->past = h;
	mcp_keeper_cut(&m->past, PAST);
}

static void mcp_keeper_drop(struct mcp *m, struct held *gone)
{
	struct held **at = &m->held;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	mcp_keeper_remember(m, gone);
}

/* The keyring of this lock's agent and run. */
static struct keyring ring_of(const struct mcp *m, const struct held *h, struct arena *a)
{
	struct keyring k = m->session.client.keyring;

	k.agent = h->agent;
	k.run = h->run;
	k.arena = a;
	return k;
}

/* Removes an ended lock's saved token, which would disturb the next claim. */
static void mcp_keeper_forget(struct mcp *m, struct held *h)
{
	struct arena a = { 0 };
	struct keyring k = ring_of(m, h, &a);

	keyring_forget_token(&k, h->task, h->token);
	arena_free(&a);
	h->lost = true;
	mcp_keeper_drop(m, h);
}

static bool mcp_keeper_live(const struct held *h)
{
	return os_boot_ms() < h->expires + MARGIN_MS;
}

bool keeper_in_run(struct mcp *m, const struct task *t, int64_t now, struct arena *a)
{
	struct held own = { .agent = own_agent(m), .run = own_run(m) };
	struct keyring k;
	struct str token;
	int64_t fence;

	if (!lease_live(&t->lock, now))
		return false;
	if (keeper_find(m, own.agent, t->id))
		return true;
	client_know_queue(&m->session.client);
	k = ring_of(m, &own, a);
	return keyring_find(&k, t->id, &token, &fence) && fence == t->fence;
}

bool keeper_holds(struct mcp *m, const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *l = &t->lock;

	return keeper_in_run(m, t, now, a) &&
	       (l->pid == getpid() ||
		proc_life(l->host, l->boot_id, l->pid, l->pid_start) != PROC_ALIVE);
}

/* --- calls ---------------------------------------------------------------------------------------- */

/* Names this process as the lock's process: it ends with the agent's connection. */
static void name_process(struct mcp *m, struct request *rq)
{
	if (!m->pid) {
		m->pid = getpid();
		m->pid_start = proc_start(m->pid);
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
		return mcp_keeper_live(h);
	case OP_STATUS:
		if (!HAS(rq, status))
			return false;
		/* work under a manual lock: only if it is clear which agent is asking */
		return rq->status != IN_PROGRESS || (h->manual && mcp_keeper_live(h) &&
						     (!h->own || m->profile->tools == pm_tools));
	default:
		return false;
	}
}

/* The lock that the call is about; or an ended lock, if the call may repeat its end. */
static struct held *lock_of(struct mcp *m, const struct request *rq)
{
	struct held *h = rq->id.n ? keeper_find(m, rq->agent, rq->id) : NULL;

	if (!h && rq->id.n && op_flags(rq->op) & OP_OWN)
		h = find_in(m, m->past, rq->agent, rq->id);
	return h;
}

static struct held *new_held(const struct mcp *m, const struct request *rq, struct str task,
			     struct str token)
{
	struct held *h = mem_alloc(sizeof(*h));

	*h = (struct held){ .own = !HAS(rq, agent) };
	h->agent = arena_str(&h->arena, HAS(rq, agent) ? rq->agent : own_agent(m));
	h->run = arena_str(&h->arena, own_run(m));
	h->task = arena_str(&h->arena, task);
	h->token = arena_str(&h->arena, token);
	return h;
}

/* Finds the token that another process of this agent saved: the call may end that lock, and be
 * repeated. */
static bool find_saved(struct mcp *m, const struct request *rq)
{
	struct client *c = &m->session.client;
	struct answer ignored = { 0 };
	struct str token;

	if (HAS(rq, agent) || client_open(c, STORE_WRITE, &ignored) != SUCCESS)
		return false;
	c->keyring.arena = c->arena;
	if (client_token(c, rq->id, STR(""), &token, &ignored) != SUCCESS || !token.n)
		return false;
	mcp_keeper_remember(m, new_held(m, rq, rq->id, token));
	m->past->lost = true; /* unless this call ends it */
	return true;
}

void keeper_prove(struct mcp *m, struct request *rq)
{
	const struct held *h = lock_of(m, rq);

	/* a lock of `pawl run` keeps the process of `pawl run`; an agent on another machine
	 * outlives this process */
	if (names_process(rq) && !m->options.host && !under_run_holds(m, rq->id, 0))
		name_process(m, rq);
	m->claimed = h && (h->lost || keeper_find(m, rq->agent, rq->id));
	if (h && !HAS(rq, token) && shows_token(m, rq, h))
		GIVE(rq, token, arena_str(m->session.arena, h->token)); /* this call may free h */
	else if (!h && rq->id.n && op_flags(rq->op) & OP_OWN)
		m->claimed = find_saved(m, rq);
}

static int64_t renew_at(const struct held *h)
{
	return os_boot_ms() + lease_renew_in(h->ttl);
}

static void set_times(struct held *h, const struct grant *lock, int64_t now)
{
	int64_t left = lock->expires_at > now ? lock->expires_at - now : 0;

	h->ttl = lock->ttl;
	h->expires = os_boot_ms() + left;
	h->renew = renew_at(h);
	h->touched = os_boot_ms();
}

static void mcp_keeper_took(struct mcp *m, const struct request *rq, const struct task *t,
			    const struct grant *lock, int64_t now)
{
	struct held *h = lock && lock->token.n ? keeper_find(m, rq->agent, t->id) : NULL;

	if (!lock || !lock->token.n || under_run_holds(m, t->id, lock->fence))
		return;
	if (h)
		mcp_keeper_drop(m, h);
	h = new_held(m, rq, t->id, lock->token);
	h->next = m->held;
	h->fence = lock->fence;
	h->manual = t->lock.manual;
	set_times(h, lock, now);
	m->held = h;
}

/* Is the task still held after a call about it? */
static bool mcp_keeper_still(const struct held *h, const struct answer *ans)
{
	const struct task *t = ans->task;

	return lease_live(&t->lock, ans->now) && t->fence == h->fence && t->status != BLOCKED;
}

/* The first heartbeat takes over a lock that an earlier process of this agent took. */
static void mcp_keeper_adopt(struct mcp *m, const struct request *rq, const struct answer *ans)
{
	struct arena a = { 0 };
	struct held who = { .agent = HAS(rq, agent) ? rq->agent : own_agent(m), .run = own_run(m) };
	struct keyring k = ring_of(m, &who, &a);
	struct grant lock = *ans->lock;
	int64_t fence;

	lock.token = rq->token;
	if (!lock.token.n && !keyring_find(&k, rq->id, &lock.token, &fence))
		lock.token = STR("");
	mcp_keeper_took(m, rq, ans->task, &lock, ans->now);
	arena_free(&a);
}

static void learn_about(struct mcp *m, const struct request *rq, struct held *h,
			const struct answer *ans)
{
	bool ok = ans->code == SUCCESS;

	h->touched = os_boot_ms();
	if (ans->code == LOST_LOCK && str_eq(rq->token, h->token))
		mcp_keeper_forget(m, h);
	else if (ok && ans->task && !mcp_keeper_still(h, ans))
		mcp_keeper_drop(m, h);
	else if (ok && rq->op == OP_HEARTBEAT)
		set_times(h, ans->lock, ans->now);
}

void keeper_learn(struct mcp *m, const struct request *rq, const struct answer *ans)
{
	struct held *h = rq->id.n ? keeper_find(m, rq->agent, rq->id) : NULL;

	if (h)
		learn_about(m, rq, h, ans);
	else if (rq->op == OP_HEARTBEAT && ans->code == SUCCESS)
		mcp_keeper_adopt(m, rq, ans);
	else if (op_flags(rq->op) & OP_OWN && ans->code == SUCCESS && (h = lock_of(m, rq)))
		h->lost = false;
	mcp_keeper_took(m, rq, ans->task, ans->lock, ans->now);
	mcp_keeper_took(m, rq, ans->next, ans->next_lock, ans->now);
}

#define NAMED 200 /* at most this many locks of the agent are examined */

/* Takes over one of the agent's locks, if its token is in the keyring of this run. */
static void mcp_keeper_restore(struct mcp *m, const struct task *t, int64_t now, struct arena *a)
{
	struct request mine = { .op = OP_HEARTBEAT };
	struct held own = { .agent = own_agent(m), .run = own_run(m) };
	struct grant lock = { .fence = t->fence,
			      .expires_at = t->lock.expires_at,
			      .ttl = t->lock.ttl };
	struct keyring k;
	int64_t fence;

	if (!keeper_in_run(m, t, now, a))
		return;
	k = ring_of(m, &own, a);
	if (keyring_find(&k, t->id, &lock.token, &fence))
		mcp_keeper_took(m, &mine, t, &lock, now);
}

void keeper_restore(struct mcp *m)
{
	struct request rq = { .op = OP_LOCKS };
	struct arena a = { 0 };
	struct answer ans;

	GIVE(&rq, holder, own_agent(m));
	GIVE(&rq, limit, NAMED);
	mcp_ask(m, &rq, &ans, &a);
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_tasks; i++)
		mcp_keeper_restore(m, &ans.tasks[i], ans.now, &a);
	arena_free(&a);
}

/* --- heartbeats ----------------------------------------------------------------------------------- */

static void mcp_keeper_tell(struct mcp *m, struct str text)
{
	m->news = arena_append(&m->told, m->news, arena_str(&m->told, text));
}

static void mcp_keeper_lose(struct mcp *m, struct held *h, struct str why, struct arena *a)
{
	mcp_keeper_tell(
		m, arena_printf(a, "the lock on %.*s is lost: %.*s", STRF(h->task), STRF(why)));
	mcp_keeper_forget(m, h);
}

static void mcp_keeper_renew(struct mcp *m, struct held *h)
{
	struct arena a = { 0 };
	struct request rq = { .op = OP_HEARTBEAT };
	struct answer ans = { 0 };

	GIVE(&rq, id, h->task);
	GIVE(&rq, agent, h->agent);
	GIVE(&rq, token, h->token);
	GIVE(&rq, run, h->run);
	if (!m->options.host)
		name_process(m, &rq);
	mcp_ask(m, &rq, &ans, &a);
	if (ans.code == SUCCESS) {
		h->expires = os_boot_ms() + (ans.lock->expires_at - ans.now);
		h->renew = renew_at(h);
	} else if (ans.task &&
		   ans.task->status ==
			   BLOCKED) { /* another process blocked it: let its lease expire */
		mcp_keeper_drop(m, h);
	} else if (ans.code == API_ERROR || ans.code == MISCONFIGURED) {
		h->renew = os_boot_ms() +
			   RETRY_MS; /* the store may come back before the lease expires */
	} else {
		mcp_keeper_lose(m, h, ans.message, &a);
	}
	arena_free(&a);
}

/* Nothing shows that an agent on another machine has died. It counts as alive while one of its
 * exchanges is open, and for one lease after its last message. */
static bool is_alive(const struct mcp *m, const struct held *h)
{
	return !m->options.host || m->streams || h->renew - m->heard <= h->ttl;
}

static bool mcp_keeper_renewed(const struct mcp *m, const struct held *h)
{
	return h->own && h->renew - h->touched < m->options.max_hold && is_alive(m, h);
}

void keeper_tick(struct mcp *m)
{
	struct held *next;
	struct arena a = { 0 };

	for (struct held *h = m->held; h; h = next) {
		next = h->next;
		if (!mcp_keeper_live(h))
			mcp_keeper_lose(m, h, STR("its lease expired"), &a);
		else if (mcp_keeper_renewed(m, h) && h->renew <= os_boot_ms())
			mcp_keeper_renew(m, h);
	}
	arena_free(&a);
}

int64_t keeper_next(const struct mcp *m)
{
	int64_t soonest = -1;

	for (const struct held *h = m->held; h; h = h->next) {
		int64_t at = mcp_keeper_renewed(m, h) ? h->renew : h->expires + MARGIN_MS;
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
	GIVE(&rq, run, h->run);
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
		mcp_keeper_drop(m, m->held);
	}
	mcp_keeper_cut(&m->past, 0);
}
