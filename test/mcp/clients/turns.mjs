// turns.mjs REVISION: survey, planning, implementation and verification agents take turns on one task, each with its
// own server, in the profile pm; then it is done.
import assert from 'node:assert/strict';
import { connect, refused, tool } from './kit.mjs';

const revision = process.argv[2];
const main = await connect(revision, '--profile', 'pm', '--agent', 'orchestrator');
const { tools } = await main.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(), ['acquire_task_lock', 'create_task', 'get_available_tasks',
	'get_task_details', 'get_task_lock_status', 'list_tasks', 'release_task_lock', 'undo_task', 'update_task',
	'update_task_status']);

const { task_id } = await tool(main, 'create_task', { name: 'Complex feature', ra_mode: 'ra-full', ra_score: '9' });
const agents = [['survey-agent', 600], ['planning-agent', 600], ['impl-agent', 1800], ['verify-agent', 600]];
for (const [agent_id, timeout] of agents) {
	const other = agent_id === 'survey-agent' ? 'planning-agent' : 'survey-agent';
	const server = await connect(revision, '--profile', 'pm', '--agent', agent_id);
	const got = await tool(server, 'acquire_task_lock', { task_id, agent_id, timeout: String(timeout) });
	assert.equal(got.lock_holder, agent_id);
	assert.equal(got.lock.ttl, timeout);
	const status = await tool(main, 'get_task_lock_status', { task_id });
	assert.ok(status.is_locked && status.lock_holder === agent_id && status.lock_expires_at);
	const no = await refused(main, 'acquire_task_lock', { task_id, agent_id: other }, 'CONFLICT');
	assert.ok(no.error.message.includes(agent_id) && no.error.hint);
	await refused(main, 'update_task_status', { task_id, status: 'DONE', agent_id: other }, 'LOST_LOCK');
	if (agent_id === 'verify-agent') {
		const done = await tool(server, 'update_task_status', { task_id, status: 'DONE', agent_id });
		assert.equal(done.task.status, 'DONE');
		assert.equal(done.is_locked, false);
	} else {
		await tool(server, 'release_task_lock', { task_id, agent_id });
		assert.equal((await tool(main, 'get_task_lock_status', { task_id })).is_locked, false);
	}
	await server.close();
}
const details = await tool(main, 'get_task_details', { task_id });
assert.equal(details.task.ra_mode, 'ra-full');
assert.equal(details.task.fence, agents.length);

// automatic locking
const auto = (await tool(main, 'create_task', { name: 'Small' })).task_id;
assert.deepEqual((await tool(main, 'get_available_tasks')).tasks.map((t) => t.id), [auto]);
await tool(main, 'update_task_status', { task_id: auto, status: 'IN_PROGRESS', agent_id: 'claude' });
assert.equal((await tool(main, 'get_available_tasks')).count, 0);
const review = await tool(main, 'update_task_status', { task_id: auto, status: 'REVIEW', agent_id: 'claude' });
assert.equal(review.is_locked, false);
await tool(main, 'update_task_status', { task_id: auto, status: 'DONE', agent_id: 'reviewer' });
assert.equal((await tool(main, 'list_tasks', { status: 'DONE' })).total, 2);
await main.close();
