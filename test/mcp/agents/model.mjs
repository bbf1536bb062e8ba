// model: a stand-in for a model on loopback, with a script instead of a mind. It speaks the two APIs that the clients of
// this test use, both as event streams: Anthropic's Messages (Claude Code) and OpenAI's Responses (Codex).
//
// It answers the nth request with the nth step of the script: a list of tool calls ({ name, input }) or a text, the last
// word. `requests` has all requests in order: what a model gets to read. `strangers` has the requests for other hosts, if
// the client takes the server for its proxy; they are refused.
import { createServer } from 'node:http';

export async function serve(script) {
	const requests = [], strangers = [];
	let said = 0;
	const next = () => script[said++] ?? 'There is nothing left to say.';
	const server = createServer(async (request, response) => {
		try {
			const body = await read(request);
			const path = new URL(request.url, 'http://model').pathname;
			if (path === '/v1/messages' && body?.tools?.length) {
				requests.push(body);
				stream(response, messages(body, next(), said));
			} else if (path === '/v1/messages') {
				stream(response, messages(body, 'A title', 0)); // a side question, not the conversation
			} else if (path === '/v1/messages/count_tokens') {
				reply(response, 200, { input_tokens: Math.ceil(JSON.stringify(body).length / 4) });
			} else if (path === '/v1/responses') {
				requests.push(body);
				stream(response, responses(next(), said));
			} else {
				if (request.method !== 'HEAD')
					console.error(`model: ${request.method} ${path}: not part of this model`);
				reply(response, 404, { type: 'error', error: { type: 'not_found_error', message: `no ${path}` } });
			}
		} catch (error) {
			console.error(`model: ${error.stack}`);
			response.destroy();
		}
	});
	server.on('connect', (request, socket) => {
		strangers.push(request.url);
		socket.destroy();
	});
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	return { requests, strangers, url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

async function read(request) {
	let text = '';
	for await (const chunk of request.setEncoding('utf8'))
		text += chunk;
	return text ? JSON.parse(text) : null;
}

function reply(response, status, body) {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function stream(response, events) {
	response.writeHead(200, { 'content-type': 'text/event-stream' });
	for (const event of events)
		response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
	response.end();
}

function messages(body, step, n) {
	const calls = typeof step !== 'string';
	const blocks = calls
		? step.map(({ name, input }, i) => [
				{ type: 'tool_use', id: `toolu_${n}_${i}`, name, input: {} },
				{ type: 'input_json_delta', partial_json: JSON.stringify(input) },
			])
		: [[{ type: 'text', text: '' }, { type: 'text_delta', text: step }]];
	const usage = { input_tokens: 1, output_tokens: 1 };
	const message = { id: `msg_${n}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
	return [
		{ type: 'message_start', message },
		...blocks.flatMap(([content_block, delta], index) => [
			{ type: 'content_block_start', index, content_block },
			{ type: 'content_block_delta', index, delta },
			{ type: 'content_block_stop', index },
		]),
		{ type: 'message_delta', delta: { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
		{ type: 'message_stop' },
	];
}

function responses(step, n) {
	const output = typeof step === 'string'
		? [{ type: 'message', id: `msg_${n}`, role: 'assistant', content: [{ type: 'output_text', text: step, annotations: [] }] }]
		: step.map(({ name, namespace, input }, i) =>
				({ type: 'function_call', id: `fc_${n}_${i}`, call_id: `call_${n}_${i}`, name, ...(namespace && { namespace }), arguments: JSON.stringify(input) }));
	const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
	return [
		{ type: 'response.created', response: { id: `resp_${n}` } },
		...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
		{ type: 'response.completed', response: { id: `resp_${n}`, output, usage } },
	];
}
