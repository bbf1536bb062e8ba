// The actions as data: the texts that each asks for, the call that it makes, and the same call as a command.

import { h, visible } from "./dom.js";
import { state, CLASSES } from "./model.js";

// --- the same as a command -------------------------------------------------------------------------------------------

function quote(value) {
	const text = String(value);
	if (/^[A-Za-z0-9_./:@%+=,-]+$/.test(text)) return text;
	if (visible(text) === text) return `'${text.replaceAll("'", "'\\''")}'`;
	return `$'${visible(text.replace(/[\\']/g, "\\$&")).replaceAll("\n", "\\n")}'`;
}

export function commandOf(name, args, positional) {
	const options = [],
		words = positional.filter(k => args[k] !== undefined).map(k => args[k]);
	for (const [k, v] of Object.entries(args)) {
		if (positional.includes(k) || v === undefined || v === false) continue;
		const option = "--" + k.replaceAll("_", "-");
		for (const one of Array.isArray(v) ? (v.length ? v : [""]) : [v])
			options.push(one === true ? option : `${option} ${quote(one)}`);
	}
	if (state.queue) options.push("--queue " + quote(state.queue));
	const safe = words.every(w => !String(w).startsWith("-"));
	const all = safe ? [...words.map(quote), ...options] : [...options, "--", ...words.map(quote)];
	return ["pawl", name.replaceAll("_", " "), ...all].join(" ");
}

// --- forms -----------------------------------------------------------------------------------------------------------

const reason = (label, must) => ({ name: "reason", label, must, long: true });
const words = text => text.split(/[\s,]+/).filter(Boolean);
const FIELDS = [
	{ name: "title", label: "Title", must: true },
	{ name: "description", label: "Description (Markdown)", long: true },
	{ name: "acceptance", label: "Finished when", long: true },
	{ name: "class", label: "Class", choice: CLASSES, usual: "Standard" },
	{ name: "priority", label: "Priority (0 to 1000)", number: true, usual: 2 },
	{ name: "label", label: "Labels (with commas)", list: true },
	{ name: "due", label: "Due (2026-11-20, friday 17:00, in 3 days)" },
	{ name: "assignee", label: "Assignee" },
	{ name: "type", label: "Type" },
	{ name: "effort", label: "Effort" },
];

