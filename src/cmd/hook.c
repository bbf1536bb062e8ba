/*
 * What coding agents' hooks call (`pawl setup --hooks`). Whatever happens it exits with 0 and says nothing
 * that was not asked for: a session must not stumble over its queue.
 */
#include "cmd/command.h"

static const struct param params[] = {
	LOCAL(event, "EVENT", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "start beat end", .value = "EVENT",
	      .help = "start: what `prime` says; beat: renew what you hold; end: give it back"),
	{ 0 }
};

struct sweep {
	struct session *s;
	enum op op;
	int64_t count;
};

/* `run` and `mcp` see to their locks themselves: those have a process. */
static bool has_process(struct client *c, struct str task)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };

	GIVE(&rq, id, task);
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS && ans.task && ans.task->lock.pid;
}

static void look_at(void *ctx, const struct key_file *f)
{
	struct sweep *x = ctx;
	struct client *c = &x->s->client;
	struct request rq = { .op = x->op };
	struct answer ans = { 0 };
	struct str token;
	int64_t fence;

	if (f->pending || !str_eq(f->queue, c->keyring.queue) || !str_eq(f->agent, c->agent) ||
	    keyring_find(&c->keyring, f->task, &token, &fence) != KEY_SAVED ||
	    has_process(c, f->task))
		return;
	GIVE(&rq, id, f->task);
	GIVE(&rq, token, token);
	if (x->op == OP_RELEASE)
		GIVE(&rq, reason, STR("the session of its holder ended"));
	client_call(c, &rq, &ans);
	x->count += ans.code == SUCCESS;
}

/* What this agent holds by the tokens that are saved for it here. */
static enum result sweep(struct session *s, enum op op, json_t **out)
{
	struct sweep x = { .s = s, .op = op };

	(void)keyring_each(&s->client.keyring, look_at, &x);
	*out = run_success();
	json_object_set_new(*out, "count", json_integer(x.count));
	return SUCCESS;
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	struct client_options said = s->client.said;
	struct answer ans = { 0 };

	if (client_init(&s->client, &said, &ans, s->arena) == SUCCESS && s->client.uri.n) {
		if (str_is(a->event, "beat"))
			return sweep(s, OP_HEARTBEAT, out);
		if (str_is(a->event, "end"))
			return sweep(s, OP_RELEASE, out);
		if (cmd_prime.run(s, a, out) == SUCCESS)
			return SUCCESS;
		json_decref(*out);
	}
	*out = run_success();
	json_object_set_new(*out, "count", json_integer(0));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	if (view_get(o, "text"))
		buf_adds(v->out, str_c(view_get(o, "text")));
}

const struct command cmd_hook = {
	.name = "hook",
	.group = "setup",
	.summary = "what a coding agent's hooks call",
	.detail =
		"start prints what `prime` prints; beat renews, and end gives back, what this agent holds by the "
		"tokens saved for it in this work tree and run, but not what `pawl run` or `pawl mcp` holds. Outside a queue, and whatever goes wrong, nothing is "
		"said and the exit code is 0, so that a hook never stands in a session's way. Sessions that share a "
		"work tree need a PAWL_RUN each, or the end of one gives back what another works on.",
	.example = "pawl hook beat",
	.see = "prime, heartbeat, release",
	.params = params,
	.flags = C_WRITE | C_LOCAL | C_SHELL,
	.run = run,
	.show = show,
};
