/*
 * pawl setup: adds pawl to the files of coding agents, or removes it. All files are planned before
 * the first one is written: if one of them does not fit, none is changed. All other content stays
 * byte for byte.
 */
#include "cmd/setup.h"

#include "base/text.h"
#include "cmd/command.h"
#include "cmd/cmd.h"

struct setup_args {
	struct args args;
	struct str client, from, http;
	int64_t all, list, hooks, user, remove, yes;
};

static const struct param params[] = {
	LOCAL(setup, client, "CLIENT", P_CHOICE, .flags = P_POSITIONAL, .choices = SETUP_CLIENTS,
	      .value = "CLIENT",
	      .help = "claude, codex, cursor, gemini, copilot, vscode, opencode, qwen, amp, or generic for others"),
	LOCAL(setup, from, "from", P_CHOICE, .choices = "beads backlog task-master",
	      .value = "PROGRAM",
	      .help = "import the tasks that this program keeps in the project, and leave its files as they are"),
	LOCAL(setup, http, "http", P_NAME, .value = "URL",
	      .help = "the client calls this server instead of `pawl mcp`, with the token in " SETUP_TOKEN),
	LOCAL(setup, all, "all", P_FLAG,
	      .help = "configure every client that is installed; with --remove, every client"),
	LOCAL(setup, list, "list", P_FLAG,
	      .help = "show which clients are installed, and which are configured"),
	LOCAL(setup, hooks, "hooks", P_FLAG,
	      .help = "also add hooks that renew leases and release tasks when a session ends"),
	LOCAL(setup, user, "user", P_FLAG,
	      .help = "configure all of your projects, in your home folder"),
	LOCAL(setup, remove, "remove", P_FLAG,
	      .help = "remove everything that setup added, hooks included"),
	LOCAL(setup, yes, "yes", P_FLAG, .letter = 'y', .help = "write without asking"),
	{ 0 }
};

static enum result setup_run(struct session *s, struct args *args, struct reply *out);
static void setup_show(const struct reply *r, struct view *v);

const struct command cmd_setup = {
	.name = "setup",
	.group = "setup",
	.summary = "configure a coding agent to use pawl (or remove that configuration)",
	.detail =
		"Adds two things to the files of the project (or of the user): the MCP server `pawl mcp`, and a skill, a "
		"rule or a section of AGENTS.md that explains its use. With --agent NAME the server and the hooks work under "
		"that name. setup shows the change and asks; without a terminal it needs --yes. It keeps all other content "
		"byte for byte, comments included; a second run changes nothing, and --remove restores the earlier content. "
		"generic writes .mcp.json and AGENTS.md, and prints the entry for clients whose files setup does not write. "
		"With --http URL the client calls a `pawl serve` at that URL; the entry names the variable " SETUP_TOKEN
		", from which the client takes the token. "
		"setup never touches Git's hooks.",
	.example = "pawl setup claude --hooks\n"
		   "pawl setup codex --agent backend --yes\n"
		   "pawl setup claude --http https://tasks.example:7295 --yes\n"
		   "pawl setup --list\n"
		   "pawl setup --all --yes\n"
		   "pawl setup claude --remove\n"
		   "pawl setup --from beads",
	.see = "prime, hook, guard, init",
	.params = params,
	.args_size = sizeof(struct setup_args),
	.flags = C_IDEMPOTENT | C_LOCAL | C_SHELL | C_REPORT,
	.run = setup_run,
	.show = setup_show,
};

#define FILES_MAX 64

struct setup {
	struct session *s;
	const struct setup_args *args;
	struct str agent; /* of --agent */
	struct str url;   /* of --http */
	struct file_change files[FILES_MAX];
	bool json[FILES_MAX]; /* the file is JSON */
	size_t n;
	json_t *notes;
	bool incomplete; /* a part was left unchanged */
	struct answer ans;
};

/* --- which clients, which files ------------------------------------------------------------------ */

static bool setup_selected(const struct setup *x, const struct setup_client *c)
{
	if (!x->args->all)
		return str_is(x->args->client, c->name);
	return x->args->remove || setup_client_installed(c, x->s->arena);
}

/* NULL: there is no home folder. */
static const char *root_of(const struct setup *x, const struct setup_client *c)
{
	return x->args->user ? setup_client_home(c, x->s->arena) : x->s->client.conn.place.worktree;
}

