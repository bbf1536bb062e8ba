// The top of the page: the connection, the views, the queue, the actions on the whole queue, and notices.

import { $, h, set, fill, button, patch, keepFocus, visible, ago } from "./dom.js";
import { state, address } from "./model.js";
import { may } from "./can.js";
import { drawAgents } from "./agents.js";
import { drawCharts } from "./charts.js";

function drawLink() {
	const pill = $("link");
	pill.dataset.live = state.live ? "yes" : "no";
	pill.textContent = state.live ? "live" : state.saved ? "snapshot" : "reconnecting";
	document.body.classList.toggle("stale", !state.live && !state.saved);
}

function drawQueue() {
	const names = state.queues.map(q => q.name),
		current = state.queue || state.queues.find(q => q.current)?.name || "",
		sig = JSON.stringify([names, current]);
	$("queue-pick").hidden = names.length < 2 || !!state.me?.queue;
	if ($("queue").sig !== sig)
		fill(
			$("queue"),
			names.map(n => h("option", { value: n, selected: n === current }, n)),
		);
	$("queue").sig = sig;
	$("queue-name").textContent = names.length > 1 || state.queue ? visible(current) : "";
	document.title = (current && names.length > 1 ? visible(current) + " · " : "") + "pawl";
}

function tools() {
	const tool = (label, name, props) => button(label, "do", { "data-name": name, disabled: !state.live, ...props });
	return h(
		"span",
		{ class: "row" },
		state.me && h("span", { class: "dim me", dir: "auto" }, `${state.me.agent || state.me.name || ""} (${state.me.role})`),
		may("create") && tool("New task", "create", { class: "main", "aria-keyshortcuts": "N" }),
		may("pause") && tool(state.paused ? "Resume" : "Pause", state.paused ? "resume" : "pause"),
		may("emergency on") &&
			tool(state.emergency ? "End emergency" : "Emergency", state.emergency ? "emergency_off" : "emergency_on"),
		button("?", "help", { "aria-label": "Help: keys", "aria-keyshortcuts": "?" }),
	);
}

// A view that is not live must not look live.
function notices() {
	const { saved, live, loaded, problem, seenAt, emergency, paused } = state,
		list = [];
	if (saved) list.push(["wait", `This is a snapshot of ${new Date(saved).toLocaleString()}. It does not change.`]);
	else if (!live && loaded)
		list.push([
			"late",
			`reconnecting: this is the queue as it was at ${new Date(seenAt).toLocaleTimeString()}. It may have changed.`,
		]);
	else if (!live && !problem) list.push(["wait", "reconnecting: waiting for the server."]);
	if (emergency)
		list.push(["late", `Emergency, the queue is read-only: ${emergency.reason} (${emergency.by}, ${ago(emergency.since)})`]);
	if (paused)
		list.push([
			"wait",
			`${paused.by} paused the queue (${ago(paused.since)})${paused.reason ? ": " + paused.reason : ""}. Agents get no new tasks.`,
		]);
	return list;
}

export function drawTop() {
	keepFocus(() => {
		const view = address().get("view") || "";
		drawLink();
		drawQueue();
		for (const b of $("views").children)
			set(b, { "aria-current": b.dataset.view === view ? "page" : "false", "data-focus": "view:" + b.dataset.view });
		patch($("tools"), [
			{ key: "t", sig: JSON.stringify([state.me, !!state.paused, !!state.emergency, state.live]), make: tools },
		]);
		patch(
			$("notices"),
			notices().map(([kind, text]) => ({
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
	if (view) $("attention").hidden = true;
	$("filters").hidden = !!view;
	$("agents").hidden = view !== "agents";
	$("charts").hidden = view !== "charts";
	if (view === "agents") drawAgents();
	if (view === "charts") drawCharts();
}
