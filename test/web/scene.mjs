// A queue with tasks in every status.
import { init, pawl } from "./kit.mjs";

export const tokenOf = (role, ...args) =>
	pawl("token", "create", role + Math.random().toString(36).slice(2), "--role", role, "-q", ...args);

export function scene() {
	init();
	pawl(
		"create",
		"Fix the parser so that it accepts tabs",
		"--label",
		"bug,ui",
		"--priority",
		"5",
		"--class",
		"expedite",
		"--due",
		"2026-01-01",
	); // t1
	pawl("create", "Write the guide for operators", "--depends", "t1", "--label", "docs"); // t2
	pawl("create", "Plan the release", "--status", "backlog"); // t3
	pawl("create", "Measure the start of the program", "--description", "Use `perf stat`.\n\n- cold cache\n- warm cache"); // t4
	pawl("create", "Move the logs to the new disk", "--label", "ops"); // t5
	pawl("create", "Rotate the keys of the signing service", "--class", "fixed-date", "--due", "2027-03-01"); // t6
	pawl(
		"create",
		"Review: cache of the index",
		"--depends",
		"t1",
		"--description",
		"# Index\n\nThe index is **cached** for each `queue`.\n\n1. read\n2. write\n\n```\nmake check\n```\n\nSee https://example.com/notes.",
		"--acceptance",
		"the test passes",
	); // t7
	pawl("create", "Add tests for the cache"); // t8
	pawl("create", "Translate the messages", "--label", "later"); // t9
	pawl("create", "Delete the old importer"); // t10
	pawl("create", "Tidy the build"); // t11
	pawl("create", "Upgrade the library"); // t12
	pawl("claim", "t4", "--agent", "claude@build1/app");
	pawl("claim", "t5", "--agent", "codex@build2", "--ttl", "40s");
	pawl("claim", "t6", "--agent", "claude@build1/app");
	pawl(
		"block",
		"t6",
		"--agent",
		"claude@build1/app",
		"--reason",
		"The key needs a second signature",
		"--unblock-action",
		"Ask Ann to sign",
	);
	pawl("claim", "t7", "--agent", "gemini@lab");
	pawl("review", "t7", "--agent", "gemini@lab", "--summary", "Cached, 3 times faster");
	pawl("claim", "t9", "--agent", "codex@build2");
	pawl("escalate", "t9", "--agent", "codex@build2", "--reason", "Which languages?");
	pawl("claim", "t10", "--agent", "codex@build2");
	pawl("done", "t10", "--agent", "codex@build2", "--summary", "deleted");
	pawl("claim", "t11", "--agent", "claude@build1/app");
	pawl("fail", "t11", "--agent", "claude@build1/app", "--reason", "The linker is too old");
	pawl("cancel", "t12", "--reason", "not needed");
	pawl("create", "Left behind", "--id", "left");
	pawl("claim", "left", "--agent", "lost@lab", "--ttl", "1s"); // its lease expires before the page is there
	pawl("update", "t8", "--parent", "t7");
	pawl("comment", "t7", "Please look at the *error* path.");
}
