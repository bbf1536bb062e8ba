// claude: how Claude Code is started, and where its model finds things in a request.
import assert from 'node:assert/strict';
import { toolSection } from './scene.mjs';

const prefix = 'mcp__pawl__';

// It defers tools: those without alwaysLoad must be asked for first.
export function steps(script) {
	const rest = ['block', 'claim', 'comment', 'create', 'heartbeat', 'list', 'release', 'review', 'show'];
	return [script[0], { load: rest }, ...script.slice(1)];
}

export function call({ tool, input, shell, load }) {
	if (load)
		return { name: 'ToolSearch', input: { query: `select:${load.map((name) => prefix + name)}`, max_results: load.length } };
	return shell ? { name: 'Bash', input: { command: shell } } : { name: prefix + tool, input };
}

export function start(url) {
	return {
		from: '@anthropic-ai/claude-code',
		file: 'cli-wrapper.cjs',
		args: ['-p', 'Work on a task of the queue.', '--output-format', 'stream-json', '--verbose',
			'--model', 'claude-sonnet-4-5', '--allowedTools', 'Bash,mcp__pawl'],
		env: {
			ANTHROPIC_BASE_URL: url,
			ANTHROPIC_API_KEY: 'none',
			CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
			DISABLE_AUTOUPDATER: '1',
			// A busy machine needs longer than it waits by itself for its servers and for the hooks at the end.
			MCP_CONNECTION_NONBLOCKING: 'false',
			MCP_CONNECT_TIMEOUT_MS: '120000',
			MCP_TIMEOUT: '120000',
			CLAUDE_CODE_MCP_STARTUP_WAIT_MS: '120000',
			CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: '60000',
		},
	};
}

export const session = (events) => events.find((e) => e.type === 'system' && e.subtype === 'init').session_id;

const texts = (request) => request.messages[0].content.map((block) => block.text);
const reminder = (text) => text.replace(/^<system-reminder>\n|\n<\/system-reminder>\s*$/g, '');
const find = (request, head) => {
	const found = texts(request).map(reminder).find((text) => text.startsWith(head));
	assert.ok(found, `no ${head}`);
	return found.slice(head.length).trimStart();
};

export const greeting = (request) => find(request, 'SessionStart:startup hook success:');

export function instructions(request) {
	return find(request, '# MCP Server Instructions').split(/^## /m).find((part) => part.startsWith('pawl\n')).slice(5);
}

export function tools(request) {
	return request.tools.filter((tool) => tool.name.startsWith(prefix))
		.sort((a, b) => (a.name < b.name ? -1 : 1))
		.map(({ name, description, input_schema }) => toolSection({ name: name.slice(prefix.length), description, schema: input_schema }));
}

// answers: the result of each call, from the request that brought it
export function answers(requests) {
	return requests.slice(1).map(({ messages }) => {
		const { content } = messages.at(-1).content.find((block) => block.type === 'tool_result');
		const text = typeof content === 'string' ? content : content.map((block) => block.tool_name ?? block.text).join('\n');
		return text.replace(/\n\n<system-reminder>[^]*<\/system-reminder>\s*$/, '');
	});
}

export function check({ notes, session, first }) {
	for (const note of notes)
		assert.equal(note.env.CLAUDE_CODE_SESSION_ID, session, note.args);
	const shown = first.tools.map((tool) => tool.name).filter((name) => name.startsWith(prefix));
	assert.deepEqual(shown.sort(), [`${prefix}done`, `${prefix}next`]); // anthropic/alwaysLoad
	assert.ok(texts(first).some((text) => text.includes('\n- pawl: Take, keep and finish tasks')), 'the skill is not offered');
}
