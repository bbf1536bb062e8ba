// The state of the board: the answers of the server, and the facts that follow from them. This module does not touch the page.

export const STATUSES = ["Backlog", "Ready", "In Progress", "Blocked", "Needs Help", "Review", "Failed", "Done", "Canceled"];
export const CLASSES = ["Expedite", "Fixed Date", "Standard", "Intangible"];

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
	saved: "", // when the page was saved, if it is a saved file
	version: 0, // grows with each change of the tasks
};

// --- listeners to changes -----------------------------------------------------------------------------------------

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

// --- tasks ------------------------------------------------------------------------------------------------------

export function put(t) {
	// The server says how long the lease still lasts, so the clock of this machine need not be right.
	t.until = t.lock && t.lock.expires_in !== undefined ? Date.now() + t.lock.expires_in * 1000 : 0;
	state.tasks.set(t.id, t);
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

export function waitsFor(t) {
	if (t.ended) return [];
	const list = t.depends.filter(id => state.tasks.get(id)?.status !== "Done");
	return list.concat(
		subtasks(t.id)
			.filter(s => s.status !== "Done" && s.status !== "Canceled")
			.map(s => s.id),
	);
}

// A date without a time is over at the end of the day.
export function overdue(t) {
	if (!t.due || t.ended) return false;
	const end = t.due.length === 10 ? new Date(t.due + "T23:59:59").getTime() : Date.parse(t.due);
	return end < Date.now();
}

// Is there so little left of the lease that the holder should have renewed it? Holders renew at half of it or earlier.
const expiring = t =>
	t.status === "In Progress" &&
	t.held &&
	!t.lock.manual &&
	!!t.until &&
	t.until - Date.now() < (t.lock.ttl || 0) * 200;

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0); // without a locale: 10,000 tasks are sorted for each change
const inOrder = (a, b) => byText(a.order, b.order); // the server's text sorts as `next` does
const newestFirst = (a, b) => byText(b.updated_at, a.updated_at) || inOrder(a, b);

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

function matches(t, f) {
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
		else if (t.lock?.abandoned) out.push([4, t, "Abandoned", `the lease of ${t.lock.holder} expired`, "ready"]);
		else if (expiring(t)) out.push([6, t, "Lease expires", `held by ${t.lock.holder}`, "lock_break"]);
		else if (overdue(t)) out.push([5, t, "Overdue", `due ${t.due}`, "edit"]);
	}
	return out
		.sort((a, b) => a[0] - b[0] || inOrder(a[1], b[1]))
		.map(([, task, kind, why, action]) => ({ task, kind, why: why || "", action }));
}
