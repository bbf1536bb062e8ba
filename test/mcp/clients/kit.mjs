// kit: both official clients behind one interface, each with its own server.
//
// PAWL is the program, FROM_NPM the folder with node_modules, and the current folder has the queue. With PAWL_MCP_URL the
// clients use this server instead, and PAWL_MCP_TOKEN, if it is set.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.FROM_NPM}/`);
const modern = {
	...require('@modelcontextprotocol/client'),
	...require('@modelcontextprotocol/client/stdio'),
};
const legacy = {
	...require('@modelcontextprotocol/sdk/client/index.js'),
	...require('@modelcontextprotocol/sdk/client/stdio.js'),
	...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
	...require('@modelcontextprotocol/sdk/types.js'),
};

// who: the name that the clients give themselves
export const who = { name: 'pawl-test', version: '1' };

function environment() {
	const names = Object.keys(process.env).filter((name) => /^(ASAN|UBSAN|CLAUDE)/.test(name));
	const kept = ['HOME', 'PATH', 'USER', 'XDG_STATE_HOME', 'XDG_CONFIG_HOME', ...names];
	return Object.fromEntries(kept.filter((name) => process.env[name]).map((name) => [name, process.env[name]]));
}

// afar: the transport to PAWL_MCP_URL; `--agent NAME` becomes agent=NAME
export function afar(Transport, args, fetch) {
	const url = new URL(process.env.PAWL_MCP_URL), headers = {};
	for (let i = 0; i < args.length; i += 2)
		url.searchParams.set(args[i].replace('--', ''), args[i + 1]);
	if (process.env.PAWL_MCP_TOKEN)
		headers.Authorization = `Bearer ${process.env.PAWL_MCP_TOKEN}`;
	return new Transport(url, { requestInit: { headers }, fetch });
}

function transport(library, args) {
	if (process.env.PAWL_MCP_URL)
		return afar(library.StreamableHTTPClientTransport, args);
	const Transport = library.StdioClientTransport;
	return new Transport({ command: process.env.PAWL, args: ['mcp', ...args], env: environment(), stderr: 'inherit' });
}

// mode: how the client of version 2 negotiates the version
export async function connectAs(mode, ...args) {
	const client = new modern.Client(who, { versionNegotiation: { mode } });
	await client.connect(transport(modern, args));
	return client;
}

// revision: the client of version 2 speaks '2026-07-28', the SDK of version 1 all older ones.
export async function connect(revision, ...args) {
	if (revision === '2026-07-28') {
		const client = await connectAs({ pin: revision }, ...args);
		assert.equal(client.getNegotiatedProtocolVersion(), revision);
		return client;
	}
	const client = new legacy.Client(who);
	await client.connect(transport(legacy, args));
	return client;
}

// onUpdated: FUNCTION is called with the URI of each resource that changed
export function onUpdated(client, revision, fn) {
	const what = revision === '2026-07-28' ? 'notifications/resources/updated' : legacy.ResourceUpdatedNotificationSchema;
	client.setNotificationHandler(what, (n) => fn(n.params.uri));
}

// tool: the answer of a call that succeeds
export async function tool(client, name, args = {}, options) {
	const result = await (options && client.constructor === legacy.Client
		? client.callTool({ name, arguments: args }, undefined, options)
		: client.callTool({ name, arguments: args }, options));
	assert.ok(!result.isError, `${name}: ${result.content[0]?.text}`);
	assert.equal(result.structuredContent.ok, true);
	return result.structuredContent;
}

// refused: the error of a call that the queue refuses; it is a result, never a protocol error
export async function refused(client, name, args, code) {
	const result = await client.callTool({ name, arguments: args });
	assert.equal(result.isError, true, `${name} was not refused`);
	assert.equal(result.structuredContent.error.code, code);
	assert.ok(result.content[0].text.startsWith(code));
	return result.structuredContent;
}

export function soon(what, test) {
	return new Promise((resolve, reject) => {
		const end = Date.now() + 30000;
		const look = () => {
			if (test())
				resolve();
			else if (Date.now() > end)
				reject(new Error(`never: ${what}`));
			else
				setTimeout(look, 20);
		};
		look();
	});
}
