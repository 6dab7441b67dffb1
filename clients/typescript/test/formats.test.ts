/** The conversions for providers and traces, as clients/behaviour.json describes them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { behaviour } from "./behaviour_file.ts";
import { DECK, makeClient, startServer } from "./fixtures.ts";

for (const format of behaviour.formats) {
  test(`formats: ${format.name}`, async (t) => {
    const server = await startServer(t);
    server.respondWith({ prompt: format.text, version: format.version, changes: format.changes });
    const prompt = await makeClient(t, server).getPrompt(DECK);
    assert.deepEqual(prompt.toOpenAI(), format.openai);
    assert.deepEqual(prompt.toOpenAITools(), format.openai_tools);
    assert.deepEqual(prompt.toOpenAITools({ api: "responses" }), format.openai_responses_tools);
    for (const [maxMarks, blocks] of Object.entries(format.anthropic)) {
      assert.deepEqual(prompt.toAnthropic({ maxMarks: Number(maxMarks) }), blocks);
    }
    assert.deepEqual(prompt.toAnthropic(), format.anthropic["1"]);
    assert.deepEqual(prompt.toAnthropicTools(), format.anthropic_tools);
    assert.deepEqual(prompt.traceAttributes(), format.trace_attributes);
  });
}

test("a changed conversion does not change the cached prompt", async (t) => {
  const server = await startServer(t);
  const tools = [{ name: "stop", description: "", parameters: { type: "object", properties: {} } }];
  server.respondWith({ prompt: "Be brave.", changes: { tools } });
  const client = makeClient(t, server);
  const prompt = await client.getPrompt(DECK);
  Object.assign(prompt.toOpenAITools()[0]?.function.parameters ?? {}, { type: "changed" });
  prompt.toAnthropic().pop();
  assert.throws(() => Object.assign(prompt, { text: "Be sly." }), TypeError);
  assert.deepEqual((await client.getPrompt(DECK)).tools, tools);
});

test("a fallback has one block, no mark, and says so in traces", async (t) => {
  const server = await startServer(t);
  const prompt = await makeClient(t, server).getPrompt({ ...DECK, fallback: "Be careful." });
  assert.deepEqual(prompt.toAnthropic(), [{ type: "text", text: "Be careful." }]);
  assert.deepEqual(prompt.traceAttributes(), {
    "gen_ai.prompt.name": "pilot.deck",
    "gen_ai.agent.name": "pilot",
    "dramatis.label": "production",
    "dramatis.is_fallback": true,
  });
});

test("blocks that are not the text are no prompt", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave.", changes: { blocks: [{ text: "Be ", volatility: "release", is_cacheable: true }] } });
  await assert.rejects(makeClient(t, server, { attempts: 1 }).getPrompt(DECK), /not a prompt/);
});
