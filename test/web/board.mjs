// The board in a browser: each action, live updates, roles, hostile texts, keys, a restart of the server.
import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import {
	pawl,
	pawlOn,
	task,
	serve,
	boardWeb,
	noTerminal,
	dir,
	stop,
	start,
	open,
	live,
	card,
	inColumn,
	violations,
	test,
	finish,
	same,
	ok,
	until,
	feed,
	faults,
} from "./kit.mjs";
import { scene, tokenOf } from "./scene.mjs";

scene();
const url = await serve(),
	port = new URL(url).port,
	admin = tokenOf("admin"),
	reader = tokenOf("reader"),
	agent = tokenOf("agent");
await start();
const page = await open(`${url}/#token=${admin}`);
await live(page);
const button = (name, root = "") => page.locator(`${root} button`, { hasText: name }).first();
const submit = () => page.click("dialog button[type=submit]");
const closed = () => page.waitForFunction(() => !document.getElementById("dialog").open);
const detail = async id => {
	await page.evaluate(t => {
		location.hash = "task=" + t;
	}, id);
	await page.waitForSelector(`#detail .head .id:text-is("${id}")`);
};
// act(id, label, value): the action of the detail, with a text if it asks for one; checks the command that it shows
async function act(id, label, value, command) {
	await detail(id);
	await page.locator("#detail .acts button", { hasText: new RegExp(`^${label}$`) }).click();
	await page.waitForSelector("dialog[open] form");
	if (value !== undefined) await page.fill("dialog textarea", value);
	same(await page.textContent("dialog .command"), command, "command:");
	await submit();
	await closed();
}

await test("the token leaves the address and stays in the session", async () => {
	same(new URL(page.url()).hash, "");
	same(await page.evaluate(() => sessionStorage.getItem("pawl.token")), admin);
	same(await page.context().cookies(), []);
	const locks = await page.evaluate(async () => (await navigator.locks.query()).held.map(l => l.name)),
		hash = createHash("sha256").update(admin).digest("hex"); // with it, another server could prove that it knows the token
	ok(locks.length && !locks.some(l => l.includes(admin) || l.includes(hash)), locks.join());
});

// A second page for other roles; it takes a new token from its address.
let other;
const signIn = (token, more = "") =>
	other.evaluate(
		h => {
			location.hash = h;
		},
		`token=${token}${more}`,
	);
await test("a page without a token asks for one, and takes it", async () => {
	other = await open(url);
	await other.waitForSelector("dialog[open] #token");
	same(await other.locator(".card").count(), 0);
	await other.fill("#token", reader);
	await other.keyboard.press("Enter");
	await live(other);
	await card(other, "t1").waitFor();
});

await test("a reader sees no action, and the server refuses one", async () => {
	await signIn(reader, "&task=t1");
	await other.waitForSelector("#detail h2");
	await live(other);
	same(await other.locator("button[data-act=do], button[data-act=move], .pick, .card[draggable]").count(), 0);
	await card(other, "t1").focus();
	for (const key of ["m", "n", "x", "e", "c", "b", "p", "s"]) await other.keyboard.press(key);
	same(await other.evaluate(() => document.getElementById("dialog").open), false);
	const status = await other.evaluate(
		async t =>
			(
				await fetch("/v1/cancel", {
					method: "POST",
					headers: { Authorization: "Bearer " + t, "Content-Type": "application/json" },
					body: '{"id":"t1","reason":"x"}',
				})
			).status,
		reader,
	);
	same([status, task("t1").status], [403, "Ready"]);
});

await test("an agent may create and comment, and nothing else", async () => {
	await signIn(agent, "&task=t1");
	await other.waitForSelector("#detail .acts button");
	await live(other);
	same(await other.locator("#detail .acts button").allTextContents(), ["Comment"]);
	same(await other.locator("#tools button").allTextContents(), ["New task", "?"]);
	await other.context().close();
	await other.context().close();
});

