/*
 * Recognises the calling agent and its session. Only variables that a coding agent sets for its child processes count: a
 * variable that people set, too, would turn a person into an agent. Two sessions never become one run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "client/caller.h"
#include "client/keyring_private.h"
#include "core/task.h"

/* Reads the environment first, because looking up the user may contact a server. */
struct str client_user(struct arena *a)
{
	const char *said = getenv("LOGNAME");
	struct str name, home;

	if (!said || !*said)
		said = getenv("USER");
	if (said && *said)
		return str_c(said);
	os_user(&name, &home, a);
	return name.n ? name : arena_printf(a, "uid%lu", (unsigned long)geteuid());
}

/* --- coding agents -------------------------------------------------------------------------- */

/* Variables that a client sets for the programs that it starts. A variable that users set to configure a client
 * (CODEX_HOME, GEMINI_API_KEY) is not here: it is also set in a person's own shell. */
static const struct {
	const char *variable, *name;
} variables[] = {
	{ "CLAUDECODE", "claude" },
	{ "CLAUDE_CODE_SESSION_ID", "claude" },
	{ "CODEX_THREAD_ID", "codex" },
	{ "CODEX_SANDBOX", "codex" },
	{ "CODEX_SANDBOX_NETWORK_DISABLED", "codex" },
	{ "QWEN_CODE", "qwen" }, /* before gemini, because Qwen Code is a fork of Gemini CLI */
	{ "GEMINI_CLI", "gemini" },
	{ "GEMINI_CLI_SESSION_ID", "gemini" },
	{ "GEMINI_SESSION_ID", "gemini" },
	{ "CURSOR_AGENT", "cursor" },
	{ "COPILOT_CLI", "copilot" },
	{ "OPENCODE", "opencode" },
	{ "CLINE_ACTIVE", "cline" },
	{ "GOOSE_TERMINAL", "goose" },
};

/* How the names in clientInfo begin. */
static const struct {
	const char *begins, *name;
} clients[] = {
	{ "claude", "claude" },
	{ "codex", "codex" },
	{ "gemini", "gemini" },
	{ "qwen", "qwen" },
	{ "cursor", "cursor" },
	{ "copilot", "copilot" },
	{ "github-copilot", "copilot" },
	{ "visual studio code", "vscode" },
	{ "vscode", "vscode" },
	{ "opencode", "opencode" },
	{ "amp", "amp" },
	{ "kiro", "kiro" },
	{ "zed", "zed" },
	{ "cline", "cline" },
	{ "kilo", "kilo" },
	{ "roo", "roo" },
	{ "windsurf", "windsurf" },
	{ "junie", "junie" },
	{ "goose", "goose" },
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Does the name begin with this whole word, in any case? "zed-editor" begins with "zed"; "zedd" does not. */
static bool caller_begins(struct str name, struct str word)
{
	return name.n >= word.n && str_eq_nocase(str_n(name.p, word.n), word) &&
	       (name.n == word.n || !is_letter(name.p[word.n]));
}

/* The short name of the coding agent that calls itself `name` in `clientInfo` or AI_AGENT; empty: it is unknown. */
static struct str caller_of_client(struct str name)
{
	for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++)
		if (caller_begins(name, str_c(clients[i].begins)))
			return str_c(clients[i].name);
	return STR("");
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value && strcmp(value, "0") != 0;
}

static struct str agent_by_environment(struct str *why, struct arena *a)
{
	const char *said = getenv("AI_AGENT");
	struct str name;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (is_set(variables[i].variable)) {
			*why = arena_printf(a, "%s is set", variables[i].variable);
			return str_c(variables[i].name);
		}
	name = caller_of_client(str_c(said));
	if (name.n)
		*why = arena_printf(a, "AI_AGENT is %s", arena_cstr(a, text_line(a, str_c(said))));
	return name;
}

bool caller_is_agent(struct str *why, struct arena *a)
{
	static const char *const others[] = { "AI_AGENT", "PAWL_TASK" }; /* PAWL_TASK: `pawl run` */

	if (agent_by_environment(why, a).n)
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (is_set(others[i])) {
			*why = arena_printf(a, "%s is set", others[i]);
			return true;
		}
	return false;
}

static struct str find_who(struct str client, struct str *why, struct arena *a)
{
	struct str name = caller_of_client(client);

	if (name.n) {
		*why = arena_printf(a, "the MCP client calls itself %s",
				    arena_cstr(a, text_cut(a, text_line(a, client), 60)));
		return name;
	}
	name = agent_by_environment(why, a);
	if (name.n)
		return name;
	*why = STR("no coding agent was recognised, so it is the user");
	return client_user(a);
}

/* --- the whole name ------------------------------------------------------------------------- */

/* A folder name can contain any byte. In an agent name, it must not look like a separator or a second part. */
static struct str caller_plain(struct str name, struct arena *a)
{
	char *p = arena_cstr(a, name);

	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f || p[i] == '/' || p[i] == '@')
			p[i] = '-';
	return str_n(p, name.n);
}

struct caller caller_find(struct str client, struct str host, const char *worktree, struct arena *a)
{
	struct caller id = { 0 };
	struct str who = find_who(client, &id.why, a), long_name;

	id.name = arena_printf(a, "%.*s@%.*s", STRF(who), STRF(host));
	if (!worktree || !text_valid(str_c(worktree)))
		return id;
	long_name = arena_printf(a, "%.*s/%s", STRF(id.name),
				 arena_cstr(a, caller_plain(str_c(worktree), a)));
	if (long_name.n <= NAME_MAX_BYTES)
		id.name = long_name;
	return id;
}

/* --- the run -------------------------------------------------------------------------------- */

bool caller_good_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n && s.n <= NAME_MAX_BYTES && text_valid(s);
}

