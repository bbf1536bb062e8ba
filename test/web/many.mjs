// 10,000 tasks, seven pages at once, several queues. It prints how much slower a large queue is than an empty one.
import { init, pawl, feed, serve, start, open, live, card, inColumn, test, finish, same, ok } from "./kit.mjs";
import { tokenOf } from "./scene.mjs";

const many = Number(process.env.PAWL_TEST_MANY || 10000);
init();
feed(Array.from({ length: many }, (_, i) => `- Task number ${i + 1}`).join("\n"), "create", "--file", "-", "-q");
pawl("init", "--queue", "small", "--force");
pawl("create", "In the small queue", "--queue", "small");
pawl("init", "--queue", "empty", "--force");
const url = await serve(),
	admin = tokenOf("admin");
await start();

async function measure(queue) {
	const began = performance.now(),
		page = await open(`${url}/#token=${admin}&queue=${queue}`);
	await live(page);
	const first = performance.now() - began,
		paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime),
		id = "live" + queue;
	const seen = page.evaluate(
		name =>
			new Promise(done => {
				const look = () =>
					document.querySelector(`.card[data-id="${name}"]`) ? done(Date.now()) : requestAnimationFrame(look);
				look();
			}),
		id,
	);
	pawl("create", "Live", "--id", id, "--class", "expedite", "--queue", queue);
	const made = Date.parse(JSON.parse(pawl("show", id, "--json", "--queue", queue)).task.created_at);
	return { page, first, paint, update: (await seen) - made };
}

await test(`${many} tasks: the page says what it hides, and stays live`, async () => {
	const small = await measure("empty"),
		large = await measure("default");
	console.log(
		`# first paint: empty ${small.paint.toFixed(0)} ms, ${many} tasks ${large.paint.toFixed(0)} ms, ratio ${(large.paint / small.paint).toFixed(1)}\n` +
			`# page opened until live: empty ${small.first.toFixed(0)} ms, ${many} tasks ${large.first.toFixed(0)} ms, ratio ${(large.first / small.first).toFixed(1)}`,
	);
	console.log(
		`# live update: empty ${small.update} ms, ${many} tasks ${large.update} ms, ratio ${(large.update / small.update).toFixed(1)}`,
	);
	const page = large.page,
		ready = '.column[data-status="Ready"]';
	same(await page.locator(`${ready} .card`).count(), 50);
	same(await page.textContent(`${ready} .count`), (many + 1).toLocaleString("en"));
	ok(
		(await page.textContent(`${ready} .more`)).startsWith(`50 of ${(many + 1).toLocaleString("en")} are shown.`),
		"says what it hides",
	);
	await page.click(`${ready} .more button`);
	await page.waitForFunction(s => document.querySelectorAll(s).length === 100, `${ready} .card`);
	await page.fill("#q", `number ${many}`);
	await page.waitForFunction(() => document.querySelectorAll(".card").length === 1);
	await large.page.context().close();
	await small.page.context().close();
});

await test("seven pages at once share one stream, and the next one takes over", async () => {
	const first = await open(`${url}/#token=${admin}&queue=small`),
		context = first.context(),
		pages = [first];
	for (let i = 1; i < 7; i++) pages.push(await open(`${url}/#token=${admin}&queue=small`, { context }));
	for (const p of pages) {
		await live(p);
		await card(p, "t1").waitFor();
	}
	const metrics = await first.evaluate(
		async t => (await fetch("/metrics", { headers: { Authorization: "Bearer " + t } })).text(),
		admin,
	);
	same(/^pawl_streams(?:\{[^}]*\})? (\d+)/m.exec(metrics)?.[1], "1", "streams:");
	pawl("create", "For all", "--queue", "small");
	for (const p of pages) await inColumn(p, "Ready", "t2");
	await first.close();
	pawl("create", "After the first page closed", "--queue", "small");
	for (const p of pages.slice(1)) await inColumn(p, "Ready", "t3");
	await context.close();
});

await test("another queue is a choice of the page", async () => {
	const page = await open(`${url}/#token=${admin}`);
	await live(page);
	await page.selectOption("#queue", "small");
	await card(page, "t3").waitFor();
	await live(page);
	same(await page.locator(".card").count(), 3);
	same(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("queue"), "small");
	await page.context().close();
});
await finish();