await test("columns have counts, cards their facts", async () => {
	same(await page.textContent('.column[data-status="Ready"] .count'), "3");
	const text = await card(page, "t1").innerText();
	for (const part of ["t1", "Expedite", "p5", "overdue 2026-01-01", "#bug", "#ui"])
		ok(text.includes(part), `no ${part} in ${text}`);
	ok((await card(page, "t2").innerText()).includes("waits for t1"), "t2 waits");
	const held = await card(page, "t4").innerText();
	ok(/@claude@build1\/app/.test(held) && /fence 1/.test(held) && /left/.test(held), held);
	await page.click('.column[data-status="Ready"] h2 button');
	await card(page, "t1").waitFor({ state: "detached" });
	same(await page.getAttribute('.column[data-status="Ready"] h2 button', "aria-expanded"), "false");
	await page.click('.column[data-status="Ready"] h2 button');
	await card(page, "t1").waitFor();
});

await test("each task that needs attention has one action", async () => {
	const kinds = await page
		.locator("#attention li")
		.evaluateAll(list => list.map(n => [n.dataset.kind, n.querySelector("button[data-act=do]")?.textContent]));
	for (const [kind, action] of [
		["Blocked", "Unblock"],
		["Needs Help", "Unblock"],
		["Review", "Approve"],
		["Failed", "Retry"],
		["Overdue", "Edit"],
		["Abandoned", "Make Ready"],
	])
		ok(
			kinds.some(([k, a]) => k === kind && a === action),
			`${kind}: ${JSON.stringify(kinds)}`,
		);
	await page.click('#attention button[data-act=do][data-id="left"]');
	same(await page.textContent("dialog .command"), `pawl update left --status ready --if-version ${task("left").version}`);
	await submit();
	await inColumn(page, "Ready", "left");
	pawl("claim", "left", "--agent", "late@lab", "--ttl", "100s");
	await inColumn(page, "In Progress", "left");
	const kind = '#attention li:has([data-id="left"])';
	same(await page.locator(kind).count(), 0, "a fresh lease:");
	await page.route("**/v1/list*", r => r.abort()); // it would count from the time that is set here
	await page.evaluate(() => {
		const now = Date.now;
		Date.now = () => now() + 90000;
		window.later = () => (Date.now = now);
		location.hash = "q=left";
	});
	await page.waitForSelector('#attention li[data-kind="Lease expires"] [data-id="left"][data-name="lock_break"]');
	await page.evaluate(() => {
		window.later();
		location.hash = "";
	});
	await page.unroute("**/v1/list*");
	await page.click("#attention h2 button");
	await page.waitForSelector("#attention ul", { state: "hidden" });
	await page.click("#attention h2 button");
	await page.waitForSelector("#attention ul");
	pawl("remove", "left", "--force", "--reason", "it was here for this test");
	await card(page, "left").waitFor({ state: "detached" });
});

await test("a violation of the policy is counted", async () => {
	await page.evaluate(() => {
		try {
			document.body.innerHTML = "<b>x</b>";
		} catch {
			// Trusted Types refuse it
		}
		const picture = document.createElement("img");
		picture.src = "http://127.0.0.1:9/x.png";
	});
	await until(() => /require-trusted-types/.test(faults) && /img-src/.test(faults), "two violations");
	faults.length = 0;
});

await test("a change on the command line is on the page at once", async () => {
	pawl("create", "Made elsewhere");
	await inColumn(page, "Ready", "t13");
	pawl("claim", "t13", "--agent", "zoe");
	await inColumn(page, "In Progress", "t13");
	pawl("done", "t13", "--agent", "zoe");
	await inColumn(page, "Done", "t13");
	pawl("remove", "t13");
	await card(page, "t13").waitFor({ state: "detached" });
	await page.waitForFunction(() => /t13: /.test(document.getElementById("say").textContent));
	same(await page.getAttribute("#say", "class"), "quiet", "changes by others are for a screen reader only:");
});

