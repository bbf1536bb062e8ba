// Actions on one task, on several, and on the queue. Each call carries the version of the task that the user saw.

import { h, button, visible } from "./dom.js";
import { state, STATUSES } from "./model.js";
import { ACTIONS, allowed, forced, moveTo } from "./can.js";
import { call, requestId, Refusal } from "./link.js";
import { FORMS, input, argsOf, fieldsOf, firstValues, commandOf } from "./forms.js";
import { openDialog, closeDialog, dialogForm, say } from "./dialog.js";
import { openTask } from "./detail.js";
import { selected } from "./card.js";
import { drawBoard } from "./board.js";

function refusalText(e, t) {
	if (e.code === "CONFLICT" && e.task && t && e.task.version !== t.version)
		return `${t.id} changed while you were looking at it: it has version ${e.task.version}, you saw ${t.version}. Nothing was changed. Look at it again, then repeat the action.`;
	if (!e.status) return "There is no connection, so it is not known whether the change was made. Sending it again is safe.";
	return e.message + (e.hint ? ` (${e.hint})` : "");
}

// --- one task, or the queue ------------------------------------------------------------------------------------------

// A heartbeat changes the version and makes no event, so a held task is read again first. undefined: it cannot be read.
async function taskToChange(id) {
	const t = state.tasks.get(id);
	if (!t.lock) return t;
	try {
		return { ...(await call("show", { id })).task, until: t.until };
	} catch (e) {
		say(refusalText(e, t));
	}
}

export async function act(name, id) {
	const form = FORMS[name],
		known = state.tasks.get(id);
	if (!form || !state.live || (id && (!known || !allowed(name, known)))) return;
	const t = id ? await taskToChange(id) : null;
	if (t !== undefined) openForm(name, form, t);
}

function openForm(name, form, t) {
	const force = !!t && forced(name, t),
		list = fieldsOf(form, t, force),
		values = firstValues(form, t, list),
		command = form.command || name,
		positional = form.positional || (t ? ["id"] : []);
	const args = elements => {
		const a = argsOf(form, list, t, elements, values, force);
		if (t && !form.bare) a.if_version = t.version;
		return a;
	};
	const note = form.note?.(t, force),
		content = [note && h("p", { class: "warn" }, note), list.map(f => input(f, values[f.name]))];
	const f = dialogForm(content, form.submit, form.danger, e => commandOf(command, args(e), positional));
	const send = sender(command);
	f.node.addEventListener("submit", async e => {
		e.preventDefault();
		f.submit.disabled = true;
		f.problem.textContent = "";
		try {
			const r = await send(args(f.node.elements));
			closeDialog();
			say(`${form.title(t || r.task || {})}: done`);
			if (name === "create") openTask(r.task.id);
		} catch (err) {
			if (!(err instanceof Refusal)) throw err;
			f.problem.textContent = visible(refusalText(err, t));
			if (err.code === "CONFLICT" && err.task && t) t = { ...err.task, until: t.until };
			f.show();
		}
		f.submit.disabled = false;
	});
	openDialog(form.title(t), f.node);
	f.show();
}

// Sends a call. If an answer was lost and the user repeats the call, it keeps its request id, so the queue makes the change once.
function sender(command) {
	let sent = "",
		id = "";
	return async args => {
		const text = JSON.stringify(args);
		if (text !== sent) id = requestId();
		sent = text;
		try {
			return await call(command, { ...args, request_id: id });
		} catch (e) {
			if (e.status) sent = "";
			throw e;
		}
	};
}

export function moveDialog(id) {
	const t = state.tasks.get(id);
	if (!t || !state.live || !t.can?.length) return;
	const ways = STATUSES.map(s => [s, moveTo(t, s)]).filter(([, n]) => n);
	const way = ([status, name], i) =>
		h(
			"li",
			null,
			button([h("strong", null, status), ` ${ACTIONS[name].label}`], "do", {
				"data-name": name,
				"data-id": id,
				"data-in": "move",
				autofocus: !i,
			}),
		);
	openDialog(
		`Move ${id}`,
		h(
			"p",
			{ class: "dim" },
			`${id} is ${t.status}.` + (t.status === "Ready" ? " An agent moves it to In Progress when it claims it." : ""),
		),
		h("ul", { class: "plain menu" }, ways.map(way)),
		!ways.length && h("p", null, "You cannot move it from here."),
		h("div", { class: "row end" }, button("Back", "dismiss")),
	);
}

// --- several tasks ---------------------------------------------------------------------------------------------------

const BULK = {
	label: {
		command: "update",
		submit: "Add label",
		fields: () => [{ name: "add_label", label: "Label to add", must: true, list: true }],
	},
	priority: {
		command: "update",
		submit: "Set priority",
		fields: () => [{ name: "priority", label: "Priority (0 to 1000)", must: true, number: true }],
	},
};

// Returns the refusals. A task that was changed leaves the selection.
async function changeAll(tasks, command, args) {
	const refused = [];
	for (const t of tasks) {
		try {
			await call(command, { ...args(t), request_id: requestId() });
			selected.delete(t.id);
		} catch (err) {
			refused.push(`${t.id}: ${refusalText(err, t)}`);
		}
	}
	return refused;
}

export function bulkDialog(name) {
	const form = BULK[name] || FORMS[name],
		tasks = [...selected].map(id => state.tasks.get(id)).filter(t => t && (BULK[name] ? t.can?.includes("update") : allowed(name, t))),
		list = BULK[name] ? form.fields() : fieldsOf(form, tasks[0], tasks.some(t => forced(name, t))),
		values = firstValues(form, tasks[0], list),
		command = form.command || name;
	const args = (t, elements) => ({ ...argsOf(form, list, t, elements, values, !BULK[name] && forced(name, t)), if_version: t.version });
	const content = [h("p", { dir: "auto" }, tasks.map(t => t.id).join(", ")), list.map(f => input(f, ""))];
	const f = dialogForm(content, `${form.submit} (${tasks.length})`, form.danger, e =>
		tasks.map(t => commandOf(command, args(t, e), ["id"])).join("\n"),
	);
	f.node.addEventListener("submit", async e => {
		e.preventDefault();
		f.submit.disabled = true;
		const refused = await changeAll(tasks, command, t => args(t, f.node.elements)),
			changed = tasks.length - refused.length;
		say(`${changed} of ${tasks.length} tasks changed`);
		drawBoard();
		if (!refused.length) return closeDialog();
		f.problem.replaceChildren(
			h("p", null, `${changed} changed, ${refused.length} refused:`),
			h(
				"ul",
				null,
				refused.slice(0, 20).map(r => h("li", null, r)),
			),
		);
	});
	openDialog(BULK[name] ? form.submit : ACTIONS[name].label, f.node);
	f.show();
}
