// The page starts here: it draws again whenever the state changes.

import { state, listen, address } from "./model.js";
import { start } from "./link.js";
import { tick } from "./card.js";
import { drawBoard } from "./board.js";
import { drawTop, drawView } from "./top.js";
import { detail, drawDetail, readSoon, syncDetail } from "./detail.js";
import { readToday } from "./agents.js";
import { say, signIn } from "./dialog.js";
import { listenToUser } from "./keys.js";

let drawing = false;
function drawSoon() {
	if (drawing) return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		if (!address().get("view")) drawBoard();
		drawView();
		drawDetail();
	});
}

// Several changes in a short time are one message: a screen reader must be able to finish it.
let news = [],
	telling = 0;
function tell({ event: e }) {
	if (e.task && !e.task.startsWith("@")) news.push(`${e.task}: ${e.event}${e.agent ? " by " + e.agent : ""}`);
	telling ||= setTimeout(() => {
		say(news.length > 2 ? `${news.length} changes; the last: ${news.at(-1)}` : news.join("; "), true);
		news = [];
		telling = 0;
	}, 400);
}

const ON = {
	tasks: drawSoon,
	event: data => {
		tell(data);
		readSoon(data.event.task === detail.id ? 150 : 1000); // other tasks decide why it is not next
		readToday();
	},
	live: () => {
		drawTop();
		drawSoon();
		if (state.live) readSoon();
		readToday();
	},
	me: () => {
		drawTop();
		drawSoon();
	},
	rest: () => {
		drawTop();
		drawSoon();
	},
	address: () => {
		drawTop();
		drawSoon();
		syncDetail();
		readToday();
	},
	denied: () => {
		drawTop();
		signIn();
	},
};

listen((what, data) => ON[what]?.(data));
listenToUser();
setInterval(tick, 1000);
setInterval(() => {
	if (state.live) drawSoon();
}, 5000); // tasks become overdue without an event
start();
drawTop();
syncDetail();
