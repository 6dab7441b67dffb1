/** Copies on disk and in a store: the file format, damaged files, and errors of the disk. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { Unreachable } from "../src/index.ts";
import { SealedStore } from "../src/store.ts";
import { behaviour } from "./behaviour_file.ts";
import { DECK, KEY, makeClient, startServer } from "./fixtures.ts";
import { MemoryStore } from "./memory_store.ts";
import type { StubServer } from "./stub_server.ts";

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "dramatis-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** Return the only file of a folder, after one prompt was cached there. */
async function makeCopy(t: TestContext, server: StubServer, folder: string): Promise<string> {
  server.respondWith({ prompt: "Be brave." });
  await makeClient(t, server, { cacheDir: folder }).getPrompt(DECK);
  const names = await readdir(folder, { recursive: true });
  const [file, ...others] = names.filter((name) => name.endsWith(".json"));
  assert.ok(file && !others.length);
  return join(folder, file);
}

for (const [number, file] of behaviour.files.entries()) {
  test(`file ${number + 1} of the Python client is read and written byte for byte`, async () => {
    const key = { version: null, ...file.prompt };
    const bytes = new TextEncoder().encode(`${file.header}\n${file.content}`);
    const [store, copy] = [new MemoryStore(), new MemoryStore()];
    store.values.set(file.path, bytes);
    const entry = await new SealedStore(store, file.url, KEY, assert.fail).read(key);
    assert.equal(entry?.prompt.text, "Be brave. Æ 🔎");
    await new SealedStore(copy, file.url, KEY, assert.fail).write(key, entry);
    assert.deepEqual([...copy.values.keys()], [file.path]);
    assert.deepEqual([...(copy.values.get(file.path) ?? [])], [...bytes]);
  });
}

test("only the owner can read the file, and no temporary file remains", async (t) => {
  const server = await startServer(t);
  const path = await makeCopy(t, server, await makeFolder(t));
  const folder = join(path, "..");
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.equal((await readdir(folder)).length, 1);
  const content = await readFile(path, "utf-8");
  assert.ok(!content.includes(KEY) && !content.includes("127.0.0.1") && !path.includes(KEY));
});

test("every changed byte is detected", async () => {
  const [file] = behaviour.files;
  assert.ok(file);
  const original = new TextEncoder().encode(`${file.header}\n${file.content}`);
  const store = new MemoryStore();
  const sealed = new SealedStore(store, file.url, KEY, () => undefined);
  const key = { version: null, ...file.prompt };
  for (let offset = 0; offset < original.length; offset++) {
    const changed = original.slice();
    changed[offset] = (changed[offset] ?? 0) ^ (1 << (offset % 8));
    store.values.set(file.path, changed);
    const entry = await sealed.read(key);
    // A changed byte in the whitespace of the header leaves the prompt the same.
    assert.ok(!entry || (entry.prompt.text === "Be brave. Æ 🔎" && entry.checkedAt === 1772895335.5), `${offset}`);
  }
  for (let size = 0; size < original.length; size += 17) {
    store.values.set(file.path, original.slice(0, size));
    assert.equal(await sealed.read(key), undefined);
  }
});

test("a file of another prompt or version is rejected", async () => {
  const [file] = behaviour.files;
  assert.ok(file);
  const [store, other] = [new MemoryStore(), new MemoryStore()];
  const name = { version: null, ...file.prompt };
  store.values.set(file.path, new TextEncoder().encode(`${file.header}\n${file.content}`));
  const entry = await new SealedStore(store, file.url, KEY, assert.fail).read(name);
  assert.ok(entry);
  for (const changes of [{ channel: "mast" }, { label: "latest" }, { version: 1 }]) {
    const key = { ...name, ...changes };
    const sealed: SealedStore = new SealedStore(other, file.url, KEY, () => undefined);
    await sealed.write(key, entry);
    const [path] = [...other.values.keys()];
    assert.ok(path && path !== file.path);
    assert.ok(await sealed.read(key));
    other.values.set(path, store.values.get(file.path) ?? new Uint8Array());
    assert.equal(await sealed.read(key), undefined);
    other.values.clear();
  }
});

test("files with other content are ignored", async (t) => {
  const server = await startServer(t);
  const folder = await makeFolder(t);
  const path = await makeCopy(t, server, folder);
  await server.stop();
  for (const content of ["", "\n", "[]\n{}", "null\n", "{".repeat(100_000), '{"format":1}\n{}']) {
    await writeFile(path, content);
    await assert.rejects(makeClient(t, server, { cacheDir: folder, attempts: 1 }).getPrompt(DECK), Unreachable);
  }
});

test("a link is not followed", async (t) => {
  const server = await startServer(t);
  const folder = await makeFolder(t);
  const path = await makeCopy(t, server, folder);
  await rename(path, join(folder, "elsewhere"));
  await symlink(join(folder, "elsewhere"), path);
  await server.stop();
  await assert.rejects(makeClient(t, server, { cacheDir: folder, attempts: 1 }).getPrompt(DECK), Unreachable);
});

test("an error of the disk does not withhold the prompt", async (t) => {
  const server = await startServer(t);
  const folder = await makeFolder(t);
  await writeFile(join(folder, "file"), "");
  server.respondWith({ prompt: "Be brave." });
  const warnings: string[] = [];
  const options = { cacheDir: join(folder, "file"), warn: (message: string) => warnings.push(message) };
  assert.equal((await makeClient(t, server, options).getPrompt(DECK)).text, "Be brave.");
  assert.ok(warnings.some((warning) => warning.includes("could not be cached")));
});

test("a store that is passed keeps the copies", async (t) => {
  const server = await startServer(t);
  const store = new MemoryStore();
  server.respondWith({ prompt: "Be brave." });
  await makeClient(t, server, { store }).getPrompt(DECK);
  assert.equal(store.values.size, 1);
  await server.stop();
  assert.equal((await makeClient(t, server, { store }).getPrompt(DECK)).text, "Be brave.");
  await server.start();
  server.respondWith({ problem: 401, code: "invalid_key" });
  await assert.rejects(makeClient(t, server, { store }).getPrompt(DECK));
  assert.equal(store.values.size, 0);
});
