// life.mjs REVISION: one agent uses everything in the default profile.
import assert from 'node:assert/strict';
import { connect, onUpdated, refused, soon, tool } from './kit.mjs';

const revision = process.argv[2];
const alice = await connect(revision, '--agent', 'alice');
const bob = await connect(revision, '--agent', 'bob');

const { tools } = await alice.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(),
	['block', 'claim', 'comment', 'create', 'done', 'heartbeat', 'list', 'next', 'release', 'review', 'show']);
for (const t of tools)
	assert.ok(t.description && t.outputSchema && t.annotations.openWorldHint === false, t.name);
assert.ok(alice.getInstructions().includes('next'));

// work
await tool(alice, 'create', { id: 'epic', title: 'The epic', priority: 0 });
await tool(alice, 'create', { id: 'a', title: 'Fix it', acceptance: 'it is fixed', parent: 'epic', priority: 5 });
await tool(alice, 'create', { id: 'b', title: 'Then this', depends: ['a'] });
const claimed = await tool(alice, 'next', { claim: true });
assert.equal(claimed.task.id, 'a');
assert.equal(claimed.parent.id, 'epic');
assert.equal(claimed.task.acceptance, 'it is fixed');
assert.ok(claimed.lock.fence === 1 && claimed.untrusted && claimed.call_next.length);

const conflict = await refused(bob, 'claim', { id: 'a' }, 'CONFLICT');
assert.equal(conflict.error.holder, 'alice');
assert.ok(conflict.error.expires_in > 0);
await refused(bob, 'done', { id: 'a' }, 'CONFLICT');
await refused(bob, 'show', { id: '../etc/passwd' }, 'USAGE');
await assert.rejects(bob.callTool({ name: 'no_such_tool', arguments: {} }));

await tool(alice, 'heartbeat', { id: 'a' });
const done = await tool(alice, 'done', { id: 'a', summary: 'fixed', claim_next: true });
assert.equal(done.task.status, 'Done');
assert.equal(done.next.task.id, 'b');
await tool(alice, 'review', { id: 'b', summary: 'look' });
assert.equal((await tool(bob, 'show', { id: 'b' })).task.status, 'Review');
await tool(bob, 'claim', { id: 'epic' });
await tool(bob, 'block', { id: 'epic', reason: 'no key', unblock_action: 'add it' });

// waiting: progress, an answer as soon as there is work, and cancellation
const reports = [];
const waiting = tool(bob, 'next', { claim: true, wait: 60 }, { onprogress: (p) => reports.push(p), timeout: 90000 });
await soon('progress', () => reports.length > 0);
assert.equal(reports[0].total, 60);
await tool(alice, 'create', { id: 'c', title: 'At last' });
assert.equal((await waiting).task.id, 'c');
const abort = new AbortController();
const cancelled = tool(bob, 'next', { claim: true, wait: 60 }, { signal: abort.signal });
abort.abort(new Error('enough'));
await assert.rejects(cancelled);
await tool(bob, 'show', { id: 'c' }); // whose answer comes after the cancellation was read
await tool(alice, 'create', { id: 'd', title: 'Nobody waits for this' });
assert.equal((await tool(bob, 'show', { id: 'd' })).task.status, 'Ready');

// resources, subscriptions, the prompt
const { resources } = await alice.listResources();
assert.ok(resources.some((r) => r.uri === 'pawl://board'));
const { resourceTemplates } = await alice.listResourceTemplates();
assert.equal(resourceTemplates[0].uriTemplate, 'pawl://tasks/{id}');
const board = JSON.parse((await alice.readResource({ uri: 'pawl://board' })).contents[0].text);
assert.equal(board.counts.Done, 1);
const task = JSON.parse((await alice.readResource({ uri: 'pawl://tasks/b' })).contents[0].text);
assert.equal(task.task.summary, 'look');
await assert.rejects(alice.readResource({ uri: 'pawl://tasks/../../etc/passwd' }));
const updated = [];
onUpdated(alice, revision, (uri) => updated.push(uri));
if (revision === '2026-07-28') {
	const s = await alice.listen({ resourceSubscriptions: ['pawl://tasks/d', 'pawl://board'] });
	assert.equal(s.honoredFilter.resourceSubscriptions.length, 2);
} else {
	await alice.subscribeResource({ uri: 'pawl://tasks/d' });
	await alice.subscribeResource({ uri: 'pawl://board' });
}
await tool(bob, 'claim', { id: 'd' });
await soon('news of d', () => updated.includes('pawl://tasks/d') && updated.includes('pawl://board'));
const { prompts } = await alice.listPrompts();
assert.deepEqual(prompts.map((p) => p.name), ['work']);
const work = await alice.getPrompt({ name: 'work' });
assert.ok(work.messages[0].content.text.includes('next'));

await alice.close();
await bob.close();
