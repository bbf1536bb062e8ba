#include "cmd/mcp.h"

static const struct param params[] = {
	LOCAL(mcp, profile, "profile", P_CHOICE, .choices = "agent pm all", .value = "NAME",
	      .def = "agent", .help = "which tools are offered: agent, pm or all"),
	LOCAL(mcp, max_hold, "max-hold", P_DURATION, .def = "1h",
	      .help = "renew a lock so long after the last call about its task; 0: never"),
	LOCAL(mcp, release_on_exit, "release-on-exit", P_FLAG,
	      .help = "give back what is held when the client disconnects"),
	{ 0 }
};

#define HOLD_MS (INT64_C(3600) * 1000)
#define MAX_HOLD 1 /* its place in params */

static enum result run(struct session *s, struct args *args, struct reply *out)
{
	struct mcp_args *a = (struct mcp_args *)args;

	if (!s->mcp)
		return run_fail(MISCONFIGURED, STR("there is no MCP server in here"),
				STR("run `pawl mcp` by itself"), out);
	if (!(args->seen >> MAX_HOLD & 1))
		a->max_hold = HOLD_MS;
	if (!a->profile.n)
		a->profile = STR("agent");
	return s->mcp(s, a, out);
}

const struct command cmd_mcp = {
	.name = "mcp",
	.group = "setup",
	.summary = "the queue as tools for a model (MCP over stdio)",
	.detail =
		"For a coding agent to start as an MCP server: it speaks on standard input and output until its "
		"input ends. Profile agent has the eight tools of the work itself, pm has acquire_task_lock and "
		"its like, all has every command of the queue. While the client is connected, the server renews "
		"the locks that were taken through it. Sessions that run at the same time need an --agent or "
		"--run of their own.",
	.example = "pawl mcp --agent alice\n"
		   "pawl mcp --profile pm --release-on-exit",
	.see = "next, claim, heartbeat, lock acquire",
	.params = params,
	.args_size = sizeof(struct mcp_args),
	.flags = C_LOCAL,
	.run = run,
};