static const char *file_of(const struct setup *x, const struct setup_client *c,
			   const struct piece *p)
{
	return piece_file(p, x->args->user, root_of(x, c), x->s->arena);
}

/* The client's next piece in this run; NULL: there is none. */
static const struct piece *next_piece(const struct setup *x, const struct setup_client *c,
				      const struct piece *p, bool hooks)
{
	for (p = p ? p + 1 : setup_pieces; root_of(x, c) && p->client; p++)
		if (!strcmp(p->client, c->name) && file_of(x, c, p) && (!p->hook || hooks))
			return p;
	return NULL;
}

static void setup_note(struct setup *x, struct str text)
{
	json_array_append_new(x->notes, json_str(text));
}

/* --- planning ------------------------------------------------------------------------------------ */

static struct file_change *setup_refuse(struct setup *x, const struct file_change *f,
					const char *why)
{
	answer_fail(&x->ans, MISCONFIGURED,
		    arena_printf(x->s->arena, "%s/%s: %s", f->root, f->name, why),
		    STR("nothing was changed; repair the file first"));
	return NULL;
}

/* Two names may be links to one file, which then gets the changes of both. */
static struct file_change *same_file(struct setup *x, const struct file_change *f, bool json)
{
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->files[i].path, f->path))
			return x->json[i] == json
				       ? &x->files[i]
				       : setup_refuse(x, f,
						      "it is a link to a file of another format");
	x->json[x->n] = json;
	return &x->files[x->n++];
}

static struct file_change *find_file(struct setup *x, const struct setup_client *c,
				     const struct piece *p)
{
	const char *name = file_of(x, c, p), *root = root_of(x, c), *fault = NULL;
	struct file_change *f = x->files;
	struct arena *a = x->s->arena;
	bool json = p->kind == PIECE_JSON;

	for (; f < x->files + x->n; f++)
		if (!strcmp(f->name, name) && !strcmp(f->root, root))
			return f;
	if (file_change_load(f, root, name, &x->ans, a) != SUCCESS)
		return NULL;
	if (f->existed && json)
		fault = json_text_fault(f->before, a);
	return fault ? setup_refuse(x, f, fault) : same_file(x, f, json);
}

static struct str place_text(const struct piece *p, struct arena *a)
{
	if (p->kind == PIECE_JSON)
		return arena_printf(a, "%s%s%s", p->place.key[0], p->place.key[1] ? "." : "",
				    p->place.key[1] ? p->place.key[1] : "");
	return p->kind == PIECE_SECTION ? STR("pawl's section") : STR("the file");
}

static bool setup_unfit(struct setup *x, const struct piece *p, const struct file_change *f)
{
	struct arena *a = x->s->arena;
	struct str why = STR("");

	if (p->kind == PIECE_JSON)
		why = p->place.element
			      ? arena_printf(a, ": %s must be an object of arrays", p->place.key[0])
			      : arena_printf(a, ": %s must be an object", p->place.key[0]);
	answer_fail(&x->ans, MISCONFIGURED,
		    arena_printf(a, "%s/%s: setup cannot change %s in this file%.*s", f->root,
				 f->name, arena_cstr(a, place_text(p, a)), STRF(why)),
		    STR("nothing was changed; check the file"));
	return false;
}

/* Notes each other installed client that used the removed piece, too. */
static void warn_sharers(struct setup *x, const struct piece *p, const struct file_change *f)
{
	struct arena *a = x->s->arena;

	for (const struct setup_client *c = setup_clients; c->name; c++)
		for (const struct piece *q = NULL;
		     !setup_selected(x, c) && (q = next_piece(x, c, q, false));)
			if (q->kind == p->kind && !strcmp(file_of(x, c, q), f->name) &&
			    !strcmp(root_of(x, c), f->root) && setup_client_installed(c, a))
				setup_note(x, arena_printf(a, "%s: %s used this entry, too",
							   f->name, c->title));
}

static void setup_leave(struct setup *x, const struct piece *p, const struct file_change *f)
{
	struct arena *a = x->s->arena;

	x->incomplete = true;
	setup_note(x,
		   arena_printf(
			   a,
			   "%s: %s exists already and differs from setup's version: left unchanged",
			   f->name, arena_cstr(a, place_text(p, a))));
}

