/*
 * pawl token create, list and revoke: the tokens of a server's callers. pawl shows a token once and
 * keeps only its hash, in the server's state folder and never in the store.
 */
#include <errno.h>

#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "client/bearer.h"
#include "cmd/command.h"
#include "core/role.h"
#include "queue/remote_queue.h"

struct token_args {
	struct args args;
	struct str name, role;
	int64_t expires;
};

static const struct param create_params[] = {
	LOCAL(token, name, "NAME", P_NAME, .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
	      .help = "name of the token, e.g. of the agent or the person that gets it"),
	LOCAL(token, role, "role", P_CHOICE, .choices = "reader agent reviewer admin",
	      .flags = P_REQUIRED, .value = "ROLE",
	      .help = "what its bearer may do: reader, agent, reviewer or admin"),
	LOCAL(token, expires, "expires", P_DURATION, .def = "never",
	      .help = "the token is valid for DURATION, e.g. 90d"),
	{ 0 }
};

static const struct param revoke_params[] = { LOCAL(token, name, "NAME", P_NAME,
						    .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
						    .help = "name of the token"),
					      { 0 } };

static enum result run_create(struct session *s, struct args *args, struct reply *out);
static void show_create(const struct reply *r, struct view *v);
static enum result run_list(struct session *s, struct args *args, struct reply *out);
static void show_list(const struct reply *r, struct view *v);
static enum result run_revoke(struct session *s, struct args *args, struct reply *out);
static void show_revoke(const struct reply *r, struct view *v);

const struct command cmd_token_create = {
	.name = "token create",
	.group = "setup",
	.summary = "make a token for a caller of `pawl serve`",
	.detail =
		"pawl prints the token once and keeps only its SHA-256, in the state folder of the server and never in the "
		"store. A reader reads; an agent also creates, comments, claims and works on its own locks; a reviewer also "
		"decides about others' work; an admin may do everything. The agent's name is bound to the token: it "
		"is NAME, or the --agent value, in which * stands for any characters. With --queue the token opens only that "
		"queue. A server that runs accepts the token at once.",
	.example = "pawl token create build-7 --role agent --expires 90d\n"
		   "pawl token create ci --role agent --agent 'ci-*' --queue release",
	.see = "token list, token revoke, serve",
	.params = create_params,
	.args_size = sizeof(struct token_args),
	.flags = C_WRITE,
	.fails = FAILS(CONFLICT),
	.run = run_create,
	.show = show_create,
};

const struct command cmd_token_list = {
	.name = "token list",
	.group = "setup",
	.summary = "list the tokens of `pawl serve`",
	.detail = "The list has names, roles and times, not the tokens themselves.",
	.example = "pawl token list",
	.see = "token create, token revoke",
	.flags = C_IDEMPOTENT,
	.run = run_list,
	.show = show_list,
};

const struct command cmd_token_revoke = {
	.name = "token revoke",
	.group = "setup",
	.summary = "end a token: a server that runs refuses it at once",
	.example = "pawl token revoke build-7",
	.see = "token create, token list",
	.params = revoke_params,
	.args_size = sizeof(struct token_args),
	.flags = C_WRITE | C_DESTRUCTIVE,
	.fails = FAILS(NOT_FOUND),
	.run = run_revoke,
	.show = show_revoke,
};

/* Finds the state folder of the server. SUCCESS, or the refusal in *out. */
static enum result find_dir(struct session *s, char **dir, struct reply *out)
{
	*dir = bearer_dir(&s->client, s->arena);
	if (remote_is(s->client.conn.config.uri))
		return run_fail(
			MISCONFIGURED,
			STR("the store is a server: its tokens are on the server's machine"),
			STR("run this there, with the server's own --store"), out);
	if (s->client.conn.trust.state == TRUST_MISSING || !s->client.conn.config.uri.n) {
		struct answer ans = { 0 };

		if (trust_check(&s->client.conn.trust, &ans, s->arena) != SUCCESS)
			return run_answer(&ans, out);
		return run_fail(MISCONFIGURED,
				STR("there is no queue here (no .pawl folder here or above it)"),
				STR("`pawl init` creates one here; or name a store with --store"),
				out);
	}
	if (!*dir)
		return run_fail(MISCONFIGURED,
				STR("pawl found no home folder in which to keep tokens"),
				STR("set PAWL_SERVER_STATE to a folder that you own"), out);
	return SUCCESS;
}

static enum result token_cannot(struct session *s, const char *dir, struct str name, int r,
				struct reply *out)
{
	struct answer ans = { .applied = 'n' };

