// Building blocks of the page. Text of tasks reaches the page only as text nodes: nothing here makes HTML from strings.

export const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// Characters that change the direction of the text around them, or that cannot be seen, are spelled out as in the
// terminal: the list is that of deceives() in src/base/text.c, without tab and line feed. test/cli/terminal.bats compares them.
const DECEIVES =
	/[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{61c}\u{115f}-\u{1160}\u{180e}\u{200b}\u{200e}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{d800}-\u{dfff}\u{feff}\u{ffa0}\u{fff9}-\u{fffb}\u{e0000}-\u{e0fff}]/gu;
export const visible = text =>
	String(text).replace(DECEIVES, c => {
		const n = c.codePointAt(0).toString(16);
		return c < "\x80" ? "\\x" + n.padStart(2, "0") : `\\u{${n}}`;
	});

export function add(node, children) {
	for (const c of children.flat(9))
		if (c !== null && c !== undefined && c !== false && c !== "") node.append(c instanceof Node ? c : visible(c));
	return node;
}

export function set(node, props) {
	for (const [k, v] of Object.entries(props || {}))
		if (v !== undefined && v !== null && v !== false)
			node.setAttribute(k, v === true ? "" : k === "title" || k === "aria-label" ? visible(v) : v);
	return node;
}

export const h = (tag, props, ...children) => add(set(document.createElement(tag), props), children);
export const svg = (tag, props, ...children) => add(set(document.createElementNS(SVG, tag), props), children);
export const fill = (node, ...children) => {
	node.replaceChildren();
	return add(node, children);
};

export function button(label, act, props = {}) {
	const focus = `${act}:${props["data-id"] || props["data-name"] || ""}:${props["data-in"] || ""}`;
	return h("button", { type: "button", "data-act": act, "data-focus": focus, ...props }, label);
}

// Makes the children of a node those of the list: { key, sig, make }. Nodes whose signature is the same stay.
export function patch(parent, items) {
	const old = new Map(Array.from(parent.children, n => [n.dataset.key, n]));
	let at = parent.firstElementChild;
	for (const { key, sig, make } of items) {
		let node = old.get(key);
		old.delete(key);
		if (!node || node.sig !== sig) {
			const fresh = make();
			fresh.dataset.key = key;
			fresh.sig = sig;
			if (node) {
				if (at === node) at = node.nextElementSibling;
				node.remove();
			}
			node = fresh;
		}
		if (at === node) at = at.nextElementSibling;
		else parent.insertBefore(node, at);
	}
	for (const node of old.values()) node.remove();
}

// Draws, and puts the focus back on the same thing, or on the card that took its place.
export function keepFocus(draw) {
	const was = document.activeElement,
		key = was?.dataset?.focus,
		column = was?.closest?.(".column"),
		place = column ? [...column.querySelectorAll(".open")].indexOf(was) : -1;
	draw();
	if (!key || (document.activeElement === was && was.isConnected)) return;
	let now = document.querySelector(`[data-focus="${CSS.escape(key)}"]`);
	if (!now && place >= 0) {
		const cards = [
			...(document.querySelector(`.column[data-status="${column.dataset.status}"]`)?.querySelectorAll(".open") || []),
		];
		now = cards[Math.min(place, cards.length - 1)];
	}
	now?.focus({ preventScroll: true });
}

export function ago(text) {
	const s = Math.round((Date.now() - Date.parse(text)) / 1000);
	return s < 0 ? "in " + span(-s) : s < 5 ? "now" : span(s) + " ago";
}
export function span(s) {
	s = Math.max(0, Math.round(s));
	return s < 60
		? `${s}s`
		: s < 3600
			? `${Math.floor(s / 60)}m ${s % 60}s`
			: s < 172800
				? `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`
				: `${Math.floor(s / 86400)}d`;
}
export const clock = text => h("time", { datetime: text, title: text }, new Date(text).toLocaleString());
export const many = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
