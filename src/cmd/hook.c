/*
 * pawl hook: the command that the hooks of coding agents call (`pawl setup --hooks`). It exits with
 * 0 and stays silent even if it fails, because a queue must not break the agent's session.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "cmd/reply.h"

struct hook_args {
	struct args args;
	struct str event;
};

static const struct param params[] = {
	LOCAL(hook, event, "EVENT", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "start beat end", .value = "EVENT",
	      .help = "start: print `prime`; beat: renew your leases; end: release your tasks"),
	{ 0 }
};

static enum result hook_run(struct session *s, struct args *args, struct reply *out);
static void hook_show(const struct reply *r, struct view *v);

const struct command cmd_hook = {
	.name = "hook",
	.group = "setup",
	.summary = "command for the hooks of a coding agent",
	.detail =
		"start prints the text of `prime`. beat renews the locks whose tokens pawl saved for this agent, "
		"worktree and run, and end releases them; both leave the locks of `pawl run` and `pawl mcp` alone. Without "
		"--run and PAWL_RUN, the run is the `session_id` of the JSON object that the client writes to standard input, "
		"so a hook never touches the tasks of another session. hook waits up to half a second for that object, and "
		"does not read from a terminal. The object's `agent_id` only appears in the log. Outside a queue, or after a "
		"failure, hook prints nothing and exits with 0, so it never disturbs a session. After that, start takes at most a second; "
		"it says so if the queue did not answer in that time, or if its config is not trusted.",
	.example = "pawl hook beat",
	.see = "prime, heartbeat, release",
	.params = params,
	.args_size = sizeof(struct hook_args),
	.flags = C_WRITE | C_LOCAL | C_SHELL,
	.run = hook_run,
	.show = hook_show,
};

struct sweep {
	struct session *s;
	enum op op;
	struct str agent; /* the sub-agent whose hook it is; empty: none */
	int64_t count;
};

static struct str hook_reason(const struct sweep *x)
{
	if (!x->agent.n)
		return STR("the session of its holder ended");
	return arena_printf(x->s->arena, "the session of its holder ended (sub-agent %.*s)",
			    STRF(x->agent));
}

/* Does the lock name a process? Those of `run` and `mcp` do, and their owners renew them. */
static bool has_process(struct client *c, struct str task)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };

	GIVE(&rq, id, task);
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS && ans.task && ans.task->lock.pid;
}

/* Opens the queue at the first saved token, so a hook without tokens does not open it at all. */
static bool know_queue(struct client *c)
{
	struct answer ans = { 0 };

	if (c->conn.queue)
		return true;
	if (client_open(c, STORE_WRITE, &ans) != SUCCESS)
		return false;
	client_know_queue(c);
	return true;
}

static void check_one(void *ctx, const struct key_file *f)
{
	struct sweep *x = ctx;
	struct client *c = &x->s->client;
	struct request rq = { .op = x->op };
	struct answer ans = { 0 };
	struct str token;
	int64_t fence;

	if (f->pending || !keyring_is_mine(&c->keyring, f) || !know_queue(c) ||
	    !keyring_is_ours(&c->keyring, f) ||
	    !keyring_find(&c->keyring, f->task, &token, &fence) || has_process(c, f->task))
		return;
	GIVE(&rq, id, f->task);
	GIVE(&rq, token, token);
	if (x->op == OP_RELEASE)
		GIVE(&rq, reason, hook_reason(x));
	client_call(c, &rq, &ans);
	x->count += ans.code == SUCCESS;
}

/* Renews or releases the locks of this agent and run whose tokens are saved here. */
static enum result hook_sweep(struct session *s, enum op op, struct str agent, struct reply *out)
{
	struct sweep x = { .s = s, .op = op, .agent = agent };

	(void)keyring_each(&s->client.keyring, check_one, &x);
	json_object_set_new(reply_more(out), "count", json_integer(x.count));
	return SUCCESS;
}

static enum result hook_run(struct session *s, struct args *args, struct reply *out)
{
	const struct hook_args *a = (const struct hook_args *)args;
	struct client_options said = s->client.said;
	struct hook_input in = { 0 };
	struct answer ans = { 0 };

	if (said.face == CLIENT_COMMAND) /* the prompt reads its commands there */
		in = hook_input_read(s->arena);
	said.session = in.session;
	if (client_init(&s->client, &said, &ans, s->arena) == SUCCESS &&
	    s->client.conn.trust.uri.n) {
		if (str_is(a->event, "beat"))
			return hook_sweep(s, OP_HEARTBEAT, in.agent, out);
		if (str_is(a->event, "end"))
			return hook_sweep(s, OP_RELEASE, in.agent, out);
		if (cmd_prime.run(s, args, out) == SUCCESS)
			return SUCCESS;
		reply_free(out);
		*out = (struct reply){ 0 };
	}
	json_object_set_new(reply_more(out), "count", json_integer(0));
	return SUCCESS;
}

static void hook_show(const struct reply *r, struct view *v)
{
	buf_adds(v->out, json_get(r->more, "text"));
}

/* --- hook input ------------------------------------------------------------------------------- */

/*
 * The read is bounded in time and size: a client that writes nothing, or leaves the pipe open, must
 * not hang its own hook.
 */

#define WAIT_MS 500
#define INPUT_MAX (8u * 1024 * 1024) /* it can contain the whole output of a tool */
#define CHUNK 65536
#define AGENT_BYTES 60

static json_t *hook_input_parse(struct str text)
{
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* Waits for more input, until `end`. */
static bool is_readable(int64_t end)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t left = end - os_boot_ms();
	int r;

	do
		r = poll(&in, 1, left > 0 ? (int)left : 0);
	while (r < 0 && errno == EINTR);
	return r > 0 && !(in.revents & POLLNVAL);
}

/* Reads the next part. false: the input has ended or is too large. */
static bool read_part(struct buf *b)
{
	static char chunk[CHUNK];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	buf_add(b, chunk, (size_t)n);
	return !b->full;
}

/* A complete object also ends the input, because the writer may leave its end of the pipe open. */
static json_t *read_object(struct buf *b)
{
	int64_t end = os_boot_ms() + WAIT_MS;
	json_t *o;

	for (;;) {
		struct str text = str_trim(buf_str(b));

		if (!is_readable(0) && str_ends(text, STR("}")) && (o = hook_input_parse(text)))
			return o;
		if (!is_readable(end) || !read_part(b))
			return b->full ? NULL : hook_input_parse(buf_str(b));
	}
}

struct hook_input hook_input_read(struct arena *a)
{
	struct hook_input in = { 0 };
	struct buf b = BUF_MAX(INPUT_MAX);
	json_t *o = isatty(STDIN_FILENO) ? NULL : read_object(&b);

	if (o) {
		in.session = arena_str(a, json_get(o, "session_id"));
		in.agent = text_cut(a, text_line(a, arena_str(a, json_get(o, "agent_id"))),
				    AGENT_BYTES);
	}
	json_decref(o);
	buf_free(&b);
	return in;
}
