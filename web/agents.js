// The agents and their locks. Each lock has a row of its own, so that its facts stand side by side.

import { $, h, button, patch, keepFocus, ago } from "./dom.js";
import { state, address } from "./model.js";
import { leaseText, tick } from "./card.js";
import { call } from "./link.js";

const LOCKS = 20; // rows of one agent
const COLUMNS = ["Agent", "State", "Holds", "Time left", "Since", "Last heartbeat", "Done today"];
let doneToday = new Map();

function agents() {
	const rows = new Map(state.agents.map(a => [a.agent, { ...a, locks: [] }]));
	for (const t of state.tasks.values())
		if (t.lock?.live) {
			if (!rows.has(t.lock.holder)) rows.set(t.lock.holder, { agent: t.lock.holder, state: "working", locks: [] });
			rows.get(t.lock.holder).locks.push(t);
		}
	for (const name of doneToday.keys()) if (!rows.has(name)) rows.set(name, { agent: name, state: "idle", locks: [] });
	return [...rows.values()].sort((a, b) => b.locks.length - a.locks.length || (a.agent < b.agent ? -1 : 1));
}

// The holder last renewed the lease one lease length before the lease expires.
const beat = t => (t.until && t.lock.ttl && !t.lock.manual ? ago(new Date(t.until - t.lock.ttl * 1000).toISOString()) : "none");

// A phone shows each cell in a line of its own, with the name of its column.
const cell = (column, props, ...content) => h("td", { "data-label": COLUMNS[column], ...props }, content);

function lockCells(t) {
	return [
		cell(
			2,
			null,
			button([h("span", { class: "id" }, t.id), " ", h("span", { dir: "auto" }, t.title.slice(0, 80))], "open", {
				class: "text",
				"data-id": t.id,
				"data-in": "agents",
			}),
		),
		cell(3, null, leaseText(t)),
		cell(4, null, ago(t.lock.acquired_at)),
		cell(5, null, beat(t)),
	];
}

function agentRows(a) {
	const locks = a.locks.slice(0, LOCKS),
		rows = Math.max(1, locks.length),
		more = a.locks.length - locks.length;
	const first = h(
		"tr",
		{ class: "first" },
		h("th", { scope: "row", rowspan: rows, dir: "auto" }, a.agent, a.host && h("span", { class: "dim" }, " on " + a.host)),
		cell(
			1,
			{ rowspan: rows },
			h(
				"span",
				null,
				h("span", { class: "dot", "data-state": a.state, "aria-hidden": "true" }),
				" ",
				a.state === "dead" ? "lost its task" : a.locks.length ? "working" : a.state === "working" ? "idle" : a.state,
				more > 0 && ` (${more} more tasks)`,
			),
		),
		locks.length
			? lockCells(locks[0])
			: [cell(2, { class: "dim" }, "nothing"), cell(3), cell(4), cell(5, null, a.last_seen ? "seen " + ago(a.last_seen) : "")],
		cell(6, { class: "num", rowspan: rows }, String(doneToday.get(a.agent) || 0)),
	);
	return [first, ...locks.slice(1).map(t => h("tr", null, lockCells(t)))];
}

function table(list) {
	return h(
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
					COLUMNS.map((c, i) => h("th", { scope: "col", class: i === 6 ? "num" : null }, c)),
				),
			),
			h("tbody", null, list.map(agentRows)),
		),
	);
}

export function drawAgents() {
	const list = agents();
	const make = () =>
		h(
			"section",
			{ "aria-labelledby": "agents-title" },
			h("h2", { id: "agents-title" }, "Agents"),
			list.length
				? table(list)
				: h("p", { class: "dim" }, "No agent has worked on this queue in the last hour. pawl run --next starts one."),
		);
	keepFocus(() => {
		patch($("agents"), [{ key: "t", sig: JSON.stringify([list, [...doneToday], Math.floor(Date.now() / 10000)]), make }]);
		tick();
	});
}

let soon = 0;
export function readToday() {
	if (address().get("view") !== "agents" || !state.live || soon) return;
	soon = setTimeout(async () => {
		soon = 0;
		const midnight = new Date();
		midnight.setHours(0, 0, 0, 0);
		try {
			const { report } = await call("report", { since: midnight.toISOString() });
			doneToday = new Map(report.agents.map(a => [a.agent, a.done]));
			if (address().get("view") === "agents") drawAgents();
		} catch {
			// the table shows what there is
		}
	}, 100);
}