await test("the detail shows fields, Markdown, relations, comments, events and why it is not next", async () => {
	await detail("t7");
	await page.waitForSelector("#detail .comments");
	same(await page.locator("#detail .md h4").first().textContent(), "Index");
	same(await page.locator("#detail .md strong").first().textContent(), "cached");
	same(await page.locator("#detail .md a").first().getAttribute("href"), "https://example.com/notes");
	same(await page.locator("#detail .graph .node").count(), 3);
	const text = await page.innerText("#detail");
	for (const part of ["Finished when", "Please look at the error path.", "Attempts", "Events", "Version", "Why it is not next"])
		ok(text.includes(part), "no " + part);
	await detail("t2");
	await page.waitForFunction(() => /waits for 1 of its dependencies: t1/.test(document.getElementById("detail").innerText));
	// the place in the order follows the changes of other tasks
	await detail("t8");
	const place = n => page.waitForFunction(k => document.getElementById("detail").innerText.includes(`It is number ${k}`), n);
	await place("");
	const before = Number(/It is number (\d+)/.exec(await page.innerText("#detail"))[1]);
	pawl("create", "Before it", "--id", "before", "--class", "expedite");
	await place(before + 1 + " ");
	pawl("remove", "before");
	await place(before + " ");
	await page.keyboard.press("Escape");
	await page.waitForSelector("#detail", { state: "hidden" });
});

await test("a lock that expires while the page shows it is not held any more", async () => {
	pawl("create", "Locked by hand", "--id", "manual");
	pawl("lock", "acquire", "manual", "--agent", "pat@lab", "--ttl", "3s");
	await detail("manual");
	const box = () => page.locator("#detail .box h3").first().textContent();
	await until(async () => (await box()) === "Held", "the lock is shown");
	await until(async () => (await box()) === "Lease expired", "the page shows the expiry");
	ok((await card(page, "manual").innerText()).includes("lease expired"), "the card");
	await page.keyboard.press("Escape");
	pawl("remove", "manual", "--force", "--reason", "over");
});

await test("cards are in the order of next, which sorts ids as the server does", async () => {
	const ids = ["b1", "a10", "a2"];
	// one commit, so only the ids differ
	feed(ids.map(id => JSON.stringify({ id, title: "Same", class: "Intangible", priority: 0 })).join("\n"), "import", "-", "--format", "jsonl");
	for (const id of ids) await inColumn(page, "Ready", id);
	const cards = await page.locator('.column[data-status="Ready"] .card').evaluateAll(list => list.map(c => c.dataset.id));
	same(cards.slice(-3), ["a2", "a10", "b1"]);
	for (const id of ids) pawl("remove", id);
});

await test("create, edit and comment", async () => {
	await button("New task", "#tools").click();
	await page.fill("#in-title", "It's new");
	await page.fill("#in-label", "one, two");
	same(await page.textContent("dialog .command"), "pawl create 'It'\\''s new' --label one --label two");
	await submit();
	await inColumn(page, "Ready", "t14");
	same([task("t14").title, task("t14").labels], ["It's new", ["one", "two"]]);
	await detail("t14");
	await button("Edit", "#detail").click();
	await page.fill("#in-priority", "7");
	same(await page.textContent("dialog .command"), "pawl update t14 --priority 7 --if-version 1");
	await submit();
	await closed();
	same([task("t14").priority, task("t14").labels], [7, ["one", "two"]]);
	await act("t14", "Comment", "so **it** is", "pawl comment t14 'so **it** is'");
	await page.waitForSelector("#detail .comments strong");
});

await test("approve, rework, unblock, retry, reopen, cancel, archive", async () => {
	await act("t7", "Rework", "no test", `pawl rework t7 --reason 'no test' --if-version ${task("t7").version}`);
	same(task("t7").status, "In Progress");
	await act("t6", "Unblock", "", `pawl unblock t6 --if-version ${task("t6").version}`);
	same(task("t6").status, "In Progress");
	await act("t11", "Retry", "new linker", `pawl retry t11 --reason 'new linker' --if-version ${task("t11").version}`);
	same(task("t11").status, "Ready");
	await act("t12", "Reopen", "needed", `pawl reopen t12 --reason needed --if-version ${task("t12").version}`);
	same(task("t12").status, "Ready");
	await act("t12", "Cancel task", "not again", `pawl cancel t12 --reason 'not again' --if-version ${task("t12").version}`);
	same(task("t12").status, "Canceled");
	await act("t12", "Archive", undefined, `pawl archive t12 --if-version ${task("t12").version}`);
	ok(task("t12").archived_at, "archived");
	pawl("claim", "t11", "--agent", "zoe");
	pawl("review", "t11", "--agent", "zoe", "--summary", "tidy");
	await inColumn(page, "Review", "t11");
	await act("t11", "Approve", "good", `pawl approve t11 --summary good --if-version ${task("t11").version}`);
	same(task("t11").status, "Done");
});

