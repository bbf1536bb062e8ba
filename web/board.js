// The columns, the filters, the tasks that need attention, and the bar for several tasks.

import { $, h, add, fill, button, patch, keepFocus, many } from "./dom.js";
import { card, cardSig, selected, tick } from "./card.js";
import { state, STATUSES, CLASSES, filters, columns, attention } from "./model.js";
import { ACTIONS, allowed } from "./can.js";

const PAGE = 50; // cards of a column that are shown at first
const ATTENTION = 12; // tasks that are shown above the columns

const shown = new Map(); // status -> cards that are shown
const folds = JSON.parse(sessionStorage.getItem("pawl.folds") || "{}");

// name: the status of a column, or "attention"
export function fold(name) {
	const node = document.querySelector(`.column[data-status="${name}"]`) || $(name);
	folds[name] = !node.classList.contains("folded");
	sessionStorage.setItem("pawl.folds", JSON.stringify(folds));
	drawBoard();
}
export function showMore(status) {
	shown.set(status, (shown.get(status) || PAGE) + PAGE);
	drawBoard();
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

// The page says what it does not show.
function drawMore(node, status, folded, part, found, total) {
	const empty = total ? "No task matches." : state.tasks.size ? "No task." : status === "Ready" && "No task yet. N creates one, and so does pawl create.";
	const sig = JSON.stringify([folded, part, found, total, state.tasks.size > 0]);
	if (node.sig === sig) return;
	node.sig = sig;
	if (folded || (found && found === part)) fill(node);
	else if (!found) fill(node, empty);
	else
		fill(
			node,
			`${part.toLocaleString("en")} of ${found.toLocaleString("en")} are shown. `,
			button(`Show ${Math.min(PAGE, found - part)} more`, "more", { "data-name": status }),
		);
}

function drawColumn(node, status, list, total) {
	const usual = (!list.length && status !== "Ready" && status !== "In Progress") || status === "Canceled";
	const folded = folds[status] ?? usual,
		limit = shown.get(status) || PAGE,
		part = folded ? [] : list.slice(0, limit);
	const head = node.querySelector("h2 button"),
		ul = node.querySelector("ul");
	node.classList.toggle("folded", folded);
	head.setAttribute("aria-expanded", String(!folded));
	head.querySelector(".count").textContent =
		list.length === total
			? total.toLocaleString("en")
			: `${list.length.toLocaleString("en")} of ${total.toLocaleString("en")}`;
	patch(
		ul,
		part.map(t => ({ key: t.id, sig: cardSig(t), make: () => card(t) })),
	);
	ul.hidden = folded || !part.length;
	drawMore(node.querySelector(".more"), status, folded, part.length, list.length, total);
	// One card of each column is in the order of the Tab key; the arrow keys go to the others.
	const cards = [...ul.querySelectorAll(".open")],
		current = cards.find(c => c === document.activeElement) || cards.find(c => c.tabIndex === 0) || cards[0];
	for (const c of cards) if (c.tabIndex !== (c === current ? 0 : -1)) c.tabIndex = c === current ? 0 : -1;
}

function attentionItem({ task: t, kind, why, action }) {
	return h(
		"li",
		{ "data-kind": kind },
		h("span", { class: "kind" }, kind),
		h("span", { class: "id" }, t.id),
		allowed(action, t) &&
			button(ACTIONS[action].label, "do", {
				"data-name": action,
				"data-id": t.id,
				"data-in": "attention",
				disabled: !state.live,
				"aria-label": `${ACTIONS[action].label} ${t.id}`,
			}),
		button(h("span", { dir: "auto" }, t.title), "open", { class: "text", "data-id": t.id, "data-in": "attention" }),
		why && h("span", { class: "dim", dir: "auto", title: why.slice(0, 1000) }, why.slice(0, 200)),
	);
}

function drawAttention(f) {
	const list = attention(f),
		node = $("attention"),
		folded = !!folds.attention,
		part = folded ? [] : list.slice(0, ATTENTION);
	node.hidden = !list.length;
	node.classList.toggle("folded", folded);
	if (!node.firstChild)
		add(node, [
			h(
				"h2",
				{ id: "attention-title" },
				button([h("span", { class: "name" }, "Needs attention"), h("span", { class: "count" })], "fold", {
					"data-name": "attention",
				}),
			),
			h("ul"),
			h("p", { class: "more" }),
		]);
	node.querySelector(".count").textContent = list.length.toLocaleString("en");
	patch(
		node.querySelector("ul"),
		part.map(item => ({
			key: item.task.id,
			sig: JSON.stringify([item.task.version, item.kind, item.why, item.task.can, state.live]),
			make: () => attentionItem(item),
		})),
	);
	node.querySelector("h2 button").setAttribute("aria-expanded", String(!folded));
	node.querySelector("ul").hidden = folded;
	fill(node.querySelector(".more"), !folded && list.length > part.length && `${many(list.length - part.length, "more task")} in the columns below.`);
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
			totals = new Map();
		for (const t of state.tasks.values())
			if (f.archived || !t.archived_at) totals.set(t.status, (totals.get(t.status) || 0) + 1);
		for (const id of selected) if (!state.tasks.has(id)) selected.delete(id);
		const root = $("columns");
		if (!root.firstChild) root.append(...STATUSES.map(column));
		for (const node of root.children)
			drawColumn(node, node.dataset.status, cols.get(node.dataset.status), totals.get(node.dataset.status) || 0);
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
		),
		edits = list.some(t => t.can?.includes("update"));
	patch(node, [
		{
			key: "all",
			sig: JSON.stringify([list.map(t => [t.id, t.version]), names, edits, state.live]),
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
					edits && button("Add label", "bulk", { "data-name": "label", disabled: !state.live }),
					edits && button("Set priority", "bulk", { "data-name": "priority", disabled: !state.live }),
					button("Clear selection", "unpick"),
				),
		},
	]);
}
