// run.mjs CLIENT: starts Claude Code (claude) or Codex (codex) in this folder with a scripted model, and compares what
// the model got to read with CLIENT.txt. agents.bats has set up the folder, HOME, and in PATH a `pawl` that keeps notes.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as claude from './claude.mjs';
import * as codex from './codex.mjs';
import { serve } from './model.mjs';
import { compare, script, titleOf } from './scene.mjs';

const [name] = process.argv.slice(2);
const client = { claude, codex }[name];
const steps = client.steps(script);
const model = await serve([...steps.map((step) => [client.call(step)]), 'The queue has no more work for me.']);

function run({ from, file, args, env }) {
	const launcher = `${dirname(createRequire(`${process.env.FROM_NPM}/`).resolve(`${from}/package.json`))}/${file}`;
	const nowhere = { HTTPS_PROXY: model.url, HTTP_PROXY: model.url, NO_PROXY: '127.0.0.1' }; // the model refuses to be a proxy
	const { HOME, PATH, USER, TZ } = process.env;
	return new Promise((resolve, reject) => {
		const child = spawn(process.execPath, [launcher, ...args],
			{ env: { HOME, PATH, USER, TZ, TERM: 'dumb', ...nowhere, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
		let out = '';
		child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
		child.on('error', reject);
		child.on('close', (code) => resolve({ code, out }));
	});
}

const { code, out } = await run(client.start(model.url));
model.close();
const events = out.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
assert.equal(code, 0, out);
assert.equal(model.requests.length, steps.length + 1, out);
assert.deepEqual(model.strangers, [], `${name} asked for more than its model`);

// notes: what the `pawl` in PATH saw of each call of it
const notes = readdirSync(process.env.NOTES).filter((file) => file.endsWith('.call')).map((file) => {
	const path = `${process.env.NOTES}/${file}`;
	const [args, ...env] = readFileSync(path, 'utf8').trimEnd().split('\n');
	return { args, env: Object.fromEntries(env.map((line) => line.split('='))), input: readFileSync(path.replace('.call', '.in'), 'utf8') };
});
const session = client.session(events);
assert.match(session, /^[0-9a-f-]{36}$/);
client.check({ notes, session, first: model.requests[0] });
for (const kind of ['hook start', 'hook end', 'mcp'])
	assert.equal(notes.filter((n) => n.args === kind).length, 1, `${name} calls pawl ${kind}`);
assert.ok(notes.some((n) => n.args === 'hook beat'));
for (const note of notes.filter((n) => n.args.startsWith('hook ')))
	assert.equal(JSON.parse(note.input).session_id, session, note.args);

// The server, the shell and the hooks are one run: the client's session.
const log = JSON.parse(spawnSync(process.env.PAWL, ['log', 't1', '--json'], { encoding: 'utf8' }).stdout);
const own = log.events.filter((event) => event.agent.startsWith(`${name}@`));
assert.deepEqual(own.map((event) => event.event), ['claimed', 'comment', 'done']);
for (const event of own)
	assert.equal(event.run, session, event.event);

const last = model.requests.at(-1);
const answers = client.answers(model.requests);
assert.equal(answers.length, steps.length);
compare(`${import.meta.dirname}/${name}.txt`, [
	['start of a session', client.greeting(model.requests[0])],
	['instructions', client.instructions(model.requests[0])],
	...client.tools(last),
	...steps.map((step, i) => [step.load ? `load ${step.load.join(' ')}` : titleOf(step), answers[i]]),
], true);
