// A queue, a server and a browser for the tests of the board. Prints TAP.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const require = createRequire(process.env.WEB_CLIENTS + "/");
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const LONG = Number(process.env.WEB_LONG || 60000); // a limit for a loaded machine, not an expectation

export const dir = fs.mkdtempSync(path.join(process.env.TMPDIR || os.tmpdir(), "pawl-web-"));
const env = {
	...process.env,
	HOME: dir,
	XDG_STATE_HOME: dir + "/state",
	XDG_CONFIG_HOME: dir + "/config",
	PAWL_AGENT: "tester",
	NO_COLOR: "1",
};
delete env.PAWL_STORE;

function run(store, args) {
	const more = store ? { PAWL_STORE: store } : {};
	return execFileSync(process.env.PAWL, args, {
		cwd: dir,
		env: { ...env, ...more },
		encoding: "utf8",
		stdio: ["pipe", "pipe", "pipe"],
	}).trim();
}
export const pawl = (...args) => run("", args);
export const pawlOn = (store, ...args) => run(store, args);
export const task = id => JSON.parse(pawl("show", id, "--json")).task;
export const feed = (text, ...args) =>
	execFileSync(process.env.PAWL, args, { cwd: dir, env, encoding: "utf8", input: text, maxBuffer: 1 << 28 });

// A queue in the store of PAWL_TEST_STORE, by itself SQLite.
export function init() {
	const store = (process.env.PAWL_TEST_STORE || "").replaceAll("{dir}", dir);
	if (store.startsWith("git:")) execFileSync("git", ["init", "-q", "--bare", store.slice(4).split(/[?#]/)[0]]);
	pawl("init", ...(store ? ["--store", store] : []));
}

let server = null;
export async function serve(port = 0, ...args) {
	const log = fs.openSync(dir + "/serve.log", "w");
	server = spawn(process.env.PAWL, ["serve", "--listen", `127.0.0.1:${port}`, "--log", "none", ...args], {
		cwd: dir,
		env,
		stdio: ["ignore", "ignore", log],
	});
	const own = server;
	for (;;) {
		const m = /^pawl: open (\S+)/m.exec(fs.readFileSync(dir + "/serve.log", "utf8"));
		if (m) return m[1];
		if (own.exitCode !== null) throw new Error("the server ended: " + fs.readFileSync(dir + "/serve.log", "utf8"));
		await new Promise(done => setTimeout(done, 20));
	}
}
export async function stop(signal = "SIGKILL") {
	if (!server || server.exitCode !== null) return;
	const ended = new Promise(done => server.once("exit", done));
	server.kill(signal);
	await ended;
	server = null;
}

// Runs `pawl board --web` on a terminal, and returns the address of the page that it gives to the browser.
let board = null;
export async function boardWeb() {
	fs.mkdirSync(dir + "/bin");
	fs.writeFileSync(dir + "/bin/xdg-open", `#!/bin/sh\necho "$1" >'${dir}/opened.new'; mv '${dir}/opened.new' '${dir}/opened'\n`, {
		mode: 0o755,
	});
	board = spawn("script", ["-qec", `exec ${process.env.PAWL} board --web`, "/dev/null"], {
		cwd: dir,
		env: { ...env, PATH: `${dir}/bin:${env.PATH}`, DISPLAY: ":9" },
		stdio: "ignore",
	});
	return until(() => fs.readFileSync(dir + "/opened", "utf8").trim(), "the browser is opened");
}

let browser = null;
export async function start() {
	const executablePath = process.env.CHROMIUM;
	browser = await chromium.launch({ executablePath, args: ["--disable-gpu", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])] });
}

export const faults = []; // violations of the policy, errors of scripts: there must be none
export async function open(url, options = {}) {
	const context = options.context || (await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options }));
	const page = await context.newPage();
	page.setDefaultTimeout(LONG);
	page.on("pageerror", e => faults.push(`error: ${e.message}`));
	page.on("dialog", d => {
		faults.push(`dialog: ${d.message()}`);
		d.dismiss();
	});
	// The texts of the browser about a violation differ from version to version, so the page reports the event itself.
	await page.addInitScript(() =>
		document.addEventListener("securitypolicyviolation", e =>
			console.error(`policy violated: ${e.effectiveDirective} ${e.blockedURI} ${e.sample}`),
		),
	);
	page.on("console", m => {
		if (m.text().startsWith("policy violated")) faults.push(m.text());
	});
	await page.goto(url);
	return page;
}
export const live = page => page.waitForSelector("#link[data-live=yes]");
export const card = (page, id) => page.locator(`.card[data-id="${id}"] .open`);
export const inColumn = (page, status, id) => page.waitForSelector(`.column[data-status="${status}"] .card[data-id="${id}"]`);

// The rules of axe-core, run by the debugger, because the page's own policy forbids scripts of others.
// colors: only the rule about contrast, for a page whose other rules were checked in another colour scheme.
export async function violations(page, colors = false) {
	// A card that is not in view is not drawn, and a transition is between two colours.
	if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(axe);
	const options = { resultTypes: ["violations"], ...(colors ? { runOnly: ["color-contrast"] } : {}) };
	const r = await page.evaluate(o => window.axe.run(document, o), options);
	return r.violations.map(
		v =>
			`${v.id}: ${v.nodes
				.slice(0, 3)
				.map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message || ""))
				.join(" | ")}`,
	);
}

// Also after a failure outside of a test.
process.on("exit", () => {
	server?.kill("SIGKILL");
	board?.kill();
	fs.rmSync(dir, { recursive: true, force: true });
});

let count = 0,
	failed = 0;
export function same(got, want, what = "") {
	if (JSON.stringify(got) !== JSON.stringify(want))
		throw new Error(`${what} got ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
}
export function ok(condition, what) {
	if (!condition) throw new Error(what);
}
export async function until(fn, what) {
	const end = Date.now() + LONG;
	for (;;) {
		let value;
		try {
			value = await fn();
		} catch (e) {
			value = false;
		}
		if (value) return value;
		if (Date.now() > end) throw new Error("waited too long: " + what);
		await new Promise(done => setTimeout(done, 25));
	}
}

// why a test with a terminal cannot run here, or ""
export const noTerminal =
	spawnSync("script", ["-qec", "true", "/dev/null"], { stdio: "ignore" }).status === 0 ? "" : "there is no pseudo-terminal here";

export async function test(name, fn, skip = "") {
	if (process.env.WEB_ONLY && !new RegExp(process.env.WEB_ONLY).test(name)) return;
	count++;
	if (skip) {
		console.log(`ok ${count} - ${name} # SKIP ${skip}`);
		return;
	}
	const began = Date.now();
	try {
		await fn();
		same(faults.splice(0), [], "faults of the page:");
		console.log(`ok ${count} - ${name} # ${Date.now() - began} ms`);
	} catch (e) {
		failed++;
		faults.length = 0;
		console.log(`not ok ${count} - ${name}`);
		for (const line of String(e.stack || e)
			.split("\n")
			.slice(0, 25))
			console.log("# " + line.slice(0, 300));
	}
}

export async function finish() {
	console.log(`1..${count}`);
	await browser?.close();
	await stop();
	process.exit(failed ? 1 : 0);
}
