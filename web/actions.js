// What a person can do: dialogs, calls with the version that the person saw, keys and drags. The page starts here.

import {
	state,
	STATUSES,
	CLASSES,
	ACTIONS,
	listen,
	call,
	start,
	useToken,
	requestId,
	setAddress,
	address,
	allowed,
	actionsFor,
	moveTo,
	held,
	may,
	Refusal,
} from "./model.js";
import {
	$,
	h,
	button,
	visible,
	detail,
	selected,
	fold,
	showMore,
	drawBoard,
	drawTop,
	drawView,
	drawDetail,
	setDoneToday,
	tick,
} from "./view.js";

// --- the same as a command -------------------------------------------------------------------------------------------

export function quote(value) {
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
const classWord = c => c.replace(" ", "-");

// name: { command, title, fields, args, old } ; bare: the call has no version, because it overwrites nothing
const FORMS = {
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
		note: t => held(t) && `@${t.lock.holder} holds ${t.id}. Only an admin can change it, with a reason; the holder is told.`,
		more: t => (held(t) ? [reason("Reason for the holder", true)] : []),
		extra: t => (held(t) ? { force: true } : {}),
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
		extra: () => ({ status: "ready" }),
	},
	backlog: {
		command: "update",
		title: t => `Put ${t.id} into Backlog`,
		submit: "Put into Backlog",
		fields: () => [],
		extra: () => ({ status: "backlog" }),
	},
	cancel: {
		title: t => `Cancel ${t.id}`,
		submit: "Cancel task",
		danger: true,
		fields: () => [reason("Why?", true)],
		extra: t => (held(t) ? { force: true } : {}),
		note: t => held(t) && `@${t.lock.holder} holds ${t.id} and loses the lock.`,
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

const oldValue = (t, f) => (f.name === "label" ? t.labels.join(", ") : f.name === "class" ? t.class : String(t[f.name] ?? ""));

function input(f, value) {
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

// The arguments of the call, from the form.
function argsOf(form, list, t, elements) {
	const args = t ? { id: t.id } : {};
	for (const f of list) {
		const raw = elements[f.name].value,
			value = f.long ? raw.replace(/\r\n/g, "\n") : raw.trim();
		if (form.changesOnly && t && f.name !== "reason" ? value === oldValue(t, f) : value === String(f.usual ?? "")) continue;
		args[f.name] = f.list
			? words(value)
			: f.number
				? Number(value)
				: f.name === "class"
					? classWord(value).toLowerCase()
					: f.name === "status"
						? value.toLowerCase()
						: value;
	}
	return Object.assign(args, form.extra?.(t));
}

// --- dialogs ------------------------------------------------------------------------------------------------------------

let back = null; // what had the focus before the dialog
const dialog = $("dialog");

function openDialog(title, ...content) {
	if (!dialog.open) back = document.activeElement?.dataset?.focus || null;
	dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), ...content.filter(Boolean));
	if (!dialog.open) dialog.showModal();
	(dialog.querySelector("[autofocus], textarea, input, select") || dialog.querySelector("button"))?.focus();
}
function closeDialog() {
	if (dialog.open) dialog.close();
}
dialog.addEventListener("close", () => {
	if (dialog.open) return; // the next one is open already
	dialog.replaceChildren();
	if (back && document.activeElement === document.body) document.querySelector(`[data-focus="${CSS.escape(back)}"]`)?.focus();
});

function commandBox() {
	const pre = h("pre", { class: "command", tabindex: 0, "aria-label": "The same as a command" });
	return {
		pre,
		node: h(
			"div",
			{ class: "as-command" },
			h("span", { class: "dim" }, "The same as a command"),
			pre,
			button("Copy", "copy"),
		),
	};
}

export function say(text) {
	const node = $("say");
	node.textContent = visible(text);
	clearTimeout(say.timer);
	say.timer = setTimeout(() => {
		node.textContent = "";
	}, 8000);
}

function refusalText(e, t) {
	if (e.code === "CONFLICT" && e.task && t && e.task.version !== t.version)
		return `${t.id} changed while you looked at it: it has version ${e.task.version}, you saw ${t.version}. Nothing was changed. Look at it again, then repeat the action.`;
	if (!e.status) return "There is no connection, so it is not known whether the change was made. Sending it again is safe.";
	return e.message + (e.hint ? ` (${e.hint})` : "");
}

async function act(name, id) {
	const form = FORMS[name];
	let t = id ? state.tasks.get(id) : null;
	if (!form || !state.live || (id && (!t || !allowed(name, t)))) return;
	// A heartbeat changes the version and makes no event, so a held task is read again first.
	if (t?.lock) {
		try {
			const fresh = (await call("show", { id })).task;
			t = { ...fresh, until: t.until };
		} catch (e) {
			say(refusalText(e, t));
			return;
		}
	}
	const list = [...form.fields(t), ...(form.more?.(t) || [])],
		command = form.command || name,
		positional = form.positional || (t ? ["id"] : []);
	const box = commandBox(),
		problem = h("p", { class: "problem", role: "alert" }),
		submit = h("button", { type: "submit", class: form.danger ? "danger" : "main" }, form.submit);
	const node = h(
		"form",
		{ method: "dialog" },
		form.note?.(t) && h("p", { class: "warn" }, form.note(t)),
		list.map(f => input(f, form.changesOnly && t && f.name !== "reason" ? oldValue(t, f) : String(f.usual ?? ""))),
		box.node,
		problem,
		h("div", { class: "row end" }, button("Back", "dismiss"), submit),
	);
	let sent = "",
		request = "";
	const args = () => {
		const a = argsOf(form, list, t, node.elements);
		if (t && !form.bare) a.if_version = t.version;
		return a;
	};
	const show = () => {
		box.pre.textContent = commandOf(command, args(), positional);
	};
	node.addEventListener("input", show);
	node.addEventListener("submit", async e => {
		e.preventDefault();
		const a = args(),
			text = JSON.stringify(a);
		if (text !== sent) request = requestId(); // the same call again has the same id, so it is made once
		sent = text;
		submit.disabled = true;
		problem.textContent = "";
		try {
			const r = await call(command, { ...a, request_id: request });
			closeDialog();
			say(`${form.title(t || r.task || {})}: done`);
			if (name === "create") openTask(r.task.id);
		} catch (err) {
			if (!(err instanceof Refusal)) throw err;
			problem.textContent = visible(refusalText(err, t));
			if (err.status) sent = "";
			if (err.code === "CONFLICT" && err.task && t) {
				t = { ...err.task, until: t.until };
				show();
			}
		}
		submit.disabled = false;
	});
	openDialog(form.title(t), node);
	show();
}

function moveDialog(id) {
	const t = state.tasks.get(id);
	if (!t || !state.live || !may("agent")) return;
	const ways = STATUSES.map(s => [s, moveTo(t, s)]).filter(([, n]) => n);
	openDialog(
		`Move ${id}`,
		h(
			"p",
			{ class: "dim" },
			`${id} is ${t.status}.` + (t.status === "Ready" ? " An agent moves it to In Progress when it claims it." : ""),
		),
		h(
			"ul",
			{ class: "plain menu" },
			ways.map(([status, name], i) =>
				h(
					"li",
					null,
					button([h("strong", null, status), ` ${ACTIONS[name].label}`], "do", {
						"data-name": name,
						"data-id": id,
						"data-in": "move",
						autofocus: !i,
					}),
				),
			),
		),
		!ways.length && h("p", null, "You cannot move it from here."),
		h("div", { class: "row end" }, button("Back", "dismiss")),
	);
}

function bulkDialog(name) {
	const all = [...selected].map(id => state.tasks.get(id)).filter(Boolean),
		custom = {
			label: { name: "add_label", label: "Label to add", must: true, list: true },
			priority: { name: "priority", label: "Priority (0 to 1000)", must: true, number: true },
		}[name];
	const form = custom
		? { command: "update", submit: name === "label" ? "Add label" : "Set priority", fields: () => [custom] }
		: FORMS[name];
	const tasks = all.filter(t => (custom ? allowed("edit", t) : allowed(name, t))),
		list = form.fields(tasks[0]),
		command = form.command || name;
	const box = commandBox(),
		problem = h("div", { class: "problem", role: "alert" }),
		submit = h("button", { type: "submit", class: form.danger ? "danger" : "main" }, `${form.submit} (${tasks.length})`);
	const node = h(
		"form",
		{ method: "dialog" },
		h("p", { dir: "auto" }, tasks.map(t => t.id).join(", ")),
		list.map(f => input(f, "")),
		box.node,
		problem,
		h("div", { class: "row end" }, button("Back", "dismiss"), submit),
	);
	const args = t => ({ ...argsOf(form, list, t, node.elements), if_version: t.version });
	const show = () => {
		box.pre.textContent = tasks.map(t => commandOf(command, args(t), ["id"])).join("\n");
	};
	node.addEventListener("input", show);
	node.addEventListener("submit", async e => {
		e.preventDefault();
		submit.disabled = true;
		const refused = [];
		for (const t of tasks) {
			try {
				await call(command, { ...args(t), request_id: requestId() });
				selected.delete(t.id);
			} catch (err) {
				refused.push(`${t.id}: ${refusalText(err, t)}`);
			}
		}
		say(`${tasks.length - refused.length} of ${tasks.length} tasks changed`);
		drawBoard();
		if (!refused.length) return closeDialog();
		problem.replaceChildren(
			h("p", null, `${tasks.length - refused.length} changed, ${refused.length} refused:`),
			h(
				"ul",
				null,
				refused.slice(0, 20).map(r => h("li", null, r)),
			),
		);
	});
	openDialog(custom ? form.submit : ACTIONS[name].label, node);
	show();
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
function helpDialog() {
	openDialog(
		"Keys",
		h(
			"table",
			null,
			h(
				"tbody",
				null,
				KEYS.map(([k, d]) => h("tr", null, h("th", { scope: "row" }, h("kbd", null, k)), h("td", null, d))),
			),
		),
		h(
			"p",
			{ class: "dim" },
			"Each action sends the version of the task that you saw. If an agent changed the task after that, the queue refuses the action and nothing changes.",
		),
		h("div", { class: "row end" }, button("Back", "dismiss", { autofocus: true })),
	);
}

function signIn() {
	const field = h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false" });
	const node = h(
		"form",
		null,
		h("p", { class: "dim" }, state.token || state.problem ? state.problem : ""),
		h("div", { class: "field" }, h("label", { for: "token" }, "Token"), field),
		h("p", { class: "dim" }, "`pawl token create NAME --role reader` on the server makes one."),
		h("div", { class: "row end" }, h("button", { type: "submit", class: "main" }, "Open the board")),
	);
	node.addEventListener("submit", e => {
		e.preventDefault();
		closeDialog();
		useToken(field.value.trim());
	});
	openDialog("This board needs a token", node);
}

// --- the detail ----------------------------------------------------------------------------------------------------

export function openTask(id) {
	setAddress({ task: id }, true);
}

let reading = 0;
async function readDetail() {
	const id = detail.id,
		turn = ++reading;
	if (!id || !state.live) return;
	const get = (name, args) => call(name, args).catch(() => null);
	const [show, log, next] = await Promise.all([
		get("show", { id }),
		get("log", { id, limit: 50 }),
		get("next", { explain: true, limit: 0 }),
	]);
	if (turn !== reading || detail.id !== id) return;
	const mine = next?.candidates?.find(c => c.id === id);
	detail.show = show;
	detail.events = log?.events || [];
	detail.why = mine
		? mine.eligible
			? mine.place === 1
				? "It is next."
				: `It is number ${mine.place} in the order of ${next.candidates.filter(c => c.eligible).length} eligible tasks: ${mine.why}.`
			: mine.why
		: {
				Backlog: "It is in Backlog, which is not offered.",
				Review: "It waits for a review.",
				Blocked: "It is blocked.",
				"Needs Help": "It waits for help.",
			}[state.tasks.get(id)?.status] || "";
	drawDetail();
}
let soon = 0;
function readSoon() {
	clearTimeout(soon);
	soon = setTimeout(readDetail, 150);
}

function syncDetail() {
	const id = address().get("task") || "";
	if (id !== detail.id) {
		const before = detail.id;
		Object.assign(detail, { id, show: null, events: [], why: "" });
		drawDetail();
		$("detail").scrollTop = 0;
		readDetail();
		if (id) $("detail").querySelector("button")?.focus({ preventScroll: true });
		else document.querySelector(`[data-focus="card:${CSS.escape(before)}"]`)?.focus();
	} else drawDetail();
}

let todaySoon = 0;
function readToday() {
	if (address().get("view") !== "agents" || !state.live) return;
	clearTimeout(todaySoon);
	todaySoon = setTimeout(async () => {
		const midnight = new Date();
		midnight.setHours(0, 0, 0, 0);
		try {
			const { report } = await call("report", { since: midnight.toISOString() });
			setDoneToday(new Map(report.agents.map(a => [a.agent, a.done])));
		} catch {
			// the table shows what there is
		}
	}, 100);
}

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
	view: d => setAddress({ view: d.view }, true),
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

document.addEventListener("click", e => {
	const node = e.target.closest?.("[data-act]");
	if (!node || node.disabled) return;
	if (node.tagName === "A") e.preventDefault();
	CLICKS[node.dataset.act]?.(node.dataset, node);
});

for (const [id, name] of [
	["f-label", "label"],
	["f-class", "class"],
	["f-holder", "holder"],
])
	$(id).addEventListener("change", e => setAddress({ [name]: e.target.value }));
$("f-archived").addEventListener("change", e => setAddress({ archived: e.target.checked ? "1" : "" }));
$("queue").addEventListener("change", e => {
	location.hash = new URLSearchParams({ queue: e.target.value });
});
let typing = 0;
$("q").addEventListener("input", () => {
	clearTimeout(typing);
	typing = setTimeout(() => setAddress({ q: $("q").value.trim() }), 120);
});

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

document.addEventListener("keydown", e => {
	const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && e.target.type !== "checkbox";
	if (dialog.open || e.ctrlKey || e.metaKey || e.altKey) return;
	if (e.key === "Escape" && typing && e.target.id === "q") {
		e.target.blur();
		$("q").value = "";
		setAddress({ q: "" });
		return;
	}
	if (e.key === "Escape" && detail.id) return setAddress({ task: "" });
	if (typing) return;
	const card = e.target.closest?.(".card")?.querySelector(".open"),
		id = card?.dataset.id || detail.id,
		t = state.tasks.get(id),
		key = e.key.toLowerCase();
	const done = () => e.preventDefault();
	if (e.key.startsWith("Arrow") && card) {
		arrow(e.key, card);
		return done();
	}
	if (e.key.startsWith("Arrow") && e.target === document.body) {
		goTo(document.querySelector("#columns .open"));
		return done();
	}
	if (key === "/") {
		$("q").focus();
		$("q").select();
		return done();
	}
	if (key === "?") {
		helpDialog();
		return done();
	}
	if (key === "n" && may("agent")) {
		act("create");
		return done();
	}
	if (key === "p" && may("admin")) {
		act(state.paused ? "resume" : "pause");
		return done();
	}
	if (!t) return;
	if (key === "m") {
		moveDialog(id);
		return done();
	}
	if (key === "s" && may("agent") && card) {
		CLICKS.pick({ id });
		return done();
	}
	const name = actionsFor(t).find(n => ACTIONS[n].key === key);
	if (name) {
		act(name, id);
		return done();
	}
});

// --- drags ----------------------------------------------------------------------------------------------------------

let dragged = "";
document.addEventListener("dragstart", e => {
	dragged = e.target.closest?.(".card")?.dataset.id || "";
	if (!dragged) return;
	e.dataTransfer.setData("text/plain", dragged);
	e.dataTransfer.effectAllowed = "move";
	const t = state.tasks.get(dragged);
	for (const c of document.querySelectorAll(".column")) c.dataset.drop = moveTo(t, c.dataset.status) ? "yes" : "no";
});
document.addEventListener("dragend", () => {
	dragged = "";
	for (const c of document.querySelectorAll(".column")) delete c.dataset.drop;
});
document.addEventListener("dragover", e => {
	if (e.target.closest?.(".column")?.dataset.drop === "yes") e.preventDefault();
});
document.addEventListener("drop", e => {
	const column = e.target.closest?.(".column"),
		t = state.tasks.get(dragged),
		name = column && t && moveTo(t, column.dataset.status);
	e.preventDefault();
	if (name) act(name, t.id);
});

// --- updates -----------------------------------------------------------------------------------------------------------

let drawing = false,
	news = [];
function drawSoon() {
	if (drawing) return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		drawBoard();
		drawView();
		drawDetail();
	});
}

function tell({ event: e }) {
	if (e.task && !e.task.startsWith("@")) news.push(`${e.task}: ${e.event}${e.agent ? " by " + e.agent : ""}`);
	clearTimeout(tell.timer);
	tell.timer = setTimeout(() => {
		say(news.length > 2 ? `${news.length} changes; the last: ${news.at(-1)}` : news.join("; "));
		news = [];
	}, 400);
}

listen((what, data) => {
	if (what === "tasks") drawSoon();
	if (what === "event") {
		tell(data);
		if (data.event.task === detail.id) readSoon();
		readToday();
	}
	if (what === "live") {
		drawTop();
		drawSoon();
		if (state.live) readSoon();
		readToday();
	}
	if (what === "me" || what === "rest") {
		drawTop();
		drawSoon();
	}
	if (what === "address") {
		drawTop();
		drawSoon();
		syncDetail();
		readToday();
	}
	if (what === "denied") {
		drawTop();
		signIn();
	}
});

setInterval(tick, 1000);
setInterval(() => {
	if (state.live) drawSoon();
}, 5000); // leases expire and tasks become overdue without an event
start();
drawTop();
syncDetail();
