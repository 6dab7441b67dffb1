/** Adapters that need no framework to run: the text they give, and when they report it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { instructions as aiSdkInstructions, prepareCall } from "../src/adapters/ai-sdk.ts";
import { instructions } from "../src/adapters/openai-agents.ts";
import type { Prompt } from "../src/index.ts";
import { DECK, makeClient, startServer } from "./fixtures.ts";
import { hashOf } from "./stub_server.ts";

const BLOCKS = [
  { text: "Be ", volatility: "release", is_cacheable: true },
  { text: "brave.", volatility: "turn", is_cacheable: false },
];

test("instructions are the served text", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave.\n🔎 \r\n" });
  const client = makeClient(t, server);
  assert.equal(await instructions(client, DECK)(), "Be brave.\n🔎 \r\n");
  assert.equal(await aiSdkInstructions(client, DECK), "Be brave.\n🔎 \r\n");
  const settings = await prepareCall(client, DECK)({ temperature: 0.5 });
  assert.deepEqual(settings, { temperature: 0.5, instructions: "Be brave.\n🔎 \r\n" });
  assert.equal(server.requests.length, 1);
});

test("with marks the AI SDK gets one system message for each block", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave.", changes: { blocks: BLOCKS } });
  const cacheControl = { type: "ephemeral" };
  assert.deepEqual(await aiSdkInstructions(makeClient(t, server), { ...DECK, maxMarks: 1 }), [
    { role: "system", content: "Be ", providerOptions: { anthropic: { cacheControl } } },
    { role: "system", content: "brave." },
  ]);
});

test("a version is reported once, and again after a failure", async (t) => {
  const server = await startServer(t);
  const warnings: string[] = [];
  const reports: Promise<void>[] = [];
  const client = makeClient(t, server, { warn: (message) => warnings.push(message), waitUntil: (report) => reports.push(report) });
  server.respondWith({ prompt: "Be brave." }, { problem: 422, code: "invalid" }, { status: 201, content_type: "application/json", body: "{}" });
  const load = instructions(client, { ...DECK, report: true });
  await load();
  await Promise.all(reports);
  assert.match(warnings.join(), /report of pilot on deck failed: Problem: 422 invalid/);
  await load();
  await Promise.all(reports);
  await load();
  await Promise.all(reports);
  const sent = server.requests.filter((request) => request.path === "/api/v1/prompts:report");
  assert.equal(sent.length, 2);
  assert.equal(JSON.parse(sent[1]?.body ?? "").digest, hashOf("Be brave."));
});

test("nothing is reported unless it is asked for, and every prompt is shown to onPrompt", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave." });
  const shown: Prompt[] = [];
  const load = instructions(makeClient(t, server), { ...DECK, onPrompt: (prompt) => shown.push(prompt) });
  await load();
  await load();
  assert.deepEqual(shown.map((prompt) => prompt.version), [1, 1]);
  assert.equal(server.requests.length, 1);
});

test("an adapter passes fallback, version and label on", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave." });
  const client = makeClient(t, server, { attempts: 1 });
  await instructions(client, { ...DECK, label: "latest", version: 3 })();
  assert.equal(server.requests[0]?.path, "/api/v1/agents/pilot/channels/deck/prompt?label=latest&version=3");
  await server.stop();
  assert.equal(await instructions(client, { ...DECK, fallback: "Be careful." })(), "Be careful.");
});
