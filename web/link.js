// The connection to the server: calls, the stream of events, and one stream for all pages of a browser.

import { state, changed, address, put } from "./model.js";

const SILENCE_MS = 25000; // the server sends a line every 15 s
const RENEW_MS = 10000; // a heartbeat makes no event, so leases are read again

// --- the token --------------------------------------------------------------------------------------------------

function takeToken() {
	const p = address(),
		given = p.get("token");
	if (given) {
		sessionStorage.setItem("pawl.token", given);
		p.delete("token"); // it must not stay where people copy addresses from
		history.replaceState(null, "", location.pathname + (p.size ? "#" + p : ""));
	}
	state.token = given || state.token || sessionStorage.getItem("pawl.token") || "";
	state.queue = address().get("queue") || "";
}

export function useToken(token) {
	sessionStorage.setItem("pawl.token", token);
	state.token = token;
	restart();
}

// --- calls ------------------------------------------------------------------------------------------------------

export class Refusal extends Error {
	constructor(status, body) {
		super(body?.error?.message || (status ? `the server answered ${status}` : "there is no connection to the server"));
		this.status = status;
		this.code = body?.error?.code || "";
		this.hint = body?.error?.hint || "";
		this.task = body?.task || null;
	}
}

export function requestId() {
	return Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, "0")).join("");
}

let wantsToken = true; // a server with --auth none wants none

function headers(more) {
	return state.token && wantsToken ? { Authorization: "Bearer " + state.token, ...more } : { ...more };
}
function query() {
	return state.queue ? "?queue=" + encodeURIComponent(state.queue) : "";
}
const pause = ms => new Promise(done => setTimeout(done, ms));

async function send(path, options) {
	for (let turn = 0; ; turn++) {
		let r,
			body = null;
		try {
			r = await fetch(path, { cache: "no-store", redirect: "error", ...options });
			body = await r.json();
		} catch (e) {
			throw new Refusal(r ? r.status : 0, null);
		}
		if (r.status === 429 && turn < 5) {
			await pause(1000 * (Number(r.headers.get("Retry-After")) || 1));
			continue;
		}
		if (!r.ok) throw new Refusal(r.status, body);
		return body;
	}
}

export function call(name, args = {}) {
	const who = state.me && !state.me.agent && state.me.agents ? { agent: state.me.agents.replaceAll("*", "board") } : {};
	return send(`/v1/${name}${query()}`, {
		method: "POST",
		headers: headers({ "Content-Type": "application/json" }),
		body: JSON.stringify({ ...who, ...args }),
	});
}

// --- the proof of the server --------------------------------------------------------------------------------------
// Another user can listen on the port of a server that is down. So a server must prove that it knows the token, for the
// address of this page (http/http_proof.h).

const bytes = text => new TextEncoder().encode(text);
const hex = buffer => Array.from(new Uint8Array(buffer), b => b.toString(16).padStart(2, "0")).join("");
const base64url = buffer =>
	btoa(String.fromCharCode(...new Uint8Array(buffer)))
		.replaceAll("+", "-")
		.replaceAll("/", "_")
		.replaceAll("=", "");

// as in a proof: no brackets, always a port
const ownAddress = () => `${location.hostname.replace(/^\[|\]$/g, "")}:${location.port || 80}`;

// localhost may lead to another address: opens the server's own
async function leaveName(server) {
	const [, host, port] = /^(.*):(\d+)$/.exec(server),
		url = `http://${host.includes(":") ? `[${host}]` : host}:${port}/`;
	if (/(^|\.)localhost:\d+$/.test(ownAddress()) && /^(127\.[\d.]+|::1)$/.test(host) && ownAddress().endsWith(":" + port)) {
		const p = address();
		p.set("token", state.token);
		sessionStorage.removeItem("pawl.token");
		location.replace(`${url}#${p}`);
		await new Promise(() => {});
	}
	const message = `The token was not sent. Open ${url} instead, or use https.`;
	throw new Refusal(403, { error: { message } });
}

async function proveServer() {
	if (!state.token || location.protocol === "https:" || !crypto.subtle) return;
	const hash = hex(await crypto.subtle.digest("SHA-256", bytes(state.token))),
		nonce = requestId(),
		r = await fetch(`/v1/proof?token=${hash.slice(0, 16)}&nonce=${nonce}`, { cache: "no-store", redirect: "error" });
	if (r.status === 401) throw new Refusal(401, await r.json());
	wantsToken = r.status !== 204;
	if (!wantsToken) return;
	const server = r.headers.get("Pawl-Address"),
		key = await crypto.subtle.importKey("raw", bytes(hash), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]),
		proof = await crypto.subtle.sign("HMAC", key, bytes(`pawl proof\n${nonce}\n${server}\n`));
	if ((await r.text()) !== base64url(proof)) throw new Refusal(0, { error: { message: "the server did not prove that it knows the token" } });
	if (server !== ownAddress()) await leaveName(server);
}

