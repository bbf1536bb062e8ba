// Draws the state. Text of tasks reaches the page only as text nodes: nothing here makes HTML from strings.

import {
	state,
	STATUSES,
	CLASSES,
	ACTIONS,
	filters,
	columns,
	attention,
	subtasks,
	waitsFor,
	overdue,
	held,
	expired,
	ended,
	allowed,
	actionsFor,
	may,
	address,
} from "./model.js";

export const $ = id => document.getElementById(id);
const PAGE = 50;
const SVG = "http://www.w3.org/2000/svg";
const LONG = 100000; // characters of a text that are shown at once

// --- building blocks ------------------------------------------------------------------------------------------------

// Characters that change the direction of the text around them, or that cannot be seen, are spelled out.
export const visible = text =>
	String(text).replace(
		/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
		c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
	);

function add(node, children) {
	for (const c of children.flat(9))
		if (c !== null && c !== undefined && c !== false && c !== "") node.append(c instanceof Node ? c : visible(c));
	return node;
}

function set(node, props) {
	for (const [k, v] of Object.entries(props || {}))
		if (v !== undefined && v !== null && v !== false) node.setAttribute(k, v === true ? "" : v);
	return node;
}

export const h = (tag, props, ...children) => add(set(document.createElement(tag), props), children);
const svg = (tag, props, ...children) => add(set(document.createElementNS(SVG, tag), props), children);
const fill = (node, ...children) => {
	node.replaceChildren();
	return add(node, children);
};

export function button(label, act, props = {}) {
	const focus = `${act}:${props["data-id"] || props["data-name"] || ""}:${props["data-in"] || ""}`;
	return h("button", { type: "button", "data-act": act, "data-focus": focus, ...props }, label);
}

// Makes the children of a node those of the list: { key, sig, make }. Nodes whose signature is the same stay.
function patch(parent, items) {
	const old = new Map(Array.from(parent.children, n => [n.dataset.key, n]));
	let at = parent.firstElementChild;
	for (const { key, sig, make } of items) {
		let node = old.get(key);
		old.delete(key);
		if (!node || node.sig !== sig) {
			const fresh = make();
			fresh.dataset.key = key;
			fresh.sig = sig;
			if (node) {
				if (at === node) at = node.nextElementSibling;
				node.remove();
			}
			node = fresh;
		}
		if (at === node) at = at.nextElementSibling;
		else parent.insertBefore(node, at);
	}
	for (const node of old.values()) node.remove();
}

// Draws, and puts the focus back on the same thing, or on the card that took its place.
function keepFocus(draw) {
	const was = document.activeElement,
		key = was?.dataset?.focus,
		column = was?.closest?.(".column"),
		place = column ? [...column.querySelectorAll(".open")].indexOf(was) : -1;
	draw();
	if (!key || (document.activeElement === was && was.isConnected)) return;
	let now = document.querySelector(`[data-focus="${CSS.escape(key)}"]`);
	if (!now && place >= 0) {
		const cards = [
			...(document.querySelector(`.column[data-status="${column.dataset.status}"]`)?.querySelectorAll(".open") || []),
		];
		now = cards[Math.min(place, cards.length - 1)];
	}
	now?.focus({ preventScroll: true });
}

export function ago(text) {
	const s = Math.round((Date.now() - Date.parse(text)) / 1000);
	return s < 0 ? "in " + span(-s) : s < 5 ? "now" : span(s) + " ago";
}
export function span(s) {
	s = Math.max(0, Math.round(s));
	return s < 60
		? `${s}s`
		: s < 3600
			? `${Math.floor(s / 60)}m ${s % 60}s`
			: s < 172800
				? `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`
				: `${Math.floor(s / 86400)}d`;
}
const clock = text => h("time", { datetime: text, title: text }, new Date(text).toLocaleString());
const many = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// --- Markdown -----------------------------------------------------------------------------------------------------

const INLINE =
	/`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s()<>]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{0,2000}[^\s<>()"'`.,;:!?])/g;

function link(url, text) {
	return h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, text);
}

function inline(text) {
	const out = [];
	let at = 0;
	for (const m of text.matchAll(INLINE)) {
		out.push(text.slice(at, m.index));
		at = m.index + m[0].length;
		if (m[1]) out.push(h("code", null, m[1]));
		else if (m[2]) out.push(h("strong", null, m[2]));
		else if (m[3]) out.push(h("em", null, m[3]));
		else out.push(link(m[5] || m[6], m[4] || m[6]));
	}
	out.push(text.slice(at));
	return out;
}

