/*
 * pawl trust: records that a person trusts a config. An agent must not be able to do that: consent
 * needs a person at a terminal, and --sha256 is refused if an agent calls.
 */
#include <errno.h>

#include "base/fs.h"
#include "base/hex.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "client/caller.h"
#include "cmd/command.h"

struct trust_args {
	struct args args;
	int64_t list, revoke;
	struct str sha256;
	struct strs paths;
};

static const struct param params[] = {
	LOCAL(trust, list, "list", P_FLAG, .help = "list every config that you trust"),
	LOCAL(trust, revoke, "revoke", P_FLAG, .help = "stop trusting the config"),
	LOCAL(trust, sha256, "sha256", P_NAME, .flags = P_FILLED, .value = "HASH",
	      .help = "trust the config without a question if `sha256sum .pawl/config` prints this hash"),
	LOCAL(trust, paths, "PATH", P_WORDS, .flags = P_POSITIONAL, .value = "PATH",
	      .help = "with --revoke: the config, or the folder that has .pawl (default: here)"),
	{ 0 }
};

static enum result trust_cmd_run(struct session *s, struct args *args, struct reply *out);
static void trust_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_trust = {
	.name = "trust",
	.group = "setup",
	.summary = "allow pawl to open the store that a config names",
	.detail =
		"A .pawl/config can come with a clone. pawl opens a store inside the folder that has .pawl, and the "
		"remotes of your clone, where it uses the refs below refs/pawl/. It opens any other store or branch that "
		"the config names only after you trust the config. The same applies to an agent's name in the config. `pawl "
		"trust` shows the file and asks on the terminal. Without a terminal, or if a coding agent runs it, pawl refuses. "
		"A set-up script uses --sha256 with the hash of a file that a person has read. Your trust applies to this "
		"path and this content: after a change of the file pawl asks again. `pawl init --store` and `pawl config "
		"set store` trust the store that you name; --store and PAWL_STORE need no trust.",
	.example = "pawl trust\n"
		   "pawl trust --sha256 $HASH\n"
		   "pawl trust --list\n"
		   "pawl trust --revoke ~/src/project",
	.see = "init, config set, doctor",
	.params = params,
	.args_size = sizeof(struct trust_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL | C_SHELL,
	.fails = FAILS(NOT_FOUND),
	.run = trust_cmd_run,
	.show = trust_cmd_show,
};

static enum result no_home(struct session *s, int r, struct reply *out)
{
	struct answer ans = { .applied = 'n' };

	if (r == -ENOENT)
		return run_fail(
			MISCONFIGURED,
			STR("pawl found no home folder in which to remember your trust"),
			STR("set HOME or XDG_STATE_HOME, or name the store with PAWL_STORE"), out);
	answer_fail(&ans, API_ERROR,
		    arena_printf(s->arena, "pawl cannot remember your trust: %s", strerror(-r)),
		    STR("$XDG_STATE_HOME/pawl/trust must be a folder that only you can write to"));
	return run_answer(&ans, out);
}

static enum result no_queue(struct reply *out)
{
	return run_fail(
		MISCONFIGURED, STR("there is no queue here, so there is no config to trust"),
		STR("change to the queue's folder; `pawl trust --list` shows every trusted config"),
		out);
}

/* --- granting ------------------------------------------------------------------------------ */

static enum result trust_cmd_verdict(const struct trust *t, const char *state, struct arena *a,
				     struct reply *out)
{
	json_t *o = reply_more(out);

	json_object_set_new(o, "state", json_string(state));
	json_object_set_new(o, "config", json_str(text_line(a, str_c(t->config))));
	if (t->asks.n) {
		json_object_set_new(o, "asks", json_str(t->asks));
		json_object_set_new(o, "why", json_str(t->why));
	}
	return SUCCESS;
}

/* A set-up script trusts content that its author has read. The hash says nothing about links, so a
 * store behind a link needs a person. */
static enum result trust_cmd_compare(struct session *s, const struct trust *t, struct str hash,
				     struct answer *ans)
{
	struct str why, have = hash_hex(s->arena, t->text);

	if (caller_is_agent(&why, s->arena))
		return trust_refuse(why, ans, s->arena);
	if (!t->text.n || t->linked)
		return answer_fail(
			ans, MISCONFIGURED,
			t->linked
				? STR("a link leads to the store, so the hash of the config is not enough")
				: STR("there is no .pawl/config whose hash could be compared"),
			trust_advice(t));
	if (!str_eq(have, hash))
		return answer_fail(
			ans, MISCONFIGURED,
			arena_printf(s->arena, "%s does not have this hash",
				     arena_cstr(s->arena, text_line(s->arena, str_c(t->config)))),
			STR("the file has changed since its hash was taken: a person must read it again"));
	return SUCCESS;
}

static enum result trust_cmd_consent(struct session *s, const struct trust *t, struct str hash,
				     struct answer *ans)
{
	if (hash.n)
		return trust_cmd_compare(s, t, hash, ans);
	if (s->consent)
		return s->consent(s, t, ans);
	return trust_refuse(STR("this call has no terminal"), ans, s->arena);
}

static enum result trust_cmd_give(struct session *s, struct str hash, struct reply *out)
{
	struct answer ans = { 0 };
	struct trust t;
	int r;

	client_check_trust(&s->client, &t);
	if (!t.config)
		return no_queue(out);
	if (t.state == TRUST_INSIDE || t.state == TRUST_REMOTE)
		return trust_cmd_verdict(&t, "not needed", s->arena, out);
	if (t.state == TRUST_MISSING) {
		if (trust_cmd_consent(s, &t, hash, &ans) != SUCCESS)
			return run_answer(&ans, out);
		r = trust_give(&t, s->arena);
		if (r)
			return no_home(s, r, out);
	}
	return trust_cmd_verdict(&t, "trusted", s->arena, out);
}

/* --- listing ------------------------------------------------------------------------------- */

struct listing {
	struct session *s;
	json_t *list;
};

/* Does the file still have the content that the user trusted? */
static const char *state_now(struct session *s, struct str config)
{
	struct client_options said = {
		.dir = fs_dirname(fs_dirname(config)),
	};
	struct answer ans = { 0 };
	struct client c;
	struct trust t;

	if (!fs_exists(arena_cstr(s->arena, fs_dirname(config))) ||
	    client_init(&c, &said, &ans, s->arena) != SUCCESS)
		return "gone";
	client_check_trust(&c, &t);
	return t.state == TRUST_GIVEN && str_is(config, t.config) ? "trusted" : "changed";
}

static void add_trusted(void *ctx, const struct trusted *t)
{
	struct listing *l = ctx;
	json_t *o = json_object();

	json_object_set_new(o, "config", json_str(text_line(l->s->arena, t->config)));
	json_object_set_new(o, "store", json_str(text_line(l->s->arena, t->store)));
	json_object_set_new(o, "at", json_str(when_text(l->s->arena, t->at)));
	json_object_set_new(o, "state", json_string(state_now(l->s, t->config)));
	json_array_append_new(l->list, o);
}

static enum result trust_cmd_list(struct session *s, struct reply *out)
{
	struct listing l = { .s = s, .list = json_array() };
	int r = trust_each(add_trusted, &l, s->arena);

	if (r) {
		json_decref(l.list);
		return no_home(s, r, out);
	}
	json_object_set_new(reply_more(out), "trusted", l.list);
	return SUCCESS;
}

/* --- revoking ------------------------------------------------------------------------------ */

/* path: FOLDER, FOLDER/.pawl or FOLDER/.pawl/config. It need not exist any more. */
static const char *config_at(struct session *s, struct str path)
{
	const char *here = fs_real(s->arena, s->client.conn.config.opt.dir), *real;

	if (path.n && path.p[0] != '/' && here)
		path = str_c(fs_join(s->arena, str_c(here), path));
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (str_ends(path, STR("/.pawl/config")))
		path = fs_dirname(path);
	if (str_ends(path, STR("/.pawl")))
		path = fs_dirname(path);
	real = fs_real(s->arena, arena_cstr(s->arena, path));
	return fs_join(s->arena, real ? str_c(real) : path, STR(".pawl/config"));
}

static enum result trust_cmd_revoke(struct session *s, struct str path, struct reply *out)
{
	struct trust t = { 0 };
	int r;

	if (path.n)
		t.config = config_at(s, path);
	else
		client_check_trust(&s->client, &t);
	if (!t.config)
		return no_queue(out);
	r = trust_revoke(t.config, s->arena);
	if (r == -ENOENT)
		return run_fail(
			NOT_FOUND,
			arena_printf(s->arena, "you do not trust %s, so nothing was revoked",
				     arena_cstr(s->arena, text_line(s->arena, str_c(t.config)))),
			STR("`pawl trust --list` shows every trusted config"), out);
	if (r)
		return no_home(s, r, out);
	t.asks = STR("");
	return trust_cmd_verdict(&t, "revoked", s->arena, out);
}

static enum result trust_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	const struct trust_args *a = (const struct trust_args *)args;
	struct client_options said = s->client.said;
	struct answer ans = { 0 };
	enum result code = client_init(&s->client, &said, &ans, s->arena);
	struct str bytes;

	if (!!a->list + !!a->revoke + !!a->sha256.n > 1)
		return run_fail(
			USAGE,
			STR("--list, --revoke and --sha256 cannot be used together: give one of them"),
			STR("run `pawl help trust`"), out);
	if (a->sha256.n && (!hex_bytes(a->sha256, &bytes, s->arena) || bytes.n != HASH_LEN))
		return run_fail(
			USAGE,
			STR("--sha256 needs 64 hex digits, as `sha256sum .pawl/config` prints them"),
			STR("run `pawl help trust`"), out);
	if (a->paths.n > (a->revoke ? 1u : 0u))
		return run_fail(USAGE, STR("only --revoke takes a PATH, and it takes one"),
				STR("for another folder: pawl trust --dir FOLDER"), out);
	if (a->list)
		return trust_cmd_list(s, out);
	if (a->revoke && a->paths.n)
		return trust_cmd_revoke(s, a->paths.v[0], out);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	return a->revoke ? trust_cmd_revoke(s, STR(""), out) : trust_cmd_give(s, a->sha256, out);
}