/* Variables by which a client tells the programs that it starts which session they belong to. */
static const char *const session_variables[] = {
	"CLAUDE_CODE_SESSION_ID",
	"CODEX_THREAD_ID",
	"GEMINI_CLI_SESSION_ID",
	"GEMINI_SESSION_ID",
};
#define SESSIONS (sizeof(session_variables) / sizeof(*session_variables))

/* An id that cannot be a name is hashed, not ignored: two sessions must not become one run. */
static struct str as_run(struct str id, struct arena *a)
{
	return caller_good_name(id) ? id : hash_hex(a, id);
}

static bool caller_has(struct strs list, struct str s)
{
	for (size_t i = 0; i < list.n; i++)
		if (str_eq(list.v[i], s))
			return true;
	return false;
}

static struct str caller_join(struct strs list, const char *between, struct arena *a)
{
	struct str out = list.n ? list.v[0] : STR("");

	for (size_t i = 1; i < list.n; i++)
		out = arena_printf(a, "%.*s%s%.*s", STRF(out), between, STRF(list.v[i]));
	return out;
}

/* A client that another client started has the variables of both. Its run contains both ids, so it differs from the run of
 * the client that started it. */
struct caller_run caller_run_find(struct str told, struct arena *a)
{
	struct caller_run run = { .made = true };
	struct strs ids = { 0 }, names = { 0 };

	for (size_t i = 0; i < SESSIONS; i++) {
		struct str id = str_c(getenv(session_variables[i]));

		if (!id.n || caller_has(ids, id))
			continue;
		ids = arena_append(a, ids, id);
		names = arena_append(a, names, str_c(session_variables[i]));
	}
	if (told.n && !caller_has(ids, told)) {
		run.name = as_run(told, a);
		run.why = STR("the client named its session in this call");
	} else if (ids.n) {
		run.name = as_run(caller_join(ids, "+", a), a);
		run.why = arena_printf(a, "%s %s it", arena_cstr(a, caller_join(names, " and ", a)),
				       names.n == 1 ? "names" : "name");
	} else {
		run.made = false;
		run.why = STR(
			"neither --run nor PAWL_RUN names one, and no session of a coding agent was recognised");
	}
	return run;
}

/* --- own run ---------------------------------------------------------------------------------- */

/* The files are HASH-RUN.run. HASH is a hash of agent and worktree, and the file is empty. A run's file is locked as long as
 * its process lives, so two processes never have the same run. */

#define HEAD 32
#define TRIES 16

/* --- files ---------------------------------------------------------------------------------- */

static struct str head_of(const struct keyring *k, struct arena *a)
{
	struct str text = arena_printf(a, "%.*s\n%.*s", STRF(k->agent), STRF(k->worktree));

	return arena_printf(a, "%s-", arena_cstr(a, str_n(hash_hex(a, text).p, HEAD)));
}

struct search {
	struct str run;
	bool found;
};

static void check_one(void *ctx, const struct key_file *f)
{
	struct search *s = ctx;

	s->found = s->found || str_eq(f->run, s->run);
}

static bool has_tokens(const struct keyring *k, struct str run)
{
	struct arena scratch = { 0 };
	struct keyring ring = *k;
	struct search s = { .run = run };

	ring.arena = &scratch;
	(void)keyring_each(&ring, check_one, &s);
	arena_free(&scratch);
	return s.found;
}

/* Locks the file. false: its process is alive, or the file is gone. */
static bool own_run_lock(struct own_run *r, int flags)
{
	r->fd = open(r->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);
	if (r->fd < 0)
		return false;
	if (key_lock_now(r->fd) == 0 && key_same_file(r->fd, r->path))
		return true;
	close(r->fd);
	return false;
}

/* --- a dead process ------------------------------------------------------------------------- */

static bool continue_run(struct own_run *r, const struct keyring *k, struct str file,
			 struct str run, struct arena *a)
{
	r->path = fs_join(a, str_c(k->dir), file);
	if (!own_run_lock(r, 0))
		return false;
	if (has_tokens(k, run)) {
		r->name = arena_str(a, run);
		r->continued = true;
		return true;
	}
	unlink(r->path); /* before the lock ends: another process may be waiting to continue it */
	close(r->fd);
	return false;
}

static bool continue_any(struct own_run *r, const struct keyring *k, struct str head,
			 struct arena *a)
{
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d))) {
		struct str file = str_c(entry->d_name), run = file;

		if (!str_cut_prefix(&run, head) || !str_ends(run, STR(".run")))
			continue;
		run.n -= 4;
		found = continue_run(r, k, file, run, a);
	}
	if (d)
		closedir(d);
	return found;
}

/* --- take and end --------------------------------------------------------------------------- */

static struct str new_name(struct arena *a)
{
	return arena_printf(a, "mcp-%08x%08x", random_below(UINT32_MAX), random_below(UINT32_MAX));
}

void own_run_take(struct own_run *r, const struct keyring *k, struct arena *a)
{
	struct str head = head_of(k, a);
	bool usable = keyring_folder(k) == 0;

	*r = (struct own_run){ .fd = -1 };
	if (usable && continue_any(r, k, head, a))
		return;
	for (int i = 0; i < TRIES; i++) {
		r->name = new_name(a);
		if (!usable)
			break;
		r->path = fs_join(a, str_c(k->dir),
				  arena_printf(a, "%.*s%.*s.run", STRF(head), STRF(r->name)));
		if (own_run_lock(r, O_CREAT | O_EXCL))
			return;
	}
	r->path = NULL;
}

void own_run_end(struct own_run *r, const struct keyring *k)
{
	if (r->path) {
		if (!has_tokens(k, r->name))
			unlink(r->path);
		close(r->fd);
	}
	*r = (struct own_run){ .fd = -1 };
}
