// Four charts, as inline SVG: throughput, cycle time, age of open work, open work by status.

import { $, h, svg, patch, span } from "./dom.js";
import { state, STATUSES } from "./model.js";

const WIDTH = 480,
	HEIGHT = 140,
	DAYS = 14,
	DAY = 86400000;
const AGES = [
	["< 1 h", 36e5],
	["< 8 h", 288e5],
	["< 1 d", DAY],
	["< 3 d", 3 * DAY],
	["< 7 d", 7 * DAY],
	["< 30 d", 30 * DAY],
	["older", Infinity],
];

// A long name needs two lines to stay within its bar.
const nameLines = name => (name.length > 7 ? name.split(" ") : [name]);

// One bar: { name, n, text }; text is shown in place of the number.
function bar({ name, n, text }, i, step, top, named) {
	const height = (n / top) * (HEIGHT - 24),
		middle = i * step + step / 2;
	return svg(
		"g",
		null,
		svg("rect", {
			x: i * step + step * 0.15,
			y: HEIGHT - Math.max(height, n ? 2 : 0),
			width: step * 0.7,
			height: Math.max(height, n ? 2 : 0),
			rx: 3,
			class: "fill",
		}),
		n > 0 && svg("text", { x: middle, y: HEIGHT - height - 6, class: "n" }, text || String(n)),
		named && nameLines(name).map((line, k) => svg("text", { x: middle, y: HEIGHT + 17 + 15 * k, class: "axis" }, line)),
	);
}

function chart(title, note, data, unit) {
	const top = Math.max(...data.map(d => d.n)) || 1,
		step = WIDTH / data.length,
		every = Math.ceil(data.length / 7),
		words = data.filter(d => d.n).map(d => `${d.name}: ${d.text || d.n}`);
	return h(
		"figure",
		null,
		h("figcaption", null, h("h3", null, title), h("p", { class: "dim" }, note)),
		!words.length && h("p", { class: "none" }, "Nothing yet."),
		words.length > 0 &&
			svg(
				"svg",
				{ viewBox: `0 0 ${WIDTH} ${HEIGHT + 38}`, role: "img", "aria-label": `${title}, ${unit}. ${words.join(", ")}` },
				data.map((d, i) => bar(d, i, step, top, (data.length - 1 - i) % every === 0)),
				svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT, class: "axis" }),
			),
	);
}

const dayOf = ms => {
	const d = new Date(ms);
	return `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, "0")}-${String(d.getDate()).padStart(2, "0")}`;
};

function doneByDay(all) {
	const done = new Map(Array.from({ length: DAYS }, (_, i) => [dayOf(Date.now() - (DAYS - 1 - i) * DAY), []]));
	for (const t of all) if (t.status === "Done" && t.done_at) done.get(dayOf(Date.parse(t.done_at)))?.push(t);
	return [...done];
}

function median(list) {
	const took = list
		.filter(t => t.first_started_at)
		.map(t => (Date.parse(t.done_at) - Date.parse(t.first_started_at)) / 1000)
		.sort((a, b) => a - b);
	return took.length ? took[took.length >> 1] : 0;
}

function cycle([day, list]) {
	const m = median(list);
	return { name: day.slice(5), n: m, text: m < 1 ? "< 1s" : span(m) };
}

function byAge(open) {
	const count = AGES.map(() => 0);
	for (const t of open) count[AGES.findIndex(([, most]) => Date.now() - Date.parse(t.created_at) < most)]++;
	return AGES.map(([name], i) => ({ name, n: count[i] }));
}

const byStatus = all =>
	STATUSES.filter(s => s !== "Done" && s !== "Canceled").map(s => ({
		name: s,
		n: all.filter(t => t.status === s && !t.archived_at).length,
	}));

export function drawCharts() {
	const all = [...state.tasks.values()],
		days = doneByDay(all);
	const data = [
		days.map(([day, list]) => ({ name: day.slice(5), n: list.length })),
		days.map(cycle),
		byAge(all.filter(t => !t.ended)),
		byStatus(all),
	];
	const make = () =>
		h(
			"section",
			{ "aria-labelledby": "charts-title" },
			h("h2", { id: "charts-title" }, "Charts"),
			h(
				"div",
				{ class: "charts" },
				chart("Throughput", "Tasks done on each of the last 14 days", data[0], "tasks"),
				chart("Cycle time", "Median from the first claim to Done, by day of Done", data[1], "time"),
				chart("Age of open work", "Open tasks by the time since they were created", data[2], "tasks"),
				chart("Open work by status", "Tasks that are not finished, by the status that they wait in", data[3], "tasks"),
			),
		);
	patch($("charts"), [{ key: "c", sig: JSON.stringify(data), make }]);
}