await test("break a lock with a reason", async () => {
	const version = task("t4").version;
	await act("t4", "Break lock", "gone", `pawl lock break t4 --reason gone --if-version ${version}`);
	same(task("t4").lock, null);
	await page.keyboard.press("Escape");
});

await test("pause, resume and emergency are shown to everybody", async () => {
	for (const [on, off, word] of [
		["Pause", "Resume", "paused"],
		["Emergency", "End emergency", "read-only"],
	]) {
		await page.locator("#tools button", { hasText: new RegExp(`^${on}$`) }).click();
		await page.fill("dialog textarea", "a drill");
		await submit();
		await page.waitForSelector(`.notice:has-text("${word}")`);
		await page.locator("#tools button", { hasText: new RegExp(`^${off}$`) }).click();
		await submit();
		await page.waitForSelector(`.notice:has-text("${word}")`, { state: "detached" });
	}
	pawl("pause", "--reason", "elsewhere");
	await page.waitForSelector('.notice:has-text("elsewhere")');
	pawl("resume");
	await page.waitForSelector(".notice", { state: "detached" });
});

await test("an action on a task that has changed since then is refused, and says so", async () => {
	await detail("t2");
	await button("Edit", "#detail").click();
	await page.fill("#in-title", "Overwritten");
	pawl("update", "t2", "--title", "Changed by an agent");
	await submit();
	await page.waitForFunction(() =>
		/changed while you were looking at it/.test(document.querySelector("dialog .problem").textContent),
	);
	same(task("t2").title, "Changed by an agent");
	await page.keyboard.press("Escape");
	await closed();
	// sent again, the form changes only the fields that the user changed
	await button("Edit", "#detail").click();
	await page.fill("#in-priority", "4");
	pawl("update", "t2", "--title", "Changed again");
	await submit();
	await page.waitForSelector("dialog .problem:has-text('changed while you were looking at it')");
	same(await page.textContent("dialog .command"), `pawl update t2 --priority 4 --if-version ${task("t2").version}`);
	await submit();
	await closed();
	same([task("t2").title, task("t2").priority], ["Changed again", 4]);
	await page.keyboard.press("Escape");
});

await test("a card is moved by the keyboard", async () => {
	await card(page, "t3").focus();
	await page.keyboard.press("m");
	await page.waitForSelector("dialog .menu");
	await page.keyboard.press("Enter");
	await page.waitForSelector("dialog form");
	same(await page.textContent("dialog .command"), `pawl update t3 --status ready --if-version ${task("t3").version}`);
	await page.click("dialog button[type=submit]");
	await inColumn(page, "Ready", "t3");
	same(task("t3").status, "Ready");
});

await test("a card is moved by a drag", async () => {
	await card(page, "t3").dragTo(page.locator('.column[data-status="Backlog"]'));
	await page.waitForSelector("dialog form");
	await submit();
	await inColumn(page, "Backlog", "t3");
	same(task("t3").status, "Backlog");
});

await test("arrows go between cards, / searches, ? helps, and the focus survives updates", async () => {
	await page.locator('.column[data-status="Ready"] .open').first().focus();
	const at = () => page.evaluate(() => document.activeElement.dataset.id);
	const first = await at();
	await page.keyboard.press("ArrowDown");
	const second = await at();
	ok(first !== second, "the focus moved");
	const [, n] = pawl("create", "A new first", "--class", "expedite", "--priority", "900").split(" ");
	await inColumn(page, "Ready", n);
	pawl("update", second, "--add-label", "touched");
	await page.waitForSelector(`.card[data-id="${second}"] .label:has-text("touched")`);
	same(await at(), second, "after an update:");
	await page.keyboard.press("ArrowRight");
	ok(
		(await page.evaluate(() => document.activeElement.closest(".column").dataset.status)) === "In Progress",
		"the next column",
	);
	await page.keyboard.press("?");
	await page.waitForSelector("dialog kbd");
	await page.keyboard.press("Escape");
	await closed();
	await page.keyboard.press("/");
	same(await page.evaluate(() => document.activeElement.id), "q");
});

