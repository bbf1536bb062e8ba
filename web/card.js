// A card, and the time left of a lease, on cards and elsewhere.

import { h, many, span } from "./dom.js";
import { state, waitsFor, overdue } from "./model.js";

export const selected = new Set();

const LEFT = new WeakMap(); // bars and texts of leases -> task
export function leaseBar(t) {
	const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("i"));
	LEFT.set(bar, t);
	return bar;
}
export function leaseText(t) {
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
			const text = !t.lock.live
				? "lease expired"
				: !t.until
					? "no lease"
					: !state.live
						? "time left unknown"
						: `${span(left)} left`;
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
				h("span", { class: "holder", dir: "auto", title: t.lock.holder }, "@" + t.lock.holder),
				h("span", null, "fence " + t.fence),
				leaseText(t),
			),
		);
	if (t.lock && t.until) lines.push(leaseBar(t));
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

export function card(t) {
	const acts = t.can?.length > 0;
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
export function cardSig(t) {
	return JSON.stringify([
		t.version,
		t.status,
		t.until,
		waitsFor(t),
		overdue(t),
		selected.has(t.id),
		t.lock?.live,
		t.can,
		state.live,
		!!t.archived_at,
	]);
}
