// scene: what the scripted model does in both clients, and how a transcript of it is written.
//
// A transcript has sections: '== TITLE' and the text as the model got it. Only the parts that differ from one run to
// the next have other words: SESSION, HOST, N.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

// One whole task, and on the way what a model meets: the shell, a task of another agent, a wrong id, a repeated call.
export const script = [
	{ tool: 'next', input: { claim: true } },
	{ tool: 'heartbeat', input: { id: 't1' } },
	{ shell: 'echo hello >hello.txt && pawl heartbeat t1' },
	{ tool: 'comment', input: { id: 't1', text: 'hello.txt is written' } },
	{ tool: 'claim', input: { id: 't2' } },
	{ tool: 'show', input: { id: 't9' } },
	{ tool: 'done', input: { id: 't1', summary: 'hello.txt says hello' } },
	{ tool: 'done', input: { id: 't1', summary: 'hello.txt says hello' } },
	{ tool: 'next', input: { claim: true } },
];

export const titleOf = ({ tool, input, shell }) => shell ? `shell ${shell}` : `call ${tool} ${JSON.stringify(input)}`;

// toolSection: a tool as [title, text], with the keys of its schema in one order, since Codex sorts them
export function toolSection({ name, description, schema }) {
	const { type, properties, required, ...rest } = schema;
	assert.equal(type, 'object');
	assert.deepEqual(rest, {}, name);
	const lines = Object.keys(properties).sort().map((key) =>
		`${key}${required?.includes(key) ? ' (required)' : ''}: ${JSON.stringify(sorted(properties[key]))}`);
	return [`tool ${name}`, [description, ...lines].join('\n')];
}

function sorted(value) {
	if (Array.isArray(value) || value === null || typeof value !== 'object')
		return value;
	return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

export function plain(text) {
	return text
		.replace(/(?<=You are \w+@)\S+(?=\.$)/m, 'HOST')
		.replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'SESSION')
		.replace(/(?<="(?:expires_in|wait)":)\d+/g, 'N')
		.replace(/(?<=for another )\d+\w+(?: \d+\w+)?/g, 'N')
		.replace(/(?<=Wall time: )[\d.]+/g, 'N')
		.replace(/^Chunk ID: \w+$/m, 'Chunk ID: N')
		.replace(/(?<=^Original token count: )\d+$/m, 'N')
		.trimEnd();
}

// compare: these sections with those of the same titles in FILE; with `all`, FILE must have no others. PAWL_TEST_WRITE
// writes FILE instead (only with `all`).
export function compare(file, sections, all) {
	const text = sections.map(([title, body]) => `== ${title}\n${plain(body)}\n\n`).join('');
	if (all && process.env.PAWL_TEST_WRITE)
		writeFileSync(file, text);
	const expected = readFileSync(file, 'utf8');
	if (all)
		return assert.equal(text, expected);
	const titles = new Set(sections.map(([title]) => title));
	const parts = expected.split(/^(?=== )/m).filter((part) => titles.has(part.slice(3, part.indexOf('\n'))));
	assert.equal(text, parts.join(''));
}
