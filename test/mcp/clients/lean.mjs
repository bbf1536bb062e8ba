// lean.mjs REVISION: what a model gets of each answer, through the official clients: its size, repeats, and hints. A
// token is four bytes here, rounded up. Clients show a model either the object or the text, so both keep the limit.
import assert from 'node:assert/strict';
import { connect, refused, tool } from './kit.mjs';

const revision = process.argv[2];
const alice = await connect(revision, '--agent', 'claude@workstation-12/parser');
const bob = await connect(revision, '--agent', 'codex@build-host/release-2.1');
const tools = (await alice.listTools()).tools;
const tokens = (text) => Math.ceil(Buffer.byteLength(text) / 4);

const limits = { change: 100, refusal: 80, claim: 150, news: 300, list: 1200, tools: 2500, seen: 1400 };
const task = { title: 'Replace the parser', description: 'Generate it from the grammar. '.repeat(40), acceptance: 'make test passes' };
const own = tokens(task.title + task.description + task.acceptance);

assert.ok(tokens(JSON.stringify(tools)) <= limits.tools);
assert.ok(tokens(JSON.stringify(tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })))) <= limits.seen);
for (const t of tools)
	assert.equal(t._meta?.['anthropic/alwaysLoad'] === true, ['next', 'done'].includes(t.name), t.name);

// No answer names a shell command; every call in a hint is one of a tool that is there.
function check(result, most, what) {
	const text = result.content[0].text;
	const object = JSON.stringify(result.structuredContent);
	for (const form of [text, object]) {
		assert.ok(tokens(form) <= most, `${what}: ${tokens(form)} tokens, more than ${most}: ${form}`);
		assert.doesNotMatch(form, /\bpawl [a-z]|--[a-z]/, what);
	}
	assert.doesNotMatch(object, /"(pid|boot_id|host|token|\w+_at)":/, what);
	for (const [, name] of (result.structuredContent.error?.hint ?? '').matchAll(/\b([a-z_]+) [a-z_]+=/g))
		assert.ok(tools.some((t) => t.name === name), `${what}: there is no tool ${name}`);
}

async function answer(client, name, args, most, code) {
	const result = await client.callTool({ name, arguments: args });
	assert.equal(result.structuredContent.error?.code, code, `${name} ${JSON.stringify(args)}: ${result.content[0].text}`);
	check(result, most, `${name} ${JSON.stringify(args)}`);
	return result.structuredContent;
}

// client, tool, arguments, limit, code of a refusal
const table = [
	[alice, 'create', task, limits.change],
	[alice, 'create', task, limits.change],
	[alice, 'create', task, limits.change],
	[alice, 'create', task, limits.change],
	[alice, 'next', {}, own + limits.claim],
	[alice, 'next', { claim: true }, own + limits.claim],
	[alice, 'claim', { id: 't1' }, limits.refusal, 'CONFLICT'],
	[alice, 'heartbeat', { id: 't1' }, limits.change],
	[alice, 'comment', { id: 't1', text: 'half done' }, limits.change],
	[bob, 'claim', { id: 't1' }, limits.refusal, 'CONFLICT'],
	[bob, 'done', { id: 't1' }, limits.refusal, 'CONFLICT'],
	[bob, 'done', { id: 't2' }, limits.refusal, 'MISCONFIGURED'],
	[bob, 'show', { id: 'nine' }, limits.refusal, 'NOT_FOUND'],
	[alice, 'done', { id: 't1', summary: 's', claim_next: true }, limits.change + own + limits.claim],
	[alice, 'review', { id: 't2', summary: 's' }, limits.change],
	[alice, 'done', { id: 't2' }, limits.refusal, 'MISCONFIGURED'],
	[alice, 'claim', { id: 't3' }, own + limits.claim],
	[alice, 'block', { id: 't3', reason: 'r', unblock_action: 'u' }, limits.change],
	[alice, 'heartbeat', { id: 't3' }, limits.refusal, 'MISCONFIGURED'],
	[alice, 'claim', { id: 't4' }, own + limits.claim],
	[alice, 'release', { id: 't4', reason: 'r' }, limits.change],
];
const first = new Map();
for (const [client, name, args, most, code] of table) {
	const got = await answer(client, name, args, most, code);
	if (['done', 'review', 'block', 'release'].includes(name) && !code)
		first.set(name, [args, most, got]);
}
const own_claim = await refused(alice, 'claim', { id: 't1' }, 'MISCONFIGURED');
assert.ok(own_claim.error.hint.includes('next claim=true'));

// repeats: the first answer again, and nothing else changes
for (const [name, [args, most, got]] of first) {
	const { repeated, ...again } = await answer(alice, name, args, most);
	assert.equal(repeated, true, name);
	if (name === 'done') { // since then the next task went to review
		assert.equal('next' in again, false);
		assert.equal(again.hint, 'next claim=true takes another task');
	} else
		assert.deepEqual(again, got, name);
}

// lists
for (let i = 0; i < 60; i++)
	await tool(alice, 'create', { title: `Write test number ${i} of the new parser` });
const page = await answer(alice, 'list', {}, limits.list);
assert.equal(page.count, 50);
const rest = await answer(alice, 'list', { after: page.more.split('after=')[1] }, limits.list);
assert.equal(page.count + rest.count, rest.total);

// comments
for (let i = 0; i < 10; i++)
	await tool(bob, 'comment', { id: 't4', text: `${i} `.repeat(400) });
const news = await answer(bob, 'claim', { id: 't4' }, own + limits.claim + limits.news);
assert.ok(news.more.includes('show id=t4 full=true'));
assert.equal((await tool(bob, 'show', { id: 't4', full: true })).comments.length, 10);

await alice.close();
await bob.close();