const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s+(.*)$/;
function block(lines, out) {
	const first = lines[0],
		item = ITEM.exec(first);
	let m;
	if ((m = /^(#{1,6})\s+(.*)$/.exec(first))) {
		out.push(h("h" + Math.min(6, m[1].length + 3), null, inline(m[2])));
		if (lines.length > 1) block(lines.slice(1), out);
	} else if (item) {
		const list = h(/^\s*\d/.test(first) ? "ol" : "ul");
		let text = [];
		const flush = () => {
			if (text.length)
				list.append(
					h(
						"li",
						null,
						text.flatMap(l => [...inline(l), " "]),
					),
				);
		};
		for (const l of lines) {
			const next = ITEM.exec(l);
			if (next) {
				flush();
				text = [next[1].replace(/^\[ \]\s/, "☐ ").replace(/^\[[xX]\]\s/, "☑ ")];
			} else text.push(l.trim());
		}
		flush();
		out.push(list);
	} else if (first.startsWith("|")) {
		out.push(h("pre", { tabindex: 0 }, lines.join("\n")));
	} else if (first.startsWith(">")) {
		out.push(
			h(
				"blockquote",
				null,
				lines.flatMap(l => [...inline(l.replace(/^>\s?/, "")), h("br")]),
			),
		);
	} else {
		const cut = lines.findIndex((l, i) => i && (ITEM.test(l) || /^#{1,6}\s/.test(l)));
		const mine = cut > 0 ? lines.slice(0, cut) : lines;
		out.push(
			h(
				"p",
				{ dir: "auto" },
				mine.flatMap((l, i) => (i ? [h("br"), ...inline(l)] : inline(l))),
			),
		);
		if (cut > 0) block(lines.slice(cut), out);
	}
}

export function markdown(text) {
	const cut = text.length > LONG,
		out = [];
	let lines = [],
		fence = null;
	const flush = () => {
		if (lines.length) block(lines, out);
		lines = [];
	};
	for (const line of (cut ? text.slice(0, LONG) : text).replace(/\r\n?/g, "\n").split("\n")) {
		const mark = /^\s*(```|~~~)/.exec(line);
		if (fence !== null) {
			if (mark) {
				out.push(h("pre", { tabindex: 0 }, h("code", null, fence.join("\n"))));
				fence = null;
			} else fence.push(line);
		} else if (mark) {
			flush();
			fence = [];
		} else if (/^\s*([-*_]\s*){3,}$/.test(line)) {
			flush();
			out.push(h("hr"));
		} else if (line.trim()) {
			if (lines.length > 500) flush();
			lines.push(line);
		} else flush();
	}
	if (fence) out.push(h("pre", { tabindex: 0 }, h("code", null, fence.join("\n"))));
	flush();
	if (cut)
		out.push(
			h(
				"p",
				{ class: "dim" },
				`The text has ${text.length.toLocaleString("en")} characters; the first ${LONG.toLocaleString("en")} are shown.`,
			),
		);
	return h("div", { class: "md", dir: "auto" }, out);
}

// --- cards and columns -----------------------------------------------------------------------------------------------

export const selected = new Set();
const shown = new Map(); // status -> cards that are shown
const folds = JSON.parse(sessionStorage.getItem("pawl.folds") || "{}");

export function fold(status) {
	const node = document.querySelector(`.column[data-status="${status}"]`);
	folds[status] = !node.classList.contains("folded");
	sessionStorage.setItem("pawl.folds", JSON.stringify(folds));
	drawBoard();
}
export function showMore(status) {
	shown.set(status, (shown.get(status) || PAGE) + PAGE);
	drawBoard();
}

const LEFT = new WeakMap(); // bars and texts of leases -> task
function leaseBar(t) {
	const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("i"));
	LEFT.set(bar, t);
	return bar;
}
function leaseText(t) {
	const text = h("span", { class: "left" });
	LEFT.set(text, t);
	return text;
}

export function tick() {
	for (const node of document.querySelectorAll(".bar, .left")) {
		const t = LEFT.get(node);
		if (!t) continue;
		const left = (t.until - Date.now()) / 1000,
			share = Math.max(0, Math.min(1, left / (t.lock.ttl || 1)));
		if (node.className !== "left") {
			node.firstChild.style.width = state.live ? `${share * 100}%` : "0";
			node.dataset.low = share < 0.2 ? "yes" : "no";
		} else {
			const text = t.lock.manual
				? "held until it is given back"
				: !t.until
					? "no lease"
					: !state.live
						? "time left unknown"
						: left > 0
							? `${span(left)} left`
							: "lease expired";
			if (node.textContent !== text) node.textContent = text;
		}
	}
}

function cardLines(t) {
	const waits = waitsFor(t),
		late = overdue(t),
		lines = [];
	lines.push(
		h(
			"span",
			{ class: "row" },
			h("span", { class: "id" }, t.id),
			t.class !== "Standard" && h("span", { class: "chip class", "data-class": t.class }, t.class),
			t.priority !== 2 && h("span", { class: "chip" }, "p" + t.priority),
			t.due &&
				h(
					"span",
					{ class: late ? "chip late" : "chip" },
					late ? `overdue ${t.due.slice(0, 10)}` : `due ${t.due.slice(0, 10)}`,
				),
			t.archived_at && h("span", { class: "chip" }, "archived"),
		),
	);
	lines.push(h("span", { class: "title", dir: "auto" }, t.title));
	if (t.labels.length)
		lines.push(
			h(
				"span",
				{ class: "row labels" },
				t.labels.map(l => h("span", { class: "label", dir: "auto" }, "#" + l)),
			),
		);
	if (t.lock)
		lines.push(
			h(
				"span",
				{ class: "row lock" },
				h("span", { class: "holder", dir: "auto" }, "@" + t.lock.holder),
				h("span", null, "fence " + t.fence),
				leaseText(t),
			),
		);
	if (t.lock && t.until && !t.lock.manual) lines.push(leaseBar(t));
	if (waits.length)
		lines.push(
			h(
				"span",
				{ class: "waits" },
				`waits for ${waits.slice(0, 4).join(", ")}${waits.length > 4 ? ` and ${waits.length - 4} more` : ""}`,
			),
		);
	if (t.attempts > 1 || t.abandoned)
		lines.push(h("span", { class: "dim" }, many(t.attempts, "attempt") + (t.abandoned ? `, ${t.abandoned} abandoned` : "")));
	if ((t.status === "Blocked" || t.status === "Needs Help" || t.status === "Failed") && t.blocker_reason)
		lines.push(h("span", { class: "why", dir: "auto" }, t.blocker_reason.slice(0, 140)));
	return lines;
}

function card(t, acts) {
	return h(
		"li",
		{
			class: "card",
			draggable: acts && state.live ? "true" : null,
			"data-id": t.id,
			"data-selected": selected.has(t.id) ? "yes" : null,
		},
		h(
			"button",
			{
				type: "button",
				class: "open",
				"data-act": "open",
				"data-id": t.id,
				"data-focus": "card:" + t.id,
				tabindex: -1,
				"aria-keyshortcuts": acts ? "M" : null,
			},
			cardLines(t),
		),
		acts &&
			h("input", {
				type: "checkbox",
				class: "pick",
				"data-act": "pick",
				"data-id": t.id,
				"data-focus": "pick:" + t.id,
				tabindex: -1,
				"aria-label": "Select " + t.id,
			}),
	);
}

// A card is drawn again only if something that it shows changed.
function cardSig(t) {
	return JSON.stringify([
		t.version,
		t.status,
		t.until,
		waitsFor(t),
		overdue(t),
		selected.has(t.id),
		expired(t),
		state.live,
		state.me?.role,
		!!t.archived_at,
	]);
}

function column(status) {
	const id = "col-" + status.replace(" ", "-");
	return h(
		"section",
		{ class: "column", "data-status": status, "aria-labelledby": id },
		h(
			"h2",
			{ id },
			button([h("span", { class: "name" }, status), h("span", { class: "count" })], "fold", {
				"data-name": status,
				"aria-expanded": "true",
			}),
		),
		h("ul", { class: "cards" }),
		h("p", { class: "more" }),
	);
}

function drawColumn(node, status, list, total, acts) {
	const usual = (!list.length && status !== "Ready" && status !== "In Progress") || status === "Canceled";
	const folded = folds[status] ?? usual,
		limit = shown.get(status) || PAGE,
		part = folded ? [] : list.slice(0, limit);
	const head = node.querySelector("h2 button"),
		ul = node.querySelector("ul"),
		more = node.querySelector(".more");
	node.classList.toggle("folded", folded);
	head.setAttribute("aria-expanded", String(!folded));
	head.querySelector(".count").textContent =
		list.length === total
			? total.toLocaleString("en")
			: `${list.length.toLocaleString("en")} of ${total.toLocaleString("en")}`;
	patch(
		ul,
		part.map(t => ({ key: t.id, sig: cardSig(t), make: () => card(t, acts) })),
	);
	ul.hidden = folded || !part.length;
	const hidden = folded ? 0 : list.length - part.length;
	if (more.dataset.hidden !== String(hidden)) {
		more.dataset.hidden = hidden;
		if (hidden)
			fill(
				more,
				`${part.length.toLocaleString("en")} of ${list.length.toLocaleString("en")} are shown. `,
				button(`Show ${Math.min(PAGE, hidden)} more`, "more", { "data-name": status }),
			);
		else fill(more);
	}
	// One card of each column is in the order of the Tab key; the arrow keys go to the others.
	const cards = [...ul.querySelectorAll(".open")],
		current = cards.find(c => c === document.activeElement) || cards.find(c => c.tabIndex === 0) || cards[0];
	for (const c of cards) if (c.tabIndex !== (c === current ? 0 : -1)) c.tabIndex = c === current ? 0 : -1;
}

function drawAttention(f) {
	const list = attention(f),
		node = $("attention"),
		part = list.slice(0, 12);
	node.hidden = !list.length;
	if (!node.firstChild)
		add(node, [
			h("h2", { id: "attention-title" }, "Needs attention ", h("span", { class: "count" })),
			h("ul"),
			h("p", { class: "more" }),
		]);
	node.querySelector(".count").textContent = list.length.toLocaleString("en");
	patch(
		node.querySelector("ul"),
		part.map(({ task: t, kind, why, action }) => ({
			key: t.id,
			sig: JSON.stringify([t.version, kind, why, action, state.live, state.me?.role]),
			make: () =>
				h(
					"li",
					{ "data-kind": kind },
					h("span", { class: "kind" }, kind),
					button([h("span", { class: "id" }, t.id), " ", h("span", { dir: "auto" }, t.title)], "open", {
						class: "text",
						"data-id": t.id,
						"data-in": "attention",
					}),
					why && h("span", { class: "dim", dir: "auto" }, why.slice(0, 100)),
					allowed(action, t) &&
						button(ACTIONS[action].label, "do", {
							"data-name": action,
							"data-id": t.id,
							"data-in": "attention",
							disabled: !state.live,
							"aria-label": `${ACTIONS[action].label} ${t.id}`,
						}),
				),
		})),
	);
	fill(node.querySelector(".more"), list.length > part.length && `${list.length - part.length} more are in the columns below.`);
}

function drawFilters(f) {
	const labels = new Set(),
		holders = new Set();
	for (const t of state.tasks.values()) {
		if (t.archived_at) continue;
		t.labels.forEach(l => labels.add(l));
		const who = t.lock?.holder || t.assignee;
		if (who) holders.add(who);
	}
	options($("f-label"), [...labels].sort().slice(0, 500), f.label);
	options($("f-class"), CLASSES, f.class);
	options($("f-holder"), [...holders].sort().slice(0, 500), f.holder);
	if (document.activeElement !== $("q") && $("q").value !== f.q) $("q").value = f.q;
	$("f-archived").checked = !!f.archived;
	$("clear").hidden = !Object.values(f).some(Boolean);
}

function options(select, list, value) {
	if (value && !list.includes(value)) list = [value, ...list];
	const sig = JSON.stringify([list, value]);
	if (select.sig === sig) return;
	select.sig = sig;
	fill(
		select,
		h("option", { value: "" }, "any"),
		list.map(l => h("option", { value: l, selected: l === value }, l)),
	);
}

export function drawBoard() {
	if (!state.loaded) return;
	keepFocus(() => {
		const f = filters(),
			cols = columns(f),
			totals = new Map(),
			acts = may("agent");
		for (const t of state.tasks.values())
			if (f.archived || !t.archived_at) totals.set(t.status, (totals.get(t.status) || 0) + 1);
		for (const id of selected) if (!state.tasks.has(id)) selected.delete(id);
		const root = $("columns");
		if (!root.firstChild) root.append(...STATUSES.map(column));
		for (const node of root.children)
			drawColumn(node, node.dataset.status, cols.get(node.dataset.status), totals.get(node.dataset.status) || 0, acts);
		const n = [...cols.values()].reduce((sum, l) => sum + l.length, 0);
		$("found").textContent = Object.values(f).some(Boolean)
			? `${many(n, "task")} match` + (n === 1 ? "es" : "")
			: many(n, "task");
		drawAttention(f);
		drawFilters(f);
		drawBulk();
		for (const box of document.querySelectorAll(".pick")) box.checked = selected.has(box.dataset.id);
		tick();
	});
}

function drawBulk() {
	const node = $("bulk"),
		list = [...selected].map(id => state.tasks.get(id)).filter(Boolean);
	node.hidden = !list.length;
	const names = ["approve", "unblock", "retry", "ready", "backlog", "archive", "cancel"].filter(n =>
		list.some(t => allowed(n, t)),
	);
	patch(node, [
		{
			key: "all",
			sig: JSON.stringify([list.map(t => [t.id, t.version]), names, state.live]),
			make: () =>
				h(
					"div",
					{ class: "row" },
					h("strong", null, many(list.length, "task") + " selected"),
					names.map(n =>
						button(`${ACTIONS[n].label} (${list.filter(t => allowed(n, t)).length})`, "bulk", {
							"data-name": n,
							disabled: !state.live,
						}),
					),
					may("reviewer") && button("Add label", "bulk", { "data-name": "label", disabled: !state.live }),
					may("reviewer") && button("Set priority", "bulk", { "data-name": "priority", disabled: !state.live }),
					button("Clear selection", "unpick"),
				),
		},
	]);
}

// --- the top of the page -------------------------------------------------------------------------------------------

export function drawTop() {
	keepFocus(() => {
		const pill = $("link"),
			view = address().get("view") || "";
		pill.dataset.live = state.live ? "yes" : "no";
		pill.textContent = state.live ? "live" : state.saved ? "snapshot" : "reconnecting";
		document.body.classList.toggle("stale", !state.live && !state.saved);
		for (const b of $("views").children)
			set(b, { "aria-current": b.dataset.view === view ? "page" : "false", "data-focus": "view:" + b.dataset.view });
		const names = state.queues.map(q => q.name);
		$("queue-pick").hidden = names.length < 2 || !!state.me?.queue;
		const current = state.queue || state.queues.find(q => q.current)?.name || "";
		if ($("queue").sig !== names.join() + current) {
			$("queue").sig = names.join() + current;
			fill(
				$("queue"),
				names.map(n => h("option", { value: n, selected: n === current }, n)),
			);
		}
		$("queue-name").textContent = names.length > 1 || state.queue ? visible(current) : "";
		document.title = (current && names.length > 1 ? visible(current) + " · " : "") + "pawl";
		patch($("tools"), [
			{
				key: "t",
				sig: JSON.stringify([state.me, !!state.paused, !!state.emergency, state.live]),
				make: () =>
					h(
						"span",
						{ class: "row" },
						state.me &&
							h(
								"span",
								{ class: "dim me", dir: "auto" },
								`${state.me.agent || state.me.name || ""} (${state.me.role})`,
							),
						may("agent") &&
							button("New task", "do", {
								"data-name": "create",
								class: "main",
								disabled: !state.live,
								"aria-keyshortcuts": "N",
							}),
						may("admin") &&
							button(state.paused ? "Resume" : "Pause", "do", {
								"data-name": state.paused ? "resume" : "pause",
								disabled: !state.live,
							}),
						may("admin") &&
							button(state.emergency ? "End emergency" : "Emergency", "do", {
								"data-name": state.emergency ? "emergency_off" : "emergency_on",
								disabled: !state.live,
							}),
						button("?", "help", { "aria-label": "Help: keys", "aria-keyshortcuts": "?" }),
					),
			},
		]);
		const notes = [];
		if (state.saved) notes.push(["wait", `This is a snapshot of ${new Date(state.saved).toLocaleString()}. It does not change.`]);
		if (!state.live && state.loaded && !state.saved)
			notes.push([
				"late",
				`reconnecting: this is the queue as it was at ${new Date(state.seenAt).toLocaleTimeString()}. It may have changed.`,
			]);
		if (!state.live && !state.loaded && !state.problem && !state.saved) notes.push(["wait", "reconnecting: waiting for the server."]);
		if (state.emergency)
			notes.push([
				"late",
				`Emergency, the queue is read-only: ${state.emergency.reason} (${state.emergency.by}, ${ago(state.emergency.since)})`,
			]);
		if (state.paused)
			notes.push([
				"wait",
				`The queue is paused by ${state.paused.by}, ${ago(state.paused.since)}${state.paused.reason ? ": " + state.paused.reason : ""}. Agents get no new tasks.`,
			]);
		patch(
			$("notices"),
			notes.map(([kind, text]) => ({
				key: kind + text.slice(0, 5),
				sig: text,
				make: () => h("p", { class: "notice", "data-kind": kind, dir: "auto" }, text),
			})),
		);
	});
}

export function drawView() {
	const view = address().get("view") || "";
	$("columns").hidden = !!view;
	$("attention").hidden = !!view || !$("attention").querySelector("li");
	$("filters").hidden = !!view;
	$("agents").hidden = view !== "agents";
	$("charts").hidden = view !== "charts";
	if (view === "agents") keepFocus(drawAgents);
	if (view === "charts") drawCharts();
}

// --- agents and charts -----------------------------------------------------------------------------------------------

export let doneToday = new Map();
export function setDoneToday(map) {
	doneToday = map;
	drawView();
}

function agentRows() {
	const rows = new Map(state.agents.map(a => [a.agent, { ...a, locks: [] }]));
	for (const t of state.tasks.values())
		if (t.lock && held(t)) {
			if (!rows.has(t.lock.holder)) rows.set(t.lock.holder, { agent: t.lock.holder, state: "working", locks: [] });
			rows.get(t.lock.holder).locks.push(t);
		}
	for (const name of doneToday.keys()) if (!rows.has(name)) rows.set(name, { agent: name, state: "idle", locks: [] });
	return [...rows.values()].sort((a, b) => b.locks.length - a.locks.length || (a.agent < b.agent ? -1 : 1));
}

function drawAgents() {
	const rows = agentRows();
	// The lease was renewed last when its whole length began to count.
	const beat = t =>
		t.until && t.lock.ttl && !t.lock.manual ? ago(new Date(t.until - t.lock.ttl * 1000).toISOString()) : "none";
	patch($("agents"), [
		{
			key: "t",
			sig: JSON.stringify([rows, [...doneToday], Math.floor(Date.now() / 10000)]),
			make: () =>
				h(
					"section",
					{ "aria-labelledby": "agents-title" },
					h("h2", { id: "agents-title" }, "Agents"),
					!rows.length && h("p", { class: "dim" }, "No agent has worked on this queue in the last hour."),
					rows.length > 0 &&
						h(
							"div",
							{ class: "scroll", tabindex: 0, role: "group", "aria-label": "Table of agents" },
							h(
								"table",
								null,
								h(
									"thead",
									null,
									h(
										"tr",
										null,
										["Agent", "State", "Holds", "Since", "Last heartbeat", "Done today"].map(c =>
											h("th", { scope: "col" }, c),
										),
									),
								),
								h(
									"tbody",
									null,
									rows.map(a =>
										h(
											"tr",
											null,
											h(
												"th",
												{ scope: "row", dir: "auto" },
												a.agent,
												a.host && h("span", { class: "dim" }, " on " + a.host),
											),
											h(
												"td",
												null,
												h("span", { class: "dot", "data-state": a.state, "aria-hidden": "true" }),
												" ",
												a.state === "dead" ? "lost its task" : a.state,
											),
											h(
												"td",
												null,
												a.locks
													.slice(0, 20)
													.map(t =>
														h(
															"div",
															null,
															button(
																[h("span", { class: "id" }, t.id), " ", t.title.slice(0, 60)],
																"open",
																{ class: "text", "data-id": t.id, "data-in": "agents" },
															),
														),
													),
											),
											h(
												"td",
												null,
												a.locks.slice(0, 20).map(t => h("div", null, ago(t.lock.acquired_at))),
											),
											h(
												"td",
												null,
												a.locks.length
													? a.locks.slice(0, 20).map(t => h("div", null, beat(t)))
													: a.last_seen
														? "seen " + ago(a.last_seen)
														: "",
											),
											h("td", { class: "num" }, String(doneToday.get(a.agent) || 0)),
										),
									),
								),
							),
						),
				),
		},
	]);
}

function bars(title, note, data, unit) {
	const top = Math.max(1, ...data.map(d => d.n)),
		w = 640,
		hgt = 180,
		step = w / data.length,
		label = data.map(d => `${d.name}: ${d.n}`).join(", ");
	return h(
		"figure",
		null,
		h("figcaption", null, h("h3", null, title), h("p", { class: "dim" }, note)),
		svg(
			"svg",
			{ viewBox: `0 0 ${w} ${hgt + 34}`, role: "img", "aria-label": `${title}. ${label}` },
			data.map((d, i) => {
				const bar = (d.n / top) * (hgt - 20),
					x = i * step + step * 0.15;
				return svg(
					"g",
					null,
					svg("rect", {
						x,
						y: hgt - bar,
						width: step * 0.7,
						height: Math.max(bar, d.n ? 2 : 0),
						rx: 3,
						class: "fill",
						"data-kind": d.kind || "",
					}),
					d.n > 0 &&
						svg(
							"text",
							{ x: i * step + step / 2, y: hgt - bar - 5, class: "n" },
							d.text || String(d.n) + (unit || ""),
						),
					(data.length <= 10 || (i % 2 === data.length % 2) ^ 1) &&
						svg("text", { x: i * step + step / 2, y: hgt + 18, class: "axis" }, d.name),
				);
			}),
			svg("line", { x1: 0, x2: w, y1: hgt, y2: hgt, class: "axis" }),
		),
	);
}

const DAY = 86400000;
const dayOf = ms => {
	const d = new Date(ms);
	return `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, "0")}-${String(d.getDate()).padStart(2, "0")}`;
};

function drawCharts() {
	const all = [...state.tasks.values()],
		days = Array.from({ length: 14 }, (_, i) => dayOf(Date.now() - (13 - i) * DAY)),
		open = all.filter(t => !ended(t));
	const done = new Map(days.map(d => [d, []])),
		ages = [
			["< 1 h", 36e5],
			["< 8 h", 288e5],
			["< 1 d", DAY],
			["< 3 d", 3 * DAY],
			["< 7 d", 7 * DAY],
			["< 30 d", 30 * DAY],
			["older", Infinity],
		];
	for (const t of all) if (t.status === "Done" && t.done_at) done.get(dayOf(Date.parse(t.done_at)))?.push(t);
	const median = list => {
		const c = list
			.filter(t => t.first_started_at)
			.map(t => (Date.parse(t.done_at) - Date.parse(t.first_started_at)) / 1000)
			.sort((a, b) => a - b);
		return c.length ? c[c.length >> 1] : 0;
	};
	const age = ages.map(([name, most], i) => ({
		name,
		n: open.filter(t => {
			const a = Date.now() - Date.parse(t.created_at);
			return a < most && a >= (i ? ages[i - 1][1] : -Infinity);
		}).length,
	}));
	const waiting = STATUSES.filter(s => s !== "Done" && s !== "Canceled").map(s => ({
		name: s,
		n: all.filter(t => t.status === s && !t.archived_at).length,
	}));
	const data = [
		days.map(d => ({ name: d.slice(5), n: done.get(d).length })),
		days.map(d => {
			const m = median(done.get(d));
			return { name: d.slice(5), n: m ? Math.max(1, Math.round(m)) : 0, text: m ? span(m) : "" };
		}),
		age,
		waiting,
	];
	patch($("charts"), [
		{
			key: "c",
			sig: JSON.stringify(data),
			make: () =>
				h(
					"section",
					{ "aria-labelledby": "charts-title" },
					h("h2", { id: "charts-title" }, "Charts"),
					h(
						"div",
						{ class: "charts" },
						bars("Throughput", "Tasks done on each of the last 14 days", data[0]),
						bars("Cycle time", "Median time from the first claim to Done, by the day of Done", data[1], "s"),
						bars("Age of open work", "Open tasks by the time since they were created", data[2]),
						bars("Open work by status", "Tasks that are not finished", data[3]),
					),
				),
		},
	]);
}

// --- the detail of a task ------------------------------------------------------------------------------------------

export const detail = { id: "", show: null, events: [], why: "" };

function graph(t) {
	const r = detail.show || {},
		left = [],
		right = [],
		info = id => state.tasks.get(id);
	if (t.parent) left.push(["parent", t.parent]);
	for (const id of t.depends) left.push(["depends on", id]);
	for (const s of subtasks(t.id)) right.push(["sub-task", s.id]);
	for (const d of r.dependents || []) right.push(["needed by", d.id]);
	if (!left.length && !right.length) return null;
	const most = 8,
		L = left.slice(0, most),
		R = right.slice(0, most),
		rows = Math.max(L.length, R.length, 1),
		H = rows * 44,
		mid = H / 2;
	const node = (id, x, y, kind) =>
		svg(
			"g",
			{ class: "node", "data-status": info(id)?.status || "", "data-act": id === t.id ? null : "open", "data-id": id },
			svg("rect", { x, y: y - 15, width: 96, height: 30, rx: 6 }),
			svg("text", { x: x + 48, y: y + 4 }, id.slice(0, 12)),
			kind && svg("title", null, kind),
		);
	const y = (i, n) => ((i + 0.5) * H) / n,
		line = (x1, y1, x2, y2, dash) =>
			svg("path", {
				d: `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`,
				class: dash ? "dash" : "",
			});
	const item = ([kind, id]) =>
		h(
			"li",
			null,
			kind,
			" ",
			button(id, "open", { class: "text id", "data-id": id, "data-in": "graph" }),
			" ",
			h(
				"span",
				{ class: "dim", dir: "auto" },
				info(id) ? `${info(id).status}: ${info(id).title.slice(0, 80)}` : "not in this queue",
			),
		);
	return h(
		"section",
		null,
		h("h3", null, "Related tasks"),
		svg(
			"svg",
			{ viewBox: `0 0 400 ${H}`, class: "graph", "aria-hidden": "true" },
			L.map(([k], i) => line(100, y(i, L.length), 152, mid, k === "parent")),
			R.map(([k], i) => line(248, mid, 300, y(i, R.length), k === "sub-task")),
			L.map(([k, id], i) => node(id, 4, y(i, L.length), k)),
			node(t.id, 152, mid),
			R.map(([k, id], i) => node(id, 300, y(i, R.length), k)),
		),
		h("ul", { class: "plain" }, left.concat(right).slice(0, 50).map(item)),
		left.length + right.length > 50 && h("p", { class: "dim" }, `${left.length + right.length - 50} more are not shown.`),
	);
}

function fields(t) {
	const rows = [
		["Class", t.class],
		["Priority", t.priority],
		["Type", t.type],
		["Effort", t.effort],
		["Labels", t.labels.map(l => "#" + l).join(" ")],
		["Assignee", t.assignee],
		["Due", t.due && t.due + (overdue(t) ? " (overdue)" : "")],
		["Not before", t.not_before && clock(t.not_before)],
		["Parent", t.parent],
		["Depends on", t.depends.join(", ")],
		["Next check", t.next_check && clock(t.next_check)],
		["Attempts", t.attempts + (t.abandoned ? ` (${t.abandoned} abandoned)` : "")],
		["Fence", t.fence],
		["Last holder", t.last_holder],
		["Created", clock(t.created_at)],
		["Started", t.started_at && clock(t.started_at)],
		["Changed", clock(t.updated_at)],
		["Done", t.done_at && clock(t.done_at)],
		["Archived", t.archived_at && clock(t.archived_at)],
		["Version", t.version],
	];
	return h(
		"dl",
		null,
		rows
			.filter(([, v]) => v !== undefined && v !== "" && v !== null)
			.map(([k, v]) => [h("dt", null, k), h("dd", { dir: "auto" }, typeof v === "number" ? String(v) : v)]),
	);
}

function text(title, value, md) {
	return value && h("section", null, h("h3", null, title), md ? markdown(value) : h("p", { dir: "auto" }, value));
}

function eventLine(e) {
	return h(
		"li",
		null,
		h("span", { class: "dim" }, clock(e.at), " "),
		h("strong", null, e.event),
		e.agent && ` by ${e.agent}`,
		e.from && e.to && `: ${e.from} → ${e.to}`,
		e.fence && ` (fence ${e.fence})`,
		e.text && h("div", { class: "quote", dir: "auto" }, e.text.slice(0, 1000)),
	);
}

export function drawDetail() {
	const node = $("detail"),
		t = state.tasks.get(detail.id),
		r = detail.show;
	node.hidden = !detail.id;
	document.body.classList.toggle("has-detail", !!detail.id);
	if (!detail.id) {
		node.replaceChildren();
		return;
	}
	const head = more =>
		h(
			"div",
			{ class: "head" },
			h(
				"div",
				{ class: "row" },
				h("span", { class: "id" }, detail.id),
				more,
				h("span", { class: "grow" }),
				button("Close", "close"),
			),
		);
	if (!t) {
		patch(node, [
			{
				key: "none",
				sig: detail.id,
				make: () =>
					h("div", null, head(), h("p", null, state.loaded ? "This task is not in the queue." : "reconnecting")),
			},
		]);
		return;
	}
	const now = JSON.stringify([t, state.live, state.me?.role]),
		part = (key, sig, make) => ({ key, sig: JSON.stringify(sig), make: () => make() || h("span", { hidden: true }) });
	keepFocus(() => {
		patch(node, [
			part("head", [now], () =>
				add(head(h("span", { class: "chip", "data-status": t.status }, t.status)), [
					h("h2", { dir: "auto" }, t.title),
					h(
						"div",
						{ class: "row acts" },
						actionsFor(t).map(n =>
							button(ACTIONS[n].label, "do", {
								"data-name": n,
								"data-id": t.id,
								"data-in": "detail",
								disabled: !state.live,
								"aria-keyshortcuts": ACTIONS[n].key?.toUpperCase(),
							}),
						),
						actionsFor(t).some(n => ACTIONS[n].to) &&
							button("Move…", "move", {
								"data-id": t.id,
								"data-in": "detail",
								disabled: !state.live,
								"aria-keyshortcuts": "M",
							}),
					),
				]),
			),
			part(
				"lock",
				[now, expired(t)],
				() =>
					t.lock &&
					h(
						"section",
						{ class: "box" },
						h("h3", null, held(t) ? "Held" : "Abandoned"),
						h(
							"p",
							{ class: "row" },
							h("strong", { dir: "auto" }, "@" + t.lock.holder),
							t.lock.host && h("span", { class: "dim" }, "on " + t.lock.host),
							h("span", null, "fence " + t.fence),
							leaseText(t),
						),
						t.until > 0 && !t.lock.manual && leaseBar(t),
						h("p", { class: "dim" }, "since ", clock(t.lock.acquired_at)),
					),
			),
			part(
				"why",
				[detail.why, t.status],
				() =>
					!ended(t) &&
					detail.why &&
					h("section", { class: "box" }, h("h3", null, "Why it is not next"), h("p", { dir: "auto" }, detail.why)),
			),
			part(
				"blocked",
				[t.blocker_reason, t.unblock_action, t.status],
				() =>
					t.blocker_reason &&
					h("section", { class: "box" }, text("Reason", t.blocker_reason), text("What must be done", t.unblock_action)),
			),
			part("text", [t.description, t.acceptance, t.summary], () =>
				h(
					"div",
					null,
					text("Description", t.description, true),
					text("Finished when", t.acceptance, true),
					text("Summary", t.summary, true),
				),
			),
			part(
				"graph",
				[
					t.id,
					t.depends,
					t.parent,
					r?.dependents,
					subtasks(t.id).map(s => [s.id, s.status]),
					t.depends.map(d => state.tasks.get(d)?.status),
				],
				() => graph(t),
			),
			part("fields", [now], () =>
				h(
					"section",
					null,
					h("h3", null, "Fields"),
					fields(t),
					t.extra && h("pre", { tabindex: 0 }, JSON.stringify(t.extra, null, 1).slice(0, LONG)),
				),
			),
			part(
				"comments",
				[r?.comments],
				() =>
					r?.comments?.length > 0 &&
					h(
						"section",
						null,
						h("h3", null, "Comments"),
						h(
							"ul",
							{ class: "plain comments" },
							r.comments.map(c =>
								h(
									"li",
									null,
									h("span", { class: "dim" }, c.agent || "", " ", clock(c.at)),
									markdown(c.text || ""),
								),
							),
						),
					),
			),
			part(
				"attempts",
				[r?.attempts],
				() =>
					r?.attempts?.length > 0 &&
					h(
						"section",
						null,
						h("h3", null, "Attempts"),
						h(
							"ul",
							{ class: "plain" },
							r.attempts.map(a =>
								h(
									"li",
									null,
									`fence ${a.fence}: `,
									h("strong", { dir: "auto" }, a.agent || ""),
									" ",
									clock(a.at),
									a.outcome && ` → ${a.outcome}`,
									a.text && h("div", { class: "quote", dir: "auto" }, a.text),
								),
							),
						),
					),
			),
			part(
				"events",
				[detail.events],
				() =>
					detail.events.length > 0 &&
					h(
						"section",
						null,
						h("h3", null, "Events"),
						h("ul", { class: "plain" }, detail.events.slice().reverse().map(eventLine)),
					),
			),
		]);
		tick();
	});
}
