// codex: how Codex is started, and where its model finds things in a request.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { toolSection } from './scene.mjs';

const namespace = 'mcp__pawl';

export const steps = (script) => script;

// A login shell would take PATH from /etc/profile.
export function call({ tool, input, shell }) {
	return shell ? { name: 'exec_command', input: { cmd: shell, login: false } } : { namespace, name: tool, input };
}

export function start(url) {
	const settings = [
		'model="scripted"',
		'model_provider="scripted"',
		`model_providers.scripted={name="scripted",base_url="${url}/v1",wire_api="responses",env_key="MODEL_KEY"}`,
		'analytics.enabled=false',
		'check_for_update_on_startup=false',
		...['apps', 'plugins', 'remote_plugin'].map((feature) => `features.${feature}=false`),
	];
	return {
		from: '@openai/codex',
		file: 'bin/codex.js',
		args: ['exec', '--json', '--sandbox', 'danger-full-access', '--dangerously-bypass-hook-trust',
			...settings.flatMap((setting) => ['-c', setting]), 'Work on a task of the queue.'],
		env: { MODEL_KEY: 'none' },
	};
}

export const session = (events) => events.find((e) => e.type === 'thread.started').thread_id;

const texts = (request) => request.input.filter((item) => item.type === 'message').flatMap((item) => item.content.map((part) => part.text));
const server = (request) => request.tools.find((tool) => tool.type === 'namespace' && tool.name === namespace);

export const greeting = (request) => texts(request).find((text) => text.startsWith('pawl: '));
export const instructions = (request) => server(request).description;

export function tools(request) {
	return server(request).tools.map(({ name, description, parameters }) => toolSection({ name, description, schema: parameters }));
}

export function answers(requests) {
	return requests.at(-1).input.filter((item) => item.type === 'function_call_output').map((item) => item.output);
}

export function check({ notes, session, first }) {
	for (const note of notes.filter((n) => !/^(hook|mcp)/.test(n.args)))
		assert.equal(note.env.CODEX_THREAD_ID, session, note.args);
	const calls = notes.find((n) => n.args === 'mcp').input.split('\n').filter(Boolean).map((line) => JSON.parse(line))
		.filter((message) => message.method === 'tools/call');
	assert.ok(calls.length > 0);
	for (const { params } of calls)
		assert.equal(params._meta.threadId, session, params.name);
	assert.ok(texts(first).some((text) => text.includes(readFileSync('AGENTS.md', 'utf8').trim())), 'AGENTS.md is not shown');
}
