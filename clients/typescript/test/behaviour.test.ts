/** The cases of clients/behaviour.json, which every client of Dramatis passes. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, type ClientOptions, Problem, type Prompt, Unreachable } from "../src/index.ts";
import { type Expectation, type Step, behaviour } from "./behaviour_file.ts";
import { StubServer, etagOf } from "./stub_server.ts";

const CAMEL_CASE: Record<string, string> = {
  ledger_id: "ledgerId",
  is_stale: "isStale",
  is_fallback: "isFallback",
  retry_after: "retryAfter",
  request_id: "requestId",
};

/** One case: its server, its folder and its current client. */
class Stage {
  readonly server = new StubServer();
  readonly folder: string | undefined;
  clock: number | undefined;
  client: Client | undefined;

  constructor(folder: string | undefined) {
    this.folder = folder;
  }

  makeClient({ key = behaviour.key }: { readonly key?: string } = {}): void {
    const options: ClientOptions = {
      url: this.server.url,
      key,
      retryDelayMs: 2,
      warn: () => undefined,
      clock: () => this.clock ?? Date.now() / 1000,
      ...(this.folder ? { cacheDir: this.folder } : {}),
    };
    this.client = new Client(options);
  }

  async run(step: Step): Promise<void> {
    if (step.clock !== undefined) this.clock = step.clock;
    else if (step.respond) this.server.respondWith(...step.respond);
    else if (step.server) await this.server[step.server]();
    else if (step.call) await this.call(step);
    else if (step.settle) await this.client?.settle();
    else if (step.requests) this.checkRequests(step.requests);
    else if (step.client) this.makeClient(step.client);
    else if (step.files !== undefined) assert.equal((await this.listFiles()).length, step.files);
    else if (step.damage) await this.damage(step.damage);
    else assert.fail(`unknown step: ${JSON.stringify(step)}`);
  }

  async call({ call, with: args = {}, times = 1, at_least = 0, expect = {} }: Step): Promise<void> {
    const startedAt = performance.now();
    const calls = Array.from({ length: times }, () => this.callOnce(call ?? "", args));
    for (const [index, result] of (await Promise.all(calls)).entries()) {
      checkResult(result, expect, `call ${index + 1} of ${times}`);
    }
    assert.ok(performance.now() - startedAt >= at_least * 1000 - 5, "it was too fast");
  }

  async callOnce(method: string, args: Record<string, unknown>): Promise<unknown> {
    assert.ok(this.client);
    try {
      if (method === "get_prompt") return await this.client.getPrompt({ agent: "pilot", channel: "deck", ...args });
      if (method === "remember") return await this.client.remember(String(args["text"]));
    } catch (error) {
      return error;
    }
    return assert.fail(`unknown method: ${method}`);
  }

  checkRequests({ count, last = {} }: { readonly count: number; readonly last?: Record<string, unknown> }): void {
    assert.equal(this.server.requests.length, count, "number of requests");
    const request = this.server.requests.at(-1);
    assert.ok(request);
    for (const [field, value] of Object.entries(last)) {
      if (field === "if_none_match") {
        const etags = (value as string[]).map(etagOf).join(", ");
        assert.equal(request.headers["if-none-match"] ?? "", etags);
      } else {
        assert.equal(request[field as "path"], value);
      }
    }
  }

  async listFiles(): Promise<string[]> {
    assert.ok(this.folder);
    const names = await readdir(this.folder, { recursive: true });
    return names.filter((name) => name.endsWith(".json")).map((name) => join(this.folder ?? "", name));
  }

  async damage({ replace, by = "", truncate }: NonNullable<Step["damage"]>): Promise<void> {
    const [path, ...others] = await this.listFiles();
    assert.ok(path && !others.length);
    const content = await readFile(path, "utf-8");
    if (replace !== undefined) assert.ok(content.includes(replace));
    await writeFile(path, replace === undefined ? content.slice(0, truncate) : content.replace(replace, by));
  }
}

function checkResult(result: unknown, expect: Expectation, which: string): void {
  if (expect.unreachable) {
    assert.ok(result instanceof Unreachable, `${which}: ${String(result)}`);
    return;
  }
  if (expect.problem) {
    assert.ok(result instanceof Problem, `${which}: ${String(result)}`);
    checkFields(result, expect.problem);
    return;
  }
  if (result instanceof Error) throw result;
  checkFields(result as Prompt, expect);
}

function checkFields(result: object, expected: Record<string, unknown>): void {
  for (const [field, value] of Object.entries(expected)) {
    const actual = readField(result, field);
    if (Array.isArray(value)) {
      assert.ok(Array.isArray(actual) && actual.length === value.length, field);
      for (const [index, item] of value.entries()) checkFields(actual[index], item);
    } else {
      assert.deepEqual(actual, value, field);
    }
  }
}

function readField(result: object, field: string): unknown {
  const value = (result as Record<string, unknown>)[CAMEL_CASE[field] ?? field.replace("fetched_at", "fetchedAt")];
  return value instanceof Date ? value.getTime() / 1000 : value;
}

for (const { name, has_folder, steps } of behaviour.cases) {
  test(name, async () => {
    const folder = has_folder ? await mkdtemp(join(tmpdir(), "dramatis-")) : undefined;
    const stage = new Stage(folder);
    await stage.server.start();
    try {
      stage.makeClient();
      for (const [index, step] of steps.entries()) {
        try {
          await stage.run(step);
        } catch (error) {
          throw new Error(`step ${index + 1}: ${JSON.stringify(step)}: ${String(error)}`, { cause: error });
        }
      }
    } finally {
      await stage.client?.close();
      await stage.server.stop();
      if (folder) await rm(folder, { recursive: true });
    }
  });
}
