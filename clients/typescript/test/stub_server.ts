/** Stub HTTP server with scripted responses, for cases that the real server rarely or never produces. */

import { createHash } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export const CACHING = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400";

/** One scripted response, as in clients/behaviour.json. */
export interface StubResponse {
  readonly prompt?: string;
  readonly version?: number;
  readonly changes?: Record<string, unknown>;
  readonly cache_control?: string;
  readonly not_modified?: string;
  readonly problem?: number;
  readonly code?: string;
  readonly retry_after?: number;
  readonly status?: number;
  readonly content_type?: string;
  readonly body?: string;
  readonly location?: string;
  readonly disconnect?: boolean;
  readonly delay?: number;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

export class StubServer {
  readonly requests: ReceivedRequest[] = [];
  port = 0;
  #responses: readonly StubResponse[] = [{ status: 500 }];
  #sent = 0;
  #server: Server | undefined;

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Send these responses in turn, and repeat the last one. */
  respondWith(...responses: readonly StubResponse[]): void {
    this.#responses = responses;
    this.#sent = 0;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#handle(request, response));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = "", url: path = "", headers } = request;
    this.requests.push({ method, path, headers, body: Buffer.concat(parts).toString() });
    const index = Math.min(this.#sent++, this.#responses.length - 1);
    const stub = this.#responses[index] ?? {};
    if (stub.delay) await sleep(stub.delay * 1000, undefined, { ref: false });
    if (stub.disconnect) {
      request.socket.destroy();
      return;
    }
    const [status, sentHeaders, body] = buildResponse(stub);
    response.writeHead(status, sentHeaders);
    response.end(body);
  }
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export function etagOf(text: string): string {
  return `W/"${hashOf(`version ${text}`)}"`;
}

/** Return a prompt document as the server writes it. */
export function promptDocument(text: string, version = 1, changes: Record<string, unknown> = {}): Record<string, unknown> {
  const isCacheable = true;
  return {
    version,
    digest: hashOf(`version ${text}`),
    layout: "dramatis",
    created_at: "2026-03-07T14:55:05Z",
    tokens: { total: 3, text: 3, tools: 0, sections: { soul: 3 } },
    served_digest: hashOf(text),
    text,
    blocks: text.length > 3
      ? [
          { text: text.slice(0, 3), volatility: "release", is_cacheable: isCacheable },
          { text: text.slice(3), volatility: "turn", is_cacheable: false },
        ]
      : [{ text, volatility: "release", is_cacheable: isCacheable }],
    segments: [{ section: "soul", volatility: "release", range: [0, text.length], slot: null, is_cacheable: isCacheable }],
    agent: "pilot",
    channel: "deck",
    label: "production",
    as_of: null,
    slots: { now: "2026-03-07T14:55:05+00:00" },
    tools: [],
    warnings: [],
    messages: [],
    ledger_id: 40 + version,
    ...changes,
  };
}

function buildResponse(stub: StubResponse): [number, Record<string, string>, string | undefined] {
  if (stub.prompt !== undefined) {
    const body = JSON.stringify(promptDocument(stub.prompt, stub.version, stub.changes));
    const caching = stub.cache_control ?? CACHING;
    return [200, { "Content-Type": "application/json", ETag: etagOf(stub.prompt), "Cache-Control": caching }, body];
  }
  if (stub.not_modified !== undefined) {
    return [304, { ETag: etagOf(stub.not_modified), "Cache-Control": CACHING }, undefined];
  }
  if (stub.problem !== undefined) {
    const headers: Record<string, string> = { "Content-Type": "application/problem+json" };
    if (stub.retry_after !== undefined) headers["Retry-After"] = String(stub.retry_after);
    return [stub.problem, headers, JSON.stringify(problemDocument(stub.problem, stub.code ?? ""))];
  }
  const headers: Record<string, string> = {};
  if (stub.content_type) headers["Content-Type"] = stub.content_type;
  if (stub.location) headers["Location"] = stub.location;
  return [stub.status ?? 500, headers, stub.body ?? ""];
}

export function problemDocument(status: number, code: string): Record<string, unknown> {
  return {
    type: `/api/v1/docs/errors#${code}`,
    title: "Refused",
    status,
    detail: "It is refused.",
    code,
    request_id: "req-7",
    errors: [{ detail: "This field is required.", pointer: "/text" }],
  };
}
