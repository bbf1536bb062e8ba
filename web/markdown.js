// Markdown as elements: a subset, made from text nodes only.

import { h } from "./dom.js";

export const LONG = 100000; // characters of a text that are shown at once

const INLINE =
	/`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s()<>]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{0,2000}[^\s<>()"'`.,;:!?])/g;

function link(url, text) {
	return h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, text);
}

function inline(text) {
	const out = [];
	let at = 0;
	for (const m of text.matchAll(INLINE)) {
		out.push(text.slice(at, m.index));
		at = m.index + m[0].length;
		if (m[1]) out.push(h("code", null, m[1]));
		else if (m[2]) out.push(h("strong", null, m[2]));
		else if (m[3]) out.push(h("em", null, m[3]));
		else out.push(link(m[5] || m[6], m[4] || m[6]));
	}
	out.push(text.slice(at));
	return out;
}

const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s+(.*)$/;
function block(lines, out) {
	const first = lines[0],
		item = ITEM.exec(first);
	let m;
	if ((m = /^(#{1,6})\s+(.*)$/.exec(first))) {
		out.push(h("h" + Math.min(6, m[1].length + 3), null, inline(m[2])));
		if (lines.length > 1) block(lines.slice(1), out);
	} else if (item) {
		const list = h(/^\s*\d/.test(first) ? "ol" : "ul");
		let text = [];
		const flush = () => {
			if (text.length)
				list.append(
					h(
						"li",
						null,
						text.flatMap(l => [...inline(l), " "]),
					),
				);
		};
		for (const l of lines) {
			const next = ITEM.exec(l);
			if (next) {
				flush();
				text = [next[1].replace(/^\[ \]\s/, "☐ ").replace(/^\[[xX]\]\s/, "☑ ")];
			} else text.push(l.trim());
		}
		flush();
		out.push(list);
	} else if (first.startsWith("|")) {
		out.push(h("pre", { tabindex: 0 }, lines.join("\n")));
	} else if (first.startsWith(">")) {
		out.push(
			h(
				"blockquote",
				null,
				lines.flatMap(l => [...inline(l.replace(/^>\s?/, "")), h("br")]),
			),
		);
	} else {
		const cut = lines.findIndex((l, i) => i && (ITEM.test(l) || /^#{1,6}\s/.test(l)));
		const mine = cut > 0 ? lines.slice(0, cut) : lines;
		out.push(
			h(
				"p",
				{ dir: "auto" },
				mine.flatMap((l, i) => (i ? [h("br"), ...inline(l)] : inline(l))),
			),
		);
		if (cut > 0) block(lines.slice(cut), out);
	}
}

export function markdown(text) {
	const cut = text.length > LONG,
		out = [];
	let lines = [],
		fence = null;
	const flush = () => {
		if (lines.length) block(lines, out);
		lines = [];
	};
	for (const line of (cut ? text.slice(0, LONG) : text).replace(/\r\n?/g, "\n").split("\n")) {
		const mark = /^\s*(```|~~~)/.exec(line);
		if (fence !== null) {
			if (mark) {
				out.push(h("pre", { tabindex: 0 }, h("code", null, fence.join("\n"))));
				fence = null;
			} else fence.push(line);
		} else if (mark) {
			flush();
			fence = [];
		} else if (/^\s*([-*_]\s*){3,}$/.test(line)) {
			flush();
			out.push(h("hr"));
		} else if (line.trim()) {
			if (lines.length > 500) flush();
			lines.push(line);
		} else flush();
	}
	if (fence) out.push(h("pre", { tabindex: 0 }, h("code", null, fence.join("\n"))));
	flush();
	if (cut)
		out.push(
			h(
				"p",
				{ class: "dim" },
				`The text has ${text.length.toLocaleString("en")} characters; the first ${LONG.toLocaleString("en")} are shown.`,
			),
		);
	return h("div", { class: "md", dir: "auto" }, out);
}
