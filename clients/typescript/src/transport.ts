/** Requests by fetch, with retries: exponential backoff and jitter. */

import { Unreachable } from "./problems.ts";
import type { ApiRequest } from "./requests.ts";
import { ApiResponse } from "./responses.ts";
import type { CallOptions } from "./settings.ts";
import { buildTraceHeaders } from "./spans.ts";

/** A longer Retry-After is thrown to the caller instead of delaying it. */
const MAX_DELAY_MS = 30_000;
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

export interface TransportOptions {
  readonly url: string;
  readonly key: string;
  readonly retryDelayMs: number;
  readonly fetch: typeof globalThis.fetch;
}

export class Transport {
  readonly #options: TransportOptions;
  readonly #closing = new AbortController();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Abort running requests and delays. */
  close(): void {
    this.#closing.abort(new Error("This client is closed."));
  }

  /** Send a request, with retries after passing failures; throw Unreachable if there is no response. */
  async send(request: ApiRequest, { attempts, timeoutMs }: CallOptions): Promise<ApiResponse> {
    for (let attempt = 0; ; attempt++) {
      const result = await this.#sendOnce(request, timeoutMs);
      const delay = getRetryDelay(result, attempt, this.#options.retryDelayMs);
      if (delay === null || attempt >= attempts - 1 || this.isClosed) {
        if (result instanceof ApiResponse) return result;
        const cause = result.cause instanceof Error ? result.cause : result;
        throw new Unreachable(`No response from the server: ${cause.message}.`, { cause: result });
      }
      await this.#sleep(delay);
    }
  }

  async #sendOnce(request: ApiRequest, timeoutMs: number): Promise<ApiResponse | Error> {
    const { url, key, fetch } = this.#options;
    const traceHeaders = await buildTraceHeaders();
    const controller = new AbortController();
    const abort = (): void => controller.abort(this.#closing.signal.reason);
    const timer = setTimeout(() => controller.abort(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
    this.#closing.signal.addEventListener("abort", abort);
    if (this.isClosed) abort();
    try {
      const response = await fetch(url + request.path, {
        method: request.method,
        headers: {
          Accept: "application/json",
          Authorization: `Bearer ${key}`,
          "User-Agent": "dramatis-client-ts/0.1.0",
          ...request.headers,
          ...traceHeaders,
        },
        ...(request.body === undefined ? {} : { body: request.body }),
        // The API key is sent to this server only.
        redirect: "manual",
        signal: controller.signal,
      });
      return new ApiResponse(response.status, response.headers, new Uint8Array(await response.arrayBuffer()));
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener("abort", abort);
    }
  }

  async #sleep(milliseconds: number): Promise<void> {
    const signal = this.#closing.signal;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  }
}

/** Return the milliseconds to wait before the next attempt, or null if a retry is pointless. */
export function getRetryDelay(result: ApiResponse | Error, attempt: number, base: number): number | null {
  // Jitter, so that many bots do not retry at the same time.
  const backoff = base * 2 ** attempt * (0.5 + Math.random());
  if (!(result instanceof ApiResponse)) return backoff;
  if (!RETRYABLE_STATUSES.has(result.status) && !isInProgress(result)) return null;
  const delay = Math.max(backoff, (result.retryAfter ?? 0) * 1000);
  return delay <= MAX_DELAY_MS ? delay : null;
}

/** Return whether the server is still processing an earlier attempt with the same Idempotency-Key. */
function isInProgress(response: ApiResponse): boolean {
  return response.status === 409 && response.parseProblem()?.code === "in_progress";
}
