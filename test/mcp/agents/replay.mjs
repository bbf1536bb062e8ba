// replay.mjs CLIENT: makes the calls of the scripted model with an official MCP client, and compares the answers with the
// transcript CLIENT.txt. CLIENT itself is not here: `shows` states what it hands on to its model, and run.mjs proves that.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect, who } from '../clients/kit.mjs';
import { compare, script, titleOf, toolSection } from './scene.mjs';

const session = randomUUID();
const clients = {
	claude: {
		revision: '2026-07-28',
		info: 'claude-code',
		env: { CLAUDECODE: '1', CLAUDE_CODE_SESSION_ID: session }, // for all that it starts
		shows: ({ isError, content, structuredContent }) => isError ? content[0].text : JSON.stringify(structuredContent),
		schema: (schema) => schema,
	},
	codex: {
		revision: '2025-11-25',
		info: 'codex-mcp-client',
		shell: { CODEX_THREAD_ID: session },
		hook: { AI_AGENT: 'codex' }, // set by the command that setup writes
		meta: { threadId: session },
		shows: ({ structuredContent }) => `Wall time: 0 seconds\nOutput:\n${JSON.stringify(structuredContent)}`,
		schema: (schema) => JSON.parse(JSON.stringify(schema, (key, value) => (['minimum', 'maximum'].includes(key) ? undefined : value))),
	},
};
const [name] = process.argv.slice(2);
const { revision, info, env, shell, hook, meta, shows, schema } = clients[name];

const inShell = (command) =>
	spawnSync(command.replace('pawl', '"$PAWL"'), { shell: true, env: { ...process.env, ...shell }, stdio: 'inherit' });

Object.assign(process.env, env);
const greeting = spawnSync(process.env.PAWL, ['hook', 'start'],
	{ encoding: 'utf8', env: { ...process.env, ...hook }, input: JSON.stringify({ session_id: session }) }).stdout;
who.name = info;
const client = await connect(revision);
const { tools } = await client.listTools();
const sections = [
	['start of a session', greeting],
	['instructions', client.getInstructions()],
	...tools.sort((a, b) => (a.name < b.name ? -1 : 1))
		.map(({ name, description, inputSchema }) => toolSection({ name, description, schema: schema(inputSchema) })),
];
for (const step of script)
	if (step.tool)
		sections.push([titleOf(step), shows(await client.callTool({ name: step.tool, arguments: step.input, ...(meta && { _meta: meta }) }))]);
	else
		assert.equal(inShell(step.shell).status, 0, step.shell);
await client.close();
compare(`${import.meta.dirname}/${name}.txt`, sections);
