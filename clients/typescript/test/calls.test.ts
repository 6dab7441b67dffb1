/** All calls but fetch: requests, retries and errors; and the options of a client. */

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client, Problem, Unreachable } from "../src/index.ts";
import { getRetryDelay } from "../src/transport.ts";
import { ApiResponse } from "../src/responses.ts";
import { DECK, KEY, makeClient, startServer } from "./fixtures.ts";
import { type StubResponse, hashOf } from "./stub_server.ts";

const JSON_TYPE = "application/json";
const MEMORY: StubResponse = {
  status: 201,
  content_type: JSON_TYPE,
  body: '{"id":7,"text":"Likes tea.","agent":"pilot","status":"proposed"}',
};
const SKILL: StubResponse = {
  status: 200,
  content_type: JSON_TYPE,
  body: '{"agent":"pilot","name":"tea","description":"Makes tea.","body":"Boil water."}',
};

test("a render sends its facts and is never answered from memory", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave." });
  const client = makeClient(t, server);
  await client.getPrompt(DECK);
  const prompt = await client.render(DECK, { task: 3, is_background: true });
  assert.equal(prompt.text, "Be brave.");
  const request = server.requests.at(-1);
  assert.deepEqual([request?.method, request?.path], ["POST", "/api/v1/agents/pilot/channels/deck/prompt:render"]);
  assert.deepEqual(JSON.parse(request?.body ?? ""), { label: "production", task: 3, is_background: true });
  await server.stop();
  await assert.rejects(client.render(DECK), Unreachable);
});

test("a report names the digest of the text that was used", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave." }, { status: 201, content_type: JSON_TYPE, body: '{"is_version":true}' });
  const client = makeClient(t, server);
  const prompt = await client.getPrompt(DECK);
  assert.deepEqual(await client.report(prompt), { is_version: true });
  const digest = hashOf("Be brave.");
  const report = { agent: "pilot", channel: "deck", digest, ledger_id: 41 };
  assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? ""), report);
  await client.report(prompt, { text: "Be sly.", requestId: "r-1" });
  const other = { ...report, digest: hashOf("Be sly."), request_id: "r-1" };
  assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? ""), other);
});

test("a report of a fallback has no ledger row", async (t) => {
  const server = await startServer(t);
  server.respondWith({ problem: 500, code: "server_error" }, { status: 201, content_type: JSON_TYPE, body: "{}" });
  const client = makeClient(t, server);
  await client.report(await client.getPrompt({ ...DECK, fallback: "Be careful." }));
  const report = { agent: "pilot", channel: "deck", digest: hashOf("Be careful.") };
  assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? ""), report);
});

test("a passing failure is retried with the same idempotency key", async (t) => {
  const failures: StubResponse[] = [
    { problem: 429, code: "rate_limited", retry_after: 0 },
    { problem: 503, code: "unavailable" },
    { problem: 409, code: "in_progress" },
    { status: 502 },
    { status: 504 },
    { disconnect: true },
  ];
  const server = await startServer(t);
  const client = makeClient(t, server);
  for (const failure of failures) {
    const before = server.requests.length;
    server.respondWith(failure, failure, MEMORY);
    const memory = await client.remember("Likes tea.", { agent: "pilot" });
    assert.deepEqual([memory.id, memory.status], [7, "proposed"]);
    const keys = server.requests.slice(before).map((request) => request.headers["idempotency-key"]);
    assert.equal(keys.length, 3, JSON.stringify(failure));
    assert.equal(new Set(keys).size, 1);
  }
});

test("two memories have two idempotency keys", async (t) => {
  const server = await startServer(t);
  server.respondWith(MEMORY);
  const client = makeClient(t, server);
  await client.remember("Likes tea.");
  await client.remember("Likes tea.");
  assert.equal(new Set(server.requests.map((request) => request.headers["idempotency-key"])).size, 2);
});