static bool plan_piece(struct setup *x, const struct setup_client *c, const struct piece *p,
		       struct str agent)
{
	struct arena *a = x->s->arena;
	struct file_change *f = find_file(x, c, p);
	bool remove = x->args->remove;
	enum text_change r;

	if (!f)
		return false;
	r = remove ? piece_remove(p, f, a) : piece_add(p, f, (struct setup_as){ agent, x->url }, a);
	if (r == TEXT_OTHER)
		setup_leave(x, p, f);
	if (remove && (r == TEXT_CHANGED || r == TEXT_EMPTY))
		warn_sharers(x, p, f);
	return r != TEXT_UNFIT || setup_unfit(x, p, f);
}

/* The agent name that the client's server and hooks share: that of --agent, else the one in the
 * client's files. */
static bool find_agent(struct setup *x, const struct setup_client *c, struct str *agent)
{
	*agent = x->agent;
	for (const struct piece *p = NULL;
	     !agent->n && !x->args->remove && (p = next_piece(x, c, p, x->args->hooks));) {
		const struct file_change *f = find_file(x, c, p);

		if (!f)
			return false;
		*agent = piece_as(p, f->before, x->s->arena).agent;
	}
	return true;
}

/* Hooks need --hooks, except that a new agent name also goes into existing hooks. */
static bool setup_wanted(struct setup *x, const struct setup_client *c, const struct piece *p,
			 bool *fault)
{
	const struct file_change *f;

	if (!p->hook || x->args->hooks || x->args->remove)
		return true;
	f = x->agent.n ? find_file(x, c, p) : NULL;
	*fault = x->agent.n && !f;
	return f && piece_is_in(p, f->before, x->s->arena);
}

static bool plan_client(struct setup *x, const struct setup_client *c)
{
	bool fault = false, hooks = false;
	struct str agent;

	if (!find_agent(x, c, &agent))
		return false;
	for (const struct piece *p = NULL; (p = next_piece(x, c, p, true));) {
		hooks = hooks || p->hook;
		if (setup_wanted(x, c, p, &fault) && !plan_piece(x, c, p, agent))
			return false;
		if (fault)
			return false;
	}
	if (x->args->hooks && !hooks && !x->args->remove)
		setup_note(x, arena_printf(
				      x->s->arena,
				      "%s: setup has no hooks for it; `pawl mcp` renews its leases",
				      c->title));
	return true;
}

/* Does the file contain exactly the text that setup writes into a new file? Then --remove deletes
 * it. */
static bool all_ours(struct setup *x, const struct file_change *f, bool hooks)
{
	struct file_change made = { .name = f->name };
	struct arena *a = x->s->arena;

	for (const struct setup_client *c = setup_clients; c->name; c++)
		for (const struct piece *p = NULL;
		     setup_selected(x, c) && (p = next_piece(x, c, p, hooks));)
			if (!strcmp(file_of(x, c, p), f->name) && !strcmp(root_of(x, c), f->root))
				piece_add(p, &made, piece_as(p, f->before, a), a);
	return made.stays && str_eq(made.after, f->before);
}

static bool setup_plan(struct setup *x)
{
	for (const struct setup_client *c = setup_clients; c->name; c++)
		if (setup_selected(x, c) && !plan_client(x, c))
			return false;
	for (size_t i = 0; x->args->remove && i < x->n; i++)
		if (x->files[i].existed &&
		    (all_ours(x, &x->files[i], false) || all_ours(x, &x->files[i], true)))
			x->files[i].stays = false;
	return true;
}

static bool any_change(const struct setup *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (file_change_any(&x->files[i]))
			return true;
	return false;
}

/* --- the answer ---------------------------------------------------------------------------------- */

static json_t *files_json(struct setup *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n; i++) {
		const struct file_change *f = &x->files[i];
		const char *what = !f->existed ? "create" : f->stays ? "change" : "delete";
		struct buf diff = BUF_MAX(64u << 20);

		if (!file_change_any(f))
			continue;
		file_change_diff(f, &diff, x->s->arena);
		json_array_append_new(list, json_pack("{s:s, s:s, s:o*}", "path", f->path, "action",
						      what, "diff", json_str(buf_str(&diff))));
		buf_free(&diff);
	}
	return list;
}

static json_t *names_json(const struct setup *x)
{
	json_t *list = json_array();

	for (const struct setup_client *c = setup_clients; c->name; c++)
		if (setup_selected(x, c))
			json_array_append_new(list, json_string(c->name));
	return list;
}

