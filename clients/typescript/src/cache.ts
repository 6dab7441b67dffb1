/** Prompt cache in memory and in a store, with stale-while-revalidate and stale-if-error. */

import { type CacheEntry, chooseAction, createEntry, delayRetry, revalidate, toPrompt } from "./entries.ts";
import { EntryIndex, keyText } from "./entry_index.ts";
import { DramatisError, Problem } from "./problems.ts";
import type { Prompt } from "./prompts.ts";
import { type PromptKey, promptRequest } from "./requests.ts";
import type { ApiResponse } from "./responses.ts";
import type { CallOptions } from "./settings.ts";
import type { SealedStore } from "./store.ts";
import type { Transport } from "./transport.ts";

const UNAUTHORIZED = 401;
/** The key may not read the prompt, it does not exist, or its text was erased: no cached copy may be used. */
const FINAL_STATUSES = new Set([UNAUTHORIZED, 403, 404, 410]);

export interface CacheOptions {
  readonly transport: Transport;
  readonly store: SealedStore | undefined;
  readonly clock: () => number;
  readonly warn: (message: string) => void;
  /** Keeps the runtime alive until a refresh has ended, as `ctx.waitUntil` of Workers does. */
  readonly waitUntil: ((refresh: Promise<void>) => void) | undefined;
}

/** An entry, and whether the server has sent or confirmed it just now; otherwise it is a copy (stale-if-error). */
interface FetchResult {
  readonly entry: CacheEntry;
  readonly isConfirmed: boolean;
}

/** Serve prompts from memory, the server or the store, as the server's caching headers allow. */
export class PromptCache {
  readonly index = new EntryIndex();
  readonly #options: CacheOptions;
  /** The running request of each prompt, which all callers share. */
  readonly #requests = new Map<string, Promise<FetchResult>>();

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** Return a usable cached prompt at once; otherwise wait for the server. */
  async getPrompt(key: PromptKey, options: CallOptions, ttl?: number): Promise<Prompt> {
    const now = this.#options.clock();
    const entry = this.index.get(key);
    const action = entry ? chooseAction(entry, now, ttl) : "fetch";
    if (!entry || action === "fetch") {
      const fetched = await this.#fetchOnce(key, options);
      return fetched.isConfirmed ? fetched.entry.prompt : toPrompt(fetched.entry, this.#options.clock(), ttl);
    }
    if (action === "serve and refresh") this.#refresh(key, options);
    return toPrompt(entry, now, ttl);
  }

  /** Wait until no request is running. */
  async settle(): Promise<void> {
    while (this.#requests.size) await Promise.allSettled(this.#requests.values());
  }

  /** Store what the server sent for this prompt: 200 with a prompt, or 304 for a known one. */
  async storeResponse(key: PromptKey, response: ApiResponse, known: Map<string, CacheEntry>): Promise<CacheEntry> {
    const now = this.#options.clock();
    const confirmed = response.status === 304 ? known.get(response.etag) : undefined;
    if (!confirmed && response.status !== 200) throw response.toError();
    const entry = confirmed ? revalidate(confirmed, response, now) : await createEntry(response, now);
    const isNew = this.index.get(key)?.content !== entry.content;
    this.index.put(key, entry);
    if (isNew) await this.#options.store?.write(key, entry);
    return entry;
  }

  async clear(): Promise<void> {
    this.index.clear();
    await this.#options.store?.clear();
  }

  /** Return the entry in memory, or the one in the store. */
  async load(key: PromptKey): Promise<CacheEntry | undefined> {
    const entry = this.index.get(key) ?? (await this.#options.store?.read(key));
    if (entry && !this.index.get(key)) this.index.put(key, entry);
    return entry;
  }

  /** Return the copy if the server is unavailable, and delay the next request; throw if there is no copy. */
  async handleFailure(key: PromptKey, copy: CacheEntry | undefined, error: unknown): Promise<CacheEntry> {
    if (isFinal(error)) await this.#evict(key, error);
    // Read again: another call may have evicted or replaced the entry while this one waited.
    const entry = this.index.get(key);
    if (!entry || isFinal(error) || !(error instanceof DramatisError)) throw error;
    if (entry !== copy) return entry;
    const delayed = delayRetry(entry, this.#options.clock(), error instanceof Problem ? error.retryAfter : null);
    this.index.put(key, delayed);
    return delayed;
  }

  /** Remove a refused prompt's entries; after 401 remove all entries of the API key. */
  async #evict(key: PromptKey, problem: Problem): Promise<void> {
    if (problem.status === UNAUTHORIZED) return this.clear();
    this.index.remove(key);
    await this.#options.store?.remove(key);
  }

  #fetchOnce(key: PromptKey, options: CallOptions): Promise<FetchResult> {
    const name = keyText(key);
    const running = this.#requests.get(name);
    if (running) return running;
    const request = this.#fetch(key, options).finally(() => this.#requests.delete(name));
    this.#requests.set(name, request);
    return request;
  }

  /** Fetch in the background. A refusal evicts the entry, so that the next call throws it. */
  #refresh(key: PromptKey, options: CallOptions): void {
    if (this.#requests.has(keyText(key))) return;
    const refresh = this.#fetchOnce(key, options).then(
      () => undefined,
      (error: unknown) =>
        this.#options.warn(`The prompt of ${key.agent} on ${key.channel} could not be refreshed: ${String(error)}`),
    );
    this.#options.waitUntil?.(refresh);
  }

  /** Fetch from the server; if it is unavailable, return the cached copy (stale-if-error). */
  async #fetch(key: PromptKey, options: CallOptions): Promise<FetchResult> {
    const copy = await this.load(key);
    const known = this.index.listByEtag(key, this.#options.clock());
    try {
      // No retries if there is a cached copy to return.
      const request = promptRequest(key, known.keys());
      const response = await this.#options.transport.send(request, copy ? { ...options, attempts: 1 } : options);
      return { entry: await this.storeResponse(key, response, known), isConfirmed: true };
    } catch (error) {
      return { entry: await this.handleFailure(key, copy, error), isConfirmed: false };
    }
  }
}

/** Return whether Dramatis refuses the prompt; a proxy's 404 is not a Problem, so nothing is evicted. */
export function isFinal(error: unknown): error is Problem {
  return error instanceof Problem && FINAL_STATUSES.has(error.status);
}
