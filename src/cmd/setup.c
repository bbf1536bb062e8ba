#include "cmd/setup_piece.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/text.h"
#include "cmd/command.h"

#define FILES_MAX 8

struct setup_args {
	struct args args;
	struct str client;
	int64_t hooks, user, remove, yes;
};

static const struct param params[] = {
	LOCAL(setup, client, "CLIENT", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "claude codex cursor gemini generic", .value = "CLIENT",
	      .help = "claude, codex, cursor, gemini, or generic for clients that read AGENTS.md"),
	LOCAL(setup, hooks, "hooks", P_FLAG,
	      .help = "also add hooks that renew leases and release tasks when a session ends"),
	LOCAL(setup, user, "user", P_FLAG,
	      .help = "configure all of your projects, in your home folder"),
	LOCAL(setup, remove, "remove", P_FLAG,
	      .help = "remove everything that setup added, hooks included"),
	LOCAL(setup, yes, "yes", P_FLAG, .letter = 'y', .help = "write without asking"),
	{ 0 }
};

struct setup {
	struct session *s;
	const struct setup_args *args;
	const char *root;
	struct file_change files[FILES_MAX];
	size_t n;
	json_t *notes;
	struct answer ans;
};

/* Clients whose folder in the home folder can be moved by an environment variable. */
static const struct {
	const char *client, *variable, *folder;
} homes[] = {
	{ "claude", "CLAUDE_CONFIG_DIR", ".claude/" },
	{ "codex", "CODEX_HOME", ".codex/" },
};

/* NULL: the folder is in its default place. */
static const char *moved_home(struct str client, struct str *folder)
{
	for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++) {
		const char *to = getenv(homes[i].variable);

		*folder = str_c(homes[i].folder);
		if (str_is(client, homes[i].client) && to && to[0] == '/')
			return to;
	}
	return NULL;
}

static const char *file_of(const struct setup *x, const struct piece *p)
{
	struct str folder, name = str_c(p->user_file);

	if (!x->args->user)
		return p->file;
	if (p->user_file && moved_home(x->args->client, &folder))
		str_cut_prefix(&name, folder);
	return name.p;
}

static bool concerns(const struct setup *x, const struct piece *p)
{
	return str_is(x->args->client, p->client) && file_of(x, p) &&
	       (!p->hook || x->args->hooks || x->args->remove);
}

static void note(struct setup *x, struct str text)
{
	json_array_append_new(x->notes, json_str(text));
}

/* --- planning ------------------------------------------------------------------------------------ */

static struct file_change *find_file(struct setup *x, const struct piece *p)
{
	const char *name = file_of(x, p), *fault;
	struct file_change *f = x->files;
	struct arena *a = x->s->arena;

	for (; f < x->files + x->n; f++)
		if (!strcmp(f->name, name))
			return f;
	if (file_change_load(f, x->root, name, &x->ans, a) != SUCCESS)
		return NULL;
	fault = f->existed && p->kind == PIECE_JSON ? json_text_fault(f->before, a) : NULL;
	if (fault) {
		answer_fail(&x->ans, MISCONFIGURED,
			    arena_printf(a, "%s/%s: %s", x->root, name, fault),
			    STR("nothing was changed; repair the file first"));
		return NULL;
	}
	x->n++;
	return f;
}

static struct str place_text(const struct piece *p, struct arena *a)
{
	if (p->kind == PIECE_JSON)
		return arena_printf(a, "%s%s%s", p->place.key[0], p->place.key[1] ? "." : "",
				    p->place.key[1] ? p->place.key[1] : "");
	return p->kind == PIECE_SECTION ? STR("pawl's section") : STR("the file");
}

static bool plan_piece(struct setup *x, const struct piece *p)
{
	struct arena *a = x->s->arena;
	struct file_change *f = find_file(x, p);
	enum text_change r;

	if (!f)
		return false;
	r = x->args->remove ? piece_remove(p, f, a) : piece_add(p, f, a);
	if (r == TEXT_OTHER)
		note(x,
		     arena_printf(
			     a,
			     "%s: %.*s exists already and differs from setup's version: left unchanged",
			     f->name, STRF(place_text(p, a))));
	if (r != TEXT_UNFIT)
		return true;
	answer_fail(&x->ans, MISCONFIGURED,
		    arena_printf(a, "%s/%s: setup cannot change %.*s in this file", x->root,
				 f->name, STRF(place_text(p, a))),
		    STR("nothing was changed; check the file"));
	return false;
}