	if (r == -EEXIST)
		return run_fail(
			CONFLICT,
			arena_printf(s->arena, "there is a token with the name %.*s", STRF(name)),
			arena_printf(s->arena,
				     "choose another name, or first: pawl token revoke "
				     "%.*s",
				     STRF(name)),
			out);
	if (r == -ENOENT)
		return run_fail(
			NOT_FOUND,
			arena_printf(s->arena, "there is no token with the name %.*s", STRF(name)),
			STR("pawl token list shows the tokens"), out);
	answer_fail(&ans, r == -EBADMSG || r == -EPERM ? MISCONFIGURED : API_ERROR,
		    arena_printf(s->arena, "cannot use %s: %s", bearer_file(dir, s->arena),
				 r == -EBADMSG ? "it is damaged"
				 : r == -EPERM ? "other users can read or write it"
					       : strerror(-r)),
		    r == -EPERM ? STR("chmod 600 it, if its contents are yours") : STR(""));
	return run_answer(&ans, out);
}

static json_t *token_json(const struct bearer *b, struct arena *a)
{
	json_t *o = json_pack("{s:o, s:s, s:o, s:o}", "name", json_str(b->name), "role",
			      role_name(b->role), "agent", json_str(b->agent), "queue",
			      b->queue.n ? json_str(b->queue) : json_null());

	json_object_set_new(o, "created_at", json_str(when_text(a, b->created)));
	json_object_set_new(o, "expires_at",
			    b->expires ? json_str(when_text(a, b->expires)) : json_null());
	json_object_set_new(o, "used_at", b->used ? json_str(when_text(a, b->used)) : json_null());
	return o;
}

static enum result run_create(struct session *s, struct args *args, struct reply *out)
{
	const struct token_args *a = (const struct token_args *)args;
	const struct client_options *said = &s->client.said; /* --agent and --queue */
	struct bearer b = { .name = a->name,
			    .role = role_parse(a->role),
			    .agent = said->agent.n ? said->agent : a->name,
			    .queue = said->queue,
			    .created = os_wall_ms() };
	struct str secret;
	char *dir;
	enum result code = find_dir(s, &dir, out);
	int r;

	if (code != SUCCESS)
		return code;
	if (a->expires)
		b.expires = b.created + a->expires;
	r = bearer_add(dir, &b, &secret, s->arena);
	if (r)
		return token_cannot(s, dir, a->name, r, out);
	json_object_set_new(reply_more(out), "token", json_str(secret));
	json_object_set_new(reply_more(out), "bearer", token_json(&b, s->arena));
	return SUCCESS;
}

static enum result run_list(struct session *s, struct args *args, struct reply *out)
{
	struct bearers list;
	json_t *all;
	char *dir;
	enum result code = find_dir(s, &dir, out);
	int r;

	(void)args;
	if (code != SUCCESS)
		return code;
	r = bearer_load(dir, &list, s->arena);
	if (r)
		return token_cannot(s, dir, STR(""), r, out);
	all = json_array();
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(all, token_json(&list.v[i], s->arena));
	json_object_set_new(reply_more(out), "tokens", all);
	return SUCCESS;
}

static enum result run_revoke(struct session *s, struct args *args, struct reply *out)
{
	const struct token_args *a = (const struct token_args *)args;
	char *dir;
	enum result code = find_dir(s, &dir, out);
	int r;

	if (code != SUCCESS)
		return code;
	r = bearer_remove(dir, a->name, s->arena);
	if (r)
		return token_cannot(s, dir, a->name, r, out);
	json_object_set_new(reply_more(out), "revoked", json_str(a->name));
	return SUCCESS;
}

/* --- showing ------------------------------------------------------------------------------- */

static void show_create(const struct reply *r, struct view *v)
{
	const json_t *b = json_object_get(r->more, "bearer");

	view_data(v, BOLD, json_get(r->more, "token"));
	view_text(v, PLAIN, "\n");
	if (v->quiet)
		return;
	view_text(v, DIM, "role %s, agent ", json_get(b, "role").p);
	view_data(v, DIM, json_get(b, "agent"));
	view_text(v, DIM, ". pawl does not show the token again: keep it in a safe place\n");
}

static void show_one(const json_t *b, struct view *v)
{
	view_data(v, BOLD, json_get(b, "name"));
	if (!v->quiet) {
		view_text(v, PLAIN, "  %s", json_get(b, "role").p);
		view_text(v, PLAIN, "  agent ");
		view_data(v, CYAN, json_get(b, "agent"));
		if (json_get(b, "queue").n) {
			view_text(v, PLAIN, "  queue ");
			view_data(v, PLAIN, json_get(b, "queue"));
		}
		if (json_get(b, "expires_at").n)
			view_text(v, DIM, "  expires %s", json_get(b, "expires_at").p);
		view_text(v, DIM, "  last used %s",
			  json_get(b, "used_at").n ? json_get(b, "used_at").p : "never");
	}
	view_text(v, PLAIN, "\n");
}

static void show_list(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "tokens");

	for (size_t i = 0; i < json_array_size(list); i++)
		show_one(json_array_get(list, i), v);
	if (!json_array_size(list) && !v->quiet)
		view_text(v, DIM, "no tokens; `pawl token create` makes one\n");
}

static void show_revoke(const struct reply *r, struct view *v)
{
	view_text(v, GREEN, v->quiet ? "" : "revoked ");
	view_data(v, BOLD, json_get(r->more, "revoked"));
	view_text(v, PLAIN, "\n");
}
