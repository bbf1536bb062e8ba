/*
 * The entry that `pawl setup` writes into a coding agent's configuration, and the places of those configurations.
 * setup_entry_is() compares a value with the one that setup_entry_make() would make, so setup never
 * takes an entry that somebody else wrote for its own.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/os.h"
#include "cmd/reply.h"
#include "cmd/setup.h"

json_t *setup_entry_args(struct str agent)
{
	json_t *args = json_pack("[s]", "mcp");

	if (agent.n) {
		json_array_append_new(args, json_string("--agent"));
		json_array_append_new(args, json_str(agent));
	}
	return args;
}

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@+:,./-";

/* Adds the text as one shell word, quoted if necessary. */
static void put_word(struct buf *b, struct str s)
{
	size_t safe = 0;

	while (safe < s.n && strchr(plain, s.p[safe]))
		safe++;
	if (s.n && safe == s.n) {
		buf_adds(b, s);
		return;
	}
	buf_addc(b, '\'');
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\'')
			buf_adds(b, STR("'\\''"));
		else
			buf_addc(b, s.p[i]);
	buf_addc(b, '\'');
}

/* The value of a word that put_word() made. The result for any other word is undefined;
 * setup_entry_is() rejects it. */
static struct str word_value(struct str s, struct arena *a)
{
	struct buf b = BUF_MAX(4096);
	struct str out;

	if (!str_cut_prefix(&s, STR("'")))
		return s;
	while (s.n > 1)
		if (str_cut_prefix(&s, STR("'\\''"))) {
			buf_addc(&b, '\'');
		} else {
			buf_addc(&b, s.p[0]);
			s = str_n(s.p + 1, s.n - 1);
		}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static json_t *hook_command(const struct setup_entry *e, struct str agent)
{
	struct buf b = BUF_MAX(4096);
	json_t *v;

	if (e->client && !agent.n)
		buf_addf(&b, "env AI_AGENT=%s ", e->client);
	buf_addf(&b, "pawl hook %s", e->text);
	if (agent.n) {
		buf_adds(&b, STR(" --agent "));
		put_word(&b, agent);
	}
	v = json_str(buf_str(&b));
	buf_free(&b);
	return v;
}

static json_t *list_command(struct str agent)
{
	json_t *args = setup_entry_args(agent);

	json_array_insert_new(args, 0, json_string("pawl"));
	return args;
}

static json_t *url_entry(enum setup_http http, struct str url)
{
	static const char *const bearers[] = {
		[HTTP_TYPE] = "Bearer ${" SETUP_TOKEN "}",
		[HTTP_URL] = "Bearer ${env:" SETUP_TOKEN "}",
		[HTTP_HTTPURL] = "Bearer $" SETUP_TOKEN,
		[HTTP_REMOTE] = "Bearer {env:" SETUP_TOKEN "}",
	};
	json_t *o = json_object();

	if (http == HTTP_TYPE || http == HTTP_REMOTE)
		json_object_set_new(o, "type", json_string(http == HTTP_TYPE ? "http" : "remote"));
	json_object_set_new(o, http == HTTP_HTTPURL ? "httpUrl" : "url", json_str(url));
	json_object_set_new(o, "headers", json_pack("{s:s}", "Authorization", bearers[http]));
	if (http == HTTP_REMOTE)
		json_object_set_new(o, "enabled", json_true());
	return o;
}

static json_t *local_entry(const struct setup_entry *e, struct str agent)
{
	switch (e->shape) {
	case SHAPE_SERVER:
		return json_pack("{s:s, s:o}", "command", "pawl", "args", setup_entry_args(agent));
	case SHAPE_STDIO:
		return json_pack("{s:s, s:s, s:o}", "type", "stdio", "command", "pawl", "args",
				 setup_entry_args(agent));
	case SHAPE_ENV:
		return json_pack("{s:s, s:o, s:{}}", "command", "pawl", "args",
				 setup_entry_args(agent), "env");
	case SHAPE_COMMAND_LIST:
		return json_pack("{s:s, s:o, s:b}", "type", "local", "command", list_command(agent),
				 "enabled", 1);
	case SHAPE_HOOK:
		return json_pack("{s:[{s:s, s:o}]}", "hooks", "type", "command", "command",
				 hook_command(e, agent));
	case SHAPE_TOOL_HOOK:
		return json_pack("{s:s, s:[{s:s, s:o}]}", "matcher", "*", "hooks", "type",
				 "command", "command", hook_command(e, agent));
	case SHAPE_CURSOR_HOOK:
		return json_pack("{s:o}", "command", hook_command(e, agent));
	case SHAPE_FIXED:
		break;
	}
	return json_loads(e->text, JSON_DECODE_ANY, NULL);
}

json_t *setup_entry_make(const struct setup_entry *e, struct setup_as as, struct arena *a)
{
	if (as.url.n && e->http)
		return url_entry(e->http, setup_url_as(as.url, as.agent, a));
	return local_entry(e, as.agent);
}

/* The agent's name in a value of this shape. The result for a value of another shape is undefined;
 * setup_entry_is() rejects it. */
static struct str agent_in(const struct setup_entry *e, const json_t *v, struct arena *a)
{
	const json_t *hook = json_array_get(json_object_get(v, "hooks"), 0);
	struct str command;