await test("search and filters are in the address", async () => {
	await page.fill("#q", "operators OR nothing");
	await page.waitForFunction(() => document.querySelectorAll(".card").length === 0);
	await page.fill("#q", "logs");
	await page.waitForFunction(() => document.querySelectorAll(".card").length === 1);
	same(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("q"), "logs");
	await page.reload();
	await live(page);
	await card(page, "t5").waitFor();
	same(await page.locator(".card").count(), 1);
	same(await page.inputValue("#q"), "logs");
	await page.click("#clear");
	await page.selectOption("#f-label", "docs");
	await page.waitForFunction(() => document.querySelectorAll(".card").length === 1);
	await page.click("#clear");
	await card(page, "t1").waitFor();
});

await test("an action on several tasks", async () => {
	for (const id of ["t8", "t2"]) await page.check(`.pick[data-id="${id}"]`);
	await button("Add label", "#bulk").click();
	await page.fill("#in-add_label", "wave");
	await submit();
	await closed();
	same([task("t8").labels.includes("wave"), task("t2").labels.includes("wave")], [true, true]);
	await page.waitForSelector("#bulk", { state: "hidden" });
});

await test("agents and charts", async () => {
	await page.click('#views [data-view="agents"]');
	const codex = page.locator('#agents tr:has-text("codex@build2")');
	await codex.locator("td.num:text-is('1')").waitFor();
	await page.click('#views [data-view="charts"]');
	await page.waitForSelector(`#charts svg .fill:not([height="0"])`);
	same(await page.locator("#charts figure").count(), 4);
	await page.click('#views [data-view=""]');
	await card(page, "t1").waitFor();
});

await test("hostile texts execute nothing and break nothing", async () => {
	const evil = [
		"<script>alert(1)</script>",
		'<img src=x onerror="alert(2)">',
		"javascript:alert(3)",
		"\u202egnp.exe",
		"'\"><svg onload=alert(4)>",
		"${alert(5)}",
		"A".repeat(300),
	];
	const md = [
		"[x](javascript:alert(6))",
		"[y](data:text/html,<script>alert(7)</script>)",
		"<iframe src=//evil.example></iframe>",
		"![i](https://evil.example/x.png)",
		"`".repeat(5000),
		"*".repeat(5000),
		"[".repeat(5000),
		"- ".repeat(2000),
		"> ".repeat(2000),
		"#".repeat(3000),
		"https://" + "a".repeat(5000),
		"<style>*{display:none}</style>",
		"\u202e\u2066 right to left",
	].join("\n\n");
	const ids = evil.map(
		title => JSON.parse(pawl("create", "--json", "--title", title, "--description", md, "--label", "<b>x</b>")).task.id,
	);
	const big = JSON.parse(feed("x <b>y</b> ".repeat(20000), "create", "Huge", "--description", "-", "--json")).task.id;
	for (const id of [...ids, big]) {
		await card(page, id).waitFor();
		pawl("comment", id, "<script>alert(8)</script> [z](javascript:alert(9))");
		await detail(id);
		await page.waitForSelector("#detail .comments");
	}
	same(
		await page
			.locator(
				"#main script, #detail script, #main iframe, #detail iframe, #detail img, #detail style, #main img, a[href^=javascript], a[href^=data]",
			)
			.count(),
		0,
	);
	ok((await card(page, ids[0]).innerText()).includes("<script>alert(1)</script>"), "the text is shown as it is");
	ok((await card(page, ids[3]).innerText()).includes("\\u{202e}"), "a change of direction is spelled out");
	ok((await page.innerText("#detail")).includes("are shown"), "a huge text says what it hides");
	same(
		await page.evaluate(() => {
			const w = document.getElementById("detail");
			return w.scrollWidth <= w.clientWidth + 1;
		}),
		true,
		"no text is wider than the page:",
	);
	for (const id of [...ids, big]) pawl("remove", id);
	await page.keyboard.press("Escape");
});