/* Does the file hold exactly the text that setup writes into a new file? Then the file is removed. */
static bool all_ours(struct setup *x, const struct file_change *f, bool hooks)
{
	struct file_change made = { .name = f->name };

	for (const struct piece *p = setup_pieces; p->client; p++)
		if (str_is(x->args->client, p->client) && file_of(x, p) &&
		    !strcmp(file_of(x, p), f->name) && (!p->hook || hooks))
			piece_add(p, &made, x->s->arena);
	return made.stays && str_eq(made.after, f->before);
}

static bool plan(struct setup *x)
{
	for (const struct piece *p = setup_pieces; p->client; p++)
		if (concerns(x, p) && !plan_piece(x, p))
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

static void fill(struct setup *x, struct reply *out, bool written)
{
	json_t *o = reply_more(out);

	json_object_set_new(o, "client", json_str(x->args->client));
	json_object_set_new(o, "written", json_boolean(written));
	json_object_set_new(o, "files", files_json(x));
	json_object_set(o, "notes", x->notes);
}

static enum result unconfirmed(struct setup *x, struct reply *out)
{
	run_fail(USAGE, STR("nothing was written: pawl cannot ask without a terminal"),
		 STR("to write without asking: --yes"), out);
	fill(x, out, false);
	return USAGE;
}

static enum result succeed(struct setup *x, bool written, struct reply *out)
{
	fill(x, out, written);
	return SUCCESS;
}

static enum result write_all(struct setup *x, struct reply *out)
{
	if (file_change_write(x->files, x->n, x->root, &x->ans, x->s->arena) != SUCCESS)
		return run_answer(&x->ans, out);
	return succeed(x, true, out);
}

static enum result show_and_write(struct setup *x, struct reply *out)
{
	struct reply preview = { 0 };
	int said;

	if (x->args->yes || !any_change(x))
		return any_change(x) ? write_all(x, out) : succeed(x, false, out);
	fill(x, &preview, false);
	said = x->s->confirm ? x->s->confirm(x->s, &cmd_setup, &preview) : -1;
	reply_free(&preview);
	if (said < 0)
		return unconfirmed(x, out);
	if (said)
		return write_all(x, out);
	x->n = 0;
	note(x, STR("nothing was written"));
	return succeed(x, false, out);
}

static const char *find_root(struct setup *x)
{
	struct str folder;
	const char *home = moved_home(x->args->client, &folder);

	if (!x->args->user)
		return x->s->client.place.worktree;
	if (!home)
		home = getenv("HOME");
	return home && home[0] == '/' ? fs_real(x->s->arena, home) : NULL;
}

static enum result run(struct session *s, struct args *args, struct reply *out)
{
	const struct setup_args *a = (const struct setup_args *)args;
	struct client_options said = s->client.said;
	struct setup x = { .s = s, .args = a, .notes = json_array() };
	enum result code;

	if (client_init(&s->client, &said, &x.ans, s->arena) != SUCCESS)
		code = run_answer(&x.ans, out);
	else if (a->user && str_is(a->client, "generic"))
		code = run_fail(USAGE, STR("generic has no files in the home folder"),
				STR("without --user it writes AGENTS.md of the project"), out);
	else if (!(x.root = find_root(&x)))
		code = run_fail(MISCONFIGURED, STR("pawl found no home folder"), STR("set HOME"),
				out);
	else if (!plan(&x))
		code = run_answer(&x.ans, out);
	else
		code = show_and_write(&x, out);
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

static void show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool written = json_is_true(json_object_get(o, "written"));
	const json_t *f, *n, *files = json_object_get(o, "files");
	size_t i;

	json_array_foreach(files, i, f) {
		if (!written)
			show_diff(v, json_get(f, "diff"));
		else if (!v->quiet)
			view_text(v, PLAIN, "%.*sd ", STRF(json_get(f, "action")));
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
	if (!json_array_size(files) && !json_array_size(json_object_get(o, "notes")) &&
	    r->ans.code == SUCCESS)
		view_text(v, PLAIN, "nothing to do: the configuration is complete\n");
}

const struct command cmd_setup = {
	.name = "setup",
	.group = "setup",
	.summary = "configure a coding agent to use pawl (or remove that configuration)",
	.detail =
		"Adds two things to the files of the project (or of the user): the MCP server `pawl mcp`, and a skill, a "
		"rule or a section of AGENTS.md that explains its use. setup shows the change and asks; without a terminal "
		"it needs --yes. It keeps all other content byte for byte, a second run changes nothing, and --remove "
		"restores the earlier content. setup never touches Git's hooks.",
	.example = "pawl setup claude --hooks\n"
		   "pawl setup codex --yes\n"
		   "pawl setup claude --remove",
	.see = "prime, hook, guard, init",
	.params = params,
	.args_size = sizeof(struct setup_args),
	.flags = C_IDEMPOTENT | C_LOCAL | C_SHELL | C_REPORT,
	.run = run,
	.show = show,
};
