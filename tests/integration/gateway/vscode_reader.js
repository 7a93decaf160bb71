// Ask the endpoint as VS Code's "Custom Endpoint" does, and read the answers with VS Code's own code.
// Words: the folder of @vscode/chat-lib, the endpoint's base URL, the model, bodies as JSON. Prints JSON.
const Module = require('module');
const found = Module._resolveFilename;
Module._resolveFilename = function (name, ...rest) {
	try {
		return found.call(this, name, ...rest);
	} catch (error) {
		// What draws prompts and reaches GitHub is not needed to read a stream, and not installed.
		if (!name.startsWith('@vscode/') && !name.startsWith('@github/')) { throw error; }
		return require.resolve('path');
	}
};
const [library, url, bodies] = process.argv.slice(2);
const { SSEProcessor } = require(`${library}/dist/src/_internal/platform/networking/node/stream.js`);
const problems = [];
const log = new Proxy({}, { get: (_, level) => (...words) => { if (level === 'error' || level === 'warn') { problems.push(words.join(' ')); } } });
const nothing = new Proxy({}, { get: () => () => undefined });

async function ask(body) {
	const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer sk-local', 'OpenAI-Intent': 'conversation-agent' };
	const response = await fetch(`${url}/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
	if (!response.ok) { return { status: response.status, error: (await response.json()).error }; }
	response.body.destroy = () => undefined;
	const told = { status: response.status, text: '', calls: [], pieces: 0 };
	const reader = await SSEProcessor.create(log, nothing, 1, response);
	const each = async (_text, _index, delta) => {
		told.text += delta.text ?? '';
		told.pieces += 1;
		told.calls.push(...(delta.copilotToolCalls ?? []));
	};
	for await (const end of reader.processSSE(each)) {
		Object.assign(told, { reason: end.reason, usage: end.usage, failure: end.error });
	}
	return told;
}

(async () => {
	const answers = [];
	for (const body of JSON.parse(bodies)) { answers.push(await ask(body)); }
	console.log(JSON.stringify({ answers, problems }));
})();