for (const colorScheme of ["light", "dark"])
	await test(`axe-core finds nothing, ${colorScheme}`, async () => {
		await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
		const found = [],
			colors = colorScheme === "dark" && !process.env.WEB_FULL;
		for (const where of ["", "task=t7", "view=agents", "view=charts"]) {
			await page.evaluate(w => {
				location.hash = w;
			}, where);
			await page.waitForSelector(
				{
					"": "#columns",
					"task=t7": "#detail .graph",
					"view=agents": "#agents section",
					"view=charts": "#charts section",
				}[where],
			);
			found.push(...(await violations(page, colors)));
		}
		if (colorScheme === "light") {
			await page.setViewportSize({ width: 390, height: 844 }); // a phone shows another form of the table
			await page.click('#views [data-view="agents"]');
			found.push(...(await violations(page, colors)));
			await page.setViewportSize({ width: 1440, height: 900 });
		}
		await page.evaluate(() => {
			location.hash = "";
		});
		await card(page, "t1").waitFor(); // a hidden card takes no focus
		await card(page, "t1").focus();
		await page.keyboard.press("e");
		await page.waitForSelector("dialog[open]");
		found.push(...(await violations(page, colors)));
		await page.keyboard.press("Escape");
		same(found, []);
	});

await test("the page says reconnecting while the server is away, and catches up", async () => {
	await stop();
	await page.waitForSelector("#link[data-live=no]");
	same(await page.textContent("#link"), "reconnecting");
	await page.waitForSelector('.notice:has-text("as it was at")');
	ok(await page.locator("#tools button.main").isDisabled(), "no action without a connection");
	pawl("create", "Made while it was away", "--id", "away");
	// another user listens on its port
	const heard = [];
	const impostor = http.createServer((request, answer) => {
		heard.push(request);
		answer.setHeader("Pawl-Address", `127.0.0.1:${port}`);
		answer.end(request.url.startsWith("/v1/proof") ? "A".repeat(43) : "{}");
	});
	await new Promise(done => impostor.listen(port, "127.0.0.1", done));
	await until(() => heard.filter(r => r.url.startsWith("/v1/proof")).length > 1, "the page asks for a proof");
	ok(heard.every(r => !r.headers.authorization && !r.url.includes("pawl_")), "it sends no token without one");
	impostor.closeAllConnections();
	await new Promise(done => impostor.close(done));
	await serve(port);
	await live(page);
	await inColumn(page, "Ready", "away");
	same(await page.locator(".notice").count(), 0);
});

// Another user listens on the server's port at another address of this machine, and passes everything on.
async function relay(host) {
	const sockets = new Set(),
		own = { heard: "" };
	const listener = net.createServer(client => {
		const behind = net.connect(port, "127.0.0.1");
		for (const s of [client, behind]) {
			sockets.add(s);
			s.on("error", () => {});
		}
		client.on("data", d => {
			own.heard += d;
		});
		client.pipe(behind).pipe(client);
	});
	await new Promise((done, failed) => listener.once("error", failed).listen(port, host, done));
	own.close = () => {
		for (const s of sockets) s.destroy();
		return new Promise(done => listener.close(done));
	};
	return own;
}

await test("the page gives its token to no relay at another address", async () => {
	const between = await relay("127.0.0.2"),
		fooled = await open(`http://127.0.0.2:${port}/#token=${admin}`);
	await fooled.waitForSelector("dialog[open] .problem, #link[data-live=yes]");
	ok(between.heard.includes("GET /v1/proof"), "the page asks for a proof");
	ok(!/authorization:/i.test(between.heard) && !between.heard.includes(admin), "the relay gets no token");
	ok((await fooled.textContent("dialog .problem")).includes(`Open ${url}/ instead`), "the page says what to open");
	await fooled.context().close();
	await between.close();
});

