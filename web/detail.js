// The detail of a task: all that the queue knows about it.

import { $, h, add, button, patch, keepFocus, clock } from "./dom.js";
import { state, address, setAddress, overdue } from "./model.js";
import { ACTIONS, actionsFor, target } from "./can.js";
import { call } from "./link.js";
import { leaseBar, leaseText, tick } from "./card.js";
import { markdown, LONG } from "./markdown.js";
import { related, relatedSig } from "./related.js";

export const detail = { id: "", show: null, events: [], why: "" };

// --- its parts -------------------------------------------------------------------------------------------------------

function head(more) {
	return h(
		"div",
		{ class: "head" },
		h(
			"div",
			{ class: "row" },
			h("span", { class: "id" }, detail.id),
			more,
			h("span", { class: "grow" }),
			button("Close", "close", { "aria-keyshortcuts": "Escape" }),
		),
	);
}

function headOf(t) {
	const names = actionsFor(t),
		tool = (label, act, key, name) =>
			button(label, act, {
				"data-name": name,
				"data-id": t.id,
				"data-in": "detail",
				disabled: !state.live,
				"aria-keyshortcuts": key?.toUpperCase(),
			});
	return add(head(h("span", { class: "chip", "data-status": t.status }, t.status)), [
		h("h2", { dir: "auto" }, t.title),
		h(
			"div",
			{ class: "row acts" },
			names.map(n => tool(ACTIONS[n].label, "do", ACTIONS[n].key, n)),
			names.some(target) && tool("Move…", "move", "m"),
		),
	]);
}

function lock(t) {
	return (
		t.lock &&
		h(
			"section",
			{ class: "box" },
			h("h3", null, t.lock.live ? "Held" : t.lock.abandoned ? "Abandoned" : "Lease expired"),
			h(
				"p",
				{ class: "row" },
				h("strong", { dir: "auto" }, "@" + t.lock.holder),
				t.lock.host && h("span", { class: "dim" }, "on " + t.lock.host),
				h("span", null, "fence " + t.fence),
				leaseText(t),
			),
			t.until > 0 && leaseBar(t),
			h("p", { class: "dim" }, "since ", clock(t.lock.acquired_at)),
		)
	);
}

function text(title, value, md) {
	return value && h("section", null, h("h3", null, title), md ? markdown(value) : h("p", { dir: "auto" }, value));
}

// Does the reason explain the present status? Otherwise it tells how an earlier attempt ended.
function stopped(t) {
	return ["Blocked", "Needs Help", "Failed", "Canceled"].includes(t.status);
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
		"section",
		null,
		h("h3", null, "Fields"),
		h(
			"dl",
			null,
			rows
				.filter(([, v]) => v !== undefined && v !== "" && v !== null)
				.map(([k, v]) => [h("dt", null, k), h("dd", { dir: "auto" }, typeof v === "number" ? String(v) : v)]),
		),
		t.extra && h("pre", { tabindex: 0 }, JSON.stringify(t.extra, null, 1).slice(0, LONG)),
	);
}

function comment(c) {
	return h("li", null, h("span", { class: "dim" }, c.agent || "", " ", clock(c.at)), markdown(c.text || ""));
}

function attempt(a) {
	return h(
		"li",
		null,
		`fence ${a.fence}: `,
		h("strong", { dir: "auto" }, a.agent || ""),
		" ",
		clock(a.at),
		a.outcome && ` → ${a.outcome}`,
		a.text && h("div", { class: "quote", dir: "auto" }, a.text),
	);
}

function event(e) {
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

const list = (title, items, make, kind = "") =>
	items?.length > 0 && h("section", null, h("h3", null, title), h("ul", { class: "plain " + kind }, items.map(make)));

// --- the whole -------------------------------------------------------------------------------------------------------

const part = (key, sig, make) => ({ key, sig: JSON.stringify(sig), make: () => make() || h("span", { hidden: true }) });

function parts(t) {
	const now = [t, state.live],
		r = detail.show;
	return [
		part("head", now, () => headOf(t)),
		part("lock", now, () => lock(t)),
		part("why", [detail.why, t.status], () => {
			const why = !t.ended && text("Why it is not next", detail.why);
			why && why.classList.add("box");
			return why;
		}),
		part(
			"blocked",
			[t.blocker_reason, t.unblock_action, t.status],
			() =>
				t.blocker_reason &&
				h(
					"section",
					{ class: "box" },
					text(stopped(t) ? "Reason" : "Last reason", t.blocker_reason),
					t.status === "Blocked" && text("What must be done", t.unblock_action),
				),
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
		part("related", relatedSig(t, r?.dependents), () => related(t, r?.dependents)),
		part("fields", now, () => fields(t)),
		part("comments", [r?.comments], () => list("Comments", r?.comments, comment, "comments")),
		part("attempts", [r?.attempts], () => list("Attempts", r?.attempts, attempt)),
		part("events", [detail.events], () => list("Events", detail.events.slice().reverse(), event)),
	];
}

export function drawDetail() {
	const node = $("detail"),
		t = state.tasks.get(detail.id);
	node.hidden = !detail.id;
	document.body.classList.toggle("has-detail", !!detail.id);
	if (!detail.id) node.replaceChildren();
	else
		keepFocus(() => {
			const none = () =>
				h("div", null, head(), h("p", null, state.loaded ? "This task is not in the queue." : "reconnecting"));
			patch(node, t ? parts(t) : [part("none", [detail.id, state.loaded], none)]);
			tick();
		});
}

// --- reading it ------------------------------------------------------------------------------------------------------

export function openTask(id) {
	setAddress({ task: id }, true);
}

function whyNotNext(t) {
	if (t?.position === 1) return "It is next.";
	return t?.position ? `It is number ${t.position} in the order: ${t.why}.` : t?.why || "";
}

let reading = 0;
async function readDetail() {
	const id = detail.id,
		turn = ++reading;
	if (!id || !state.live) return;
	const get = (name, args) => call(name, args).catch(() => null);
	const [show, log] = await Promise.all([get("show", { id }), get("log", { id, limit: 50 })]);
	if (turn !== reading || detail.id !== id) return;
	Object.assign(detail, { show, events: log?.events || [], why: whyNotNext(show?.task) });
	drawDetail();
}

// Reads it again within this time.
let soon = 0,
	due = Infinity;
export function readSoon(ms = 150) {
	if (!detail.id || due <= Date.now() + ms) return;
	clearTimeout(soon);
	due = Date.now() + ms;
	soon = setTimeout(() => {
		due = Infinity;
		readDetail();
	}, ms);
}

// Follows the address: opens the task that it names, and gives the focus back to its card afterwards.
export function syncDetail() {
	const id = address().get("task") || "",
		before = detail.id;
	if (id === before) return drawDetail();
	Object.assign(detail, { id, show: null, events: [], why: "" });
	drawDetail();
	$("detail").scrollTop = 0;
	readDetail();
	if (id) $("detail").querySelector("button")?.focus({ preventScroll: true });
	else document.querySelector(`[data-focus="card:${CSS.escape(before)}"]`)?.focus();
}
