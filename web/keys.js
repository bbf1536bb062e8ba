// Clicks, keys and drags.

import { $ } from "./dom.js";
import { state, setAddress } from "./model.js";
import { ACTIONS, actionsFor, moveTo, may } from "./can.js";
import { dialog, closeDialog, helpDialog, say } from "./dialog.js";
import { act, moveDialog, bulkDialog } from "./actions.js";
import { detail, openTask } from "./detail.js";
import { selected } from "./card.js";
import { fold, showMore, drawBoard } from "./board.js";

// --- clicks ----------------------------------------------------------------------------------------------------------

const CLICKS = {
	open: d => {
		closeDialog();
		openTask(d.id);
	},
	close: () => setAddress({ task: "" }),
	do: d => {
		closeDialog();
		act(d.name, d.id);
	},
	move: d => moveDialog(d.id),
	bulk: d => bulkDialog(d.name),
	pick: d => {
		selected.has(d.id) ? selected.delete(d.id) : selected.add(d.id);
		drawBoard();
	},
	unpick: () => {
		selected.clear();
		drawBoard();
	},
	fold: d => fold(d.name),
	more: d => showMore(d.name),
	view: d => {
		setAddress({ view: d.view }, true);
		scrollTo(0, 0);
	},
	clear: () => {
		$("q").value = "";
		setAddress({ q: "", label: "", class: "", holder: "", archived: "" });
		$("q").focus();
	},
	help: helpDialog,
	dismiss: closeDialog,
	skip: () => (document.querySelector(".open[tabindex='0']") || $("main")).focus(),
	copy: async (d, node) => {
		const text = node.parentNode.querySelector("pre").textContent;
		try {
			await navigator.clipboard.writeText(text);
			say("copied");
		} catch (e) {
			getSelection().selectAllChildren(node.parentNode.querySelector("pre"));
			say("selected: copy it with your browser");
		}
	},
};

function onClick(e) {
	const node = e.target.closest?.("[data-act]");
	if (!node || node.disabled) return;
	if (node.tagName === "A") e.preventDefault();
	CLICKS[node.dataset.act]?.(node.dataset, node);
}

let typing = 0;
function listenToFilters() {
	for (const name of ["label", "class", "holder"])
		$("f-" + name).addEventListener("change", e => setAddress({ [name]: e.target.value }));
	$("f-archived").addEventListener("change", e => setAddress({ archived: e.target.checked ? "1" : "" }));
	$("queue").addEventListener("change", e => {
		location.hash = new URLSearchParams({ queue: e.target.value });
	});
	$("q").addEventListener("input", () => {
		clearTimeout(typing);
		typing = setTimeout(() => setAddress({ q: $("q").value.trim() }), 120);
	});
}

// --- keys -----------------------------------------------------------------------------------------------------------

function goTo(card) {
	if (!card) return;
	for (const c of card.closest("ul").querySelectorAll(".open")) c.tabIndex = c === card ? 0 : -1;
	card.focus();
	card.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function arrow(key, card) {
	const lists = [...document.querySelectorAll("#columns .cards")]
		.map(ul => [...ul.querySelectorAll(".open")])
		.filter(l => l.length);
	const col = lists.findIndex(l => l.includes(card)),
		row = lists[col].indexOf(card),
		to = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[key];
	const list = lists[col + to[0]];
	if (list) goTo(list[Math.max(0, Math.min(list.length - 1, row + to[1]))]);
}

// Keys of the whole page. true: the key is used.
function pageKey(key) {
	if (key === "/") {
		$("q").focus();
		$("q").select();
	} else if (key === "?") helpDialog();
	else if (key === "n" && may("create")) act("create");
	else if (key === "p" && may("pause")) act(state.paused ? "resume" : "pause");
	else return false;
	return true;
}

// Keys of the task that has the focus, or that is open.
function taskKey(key, id, card) {
	const t = state.tasks.get(id),
		name = t && actionsFor(t).find(n => ACTIONS[n].key === key);
	if (!t) return false;
	if (key === "m") moveDialog(id);
	else if (key === "s" && t.can?.length && card) CLICKS.pick({ id });
	else if (name) act(name, id);
	else return false;
	return true;
}

function arrowKey(key, target, card) {
	if (!key.startsWith("Arrow")) return false;
	if (card) arrow(key, card);
	else if (target === document.body) goTo(document.querySelector("#columns .open"));
	else return false;
	return true;
}

// Escape leaves the search, then the open task.
function escapeKey(target) {
	if (target.id === "q") {
		target.blur();
		target.value = "";
		setAddress({ q: "" });
	} else if (detail.id) setAddress({ task: "" });
}

// The arrows go up and down in a menu, as Tab does.
function menuKey(e) {
	const list = [...dialog.querySelectorAll(".menu button")],
		at = list.indexOf(document.activeElement),
		step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
	if (at < 0 || !step) return;
	list[(at + step + list.length) % list.length].focus();
	e.preventDefault();
}

function onKey(e) {
	const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && e.target.type !== "checkbox",
		card = e.target.closest?.(".card")?.querySelector(".open");
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	if (dialog.open) return menuKey(e);
	if (e.key === "Escape") return escapeKey(e.target);
	if (typing) return;
	const key = e.key.toLowerCase(),
		id = card?.dataset.id || detail.id;
	if (arrowKey(e.key, e.target, card) || pageKey(key) || taskKey(key, id, card)) e.preventDefault();
}

// --- drags ----------------------------------------------------------------------------------------------------------

let dragged = "";

function onDragStart(e) {
	dragged = e.target.closest?.(".card")?.dataset.id || "";
	if (!dragged) return;
	e.dataTransfer.setData("text/plain", dragged);
	e.dataTransfer.effectAllowed = "move";
	const t = state.tasks.get(dragged);
	for (const c of document.querySelectorAll(".column")) c.dataset.drop = moveTo(t, c.dataset.status) ? "yes" : "no";
}

function onDragOver(e) {
	if (e.target.closest?.(".column")?.dataset.drop === "yes") e.preventDefault();
}

function onDragEnd() {
	dragged = "";
	for (const c of document.querySelectorAll(".column")) delete c.dataset.drop;
}

function onDrop(e) {
	const column = e.target.closest?.(".column"),
		t = state.tasks.get(dragged),
		name = column && t && moveTo(t, column.dataset.status);
	e.preventDefault();
	if (name) act(name, t.id);
}

export function listenToUser() {
	document.addEventListener("click", onClick);
	document.addEventListener("keydown", onKey);
	document.addEventListener("dragstart", onDragStart);
	document.addEventListener("dragover", onDragOver);
	document.addEventListener("dragend", onDragEnd);
	document.addEventListener("drop", onDrop);
	listenToFilters();
}
