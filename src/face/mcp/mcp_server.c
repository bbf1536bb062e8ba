/*
 * One connection: its client and its due work. No call in here waits for the store's other writers,
 * because the server has other calls to answer.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "cmd/cmd_modules.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"

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
		true; /* a call must not wait, because the server has others to answer: see mcp_tools.c */
	return m->ready ? SUCCESS : ans->code;
}

/* Copies a failure's texts, which must outlive the arena that they were made in. */
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
	/* The queue may have been created after the server started. */
	if (m->ready && m->session.client.conn.config.uri.n)
		return SUCCESS;
	return find_client(m, ans) == SUCCESS ? SUCCESS : keep_answer(ans, a);
}

/* Sets the run of a caller on another machine: its session's, with the thread if the call names
 * one. */
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

	/* The first name counts, because a connection that holds locks must not change its own
	 * name. Over the network the token names the agent. */
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

#define PAUSE 50 /* minimum time between two reads, even in a busy queue */

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

/* Time until the next read of the queue. */
static int64_t next_check(struct mcp *m)
{
	struct queue *q = m->session.client.conn.queue;
	int64_t left = -1, most;

	/* a local watch begins early, so that it misses no change; a remote watch begins with a
	 * read, and costs a stream */
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

/* --- stdio ------------------------------------------------------------------------------------ */

/*
 * The transport on standard input and output: one message on each line. Neither a client that does
 * not read nor a line that is too long may block the server or fill its memory.
 */

#define CHUNK 65536
#define PIPE_PART 4096 /* a pipe that poll() calls writable takes this many bytes at once */
#define UNSENT_MAX   \
	(4u * 1024 * \
	 1024) /* the server stops reading from a client that does not read its answers */

struct stdio {
	struct mcp m;
	struct buf in, out;
	size_t sent;   /* of out */
	bool skipping; /* drops the rest of a line that is too long */
	bool ended, broken;
};

static volatile sig_atomic_t stopped;

static void mcp_stdio_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void send_line(void *ctx, struct str message)
{
	struct stdio *s = ctx;

	buf_adds(&s->out, message);
	buf_addc(&s->out, '\n');
}

/* --- out ------------------------------------------------------------------------------------------ */

/* Never blocks: a socket is written with MSG_DONTWAIT, and a pipe gets only as much as it has room
 * for. */
static ssize_t put_some(const char *p, size_t n)
{
	ssize_t r = send(STDOUT_FILENO, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r < 0 && errno == ENOTSOCK)
		r = write(STDOUT_FILENO, p, n < PIPE_PART ? n : PIPE_PART);
	return r;
}

static void mcp_stdio_flush(struct stdio *s)
{
	ssize_t n = put_some(s->out.p + s->sent, s->out.n - s->sent);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		s->broken = true;
	if (n > 0)
		s->sent += (size_t)n;
	if (s->sent == s->out.n)
		s->out.n = s->sent = 0;
}

/* --- in ------------------------------------------------------------------------------------------- */

static void end_line(struct stdio *s)
{
	if (s->skipping)
		mcp_too_long(&s->m);
	else
		mcp_receive(&s->m, buf_str(&s->in));
	s->skipping = false;
	s->in.n = 0;
}

/* Handles the complete lines; keeps the text after the last one. */
static void take_lines(struct stdio *s, struct str bytes)
{
	while (bytes.n) {
		const char *end = memchr(bytes.p, '\n', bytes.n);
		size_t n = end ? (size_t)(end - bytes.p) : bytes.n;

		s->skipping |= s->in.n + n > MESSAGE_MAX;
		if (!s->skipping)
			buf_add(&s->in, bytes.p, n);
		if (!end)
			return;
		end_line(s);
		bytes = str_n(end + 1, bytes.n - n - 1);
	}
}

static void mcp_stdio_hear(struct stdio *s)
{
	static char chunk[CHUNK];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n > 0) {
		take_lines(s, str_n(chunk, (size_t)n));
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	take_lines(s, STR("\n")); /* the last line may lack its newline */
	s->ended = true;
}

/* --- both ----------------------------------------------------------------------------------------- */

static void mcp_stdio_poll(struct stdio *s, const sigset_t *open)
{
	int64_t ms = mcp_tick(&s->m);
	struct timespec limit = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	bool unsent = s->out.n > s->sent, full = s->out.n - s->sent > UNSENT_MAX;
	struct pollfd fds[] = {
		{ .fd = full ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = STDOUT_FILENO, .events = unsent ? POLLOUT : 0 },
		{ .fd = mcp_wake_fd(&s->m), .events = POLLIN },
	};

	if (ppoll(fds, 3, ms < 0 ? NULL : &limit, open) < 0)
		return;
	if (fds[2].revents)
		mcp_woken(&s->m);
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		s->broken = true;
	else if (unsent && fds[1].revents)
		mcp_stdio_flush(s);
	if (!s->broken && fds[0].revents)
		mcp_stdio_hear(s);
}

/* Writes the remaining output after the input has ended. The client may read it slowly. */
static void say_the_rest(struct stdio *s)
{
	if (!s->broken && s->out.n > s->sent)
		(void)fs_write_all(STDOUT_FILENO, str_n(s->out.p + s->sent, s->out.n - s->sent));
}

static void handle_signals(void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler };

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
}