	switch (e->shape) {
	case SHAPE_SERVER:
	case SHAPE_STDIO:
	case SHAPE_ENV:
		return json_text(json_array_get(json_object_get(v, "args"), 2));
	case SHAPE_COMMAND_LIST:
		return json_text(json_array_get(json_object_get(v, "command"), 3));
	case SHAPE_HOOK:
	case SHAPE_TOOL_HOOK:
		command = json_get(hook, "command");
		break;
	case SHAPE_CURSOR_HOOK:
		command = json_get(v, "command");
		break;
	default:
		return STR("");
	}
	if (!str_cut_prefix(&command, arena_printf(a, "pawl hook %s --agent ", e->text)))
		return STR("");
	return word_value(command, a);
}

static bool setup_entry_equals(const struct setup_entry *e, struct setup_as as, const json_t *v,
			       struct arena *a)
{
	json_t *made = setup_entry_make(e, as, a);
	bool same = json_equal(made, v);

	json_decref(made);
	return same;
}

bool setup_entry_is(const struct setup_entry *e, const json_t *v, struct setup_as *as,
		    struct arena *a)
{
	*as = (struct setup_as){
		.url = arena_str(a, json_get(v, e->http == HTTP_HTTPURL ? "httpUrl" : "url"))
	};
	if (!e->http || !as->url.n)
		*as = (struct setup_as){ .agent = arena_str(a, agent_in(e, v, a)) };
	return setup_entry_equals(e, *as, v, a);
}

/* --- setup client ----------------------------------------------------------------------------- */

/*
 * The tables of clients. A variable such as CODEX_HOME can move a client's files, so each path for
 * --user must go through setup_client_home() and setup_client_file().
 */

const struct setup_client setup_clients[] = {
	{ "claude", "Claude Code", "claude", ".claude", "CLAUDE_CONFIG_DIR", ".claude/" },
	{ "codex", "Codex", "codex", ".codex", "CODEX_HOME", ".codex/" },
	{ "cursor", "Cursor", "cursor cursor-agent", ".cursor", NULL, NULL },
	{ "gemini", "Gemini CLI", "gemini", ".gemini", NULL, NULL },
	{ "copilot", "Copilot CLI", "copilot", ".copilot", "COPILOT_HOME", ".copilot/" },
	{ "vscode", "VS Code", "code", ".config/Code", "XDG_CONFIG_HOME", ".config/" },
	{ "opencode", "opencode", "opencode", ".config/opencode", "XDG_CONFIG_HOME", ".config/" },
	{ "qwen", "Qwen Code", "qwen", ".qwen", NULL, NULL },
	{ "amp", "Amp", "amp", ".config/amp", NULL, NULL },
	{ "generic", "other clients", NULL, NULL, NULL, NULL },
	{ 0 },
};

#define SERVER                        \
	{                             \
		.shape = SHAPE_SERVER \
	}

const struct other_client other_clients[] = {
	{ "Kiro", ".kiro/settings/mcp.json", "~/.kiro/settings/mcp.json", "mcpServers", SERVER },
	{ "Roo Code", ".roo/mcp.json", NULL, "mcpServers", SERVER },
	{ "Junie", ".junie/mcp/mcp.json", "~/.junie/mcp/mcp.json", "mcpServers", SERVER },
	{ "Windsurf", NULL, "~/.codeium/windsurf/mcp_config.json", "mcpServers", SERVER },
	{ "Cline", NULL, "~/.cline/data/settings/cline_mcp_settings.json", "mcpServers", SERVER },
	{ "Zed",
	  ".zed/settings.json",
	  "~/.config/zed/settings.json",
	  "context_servers",
	  { .shape = SHAPE_ENV } },
	{ "Kilo Code",
	  "kilo.jsonc",
	  "~/.config/kilo/kilo.jsonc",
	  "mcp",
	  { .shape = SHAPE_COMMAND_LIST } },
	{ "goose", NULL, "~/.config/goose/config.yaml", NULL, SERVER },
	{ 0 },
};

const struct setup_client *setup_client_find(struct str name)
{
	const struct setup_client *c = setup_clients;

	while (c->name && !str_is(name, c->name))
		c++;
	return c->name ? c : NULL;
}

/* --- its home folder ----------------------------------------------------------------------------- */

/* The folder that the client's variable names; NULL: the default. */
static const char *moved_to(const struct setup_client *c)
{
	const char *to = c->variable ? getenv(c->variable) : NULL;

	return to && to[0] == '/' ? to : NULL;
}

const char *setup_client_home(const struct setup_client *c, struct arena *a)
{
	const char *home = moved_to(c);

	if (!home)
		home = getenv("HOME");
	return home && home[0] == '/' ? fs_real(a, home) : NULL;
}

const char *setup_client_file(const struct setup_client *c, const char *user_file)
{
	struct str name = str_c(user_file);

	if (user_file && moved_to(c))
		str_cut_prefix(&name, str_c(c->moved));
	return name.p;
}

/* --- is it installed? ---------------------------------------------------------------------------- */

/* Skips relative folders in PATH, which depend on the current folder. */
static const char *find_program(struct str name, struct arena *a)
{
	struct str path = str_c(getenv("PATH"));

	while (path.n) {
		struct str dir = str_cut(&path, ':');
		char *file = fs_join(a, dir, name);

		if (str_starts(dir, STR("/")) && !access(file, X_OK) && !fs_is_dir(file))
			return file;
	}
	return NULL;
}

const char *setup_client_installed(const struct setup_client *c, struct arena *a)
{
	const char *home = setup_client_home(c, a), *found = NULL;
	struct str names = str_c(c->programs), folder = str_c(c->folder);

	while (names.n && !found)
		found = find_program(str_cut(&names, ' '), a);
	if (found || !home || !folder.n)
		return found;
	if (moved_to(c) && !str_cut_prefix(&folder, str_c(c->moved)))
		return fs_is_dir(home) ? home : NULL; /* the folder itself was moved */
	found = fs_join(a, str_c(home), folder);
	return fs_is_dir(found) ? found : NULL;
}

/* --- entries for the others ---------------------------------------------------------------------- */

static struct str goose_entry(struct str agent, struct arena *a)
{
	json_t *args = setup_entry_args(agent);
	char *text = json_dumps(args, 0); /* JSON is YAML */
	struct str out = arena_printf(a,
				      "extensions:\n"
				      "  pawl:\n"
				      "    name: pawl\n"
				      "    type: stdio\n"
				      "    cmd: pawl\n"
				      "    args: %s\n"
				      "    enabled: true\n"
				      "    timeout: 300\n",
				      text);

