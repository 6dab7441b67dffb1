/** A stub server and clients of it, which are closed after the test. */

import type { TestContext } from "node:test";

import { Client, type ClientOptions } from "../src/index.ts";
import { StubServer } from "./stub_server.ts";

export const KEY = `drm_bot_${"k".repeat(36)}`;
export const DECK = { agent: "pilot", channel: "deck" } as const;

export async function startServer(t: TestContext): Promise<StubServer> {
  const server = new StubServer();
  await server.start();
  t.after(() => server.stop());
  return server;
}

export function makeClient(t: TestContext, server: StubServer, options: ClientOptions = {}): Client {
  const client = new Client({ url: server.url, key: KEY, retryDelayMs: 2, warn: () => undefined, ...options });
  t.after(() => client.close());
  return client;
}