// name: { command, title, submit, fields, ... }
//   bare: the call has no version, because it overwrites nothing
//   changesOnly: the form shows the task as it is, and the call has only the fields that the user changed
//   extra: further arguments, note(t, force): a warning; force: the call overrides the holder
export const FORMS = {
	create: {
		title: () => "New task",
		submit: "Create",
		bare: true,
		positional: ["title"],
		fields: () => [
			...FIELDS,
			{ name: "depends", label: "Depends on (ids)", list: true },
			{ name: "parent", label: "Parent (id)" },
			{ name: "status", label: "Status", choice: ["Ready", "Backlog"], usual: "Ready" },
		],
	},
	edit: {
		command: "update",
		title: t => `Edit ${t.id}`,
		submit: "Save",
		fields: () => FIELDS,
		changesOnly: true,
		note: (t, force) => force && `@${t.lock.holder} holds ${t.id}. Your change overrides the holder, who is told the reason.`,
	},
	comment: {
		title: t => `Comment on ${t.id}`,
		submit: "Comment",
		bare: true,
		positional: ["id", "text"],
		fields: () => [{ name: "text", label: "Comment (Markdown)", must: true, long: true }],
	},
	approve: {
		title: t => `Approve ${t.id}`,
		submit: "Approve",
		fields: () => [{ name: "summary", label: "Comment (may be empty)", long: true }],
	},
	rework: { title: t => `Send ${t.id} back`, submit: "Send back", fields: () => [reason("What is still missing?", true)] },
	unblock: { title: t => `Unblock ${t.id}`, submit: "Unblock", fields: () => [reason("What has changed? (may be empty)")] },
	retry: { title: t => `Retry ${t.id}`, submit: "Retry", fields: () => [reason("Why may it work now? (may be empty)")] },
	reopen: { title: t => `Reopen ${t.id}`, submit: "Reopen", fields: () => [reason("Why is it not finished?", true)] },
	ready: {
		command: "update",
		title: t => `Make ${t.id} Ready`,
		submit: "Make Ready",
		fields: () => [],
		extra: { status: "ready" },
	},
	backlog: {
		command: "update",
		title: t => `Put ${t.id} into Backlog`,
		submit: "Put into Backlog",
		fields: () => [],
		extra: { status: "backlog" },
	},
	cancel: {
		title: t => `Cancel ${t.id}`,
		submit: "Cancel task",
		danger: true,
		fields: () => [reason("Why?", true)],
		note: (t, force) => force && `@${t.lock.holder} holds ${t.id} and loses the lock.`,
	},
	archive: { title: t => `Archive ${t.id}`, submit: "Archive", fields: () => [] },
	lock_break: {
		title: t => `Break the lock of ${t.id}`,
		submit: "Break lock",
		danger: true,
		fields: () => [reason("Why? The log keeps it.", true)],
		note: t => t.lock && `@${t.lock.holder} loses the lock (fence ${t.fence}) and learns of it at its next call.`,
	},
	pause: {
		title: () => "Pause the queue",
		submit: "Pause",
		bare: true,
		fields: () => [reason("Why? Everybody who asks for work sees it. (may be empty)")],
	},
	resume: { title: () => "Resume the queue", submit: "Resume", bare: true, fields: () => [reason("Why? (may be empty)")] },
	emergency_on: {
		title: () => "Declare an emergency",
		submit: "Make the queue read-only",
		bare: true,
		danger: true,
		fields: () => [reason("Why? Every refusal shows it.", true)],
		note: () => "pawl backs up the queue and refuses every change until the emergency ends.",
	},
	emergency_off: {
		title: () => "End the emergency",
		submit: "End the emergency",
		bare: true,
		fields: () => [reason("How did it end? (may be empty)")],
	},
};

// The fields of the form; an override needs a reason.
export function fieldsOf(form, t, force) {
	const list = form.fields(t);
	return force && !list.some(f => f.name === "reason") ? [...list, reason("Reason for the holder", true)] : list;
}

// The texts that a form shows at first, as its elements give them back.
function firstValue(form, t, f) {
	const own = form.changesOnly && f.name !== "reason",
		value = !own ? f.usual : f.name === "label" ? t.labels.join(", ") : t[f.name],
		text = String(value ?? "");
	return f.long ? text.replace(/\r\n?/g, "\n") : text.trim();
}
export const firstValues = (form, t, list) => Object.fromEntries(list.map(f => [f.name, firstValue(form, t, f)]));

export function input(f, value) {
	const id = "in-" + f.name,
		props = { id, name: f.name, required: f.must, "data-focus": id, autocomplete: "off" };
	let node;
	if (f.choice)
		node = h(
			"select",
			props,
			f.choice.map(c => h("option", { value: c, selected: c === value }, c)),
		);
	else if (f.long) {
		node = h("textarea", { ...props, rows: f.name === "description" ? 6 : 3, dir: "auto" });
		node.value = value;
	} else {
		node = h("input", {
			...props,
			type: f.number ? "number" : "text",
			min: f.number ? 0 : null,
			max: f.number ? 1000 : null,
			dir: "auto",
		});
		node.value = value;
	}
	return h("div", { class: "field" }, h("label", { for: id }, f.label), node);
}

// The arguments of the call, from the form. values: the texts that it showed at first, by the names of the fields. They are
// not those of the task as it is now, so a field that an agent has changed since then keeps the agent's value.
export function argsOf(form, list, t, elements, values, force) {
	const args = t ? { id: t.id } : {};
	for (const f of list) {
		const raw = elements[f.name].value,
			value = f.long ? raw : raw.trim();
		if (value === values[f.name]) continue;
		if (f.list) args[f.name] = words(value);
		else if (f.number) args[f.name] = Number(value);
		else if (f.choice) args[f.name] = value.replace(" ", "-").toLowerCase();
		else args[f.name] = value;
	}
	return Object.assign(args, form.extra, force ? { force } : {});
}