// --- news -------------------------------------------------------------------------------------------------------

let pages = null; // the tasks of a snapshot that is not complete

function apply(kind, data) {
	if (kind === "snapshot") {
		// a large queue comes in pages
		if (!data.page) pages = [];
		pages?.push(...data.tasks);
		if (!pages || data.more) return;
		state.tasks = new Map();
		pages.forEach(put);
		pages = null;
		state.loaded = true;
	} else if (kind === "event" && state.loaded) {
		const { event, task } = data;
		if (task) put(task);
		else if (event.task && event.event === "removed") state.tasks.delete(event.task);
		if (!event.task || event.task.startsWith("@")) readRest();
		changed("event", data);
	}
	state.version++;
	changed("tasks");
}

// --- the connection ---------------------------------------------------------------------------------------------

let cursor = "",
	stop = null,
	stream = null,
	channel = null,
	leads = false,
	heardAt = 0;

function setLive(live) {
	if (live) state.seenAt = Date.now();
	if (live !== state.live) {
		state.live = live;
		changed("live");
	}
	if (leads) channel?.postMessage({ live });
}

function receive(kind, id, data) {
	if (id) cursor = id;
	if (kind === "reset") return;
	apply(kind, data);
	if (state.loaded) setLive(true);
	if (leads) channel?.postMessage({ kind, id, data });
	if (kind === "event" && !data.event.task) {
		// the whole queue was replaced, so read it again
		cursor = "";
		stream?.abort();
	}
}

function readMessage(text) {
	let kind = "",
		id = "",
		data = "";
	for (const line of text.split("\n")) {
		if (line.startsWith("event: ")) kind = line.slice(7);
		else if (line.startsWith("id: ")) id = line.slice(4);
		else if (line.startsWith("data: ")) data += line.slice(6);
	}
	if (kind) receive(kind, id, JSON.parse(data));
}

// A page of a snapshot is one long line: only new pieces are searched for its end.
async function readStream(body, heard) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let parts = [],
		last = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		heard();
		parts.push(value);
		if ((last + value).includes("\n\n")) {
			const messages = parts.join("").split("\n\n");
			parts = [messages.pop()];
			messages.forEach(readMessage);
		}
		last = value.slice(-1);
	}
}

async function follow(signal) {
	const silence = (stream = new AbortController());
	let timer = 0;
	const heard = () => {
		clearTimeout(timer);
		timer = setTimeout(() => silence.abort(), SILENCE_MS);
		if (state.loaded) setLive(true);
	};
	try {
		const r = await fetch("/v1/events" + query(), {
			cache: "no-store",
			redirect: "error",
			headers: headers(cursor ? { "Last-Event-ID": cursor } : {}),
			signal: AbortSignal.any([signal, silence.signal]),
		});
		if (r.status === 401 || r.status === 403) throw new Refusal(r.status, await r.json());
		if (r.ok) {
			setTimeout(readRest); // the roles and the pause may have changed, too
			await readStream(r.body, heard);
		}
	} finally {
		clearTimeout(timer);
	}
}

// Follows the events until the signal; tries again after a failure.
async function keepFollowing(signal) {
	for (let wait = 250; !signal.aborted; wait = Math.min(wait * 2, 5000)) {
		const began = Date.now();
		try {
			await introduce(); // another server may answer now, with other roles
			await follow(signal);
		} catch (e) {
			if (e instanceof Refusal && (e.status === 401 || e.status === 403)) return deny(e);
		}
		setLive(false);
		if (Date.now() - began > 5000) wait = 250;
		if (!signal.aborted) await pause(wait);
	}
}

function deny(e) {
	setLive(false);
	state.problem = e.message;
	state.me = null;
	stop?.abort();
	changed("denied");
}

async function introduce() {
	const before = state.me?.role;
	await proveServer();
	state.me = await send("/whoami", { headers: headers() });
	if (state.me.token) {
		// the one in the address was good for one login
		state.token = state.me.token;
		sessionStorage.setItem("pawl.token", state.token);
	}
	if (state.me.queue) state.queue = state.me.queue;
	if (before && before !== state.me.role) cursor = ""; // the tasks say what the old role could do
	state.queues = (await call("queues").catch(() => ({ queues: [] }))).queues;
	state.problem = "";
	changed("me");
}

