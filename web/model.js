// The state of the board: what the server said, and what follows from it. This module does not touch the page.

export const STATUSES = ["Backlog", "Ready", "In Progress", "Blocked", "Needs Help", "Review", "Done", "Failed", "Canceled"];
export const CLASSES = ["Expedite", "Fixed Date", "Standard", "Intangible"];
const ROLES = ["", "reader", "agent", "reviewer", "admin"];
const SILENCE_MS = 25000; // the server sends a line every 15 s
const RENEW_MS = 10000; // a heartbeat makes no event, so leases are read again

export const state = {
	token: "",
	queue: "",
	me: null,
	queues: [],
	tasks: new Map(),
	loaded: false,
	live: false,
	seenAt: 0,
	problem: "",
	paused: null,
	emergency: null,
	agents: [],
	saved: "", // the time of a page that is in a file
	version: 0, // grows with each change of the tasks
};

// --- who wants to know -----------------------------------------------------------------------------------------

const listeners = new Set();
export function listen(fn) {
	listeners.add(fn);
}
export function changed(what, data) {
	for (const fn of listeners) fn(what, data);
}

// --- the fragment of the address: filters, the open task, and once the token --------------------------------------

export function address() {
	return new URLSearchParams(location.hash.slice(1));
}

export function setAddress(changes, push) {
	const p = address();
	for (const [k, v] of Object.entries(changes))
		if (v) p.set(k, v);
		else p.delete(k);
	history[push ? "pushState" : "replaceState"](null, "", location.pathname + (p.size ? "#" + p : ""));
	changed("address");
}

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

