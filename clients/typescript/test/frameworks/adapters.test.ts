/** Each adapter with its real framework: the system text that the model receives is the served text, byte for byte. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Anthropic } from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled } from "@openai/agents";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { ToolLoopAgent, generateText } from "ai";
import { createAgent } from "langchain";
import { OpenAI } from "openai";

import { instructions as aiSdkInstructions, prepareCall } from "../../src/adapters/ai-sdk.ts";
import { promptMiddleware } from "../../src/adapters/langchain.ts";
import { instructions } from "../../src/adapters/openai-agents.ts";
import { DECK, makeClient, startServer } from "../fixtures.ts";
import { hashOf } from "../stub_server.ts";
import { startModelServer } from "./model_server.ts";

// Whitespace, placeholders, markup, characters beyond the BMP, combining marks: nothing may be changed.
const TEXT = "# Pilot\r\n\r\n{{name}} {name} ${x} <b>\t 🔎 é e\u0301 \u2028 \\n \"quoted\"\n\n  Be brave.  \n";
const BLOCKS = [
  { text: TEXT.slice(0, 20), volatility: "release", is_cacheable: true },
  { text: TEXT.slice(20), volatility: "turn", is_cacheable: false },
];
const exporter = new InMemorySpanExporter();

before(() => {
  setTracingDisabled(true);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
after(() => {
  context.disable();
  trace.disable();
});

/** Run in a span and return its attributes. */
async function inSpan(run: () => Promise<unknown>): Promise<Record<string, unknown>> {
  exporter.reset();
  await trace.getTracer("test").startActiveSpan("call", async (span) => {
    await run();
    span.end();
  });
  const [span] = exporter.getFinishedSpans();
  return { ...span?.attributes };
}

function systemText(messages: readonly { readonly role: string; readonly content: unknown }[] | undefined): string {
  const texts = (messages ?? []).filter((message) => ["system", "developer"].includes(message.role)).map(({ content }) =>
    typeof content === "string" ? content : (content as { text: string }[]).map((part) => part.text).join(""),
  );
  return texts.join("");
}

const ATTRIBUTES = {
  "gen_ai.prompt.name": "pilot.deck",
  "gen_ai.prompt.version": "3",
  "gen_ai.agent.name": "pilot",
  "dramatis.label": "production",
  "dramatis.digest": hashOf(`version ${TEXT}`),
  "dramatis.ledger_id": 43,
};

test("the client sets attributes on the current span and sends its traceparent", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: TEXT, version: 3, changes: { blocks: BLOCKS } });
  const client = makeClient(t, server);
  let traceparent = "";
  const attributes = await inSpan(async () => {
    const current = trace.getActiveSpan()?.spanContext();
    traceparent = `00-${current?.traceId}-${current?.spanId}-01`;
    await client.getPrompt(DECK);
  });
  assert.deepEqual(attributes, ATTRIBUTES);
  assert.equal(server.requests.at(-1)?.headers["traceparent"], traceparent);
  assert.deepEqual(await inSpan(() => client.getPrompt({ ...DECK, trace: false })), {});
  await client.getPrompt({ ...DECK, ttl: 0 });
  assert.equal(server.requests.at(-1)?.headers["traceparent"], undefined);
});

test("OpenAI Agents sends the served text, by Chat Completions and by Responses", async (t) => {
  const [server, model] = [await startServer(t), await startModelServer(t)];
  server.respondWith({ prompt: TEXT, version: 3, changes: { blocks: BLOCKS } });
  const client = makeClient(t, server);
  const openai = new OpenAI({ apiKey: "none", baseURL: model.url, maxRetries: 0 });
  const agent = new Agent({ name: "Pilot", instructions: instructions(client, DECK) });
  const chat = new Runner({ model: new OpenAIChatCompletionsModel(openai as never, "test-model") });
  const attributes = await inSpan(() => chat.run(agent, "Hello."));
  assert.equal(systemText(model.last.messages), TEXT);
  assert.deepEqual(attributes, ATTRIBUTES);
  await new Runner({ model: new OpenAIResponsesModel(openai as never, "test-model") }).run(agent, "Hello.");
  assert.equal(model.last.instructions, TEXT);
});