async function readRest() {
	try {
		const [s, e] = await Promise.all([call("status"), call("emergency_status")]);
		Object.assign(state, {
			paused: s.paused || null,
			agents: s.agents || [],
			emergency: e.emergency.on ? e.emergency : null,
		});
		changed("rest");
	} catch (e) {
		/* the stream tells about the connection */
	}
}

async function renewLeases() {
	if (!state.live || document.hidden) return;
	try {
		const { tasks } = await call("list", { status: ["in-progress", "blocked", "needs-help"], limit: 0 });
		// a manual lock may be on a task of any status
		const read = new Set(tasks.map(t => t.id));
		for (const t of state.tasks.values())
			if (t.lock?.live && !read.has(t.id)) tasks.push((await call("show", { id: t.id })).task);
		for (const t of tasks) if ((state.tasks.get(t.id)?.version ?? 0) <= t.version) put(t);
		state.version++;
		changed("tasks");
		await readRest();
	} catch (e) {
		/* the next refresh tries again */
	}
}

// One page follows the events for all pages with this token and queue: a browser opens six connections to a server. Every
// page can read a lock's name, so it has a hash of the token, but not that of the proof.
async function share(signal) {
	const name = "pawl " + hex(await crypto.subtle.digest("SHA-256", bytes(`pawl pages\n${state.queue}\n${state.token}`)));
	if (signal.aborted) return;
	channel = new BroadcastChannel(name);
	channel.onmessage = ({ data: m }) => {
		if (leads) {
			if (m.want && state.loaded) channel.postMessage({ all: [...state.tasks.values()], id: cursor, live: state.live });
			return;
		}
		heardAt = Date.now();
		if (m.all) {
			cursor = m.id;
			state.tasks = new Map(m.all.map(t => [t.id, t]));
			state.loaded = true;
			state.version++;
			changed("tasks");
		} else if (m.kind && (m.kind === "snapshot" || state.loaded)) {
			receive(m.kind, m.id, m.data);
		}
		if (m.live !== undefined && state.loaded) setLive(m.live);
	};
	channel.postMessage({ want: true });
	const beat = setInterval(() => {
		if (leads) channel.postMessage({ live: state.live });
		else if (state.live && Date.now() - heardAt > 12000) setLive(false);
	}, 4000);
	signal.addEventListener("abort", () => {
		clearInterval(beat);
		channel.close();
		channel = null;
		leads = false;
	});
	navigator.locks
		.request(name, { signal }, async () => {
			leads = true;
			await keepFollowing(signal);
			leads = false;
		})
		.catch(() => {});
}

async function connect() {
	stop?.abort();
	const own = (stop = new AbortController());
	if (!navigator.locks || !window.BroadcastChannel) return keepFollowing(own.signal);
	while (!state.me && !own.signal.aborted) {
		try {
			await introduce();
		} catch (e) {
			if (e.status === 401 || e.status === 403) return deny(e);
			setLive(false);
			await pause(1000);
		}
	}
	if (!own.signal.aborted) {
		await share(own.signal);
		readRest();
	}
}

function restart() {
	takeToken();
	cursor = "";
	Object.assign(state, { me: null, loaded: false, live: false, tasks: new Map(), problem: "" });
	state.version++;
	changed("tasks");
	changed("live");
	connect();
}

// a page in a file has the tasks inside
function showSaved({ at, tasks }) {
	state.saved = at;
	for (const t of tasks) put(t);
	state.loaded = true;
	state.version++;
	changed("tasks");
	changed("address");
}

export function start() {
	const saved = document.getElementById("snapshot");
	if (saved) {
		addEventListener("hashchange", () => changed("address"));
		return showSaved(JSON.parse(saved.textContent));
	}
	takeToken();
	// a hidden page needs no connection
	document.addEventListener("visibilitychange", () => {
		if (state.problem) return;
		if (document.hidden) {
			stop?.abort();
			setLive(false);
		} else connect();
	});
	addEventListener("hashchange", () => {
		const before = state.queue,
			given = address().get("token");
		takeToken();
		if (given || (state.queue !== before && !state.me?.queue)) restart();
		else changed("address");
	});
	addEventListener("popstate", () => changed("address"));
	setInterval(renewLeases, RENEW_MS);
	connect();
}
