/*
 * pawl whoami: shows the caller's name and run, their sources, and the tasks whose tokens are saved
 * here. It never shows a token.
 */
#include "cmd/command.h"

static enum result whoami_run(struct session *s, struct args *a, struct reply *out);
static void whoami_show(const struct reply *r, struct view *v);

const struct command cmd_whoami = {
	.name = "whoami",
	.group = "setup",
	.summary = "show your name and run, and where they come from",
	.detail =
		"The name is --agent, PAWL_AGENT or the setting agent. Otherwise pawl makes it: the coding agent that it "
		"recognises by the environment or by the name of the MCP client (claude, codex, gemini, cursor, …), else the "
		"user; then @host, and in a linked git worktree /WORKTREE. The run is --run or PAWL_RUN, else the session "
		"of the coding agent (CLAUDE_CODE_SESSION_ID, CODEX_THREAD_ID, GEMINI_CLI_SESSION_ID). A hook finds it in its "
		"standard input, and an MCP server also in `_meta.threadId` of a call; a server whose client names no session "
		"is a run of its own. `tokens` are the tasks whose tokens are saved for this queue, name, run and worktree.",
	.example = "pawl whoami\n"
		   "pawl whoami --json",
	.see = "config set, lock list, prime",
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = whoami_run,
	.show = whoami_show,
};

/* The tasks whose saved tokens the caller can use here. */
struct saved {
	struct session *s;
	json_t *tasks;
};

static void check_one(void *ctx, const struct key_file *f)
{
	struct saved *x = ctx;
	struct client *c = &x->s->client;

	if (f->pending || !keyring_is_mine(&c->keyring, f) || !keyring_is_ours(&c->keyring, f) ||
	    !str_eq(f->worktree, c->keyring.worktree))
		return;
	json_array_append_new(x->tasks, json_str(f->task));
}

static void add_tokens(struct session *s, json_t *o)
{
	struct saved x = { .s = s, .tasks = json_array() };
	struct client *c = &s->client;
	struct answer ans = { 0 };

	/* Only the store knows the queue's id, which tells the files apart. */
	if (c->conn.config.uri.n && client_open(c, STORE_READ, &ans) == SUCCESS)
		client_know_queue(c);
	(void)keyring_each(&c->keyring, check_one, &x);
	json_object_set_new(o, "tokens", x.tasks);
}

static enum result whoami_run(struct session *s, struct args *a, struct reply *out)
{
	struct client *c = &s->client;
	struct client_options said = c->said;
	struct answer ans = { 0 };
	json_t *o;

	(void)a;
	if (client_init(c, &said, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	o = reply_more(out);
	json_object_set_new(o, "agent", json_str(c->self.agent));
	json_object_set_new(o, "agent_why", json_str(c->self.agent_why));
	json_object_set_new(o, "run", c->self.run.n ? json_str(c->self.run) : json_null());
	json_object_set_new(o, "run_why", json_str(c->self.run_why));
	json_object_set_new(o, "host", json_str(c->self.host));
	json_object_set_new(o, "worktree", json_str(str_c(c->conn.place.worktree)));
	add_tokens(s, o);
	return SUCCESS;
}

static void show_tokens(struct view *v, const json_t *tasks)
{
	if (!json_array_size(tasks))
		return;
	view_text(v, DIM, "%-9s ", "tokens");
	for (size_t i = 0; i < json_array_size(tasks); i++) {
		view_text(v, PLAIN, i ? ", " : "");
		view_data(v, BOLD, json_text(json_array_get(tasks, i)));
	}
	view_text(v, PLAIN, "\n");
}

static void show_line(struct view *v, const char *title, struct str name, struct str why)
{
	view_text(v, DIM, "%-9s ", title);
	view_data(v, name.n ? BOLD : DIM, name.n ? name : STR("none"));
	if (why.n) {
		view_text(v, DIM, "  (");
		view_data(v, DIM, why);
		view_text(v, DIM, ")");
	}
	view_text(v, PLAIN, "\n");
}

static void whoami_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;

	if (v->quiet) {
		view_data(v, PLAIN, json_get(o, "agent"));
		view_text(v, PLAIN, "\n");
		return;
	}
	show_line(v, "agent", json_get(o, "agent"), json_get(o, "agent_why"));
	show_line(v, "run", json_get(o, "run"), json_get(o, "run_why"));
	show_line(v, "worktree", json_get(o, "worktree"), STR(""));
	show_tokens(v, json_object_get(o, "tokens"));
}