/* --- for people ---------------------------------------------------------------------------- */

static void show_list(const json_t *all, struct view *v)
{
	static const char *const heads[] = { "STATE", "CONFIG", "STORE" };
	struct cell *cells = arena_array(v->arena, struct cell, json_array_size(all) * 3 + 1);
	const json_t *o;
	size_t i;

	json_array_foreach(all, i, o) {
		struct str state = json_get(o, "state");

		cells[i * 3] = view_cell(v, str_is(state, "trusted") ? GREEN : YELLOW, state);
		cells[i * 3 + 1] = view_cell(v, BOLD, json_get(o, "config"));
		cells[i * 3 + 2] = view_cell(v, PLAIN, json_get(o, "store"));
	}
	if (i)
		view_table(v, heads, 3, cells, i);
	else if (!v->quiet)
		view_text(v, PLAIN, "you do not trust any config\n");
}

static void trust_cmd_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more, *all = json_object_get(o, "trusted");
	struct str state = json_get(o, "state");

	if (all) {
		show_list(all, v);
		return;
	}
	if (v->quiet)
		return;
	view_text(v, str_is(state, "trusted") ? GREEN : PLAIN, "%.*s: ", STRF(state));
	view_data(v, BOLD, json_get(o, "config"));
	view_text(v, PLAIN, "\n");
	if (json_get(o, "asks").n) {
		view_data(v, PLAIN, json_get(o, "asks"));
		view_text(v, DIM, " (");
		view_data(v, DIM, json_get(o, "why"));
		view_text(v, DIM, ")\n");
	}
}