static void setup_fill(struct setup *x, struct reply *out, bool written)
{
	json_t *o = reply_more(out);

	if (x->args->all)
		json_object_set_new(o, "selected", names_json(x));
	else
		json_object_set_new(o, "client", json_str(x->args->client));
	json_object_set_new(o, "written", json_boolean(written));
	json_object_set_new(o, "complete",
			    json_boolean(!x->incomplete && (written || !any_change(x))));
	json_object_set_new(o, "files", files_json(x));
	json_object_set(o, "notes", x->notes);
	out->own = x->args->remove ? "setup has added nothing here"
				   : "the configuration is complete";
}

/* The entries that the user has to add to other clients' files. */
static json_t *entries_json(const struct setup *x)
{
	struct arena *a = x->s->arena;
	json_t *list = json_array();

	for (const struct other_client *c = other_clients; c->title; c++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s*, s:s*, s:o}", "client", c->title,
						"file", c->file, "user_file", c->user_file, "entry",
						json_str(other_client_entry(c, x->agent, a))));
	return list;
}

static enum result setup_unconfirmed(struct setup *x, struct reply *out)
{
	run_fail(USAGE, STR("nothing was written: pawl cannot ask without a terminal"),
		 STR("to write without asking: --yes"), out);
	setup_fill(x, out, false);
	return USAGE;
}

static enum result setup_succeed(struct setup *x, bool written, struct reply *out)
{
	setup_fill(x, out, written);
	if (str_is(x->args->client, "generic") && !x->args->remove)
		json_object_set_new(reply_more(out), "entries", entries_json(x));
	return SUCCESS;
}

static enum result write_all(struct setup *x, struct reply *out)
{
	if (file_change_write(x->files, x->n, &x->ans, x->s->arena) != SUCCESS)
		return run_answer(&x->ans, out);
	return setup_succeed(x, true, out);
}

static enum result show_and_write(struct setup *x, struct reply *out)
{
	struct reply preview = { 0 };
	int said;

	if (x->args->yes || !any_change(x))
		return any_change(x) ? write_all(x, out) : setup_succeed(x, false, out);
	setup_fill(x, &preview, false);
	said = x->s->confirm ? x->s->confirm(x->s, &cmd_setup, &preview) : -1;
	reply_free(&preview);
	if (said < 0)
		return setup_unconfirmed(x, out);
	if (said)
		return write_all(x, out);
	x->n = 0;
	x->incomplete = true;
	setup_note(x, STR("nothing was written"));
	return setup_succeed(x, false, out);
}

/* The fault in this combination of arguments; NULL: there is none. */
static const char *bad_call(const struct setup_args *a)
{
	if (a->from.n && (a->client.n || a->all || a->list || a->hooks || a->remove || a->user))
		return "--from imports tasks: it stands alone";
	if (a->list && (a->client.n || a->all || a->hooks || a->remove || a->user))
		return "--list shows all clients: it stands alone";
	if (a->http.n && (!a->client.n || a->remove || a->hooks))
		return a->hooks
			       ? "--hooks need `pawl mcp`: with --http the server keeps the tokens of "
				 "the locks"
			       : "--http goes with one CLIENT, and not with --remove";
	if (a->client.n && a->all)
		return "a CLIENT and --all exclude each other";
	if (!a->client.n && !a->all && !a->list && !a->from.n)
		return "setup needs a CLIENT, --all, --list or --from";
	return NULL;
}

/* Does setup know how the client writes a URL? */
static bool takes_url(const struct setup *x)
{
	for (const struct piece *p = setup_pieces; p->client; p++)
		if (str_is(x->args->client, p->client) && piece_takes_url(p))
			return true;
	return false;
}

static const char *bad_url(struct setup *x)
{
	if (!x->args->http.n)
		return NULL;
	if (!takes_url(x))
		return "setup cannot configure a server's URL for this client";
	return setup_url(x->args->http, &x->url, x->s->arena);
}

static enum result setup_configure(struct setup *x, struct reply *out)
{
	bool any = false, home = true;

