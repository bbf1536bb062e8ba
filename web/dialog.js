// The one dialog of the page, and the line that tells what happened.

import { $, h, button, visible } from "./dom.js";
import { state } from "./model.js";
import { useToken } from "./link.js";

let back = null; // what had the focus before the dialog
export const dialog = $("dialog");

export function openDialog(title, ...content) {
	if (!dialog.open) back = document.activeElement?.dataset?.focus || null;
	dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), ...content.filter(Boolean));
	if (!dialog.open) dialog.showModal();
	(dialog.querySelector("[autofocus], textarea, input, select") || dialog.querySelector("button"))?.focus();
}

export function closeDialog() {
	if (dialog.open) dialog.close();
}

dialog.addEventListener("close", () => {
	if (dialog.open) return; // the next one is open already
	dialog.replaceChildren();
	if (back && document.activeElement === document.body) document.querySelector(`[data-focus="${CSS.escape(back)}"]`)?.focus();
});

// A form with the command that does the same, a place for a refusal, and its buttons. onInput gives the command.
export function dialogForm(content, label, danger, onInput) {
	const pre = h("pre", { class: "command", tabindex: 0, "aria-label": "The same as a command" }),
		problem = h("div", { class: "problem", role: "alert" }),
		submit = h("button", { type: "submit", class: danger ? "danger" : "main" }, label);
	const node = h(
		"form",
		{ method: "dialog" },
		content,
		h("div", { class: "as-command" }, h("span", { class: "dim" }, "The same as a command"), pre, button("Copy", "copy")),
		problem,
		h("div", { class: "row end" }, button("Back", "dismiss"), submit),
	);
	const show = () => {
		pre.textContent = onInput(node.elements);
	};
	node.addEventListener("input", show);
	return { node, problem, submit, show };
}

// quiet: only for a screen reader; changes by others would cover the cards all the time.
let until = 0;
export function say(text, quiet) {
	$("say").className = quiet ? "quiet" : "";
	$("say").textContent = visible(text);
	clearTimeout(until);
	until = setTimeout(() => $("say").replaceChildren(), 8000);
}

const KEYS = [
	["/", "search"],
	["Arrows", "go to another card or column"],
	["Enter", "open the task"],
	["M", "move the task to another status"],
	["S", "select the task, for actions on several"],
	["N", "new task"],
	["C", "comment"],
	["E", "edit"],
	["A", "approve"],
	["R", "rework: send back"],
	["U", "unblock"],
	["X", "cancel the task"],
	["B", "break the lock"],
	["P", "pause or resume the queue"],
	["Esc", "close"],
	["?", "this help"],
];

export function helpDialog() {
	const row = ([key, does]) => h("tr", null, h("th", { scope: "row" }, h("kbd", null, key)), h("td", null, does));
	openDialog(
		"Keys",
		h("table", { class: "keys" }, h("tbody", null, KEYS.map(row))),
		h(
			"p",
			{ class: "dim" },
			"Each action sends the version of the task that you saw. If an agent changed the task after that, the queue refuses the action and nothing changes.",
		),
		h("div", { class: "row end" }, button("Back", "dismiss", { autofocus: true })),
	);
}

export function signIn() {
	const field = h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false" });
	const node = h(
		"form",
		null,
		state.token && state.problem && h("p", { class: "problem" }, state.problem),
		h("div", { class: "field" }, h("label", { for: "token" }, "Token"), field),
		h(
			"p",
			{ class: "dim" },
			"The server prints an address with a token when it starts. To make one for somebody else: ",
			h("code", null, "pawl token create NAME --role reader"),
		),
		h("div", { class: "row end" }, h("button", { type: "submit", class: "main" }, "Open the board")),
	);
	node.addEventListener("submit", e => {
		e.preventDefault();
		closeDialog();
		useToken(field.value.trim());
	});
	openDialog("This board needs a token", node);
}
