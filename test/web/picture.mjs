// The pictures of README.md: the board with the tasks of a small project, in light and dark. tools/web-picture runs it.
import fs from "node:fs";
import { init, pawl, serve, start, open, live, card, test, finish, ok } from "./kit.mjs";
import { tokenOf } from "./scene.mjs";

const MOST = 120000; // bytes of a picture

// agent(name, id, ...): the agent claims the task; with more words it also says how it ended
function agent(name, id, ...then) {
	pawl("claim", id, "--agent", name);
	if (then.length) pawl(then[0], id, "--agent", name, ...then.slice(1));
}

function project() {
	const tasks = [
		["Parse empty input without an error", "--label", "parser"],
		["Draw the logo", "--label", "design"],
		["Speed up the search in long lists", "--priority", "7", "--label", "speed"],
		["Write the manual", "--label", "docs"],
		["Keep the undo log over a restart", "--label", "storage"],
		["Read the settings from the home folder", "--label", "settings"],
		["Fix the crash on a full disk", "--class", "expedite", "--label", "bug,storage"],
		["Sign the packages", "--class", "fixed-date", "--due", "in 9 days", "--label", "release"],
		["Release 1.0", "--depends", "t4,t8", "--label", "release"],
		["Translate the messages", "--label", "later"],
		["Plan version 2", "--status", "backlog"],
		["Support a dark theme", "--status", "backlog", "--label", "design"],
		["Test the import of 100,000 rows", "--label", "speed"],
		["Show a progress bar", "--label", "design"],
	];
	for (const t of tasks) pawl("create", ...t);
	agent("ann", "t1", "done", "--summary", "empty input is an empty list");
	agent("claude@mars/shop", "t2", "review", "--summary", "logo.svg, in two sizes");
	agent("codex@mars/shop-2", "t3");
	agent("ann", "t4");
	agent("claude@mars/shop", "t5");
	agent("gemini@venus", "t6", "block", "--reason", "no access to the test account", "--unblock-action", "give gemini the key");
	agent("codex@mars/shop-2", "t10", "escalate", "--reason", "Which languages come first?");
	agent("gemini@venus", "t13", "done");
}

init();
project();
const url = await serve(),
	token = tokenOf("admin", "--agent", "you");
await start();
for (const colorScheme of ["light", "dark"])
	await test(`the board, ${colorScheme}`, async () => {
		const page = await open(`${url}/#token=${token}`, { viewport: { width: 1600, height: 620 }, colorScheme });
		await live(page);
		await card(page, "t7").waitFor();
		await page.evaluate(() => document.fonts.ready);
		const file = `${process.env.WEB_PICTURES}/board-${colorScheme}.png`;
		await page.screenshot({ path: file });
		ok(fs.statSync(file).size < MOST, `${file} has ${fs.statSync(file).size} bytes`);
		await page.context().close();
	});
await finish();
