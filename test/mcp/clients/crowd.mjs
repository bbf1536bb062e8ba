// crowd.mjs N TASKS: N servers, each with its own client, half of them of each protocol version, and all of one version under one name. A
// single task has one winner; each of TASKS is done once.
import assert from 'node:assert/strict';
import { connect, tool } from './kit.mjs';

const [n, tasks] = process.argv.slice(2).map(Number);
const name = (i) => (i % 2 ? 'same' : `w${i}`);
const crowd = await Promise.all(Array.from({ length: n }, (_, i) =>
	connect(i % 2 ? '2025-11-25' : '2026-07-28', '--agent', name(i))));

await tool(crowd[0], 'create', { id: 'one', title: 'For one of them' });
const claims = await Promise.all(crowd.map((c) => c.callTool({ name: 'claim', arguments: { id: 'one' } })));
assert.equal(claims.filter((r) => !r.isError).length, 1, 'one winner');
const holder = name(claims.findIndex((r) => !r.isError));
for (const r of claims.filter((r) => r.isError)) {
	assert.equal(r.structuredContent.error.code, 'CONFLICT');
	assert.equal(r.structuredContent.error.holder, holder);
	assert.ok(r.structuredContent.error.expires_in);
	assert.doesNotMatch(r.structuredContent.error.message, /this session/);
}

for (let i = 0; i < tasks; i++)
	await tool(crowd[i % n], 'create', { id: `x${i}`, title: `Task ${i}` });
const done = [];
await Promise.all(crowd.map(async (c) => {
	for (;;) {
		const next = await tool(c, 'next', { claim: true });
		if (next.code === 'NO_TASKS')
			return;
		await tool(c, 'done', { id: next.task.id });
		done.push(next.task.id);
	}
}));
assert.equal(done.length, tasks);
assert.equal(new Set(done).size, tasks);
for (const id of done)
	assert.equal((await tool(crowd[0], 'show', { id })).task.fence, 1);
await Promise.all(crowd.map((c) => c.close()));