	for (const struct setup_client *c = setup_clients; c->name; c++)
		if (setup_selected(x, c)) {
			any = true;
			home = home && root_of(x, c);
		}
	if (x->args->user && str_is(x->args->client, "generic"))
		return run_fail(
			USAGE, STR("generic has no files in the home folder"),
			STR("without --user it writes .mcp.json and AGENTS.md of the project"),
			out);
	if (!any)
		return run_fail(MISCONFIGURED, STR("none of the clients is installed here"),
				STR("name one: pawl setup CLIENT; `pawl setup --list` shows them"),
				out);
	if (!home)
		return run_fail(MISCONFIGURED, STR("pawl found no home folder"), STR("set HOME"),
				out);
	return setup_plan(x) ? show_and_write(x, out) : run_answer(&x->ans, out);
}

static enum result setup_run(struct session *s, struct args *args, struct reply *out)
{
	const struct setup_args *a = (const struct setup_args *)args;
	struct client_options said = s->client.said;
	struct setup x = { .s = s, .args = a, .agent = said.agent };
	enum result code;

	if (bad_call(a))
		return run_fail(USAGE, str_c(bad_call(a)),
				STR("for example: pawl setup claude, or pawl setup --list"), out);
	if (client_init(&s->client, &said, &x.ans, s->arena) != SUCCESS)
		return run_answer(&x.ans, out);
	if (a->from.n)
		return import_from(s, a->from, out);
	if (a->list) {
		json_object_set_new(reply_more(out), "clients", setup_list(s));
		return SUCCESS;
	}
	if (bad_url(&x))
		return run_fail(
			USAGE, str_c(bad_url(&x)),
			STR("for example: pawl setup claude --http https://tasks.example:7295/mcp"),
			out);
	x.notes = json_array();
	code = setup_configure(&x, out);
	json_decref(x.notes);
	return code;
}

/* --- for people ---------------------------------------------------------------------------------- */

static void show_diff(struct view *v, struct str rest)
{
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		enum paint p = !line.n            ? PLAIN
			       : line.p[0] == '+' ? GREEN
			       : line.p[0] == '-' ? RED
			       : line.p[0] == '@' ? CYAN
						  : PLAIN;

		view_data(v, p, line);
		view_text(v, PLAIN, "\n");
	}
}

static void show_place(struct view *v, const json_t *e)
{
	struct str file = json_get(e, "file"), user = json_get(e, "user_file");

	view_data(v, BOLD, json_get(e, "client"));
	view_text(v, PLAIN, ": ");
	view_data(v, PLAIN, file.n ? file : user);
	if (file.n && user.n) {
		view_text(v, PLAIN, " or ");
		view_data(v, PLAIN, user);
	}
	view_text(v, PLAIN, "\n");
}

/* The table has clients with the same entry next to each other, so the entry is shown once. */
static void show_entries(struct view *v, const json_t *entries)
{
	size_t i;
	const json_t *e;

	if (json_array_size(entries))
		view_text(v, PLAIN, "\nOther clients need an entry in a file of their own:\n\n");
	json_array_foreach(entries, i, e) {
		show_place(v, e);
		if (str_eq(json_get(e, "entry"), json_get(json_array_get(entries, i + 1), "entry")))
			continue;
		view_text(v, PLAIN, "\n");
		view_lines(v, json_get(e, "entry"), 4);
		view_text(v, PLAIN, "\n");
	}
}

static void setup_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool written = json_is_true(json_object_get(o, "written"));
	const json_t *f, *n, *files = json_object_get(o, "files");
	size_t i;

	if (json_object_get(o, "clients")) {
		setup_list_show(json_object_get(o, "clients"), v);
		return;
	}
	if (json_object_get(o, "go_back")) {
		import_show(r, v);
		return;
	}
	json_array_foreach(files, i, f) {
		if (!written)
			show_diff(v, json_get(f, "diff"));
		else if (!v->quiet)
			view_text(v, PLAIN, "%sd ", arena_cstr(v->arena, json_get(f, "action")));
		if (written)
			view_data(v, BOLD, json_get(f, "path"));
		view_text(v, PLAIN, written ? "\n" : "");
	}
	if (v->quiet)
		return;
	json_array_foreach(json_object_get(o, "notes"), i, n) {
		view_text(v, YELLOW, "note: ");
		view_data(v, PLAIN, json_text(n));
		view_text(v, PLAIN, "\n");
	}
	if (!json_array_size(files) && json_is_true(json_object_get(o, "complete")))
		view_text(v, PLAIN, "nothing to do: %s\n", (const char *)r->own);
	show_entries(v, json_object_get(o, "entries"));
}