test("LangChain sends the served text, and reports it", async (t) => {
  const [server, model] = [await startServer(t), await startModelServer(t)];
  server.respondWith(
    { prompt: TEXT, version: 3, changes: { blocks: BLOCKS } },
    { status: 201, content_type: "application/json", body: "{}" },
  );
  const reports: Promise<void>[] = [];
  const client = makeClient(t, server, { waitUntil: (report) => reports.push(report) });
  const chat = new ChatOpenAI({ model: "test-model", apiKey: "none", maxRetries: 0, configuration: { baseURL: model.url } });
  const agent = createAgent({ model: chat, tools: [], middleware: [promptMiddleware(client, { ...DECK, report: true })] });
  const attributes = await inSpan(() => agent.invoke({ messages: [{ role: "user", content: "Hello." }] }));
  assert.equal(systemText(model.last.messages), TEXT);
  assert.deepEqual(attributes, ATTRIBUTES);
  await Promise.all(reports);
  assert.equal(JSON.parse(server.requests.at(-1)?.body ?? "").digest, hashOf(TEXT));
  const marked = createAgent({ model: chat, tools: [], middleware: [promptMiddleware(client, { ...DECK, maxMarks: 1 })] });
  await marked.invoke({ messages: [{ role: "user", content: "Hello." }] });
  assert.equal(systemText(model.last.messages), TEXT);
});

test("the AI SDK sends the served text, to OpenAI and to Anthropic", async (t) => {
  const [server, model] = [await startServer(t), await startModelServer(t)];
  server.respondWith({ prompt: TEXT, version: 3, changes: { blocks: BLOCKS } });
  const client = makeClient(t, server);
  const openai = createOpenAI({ apiKey: "none", baseURL: model.url }).chat("test-model");
  const attributes = await inSpan(async () =>
    generateText({ model: openai, instructions: await aiSdkInstructions(client, DECK), prompt: "Hello." }),
  );
  assert.equal(systemText(model.last.messages), TEXT);
  assert.deepEqual(attributes, ATTRIBUTES);
  const agent = new ToolLoopAgent({ model: openai, prepareCall: prepareCall(client, DECK) });
  await agent.generate({ prompt: "Hello." });
  assert.equal(systemText(model.last.messages), TEXT);
  const anthropic = createAnthropic({ apiKey: "none", baseURL: model.url })("test-model");
  const marked = new ToolLoopAgent({ model: anthropic, prepareCall: prepareCall(client, { ...DECK, maxMarks: 1 }) });
  await marked.generate({ prompt: "Hello." });
  assert.deepEqual(model.last.system, (await client.getPrompt(DECK)).toAnthropic());
  assert.equal((model.last.system as { text: string }[]).map((block) => block.text).join(""), TEXT);
});

test("the OpenAI package sends the conversions unchanged", async (t) => {
  const [server, model] = [await startServer(t), await startModelServer(t)];
  const tools = [{ name: "stop", description: "", parameters: { type: "object", properties: {} } }];
  server.respondWith({ prompt: TEXT, changes: { blocks: BLOCKS, tools } });
  const prompt = await makeClient(t, server).getPrompt(DECK);
  const openai = new OpenAI({ apiKey: "none", baseURL: model.url, maxRetries: 0 });
  await openai.chat.completions.create({
    model: "test-model",
    messages: [...prompt.toOpenAI(), { role: "user", content: "Hello." }],
    tools: prompt.toOpenAITools(),
  });
  assert.equal(systemText(model.last.messages), TEXT);
  await openai.responses.create({
    model: "test-model",
    instructions: prompt.text,
    input: "Hello.",
    tools: prompt.toOpenAITools({ api: "responses" }),
  });
  assert.equal(model.last.instructions, TEXT);
});

test("the Anthropic package sends the conversions unchanged", async (t) => {
  const [server, model] = [await startServer(t), await startModelServer(t)];
  const tools = [{ name: "stop", description: "", parameters: { type: "object", properties: {} } }];
  server.respondWith({ prompt: TEXT, changes: { blocks: BLOCKS, tools } });
  const prompt = await makeClient(t, server).getPrompt(DECK);
  const anthropic = new Anthropic({ apiKey: "none", baseURL: model.url.replace("/v1", ""), maxRetries: 0 });
  await anthropic.messages.create({
    model: "test-model",
    max_tokens: 10,
    system: prompt.toAnthropic(),
    tools: prompt.toAnthropicTools(),
    messages: [...prompt.messages, { role: "user", content: "Hello." }],
  });
  assert.deepEqual(model.last.system, prompt.toAnthropic());
});