/* Signals arrive only while the server waits. A second signal ends it at once. */
static void mcp_stdio_serve(struct stdio *s)
{
	sigset_t ours, before;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, &before);
	handle_signals(mcp_stdio_stop);
	while (!s->ended && !s->broken && !stopped)
		mcp_stdio_poll(s, &before);
	handle_signals(SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Standard output belongs to the protocol, so a failure before it begins goes to standard error. */
static enum result mcp_stdio_complain(const struct answer *ans)
{
	tty_print(STDERR_FILENO, "pawl: %.*s\n", STRF(ans->message));
	if (ans->hint.n)
		tty_print(STDERR_FILENO, "hint: %.*s\n", STRF(ans->hint));
	return ans->code;
}

enum result mcp_stdio(struct session *session, const struct mcp_args *a, struct reply *out)
{
	struct mcp_options options = { .who = session->client.said,
				       .profile = a->profile,
				       .max_hold = a->max_hold };
	struct stdio s = { .m = { .send = send_line },
			   .in = BUF_MAX(MESSAGE_MAX + 1),
			   .out = BUF_MAX(SIZE_MAX / 4) };
	struct answer ans = { 0 };

	out->silent = true;
	options.who.face = CLIENT_PROGRAM;
	s.m.ctx = &s;
	if (mcp_open(&s.m, &options, &ans, session->arena) != SUCCESS)
		return mcp_stdio_complain(&ans);
	mcp_stdio_serve(&s);
	mcp_close(&s.m, a->release_on_exit);
	say_the_rest(&s);
	buf_free(&s.in);
	buf_free(&s.out);
	return SUCCESS;
}

/* --- under run -------------------------------------------------------------------------------- */

/*
 * A server below `pawl run`: the agent that `pawl run` started already has one task. `next` returns
 * that task, as often as the agent asks, and never a second one. The lock stays with `pawl run`,
 * which renews it and reports the task.
 */

static struct str mcp_under_run_variable(const char *name)
{
	const char *text = getenv(name);

	return str_c(text ? text : "");
}

bool under_run(const struct mcp *m, struct run_task *out)
{
	const struct queue_config *c = &m->session.client.conn.config;

	*out = (struct run_task){ .id = mcp_under_run_variable("PAWL_TASK"),
				  .token = mcp_under_run_variable("PAWL_TOKEN") };
	return !m->options.host && !id_fault(out->id) && token_valid(out->token) &&
	       str_to_i64(mcp_under_run_variable("PAWL_FENCE"), &out->fence) && c->uri.n &&
	       str_eq(mcp_under_run_variable("PAWL_STORE"), c->uri) &&
	       str_eq(mcp_under_run_variable("PAWL_QUEUE"), c->opt.queue);
}

bool under_run_holds(const struct mcp *m, struct str id, int64_t fence)
{
	struct run_task t;

	return under_run(m, &t) && str_eq_nocase(t.id, id) && (!fence || t.fence == fence);
}

/* Is the task still held? If a store does not show the token's hash, the fence must suffice. */
static bool mcp_under_run_held(const struct run_task *t, const struct answer *ans, struct arena *a)
{
	const struct lock *l = ans->task ? &ans->task->lock : NULL;

	return l && ans->task->fence == t->fence && lease_live(l, ans->now) &&
	       ans->task->status != BLOCKED &&
	       (!l->token.n || secret_eq(l->token, token_hash(a, t->token)));
}

static void mcp_under_run_over(const struct run_task *t, struct reply *out, struct arena *a)
{
	*out = (struct reply){ .ans = { .code = NO_TASKS,
					.now = out->ans.now,
					.tasks = out->ans.tasks,
					.n_tasks = out->ans.n_tasks } };
	reply_warn(out,
		   arena_printf(
			   a,
			   "%.*s was the task of this session, and its lock has ended. Stop here: "
			   "the next task gets a new session",
			   STRF(t->id)),
		   a);
}

bool under_run_next(struct mcp *m, const struct request *rq, struct reply *out, struct arena *a)
{
	struct answer *ans = &out->ans;
	struct run_task t;

	if (rq->explain || HAS(rq, agent) || !under_run(m, &t))
		return false;
	*out = (struct reply){ 0 };
	if (!mcp_show(m, t.id, VIEW_BRIEF, ans, a) && ans->code != NOT_FOUND)
		return true; /* the store cannot be reached: no second task either */
	if (!mcp_under_run_held(&t, ans, a)) {
		mcp_under_run_over(&t, out, a);
		return true;
	}
	ans->lock = arena_new(a, struct grant);
	*ans->lock = (struct grant){ .token = arena_str(a, t.token),
				     .fence = ans->task->fence,
				     .expires_at = ans->task->lock.expires_at,
				     .ttl = ans->task->lock.ttl };
	return true;
}

bool under_run_done(struct mcp *m, struct request *rq)
{
	if (rq->op != OP_DONE || !rq->claim_next || !under_run_holds(m, rq->id, 0))
		return false;
	rq->claim_next = 0;
	rq->has &= ~(UINT64_C(1) << ARG_claim_next);
	return true;
}
