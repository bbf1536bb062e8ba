/* One connection: its client, and its due work. */
#include "face/mcp/mcp.h"

#include "base/os.h"
#include "base/secret.h"

static enum result find_client(struct mcp *m, struct answer *ans)
{
	given_back_free(&m->session.client.given_back);
	arena_free(&m->base);
	m->base = (struct arena){ 0 };
	m->ready = client_init(&m->session.client, &m->options.who, ans, &m->base) == SUCCESS;
	m->inside = false;
	m->session.client.given_back.on = true;
	m->session.client.self.apart = true;
	if (m->ready && m->options.host)
		m->options.host->prepare(m->options.host->ctx, &m->session.client);
	m->session.client.conn.config.impatient =
		true; /* a call must not wait, because the server has others to serve: see tools.c */
	return m->ready ? SUCCESS : ans->code;
}

/* The text of a failure must outlive the arena that it was made in. */
static enum result keep_answer(struct answer *ans, struct arena *a)
{
	ans->message = arena_str(a, ans->message);
	ans->hint = arena_str(a, ans->hint);
	return ans->code;
}

enum result mcp_open(struct mcp *m, const struct mcp_options *o, struct answer *ans,
		     struct arena *a)
{
	enum result r;

	m->options = *o;
	m->profile = profile_find(o->profile);
	m->session.face = m;
	m->session.remote = o->host;
	m->session.owns_stdout = true;
	m->cursor = BUF_MAX(NAME_MAX_BYTES);
	r = find_client(m, ans);
	if (r == SUCCESS)
		return r;
	keep_answer(ans, a);
	mcp_close(m, false);
	return r;
}

enum result mcp_ready(struct mcp *m, struct answer *ans, struct arena *a)
{
	/* A queue can be made after the server has started. */
	if (m->ready && m->session.client.conn.config.uri.n)
		return SUCCESS;
	return find_client(m, ans) == SUCCESS ? SUCCESS : keep_answer(ans, a);
}

/* The run of a caller on another machine: that of its session, and the thread if it names one. */
static void enter_afar(struct client *c, struct str thread)
{
	struct caller_run run = { .name = c->said.run, .why = STR("the session of the client") };

	if (thread.n) {
		run.name = arena_printf(c->arena, "%.*s/%.*s", STRF(run.name), STRF(thread));
		if (!caller_good_name(run.name))
			run.name = hash_hex(c->arena, run.name);
	}
	client_set_run(c, &run);
}

/* A connection can serve several sessions: Codex names the thread of each call. */
void mcp_enter(struct mcp *m, struct str session)
{
	struct client *c = &m->session.client;
	struct caller_run own = { .made = true };

	if (!m->inside)
		m->outside = client_run(c);
	m->inside = true;
	if (m->options.host) {
		enter_afar(c, session);
		return;
	}
	client_session(c, session);
	if (c->self.run.n)
		return;
	if (!m->own.name.n)
		own_run_take(&m->own, &c->keyring, &m->self);
	own.name = m->own.name;
	own.why = m->own.continued ? STR("it was the run of an MCP server that is dead")
				   : STR("each MCP server is a run of its own");
	client_set_run(c, &own);
}

void mcp_leave(struct mcp *m)
{
	if (m->inside)
		client_set_run(&m->session.client, &m->outside);
	m->inside = false;
}

void mcp_meet(struct mcp *m, struct str program)
{
	struct answer ans = { 0 };

	/* The first name counts: a connection that holds locks must not change its own name. Over the network the
	 * token names the agent. */
	if (m->options.host || m->options.who.program.n || !program.n ||
	    program.n > NAME_MAX_BYTES || m->held || m->waiting || m->subscriptions)
		return;
	m->options.who.program = arena_str(&m->self, program);
	own_run_end(&m->own, &m->session.client.keyring); /* it belongs to the earlier name */
	client_close(&m->session.client);
	(void)find_client(m, &ans);
}

void mcp_ask(struct mcp *m, const struct request *rq, struct answer *ans, struct arena *a)
{
	struct client *c = &m->session.client;
	struct arena *before = c->arena;

	*ans = (struct answer){ 0 };
	if (mcp_ready(m, ans, a) != SUCCESS)
		return;
	c->arena = a;
	client_call(c, rq, ans);
	c->arena = before;
	mcp_answered(m, ans->barred ? SUCCESS : ans->code);
}

bool mcp_show(struct mcp *m, struct str id, unsigned view, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_SHOW };

	GIVE(&rq, id, id);
	if (view)
		GIVE(&rq, view, view);
	mcp_ask(m, &rq, ans, a);
	return ans->code == SUCCESS;
}

void mcp_answered(struct mcp *m, enum result code)
{
	if (code == API_ERROR)
		client_close(&m->session.client);
}

/* --- due work ------------------------------------------------------------------------------------- */

#define PAUSE 50 /* minimum time between two looks, even in a busy queue */

static bool mcp_awaited(const struct mcp *m)
{
	return m->waiting || m->subscriptions;
}

int mcp_wake_fd(struct mcp *m)
{
	struct queue *q = m->session.client.conn.queue;

	return q && mcp_awaited(m) && !m->changed ? queue_wake_fd(q) : -1;
}

void mcp_woken(struct mcp *m)
{
	if (m->session.client.conn.queue)
		queue_woken(m->session.client.conn.queue);
	m->changed = true;
}

static int64_t mcp_sooner(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int64_t mcp_until(int64_t at)
{
	int64_t left = at - os_boot_ms();

	return left > 0 ? left : 0;
}

/* Time until the next look at the queue. */
static int64_t next_check(struct mcp *m)
{
	struct queue *q = m->session.client.conn.queue;
	int64_t left = -1, most;

	/* a local watch begins early, to miss no change; one through a server begins with a look, and costs a stream */
	if (!mcp_awaited(m) && q && queue_is_remote(q))
		return -1;
	most = q ? queue_poll_ms(q) : QUEUE_POLL_MS;
	if (!mcp_awaited(m))
		return -1;
	if (m->changed || most < INT64_MAX)
		left = mcp_until(m->checked + (m->changed ? PAUSE : most));
	if (m->subscriptions && m->expiry_at)
		left = mcp_sooner(left, mcp_until(m->expiry_at));
	return left;
}

bool mcp_is_open(const struct mcp *m, const void *via)
{
	return wait_is_open(m, via) || subscriptions_is_open(m, via);
}

void mcp_gone(struct mcp *m, const void *via)
{
	wait_gone(m, via);
	subscriptions_gone(m, via);
}

int64_t mcp_tick(struct mcp *m)
{
	bool check = next_check(m) == 0;

	keeper_tick(m);
	if (check) {
		m->checked = os_boot_ms();
		m->changed = false;
		subscriptions_check(m);
	}
	wait_check(m, check);
	return mcp_sooner(mcp_sooner(keeper_next(m), wait_next(m)), next_check(m));
}

void mcp_close(struct mcp *m, bool release)
{
	wait_end(m);
	subscriptions_end(m);
	keeper_end(m, release);
	own_run_end(&m->own, &m->session.client.keyring);
	client_close(&m->session.client);
	given_back_free(&m->session.client.given_back);
	buf_free(&m->cursor);
	arena_free(&m->told);
	arena_free(&m->base);
	arena_free(&m->self);
}