await test("a page at localhost continues at the server's address", async () => {
	const between = await relay("::1").catch(() => null); // this machine may have no IPv6
	for (const name of ["localhost", "board.localhost"]) {
		const named = await open(`http://${name}:${port}/#token=${admin}&task=t7`);
		await named.waitForURL(`${url}/#task=t7`);
		await live(named);
		await named.waitForSelector('#detail .head .id:text-is("t7")');
		await named.context().close();
	}
	ok(!/authorization:/i.test(between?.heard) && !between?.heard.includes(admin), "the relay gets no token");
	await between?.close();
});

await test("a hidden page closes its stream, and is not live before it has caught up", async () => {
	const hide = hidden =>
		page.evaluate(h => {
			Object.defineProperty(document, "hidden", { configurable: true, get: () => h });
			document.dispatchEvent(new Event("visibilitychange"));
		}, hidden);
	const streams = async () => {
		const r = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${admin}` } });
		return /^pawl_streams(?:\{[^}]*\})? (\d+)/m.exec(await r.text())[1];
	};
	await hide(true);
	await page.waitForSelector("#link[data-live=no]");
	await until(async () => (await streams()) === "0", "the stream is closed");
	pawl("create", "Made while it was hidden", "--id", "hidden");
	await hide(false);
	await live(page);
	await inColumn(page, "Ready", "hidden");
});

const opens = async () => {
	const opened = await boardWeb();
	ok(opened.startsWith("file:///") && !opened.includes("token"), "the command line has no token");
	const once = /#token=(\w+[^"]*)/.exec(fs.readFileSync(new URL(opened), "utf8"))[1];
	const other = await open(opened);
	await other.waitForURL(/^http:/);
	await live(other);
	await card(other, "t1").waitFor();
	ok(once !== (await other.evaluate(() => sessionStorage.getItem("pawl.token"))), "the page has another token");
	await other.reload();
	await live(other);
	const { origin } = new URL(other.url());
	await other.goto("about:blank");
	await other.goto(`${origin}/#token=${once}`); // that token is used up
	await other.waitForSelector("dialog[open] #token");
	await other.context().close();
};
await test("board --web opens the browser with a token that is good once", opens, noTerminal);

await test("board --export writes a page that needs no server", async () => {
	pawl("create", "</script><script>alert(10)</script><!--", "--id", "evil", "--description", "<!-- <script> -->");
	pawl("board", "--export", "saved.html");
	pawl("board", "--export", "saved.html");
	const calls = [],
		saved = await open("about:blank");
	saved.on("request", r => /^(file|data):/.test(r.url()) || calls.push(r.url()));
	await saved.goto(`file://${dir}/saved.html`);
	await card(saved, "t1").waitFor();
	ok((await card(saved, "evil").innerText()).includes("</script><script>alert(10)</script>"), "the text is shown as it is");
	same(await saved.textContent("#link"), "snapshot");
	same(await saved.locator("button[data-act=do], .pick, .card[draggable]").count(), 0);
	await card(saved, "t7").click();
	await saved.waitForSelector("#detail .md strong");
	await saved.fill("#q", "guide");
	await saved.waitForFunction(() => document.querySelectorAll(".card").length <= 1);
	same(calls, []);
	same(await violations(saved), []);
	await saved.context().close();
	pawl("remove", "evil");
});

await test("a restored queue is read again", async () => {
	pawl("backup", "one.pawl");
	pawl("create", "Made after the backup", "--id", "gone");
	await inColumn(page, "Ready", "gone");
	pawl("restore", "one.pawl", "--force");
	await card(page, "gone").waitFor({ state: "detached" });
	await live(page);
	pawl("create", "After the restore", "--id", "after");
	await inColumn(page, "Ready", "after");
});

await test("a cursor that the log does not know starts again (reset)", async () => {
	await stop();
	pawlOn("sqlite:other.db", "init");
	pawlOn("sqlite:other.db", "create", "In another queue", "--id", "elsewhere");
	await serve(port, "--store", "sqlite:other.db", "--auth", "none");
	await inColumn(page, "Ready", "elsewhere");
	same(await page.locator(".card").count(), 1);
	await stop();
	await serve(port);
	await inColumn(page, "Ready", "after");
});
await finish();