test("a final failure is thrown at once", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  const failures: StubResponse[] = [
    { problem: 422, code: "invalid" },
    { problem: 409, code: "in_use" },
    { problem: 500, code: "server_error" },
    { problem: 503, code: "unavailable", retry_after: 3600 },
  ];
  for (const [index, failure] of failures.entries()) {
    server.respondWith(failure);
    await assert.rejects(client.remember("Likes tea."), (error: unknown) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.message, `${failure.problem} ${failure.code}: It is refused.`);
      assert.equal(error.errors[0]?.pointer, "/text");
      return true;
    });
    assert.equal(server.requests.length, index + 1);
  }
});

test("an unexpected response throws Unreachable", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  server.respondWith({ status: 200, content_type: JSON_TYPE, body: '{"id":"x"}' });
  await assert.rejects(client.remember("Likes tea."), /does not match the request/);
  server.respondWith({ status: 200, body: "<h1>" });
  await assert.rejects(client.skill("pilot", "tea"), /not JSON/);
});

test("a skill is loaded, and a slash in a name is quoted", async (t) => {
  const server = await startServer(t);
  server.respondWith(SKILL);
  const skill = await makeClient(t, server).skill("a/../b?c#d", "tea");
  assert.equal(skill.body, "Boil water.");
  assert.equal(server.requests[0]?.path, "/api/v1/agents/a%2F..%2Fb%3Fc%23d/skills/tea");
});

test("a name that would change the path is rejected", async (t) => {
  const server = await startServer(t);
  const client = makeClient(t, server);
  for (const name of ["", ".", "..", "..."]) {
    await assert.rejects(client.getPrompt({ agent: name, channel: "deck" }), /name/);
    await assert.rejects(client.getPrompt({ agent: "pilot", channel: name }), /name/);
    await assert.rejects(client.skill("pilot", name), /name/);
  }
  assert.equal(server.requests.length, 0);
});

test("an address with other parts is rejected", () => {
  for (const url of ["", "ftp://x", "dramatis.example.com", "https://me:pw@x", "https://x/?key=1", "https://x/#k"]) {
    assert.throws(() => new Client({ url, key: KEY }), /URL/);
  }
  assert.equal(new Client({ url: " https://x.example/dramatis/ ", key: KEY }).url, "https://x.example/dramatis");
});

test("address and key come from the environment unless they are passed", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave." });
  assert.throws(() => new Client(), /DRAMATIS_URL/);
  assert.throws(() => new Client({ url: server.url }), /DRAMATIS_KEY/);
  process.env["DRAMATIS_URL"] = server.url;
  process.env["DRAMATIS_KEY"] = ` ${KEY}\n`;
  t.after(() => {
    delete process.env["DRAMATIS_URL"];
    delete process.env["DRAMATIS_KEY"];
  });
  const client = new Client();
  t.after(() => client.close());
  await client.getPrompt(DECK);
  assert.equal(server.requests[0]?.headers["authorization"], `Bearer ${KEY}`);
});

test("folder, attempts and timeout come from the environment unless they are passed", async (t) => {
  const server = await startServer(t);
  const folder = await mkdtemp(join(tmpdir(), "dramatis-"));
  const variables = { DRAMATIS_CACHE_DIR: folder, DRAMATIS_ATTEMPTS: "2", DRAMATIS_TIMEOUT: "0.1" };
  Object.assign(process.env, variables);
  t.after(async () => {
    for (const name of Object.keys(variables)) delete process.env[name];
    await rm(folder, { recursive: true });
  });
  server.respondWith({ prompt: "Be brave." });
  await makeClient(t, server).getPrompt(DECK);
  assert.equal((await readdir(folder)).length, 1);
  server.respondWith({ prompt: "Be brave.", delay: 5 });
  await assert.rejects(makeClient(t, server, { cacheDir: "" }).getPrompt(DECK), /no response within 100 ms/);
  assert.equal(server.requests.length, 3);
  await assert.rejects(makeClient(t, server, { cacheDir: "" }).getPrompt({ ...DECK, attempts: 1, timeoutMs: 50 }), /50 ms/);
  assert.equal(server.requests.length, 4);
  process.env["DRAMATIS_TIMEOUT"] = "soon";
  assert.throws(() => makeClient(t, server), /DRAMATIS_TIMEOUT must be a number/);
});

