// auto.mjs: the client of version 2 finds the newest revision by itself, and accepts the older ones.
import assert from 'node:assert/strict';
import { connectAs, tool } from './kit.mjs';

for (const [mode, revision] of [['auto', '2026-07-28'], ['legacy', '2025-11-25']]) {
	const client = await connectAs(mode, '--agent', mode);
	assert.equal(client.getNegotiatedProtocolVersion(), revision);
	const made = await tool(client, 'create', { id: mode, title: 'x' });
	assert.equal(made.task.id, mode);
	await client.close();
}
