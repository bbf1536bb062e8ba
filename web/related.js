// Sub-tasks and dependencies of a task, as a small graph and as a list.

import { h, svg, button } from "./dom.js";
import { state, subtasks } from "./model.js";

const DRAWN = 8, // tasks on each side of the graph
	LISTED = 50,
	ROW = 44;
const info = id => state.tasks.get(id);

function node(id, x, y, kind) {
	return svg(
		"g",
		{ class: "node", "data-status": info(id)?.status || "", "data-act": kind ? "open" : null, "data-id": id },
		svg("rect", { x, y: y - 15, width: 96, height: 30, rx: 6 }),
		svg("text", { x: x + 48, y: y + 4 }, id.length > 12 ? id.slice(0, 11) + "…" : id),
		kind && svg("title", null, `${kind} ${id}`),
	);
}

function line(x1, y1, x2, y2, dash) {
	const middle = (x1 + x2) / 2;
	return svg("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, class: dash ? "dash" : "" });
}

// Lines with dashes lead to the parent and to sub-tasks; the others are dependencies.
function graph(t, left, right) {
	const L = left.slice(0, DRAWN),
		R = right.slice(0, DRAWN),
		height = Math.max(L.length, R.length, 1) * ROW,
		y = (i, n) => ((i + 0.5) * height) / n;
	return svg(
		"svg",
		{ viewBox: `0 0 400 ${height}`, class: "graph", "aria-hidden": "true" },
		L.map(([k], i) => line(100, y(i, L.length), 152, height / 2, k === "parent")),
		R.map(([k], i) => line(248, height / 2, 300, y(i, R.length), k === "sub-task")),
		L.map(([k, id], i) => node(id, 4, y(i, L.length), k)),
		node(t.id, 152, height / 2),
		R.map(([k, id], i) => node(id, 300, y(i, R.length), k)),
	);
}

function item([kind, id]) {
	const t = info(id);
	return h(
		"li",
		null,
		kind,
		" ",
		button(id, "open", { class: "text id", "data-id": id, "data-in": "graph" }),
		" ",
		h("span", { class: "dim", dir: "auto" }, t ? `${t.status}: ${t.title.slice(0, 80)}` : "not in this queue"),
	);
}

// Changes when the section must be drawn again.
export function relatedSig(t, dependents) {
	const of = id => [id, info(id)?.status, info(id)?.title];
	return [t.id, t.parent && of(t.parent), t.depends.map(of), dependents?.map(d => of(d.id)), subtasks(t.id).map(s => of(s.id))];
}

export function related(t, dependents = []) {
	const left = t.depends.map(id => ["depends on", id]),
		right = [...subtasks(t.id).map(s => ["sub-task", s.id]), ...dependents.map(d => ["needed by", d.id])],
		all = left.concat(right);
	if (t.parent) {
		left.unshift(["parent", t.parent]);
		all.unshift(left[0]);
	}
	return (
		all.length > 0 &&
		h(
			"section",
			null,
			h("h3", null, "Related tasks"),
			graph(t, left, right),
			h("ul", { class: "plain" }, all.slice(0, LISTED).map(item)),
			all.length > LISTED && h("p", { class: "dim" }, `${all.length - LISTED} more are not shown.`),
		)
	);
}