	free(text);
	json_decref(args);
	return out;
}

struct str other_client_entry(const struct other_client *c, struct str agent, struct arena *a)
{
	struct str out;
	json_t *o;
	char *text;

	if (!c->key)
		return goose_entry(agent, a);
	o = json_pack("{s:{s:o}}", c->key, "pawl",
		      setup_entry_make(&c->entry, (struct setup_as){ .agent = agent }, a));
	text = json_dumps(o, JSON_INDENT(2));
	out = arena_printf(a, "%s\n", text);
	free(text);
	json_decref(o);
	return out;
}

/* --- setup url -------------------------------------------------------------------------------- */

/*
 * Checks the URL of a server before it goes into a client's settings: it must not contain a token,
 * or anything that a client expands as a variable.
 */

#define URL_MAX 1024

/* Clients expand $NAME, ${NAME} and {env:NAME} in their settings, so a URL that contains one could
 * send out any variable. */
static const char allowed[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?[]@!&'()*+,;=%";

static const char *bad_text(struct str url)
{
	for (size_t i = 0; i < url.n; i++)
		if (!url.p[i] || !strchr(allowed, url.p[i]))
			return "the URL has a character that does not belong into one";
	if (url.n > URL_MAX)
		return "the URL is too long";
	/* a project's files are shared, and other users can see command lines */
	if (memmem(str_p(url), url.n, "pawl_", 5) || memmem(str_p(url), url.n, "token=", 6))
		return "the URL seems to have a token in it; the client takes the token from the "
		       "variable " SETUP_TOKEN;
	return NULL;
}

const char *setup_url(struct str said, struct str *out, struct arena *a)
{
	struct str path = said, host, query;
	const char *fault = bad_text(said);
	bool safe = str_cut_prefix(&path, STR("https://"));

	if (fault)
		return fault;
	if (!safe && !str_cut_prefix(&path, STR("http://")))
		return "the URL of a server begins with https:// or http://";
	query = path;
	path = str_cut(&query, '?');
	host = str_cut(&path, '/');
	if (!host.n || memchr(host.p, '@', host.n))
		return "the URL must name a host, and no user";
	if (!safe && !host_is_loopback(host))
		return "http:// would show the token to the network: use https://";
	*out = arena_printf(a, "http%s://%.*s/%s%s%.*s", safe ? "s" : "", STRF(host),
			    arena_cstr(a, path.n ? path : STR("mcp")), query.n ? "?" : "",
			    STRF(query));
	return NULL;
}

/* Adds the text, %-encoded. */
static void put_encoded(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr("-._~", c)))
			buf_addc(b, (char)c);
		else
			buf_addf(b, "%%%02X", c);
	}
}

struct str setup_url_as(struct str url, struct str agent, struct arena *a)
{
	struct buf b = BUF_MAX(16 * URL_MAX);
	struct str rest = url, out;
	const char *between = "?";

	if (!agent.n)
		return url;
	buf_adds(&b, str_cut(&rest, '?'));
	while (rest.n) {
		struct str one = str_cut(&rest, '&');

		if (str_starts(one, STR("agent=")))
			continue;
		buf_addf(&b, "%s%.*s", between, STRF(one));
		between = "&";
	}
	buf_addf(&b, "%sagent=", between);
	put_encoded(&b, agent);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}
