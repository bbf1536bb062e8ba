// sessions.mjs REVISION: two sessions of one name in one checkout, over MCP, in the shell and in hooks.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { connect, refused, tool } from './kit.mjs';

const revision = process.argv[2];

// The clients of a session, and its shell, have its id in their environment.
const session = async (id, fn) => {
	if (id)
		process.env.CLAUDE_CODE_SESSION_ID = id;
	const result = await fn();
	delete process.env.CLAUDE_CODE_SESSION_ID;
	return result;
};
const join = (id) => session(id, () => connect(revision, '--agent', 'alice'));
const shell = (id, words, input = '') => session(id, () =>
	spawnSync(process.env.PAWL, [...words, '--agent', 'alice'], { input, encoding: 'utf8' }));

// Both sessions of each pair may do nothing with the task of the other; the first pair has no session ids.
for (const [one, two] of [['', ''], ['s1', 's2']]) {
	const first = await join(one), second = await join(two);
	const { task: { id } } = await tool(first, 'create', { title: 'For the first' });

	await tool(first, 'claim', { id });
	for (const name of ['done', 'heartbeat', 'release'])
		await refused(second, name, { id }, 'CONFLICT');
	assert.match((await refused(second, 'claim', { id }, 'CONFLICT')).error.message, /is held by alice/);
	assert.equal((await tool(second, 'next')).held, undefined);
	assert.equal((await shell(two, ['done', id])).status, 21);
	const start = await shell('', ['hook', 'start'], JSON.stringify({ session_id: 'another' }));
	assert.equal(start.status, 0);
	assert.match(start.stdout, /You hold no task/);

	// a sub-agent calls through the same connection
	const own = await refused(first, 'claim', { id }, 'CONFLICT');
	assert.equal(own.error.message, `this session holds ${id} (fence 1); if you did not claim it, call next`);
	assert.equal(own.call_next, undefined);

	if (one)
		assert.equal((await shell(one, ['done', id])).status, 0);
	else
		await tool(first, 'done', { id });
	await Promise.all([first.close(), second.close()]);
}
