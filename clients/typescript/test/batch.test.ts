/** Many prompts with one request: each result is cached, and a failure of one leaves the others. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Problem, Unreachable } from "../src/index.ts";
import { DECK, makeClient, startServer } from "./fixtures.ts";
import { type StubResponse, hashOf, problemDocument, promptDocument } from "./stub_server.ts";

const MAST = { agent: "pilot", channel: "mast" } as const;

function batch(...results: unknown[]): StubResponse {
  return { status: 200, content_type: "application/json", body: JSON.stringify({ results }) };
}

function found(text: string, channel: string, version = 1): unknown {
  return { agent: "pilot", channel, label: "production", status: "served", prompt: promptDocument(text, version, { channel }) };
}

function refused(status: number, code: string, channel: string): unknown {
  return { agent: "pilot", channel, label: "production", status: "failed", problem: problemDocument(status, code) };
}

test("a batch fills the cache", async (t) => {
  const server = await startServer(t);
  server.respondWith(batch(found("Be brave.", "deck"), found("Look out.", "mast")));
  const client = makeClient(t, server);
  const results = await client.batchGet([DECK, { ...MAST, label: "latest" }]);
  assert.deepEqual(results.map((result) => result.prompt?.text), ["Be brave.", "Look out."]);
  assert.deepEqual(results.map((result) => result.label), ["production", "latest"]);
  assert.equal(server.requests[0]?.path, "/api/v1/prompts:batchGet");
  const prompts = [{ ...DECK, label: "production" }, { ...MAST, label: "latest" }];
  assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ""), { prompts });
  assert.equal((await client.getPrompt({ ...MAST, label: "latest" })).text, "Look out.");
  assert.equal(server.requests.length, 1);
});

test("a known version is not downloaded again", async (t) => {
  const server = await startServer(t);
  let now = 1_000;
  const client = makeClient(t, server, { clock: () => now });
  server.respondWith(batch(found("Be brave.", "deck")), batch({ agent: "pilot", channel: "deck", label: "production", status: "not_modified", ledger_id: 42 }));
  await client.batchGet([DECK]);
  now = 2_000;
  const [result] = await client.batchGet([DECK]);
  const request = JSON.parse(server.requests[1]?.body ?? "") as { prompts: { known_digest?: string }[] };
  assert.equal(request.prompts[0]?.known_digest, hashOf("version Be brave."));
  assert.deepEqual([result?.prompt?.text, result?.prompt?.isStale], ["Be brave.", false]);
  await client.getPrompt(DECK);
  assert.equal(server.requests.length, 2);
});

test("a refusal of one prompt removes its copy and leaves the others", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  server.respondWith(batch(found("Be brave.", "deck"), found("Look out.", "mast")));
  await client.batchGet([DECK, MAST]);
  server.respondWith(batch(refused(410, "erased", "deck"), refused(503, "unavailable", "mast")));
  const [deck, mast] = await client.batchGet([DECK, MAST]);
  assert.ok(deck?.error instanceof Problem && deck.error.code === "erased" && deck.prompt === null);
  assert.deepEqual([mast?.prompt?.text, mast?.error], ["Look out.", null]);
  await server.stop();
  await assert.rejects(client.getPrompt(DECK), Unreachable);
});

test("copies are used while the server is unavailable", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  server.respondWith(batch(found("Be brave.", "deck")));
  await client.batchGet([DECK]);
  await server.stop();
  const [deck, mast] = await client.batchGet([DECK, MAST]);
  assert.equal(deck?.prompt?.text, "Be brave.");
  assert.ok(mast?.error instanceof Unreachable && mast.prompt === null);
});

test("a bad key is thrown and removes all copies", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  server.respondWith(batch(found("Be brave.", "deck")), { problem: 401, code: "invalid_key" });
  await client.batchGet([DECK]);
  await assert.rejects(client.batchGet([DECK]), /401 invalid_key/);
  await server.stop();
  await assert.rejects(client.getPrompt(DECK), Unreachable);
});

test("more than 50 prompts take several requests", async (t) => {
  const server = await startServer(t);
  const names = Array.from({ length: 51 }, (_, index) => ({ agent: "pilot", channel: `c${index}` }));
  server.respondWith(batch(...names.slice(0, 50).map((name) => found("Be brave.", name.channel))), batch(found("Be bold.", "c50")));
  const results = await makeClient(t, server).batchGet(names);
  assert.equal(results.length, 51);
  assert.equal(results[50]?.prompt?.text, "Be bold.");
  assert.equal(server.requests.length, 2);
});

test("a batch with other results is no batch", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server, { attempts: 1 });
  for (const response of [batch(), batch(null), batch({ status: "ok" }), { status: 200, body: "<h1>" }]) {
    server.respondWith(response);
    const [result] = await client.batchGet([DECK]);
    assert.ok(result?.error instanceof Unreachable, JSON.stringify(response));
  }
});