test("attempts and timeout of one call", async (t) => {
  const server = await startServer(t);
  server.respondWith({ status: 502 });
  const client = makeClient(t, server);
  await assert.rejects(client.render(DECK, {}, { attempts: 1 }));
  await assert.rejects(client.skill("pilot", "tea", { attempts: 2 }));
  await assert.rejects(client.remember("Likes tea.", {}, { attempts: 1 }));
  await assert.rejects(client.completeStep(4, 0, true, { attempts: 1 }));
  assert.equal(server.requests.length, 5);
  await assert.rejects(client.skill("pilot", "tea", { attempts: 0 }), TypeError);
  await assert.rejects(client.skill("pilot", "tea", { timeoutMs: 0 }), TypeError);
});

test("a step is marked", async (t) => {
  const server = await startServer(t);
  server.respondWith({ status: 200, content_type: JSON_TYPE, body: '{"number":4}' });
  assert.deepEqual(await makeClient(t, server).completeStep(4, 0), { number: 4 });
  assert.equal(server.requests[0]?.path, "/api/v1/tasks/4/steps/0:complete");
  assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ""), { is_done: true });
});

test("the key is never shown", async (t) => {
  const server = await startServer(t);
  const warnings: string[] = [];
  const client = makeClient(t, server, { attempts: 1, warn: (message) => warnings.push(message) });
  server.respondWith({ problem: 401, code: "invalid_key" });
  const refused = await client.getPrompt(DECK).catch((error: unknown) => error);
  await server.stop();
  const away = await client.getPrompt(DECK).catch((error: unknown) => error);
  const shown = inspect([client, refused, away, warnings], { depth: 20, showHidden: true });
  assert.ok(!shown.includes(KEY));
  assert.ok(!JSON.stringify([client, refused, away]).includes(KEY));
});

test("a silent server is given up after the timeout", async (t) => {
  const server = await startServer(t);
  server.respondWith({ prompt: "Be brave.", delay: 5 });
  const client = makeClient(t, server, { attempts: 1, timeoutMs: 100 });
  const startedAt = performance.now();
  await assert.rejects(client.getPrompt(DECK), /no response within 100 ms/);
  assert.ok(performance.now() - startedAt < 2_000);
});

test("a closed client throws, and closing ends requests and delays", async (t) => {
  const server = await startServer(t);
  server.respondWith({ problem: 503, code: "unavailable", retry_after: 20 });
  const client = makeClient(t, server);
  const startedAt = performance.now();
  const call = assert.rejects(client.getPrompt(DECK));
  setTimeout(() => void client.close(), 100);
  await call;
  assert.ok(performance.now() - startedAt < 2_000);
  await assert.rejects(client.getPrompt(DECK), /closed/);
  await assert.rejects(client.remember("Likes tea."), /closed/);
});

test("delays grow and have jitter, and Retry-After is a minimum", () => {
  const response = new ApiResponse(503, new Headers(), new Uint8Array());
  for (const attempt of [0, 1, 2]) {
    const delays = Array.from({ length: 200 }, () => getRetryDelay(response, attempt, 250) ?? 0);
    assert.ok(new Set(delays).size > 100);
    assert.ok(Math.min(...delays) >= 125 * 2 ** attempt && Math.max(...delays) <= 375 * 2 ** attempt);
  }
  const waiting = new ApiResponse(429, new Headers({ "Retry-After": "7" }), new Uint8Array());
  assert.equal(getRetryDelay(waiting, 0, 250), 7_000);
});

test("an invalid Retry-After is ignored", () => {
  for (const header of ["", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "9".repeat(400)]) {
    assert.equal(new ApiResponse(503, new Headers({ "Retry-After": header }), new Uint8Array()).retryAfter, null);
  }
});
