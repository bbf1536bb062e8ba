// What the caller may do on the queue and to each task. The server decides: /whoami has the calls on the queue, and each task has its own.

import { state } from "./model.js";

export const may = call => !!state.me?.can.includes(call);

// name: { label, key, call: as in `can` of a task, if it is not the name }
export const ACTIONS = {
	approve: { label: "Approve", key: "a" },
	rework: { label: "Rework", key: "r" },
	unblock: { label: "Unblock", key: "u" },
	retry: { label: "Retry" },
	reopen: { label: "Reopen" },
	ready: { label: "Make Ready", call: "update --status ready" },
	backlog: { label: "Put into Backlog", call: "update --status backlog" },
	edit: { label: "Edit", key: "e", call: "update" },
	comment: { label: "Comment", key: "c" },
	cancel: { label: "Cancel task", key: "x" },
	archive: { label: "Archive" },
	lock_break: { label: "Break lock", key: "b", call: "lock break" },
};

const callOf = name => ACTIONS[name]?.call || name;
const can = (t, call) => !!t.can?.includes(call);
// Must the call override the holder, with a reason?
export const forced = (name, t) => !can(t, callOf(name)) && can(t, callOf(name) + " --force");
export const allowed = (name, t) => can(t, callOf(name)) || forced(name, t);
export const actionsFor = t => Object.keys(ACTIONS).filter(name => allowed(name, t));
// The status that the action leads to; undefined: it changes none.
export const target = name => state.me?.moves[callOf(name)];
// The action that moves the task to the column; undefined: there is none.
export const moveTo = (t, status) => actionsFor(t).find(name => target(name) === status);
