#include "cmd/setup_client.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"

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

/* NULL: the folder is in its default place. */
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

/* A relative folder in PATH does not count: it depends on the current folder. */
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