function headers(more) {
	return state.token ? { Authorization: "Bearer " + state.token, ...more } : { ...more };
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

// --- tasks ------------------------------------------------------------------------------------------------------

function put(t) {
	// The server says how long the lease still lasts, so the clock of this machine need not be right.
	t.until = t.lock && t.lock.expires_in !== undefined ? Date.now() + t.lock.expires_in * 1000 : 0;
	state.tasks.set(t.id, t);
}

function apply(kind, data) {
	if (kind === "snapshot") {
		state.tasks = new Map();
		for (const t of data.tasks) put(t);
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

let familyOf = -1,
	family = new Map();
export function subtasks(id) {
	if (familyOf !== state.version) {
		family = new Map();
		for (const t of state.tasks.values())
			if (t.parent) family.has(t.parent) ? family.get(t.parent).push(t) : family.set(t.parent, [t]);
		familyOf = state.version;
	}
	return family.get(id) || [];
}

export const ended = t => t.status === "Done" || t.status === "Failed" || t.status === "Canceled";
export const held = t => !!t.lock && (t.lock.manual || !t.until || t.until > Date.now());
export const expired = t => t.status === "In Progress" && !!t.lock && !held(t);

export function waitsFor(t) {
	if (ended(t)) return [];
	const list = t.depends.filter(id => state.tasks.get(id)?.status !== "Done");
	return list.concat(
		subtasks(t.id)
			.filter(s => s.status !== "Done" && s.status !== "Canceled")
			.map(s => s.id),
	);
}

// A date without a time is over at the end of the day.
export function overdue(t) {
	if (!t.due || ended(t)) return false;
	const end = t.due.length === 10 ? new Date(t.due + "T23:59:59").getTime() : Date.parse(t.due);
	return end < Date.now();
}

// Is there so little left of the lease that the holder should have renewed it?
export const expiring = t =>
	t.status === "In Progress" &&
	held(t) &&
	!t.lock.manual &&
	!!t.until &&
	t.until - Date.now() < Math.max(30000, (t.lock.ttl || 0) * 200);

const number = id => Number(/\d+$/.exec(id)?.[0] ?? 0);
function inOrder(a, b) {
	return (
		CLASSES.indexOf(a.class) - CLASSES.indexOf(b.class) ||
		b.priority - a.priority ||
		(a.due || "9").localeCompare(b.due || "9") ||
		(a.updated_at < b.updated_at ? -1 : a.updated_at > b.updated_at ? 1 : 0) ||
		number(a.id) - number(b.id) ||
		(a.id < b.id ? -1 : 1)
	);
}
const newestFirst = (a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : inOrder(a, b));

const texts = new WeakMap();
function textOf(t) {
	if (!texts.has(t))
		texts.set(
			t,
			[
				t.id,
				t.title,
				t.description,
				t.acceptance,
				t.labels.join(" "),
				t.type,
				t.assignee,
				t.lock?.holder,
				t.blocker_reason,
				t.summary,
			]
				.join("\n")
				.toLowerCase(),
		);
	return texts.get(t);
}

export function filters() {
	const p = address();
	return {
		q: p.get("q") || "",
		label: p.get("label") || "",
		class: p.get("class") || "",
		holder: p.get("holder") || "",
		archived: p.get("archived") || "",
	};
}

export function matches(t, f) {
	return (
		(f.archived || !t.archived_at) &&
		(!f.label || t.labels.includes(f.label)) &&
		(!f.class || t.class === f.class) &&
		(!f.holder || (t.lock?.holder || t.assignee) === f.holder) &&
		f.q
			.toLowerCase()
			.split(/\s+/)
			.every(word => !word || textOf(t).includes(word))
	);
}

export function columns(f) {
	const out = new Map(STATUSES.map(s => [s, []]));
	for (const t of state.tasks.values()) if (matches(t, f)) out.get(t.status)?.push(t);
	for (const [status, list] of out) list.sort(status === "Done" || status === "Canceled" ? newestFirst : inOrder);
	return out;
}

// Tasks that only a person can help, each with the one action that does.
export function attention(f) {
	const out = [];
	for (const t of state.tasks.values()) {
		if (t.archived_at || !matches(t, f)) continue;
		if (t.status === "Blocked") out.push([0, t, "Blocked", t.unblock_action || t.blocker_reason, "unblock"]);
		else if (t.status === "Needs Help") out.push([1, t, "Needs Help", t.blocker_reason, "unblock"]);
		else if (t.status === "Review") out.push([2, t, "Review", t.summary, "approve"]);
		else if (t.status === "Failed") out.push([3, t, "Failed", t.blocker_reason, "retry"]);
		else if (expired(t)) out.push([4, t, "Abandoned", `the lease of ${t.lock.holder} expired`, "ready"]);
		else if (expiring(t)) out.push([6, t, "Lease expires", `held by ${t.lock.holder}`, "lock_break"]);
		else if (overdue(t)) out.push([5, t, "Overdue", `due ${t.due}`, "edit"]);
	}
	return out
		.sort((a, b) => a[0] - b[0] || inOrder(a[1], b[1]))
		.map(([, task, kind, why, action]) => ({ task, kind, why: why || "", action }));
}

// --- what the caller may do -----------------------------------------------------------------------------------------

export const may = role => !!state.me && ROLES.indexOf(state.me.role) >= ROLES.indexOf(role);

// name: { label, role, key, from: statuses (none: any), when, to: the status that it leads to }
export const ACTIONS = {
	approve: { label: "Approve", role: "reviewer", key: "a", from: ["Review"], to: "Done" },
	rework: { label: "Rework", role: "reviewer", key: "r", from: ["Review"], to: "In Progress" },
	unblock: { label: "Unblock", role: "reviewer", key: "u", from: ["Blocked", "Needs Help"], to: "In Progress" },
	retry: { label: "Retry", role: "reviewer", from: ["Failed"], to: "Ready" },
	reopen: { label: "Reopen", role: "reviewer", from: ["Done", "Canceled"], to: "Ready" },
	ready: {
		label: "Make Ready",
		role: "reviewer",
		from: ["Backlog", "In Progress", "Blocked", "Needs Help"],
		to: "Ready",
		when: t => t.status !== "In Progress" || !held(t),
	},
	backlog: { label: "Put into Backlog", role: "reviewer", from: ["Ready"], to: "Backlog" },
	edit: { label: "Edit", role: "reviewer", key: "e" },
	comment: { label: "Comment", role: "agent", key: "c" },
	cancel: {
		label: "Cancel task",
		role: "reviewer",
		key: "x",
		to: "Canceled",
		from: STATUSES.filter(s => s !== "Done" && s !== "Canceled"),
		when: t => !held(t) || may("admin"),
	},
	archive: { label: "Archive", role: "reviewer", from: ["Done", "Failed", "Canceled"], when: t => !t.archived_at },
	lock_break: { label: "Break lock", role: "admin", key: "b", when: t => !!t.lock },
};

export function allowed(name, t) {
	const a = ACTIONS[name];
	return may(a.role) && (!a.from || a.from.includes(t.status)) && (!a.when || a.when(t));
}
export const actionsFor = t => Object.keys(ACTIONS).filter(name => allowed(name, t));
// The action that moves the task to the column; undefined: there is none.
export const moveTo = (t, status) => actionsFor(t).find(name => ACTIONS[name].to === status);

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
	setLive(true);
	if (leads) channel?.postMessage({ kind, id, data });
	if (kind === "event" && !data.event.task) {
		// the whole queue was replaced: read it anew
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

// A snapshot of a large queue is one long line in many pieces: only new pieces are searched for its end.
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

// Follows the events until the signal; comes back after each failure, later each time.
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
	state.me = await send("/whoami", { headers: headers() });
	if (state.me.token) {
		// the one in the address was good for one login
		state.token = state.me.token;
		sessionStorage.setItem("pawl.token", state.token);
	}
	if (state.me.queue) state.queue = state.me.queue;
	state.queues = (await call("queues").catch(() => ({ queues: [] }))).queues;
	state.problem = "";
	changed("me");
}

export async function readRest() {
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
		for (const t of tasks) if ((state.tasks.get(t.id)?.version ?? 0) <= t.version) put(t);
		state.version++;
		changed("tasks");
		await readRest();
	} catch (e) {
		/* the next turn tries again */
	}
}

// A browser opens six connections to a server, so one page follows the events for all pages with this token and queue.
function share(signal) {
	const name = `pawl ${state.queue} ${state.token}`;
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
		share(own.signal);
		readRest();
	}
}

export function restart() {
	takeToken();
	cursor = "";
	Object.assign(state, { me: null, loaded: false, live: false, tasks: new Map(), problem: "" });
	state.version++;
	changed("tasks");
	changed("live");
	connect();
}

// A page in a file has the tasks inside: it shows them as they were, and there is nobody to call.
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
	// A hidden page needs no connection; it must not look live before it has caught up.
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
