// restart.mjs REVISION: an agent whose server is killed between its claim and its report. A line of input says that the
// server is back.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, refused, tool } from './kit.mjs';

const revision = process.argv[2];
const alice = await connect(revision, '--agent', 'alice');
const bob = await connect(revision, '--agent', 'bob');
const { task: { id } } = await tool(alice, 'create', { title: 'Survive' });
await tool(alice, 'claim', { id });
console.log('claimed');
await once(process.stdin, 'data');

await refused(bob, 'done', { id }, 'CONFLICT');
assert.equal((await tool(alice, 'next')).held[0].task, id);
await tool(alice, 'heartbeat', { id });
assert.equal((await tool(alice, 'done', { id })).task.status, 'Done');
process.exit(0); // a client of the older protocol version would try for long to get its stream back
