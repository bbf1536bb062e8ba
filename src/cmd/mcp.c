/*
 * pawl mcp: sets the defaults and runs the face's MCP server. `--max-hold 0` means never, so only
 * `seen` tells whether the option was given.
 */
#include "cmd/cmd_modules.h"

static const struct param params[] = {
	LOCAL(mcp, profile, "profile", P_CHOICE, .choices = "agent pm all", .value = "NAME",
	      .def = "agent", .help = "profile of the tools: agent, pm or all"),
	LOCAL(mcp, max_hold, "max-hold", P_DURATION, .def = "1h",
	      .help = "renew a lock for DURATION after the last call about its task (0 = never)"),
	LOCAL(mcp, release_on_exit, "release-on-exit", P_FLAG,
	      .help = "release all held tasks when the client disconnects"),
	{ 0 }
};

static enum result mcp_cmd_run(struct session *s, struct args *args, struct reply *out);

const struct command cmd_mcp = {
	.name = "mcp",
	.group = "setup",
	.summary = "serve the queue as tools for a model (MCP over stdio)",
	.detail =
		"A coding agent starts this MCP server; it uses standard input and output until its input ends. Profile "
		"agent has the tools for the work itself. Profile pm has acquire_task_lock and similar tools. "
		"Profile all has every command of the queue. While the client is connected, the server renews the locks "
		"that the client took through it. Without --run and PAWL_RUN, the run is the client's session, or the server "
		"itself if the client names none. So sessions in one worktree never share a token.",
	.example = "pawl mcp --agent alice\n"
		   "pawl mcp --profile pm --release-on-exit",
	.see = "next, claim, heartbeat, lock acquire",
	.params = params,
	.args_size = sizeof(struct mcp_args),
	.flags = C_LOCAL,
	.run = mcp_cmd_run,
};

#define HOLD_MS (INT64_C(3600) * 1000)
#define MAX_HOLD 1 /* its index in params */

static enum result mcp_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	struct mcp_args *a = (struct mcp_args *)args;

	if (!s->mcp)
		return run_fail(MISCONFIGURED, STR("pawl mcp cannot run here"),
				STR("run `pawl mcp` by itself"), out);
	if (!(args->seen >> MAX_HOLD & 1))
		a->max_hold = HOLD_MS;
	if (!a->profile.n)
		a->profile = STR("agent");
	return s->mcp(s, a, out);
}
