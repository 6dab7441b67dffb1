/** The client of one server with one API key. */

import { type BatchResult, MAX_BATCH_SIZE, fetchBatch } from "./batch.ts";
import { PromptCache, isFinal } from "./cache.ts";
import { DiskStore } from "./disk_store.ts";
import { hashText } from "./hashes.ts";
import type { components } from "./api.ts";
import { type JsonObject, type Unchecked, requireDocument, requireNumber, requireText } from "./json.ts";
import { DramatisError, Problem, Unreachable } from "./problems.ts";
import { Prompt, buildFallback, parsePrompt } from "./prompts.ts";
import { type ApiRequest, type PromptKey, getRequest, postRequest, promptPath, quoteSegment, validateServerUrl } from "./requests.ts";
import type { ApiResponse } from "./responses.ts";
import { type CallOptions, mergeCallOptions, readSettings } from "./settings.ts";
import { type PromptStore, SealedStore } from "./store.ts";
import { setSpanAttributes } from "./spans.ts";
import { Transport } from "./transport.ts";

export interface ClientOptions extends Partial<CallOptions> {
  /** The server's address; default: the variable DRAMATIS_URL. */
  readonly url?: string;
  /** The API key; default: the variable DRAMATIS_KEY. */
  readonly key?: string;
  /** A folder for copies of the prompts, for runtimes with files; default: the variable DRAMATIS_CACHE_DIR. */
  readonly cacheDir?: string;
  /** Where copies are kept instead of a folder. */
  readonly store?: PromptStore;
  /** Milliseconds before the first retry, doubled for each further one; default 250. */
  readonly retryDelayMs?: number;
  /** Keeps the runtime alive until a refresh has ended: `ctx.waitUntil` of Workers. */
  readonly waitUntil?: (refresh: Promise<void>) => void;
  readonly fetch?: typeof globalThis.fetch;
  /** Unix seconds; for tests. */
  readonly clock?: () => number;
  /** Receives warnings, which never contain text of a prompt; default: console.warn. */
  readonly warn?: (message: string) => void;
}

export interface PromptName {
  readonly agent: string;
  readonly channel: string;
  /** Default: production. */
  readonly label?: string;
}

export interface PromptOptions extends PromptName, Partial<CallOptions> {
  /** A version that the label points to, or has pointed to. */
  readonly version?: number;
  /** The text to use if the server is unavailable and there is no copy. A refusal is thrown nevertheless. */
  readonly fallback?: string;
  /** Seconds that replace the server's max-age for this call; with 0 it waits for the server. */
  readonly ttl?: number;
  /** Set `traceAttributes()` on the current OpenTelemetry span, if @opentelemetry/api is installed; default true. */
  readonly trace?: boolean;
}

/** A memory. One proposed by a bot is used in prompts after a member or a policy approves it. */
/** What a bot says about the text that it has loaded. */
export interface ReportFacts {
  /** The text that was used, if the bot changed it. Only its digest is sent. */
  readonly text?: string;
  readonly requestId?: string;
  /** The loaded file, why it was loaded, and the session of the bot. */
  readonly path?: string;
  readonly reason?: string;
  readonly session?: string;
}

export interface Memory {
  readonly id: number;
  readonly text: string;
  readonly agent: string | null;
  readonly status: string;
}

/** A skill with its full instructions. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly body: string;
}

type Schemas = components["schemas"];

export const PRODUCTION = "production";

export class Client {
  readonly url: string;
  readonly #transport: Transport;
  readonly #cache: PromptCache;
  readonly #options: CallOptions;
  readonly #clock: () => number;
  readonly #warn: (message: string) => void;
  readonly #waitUntil: ClientOptions["waitUntil"];

  constructor(options: ClientOptions = {}) {
    const settings = readSettings(options);
    this.url = validateServerUrl(settings.url);
    this.#options = settings;
    this.#clock = options.clock ?? (() => Date.now() / 1000);
    this.#waitUntil = options.waitUntil;
    const warn = (this.#warn = options.warn ?? ((message: string) => console.warn(message)));
    const store = options.store ?? (settings.cacheDir ? new DiskStore(settings.cacheDir) : undefined);
    this.#transport = new Transport({
      url: this.url,
      key: settings.key,
      retryDelayMs: options.retryDelayMs ?? 250,
      fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
    });
    this.#cache = new PromptCache({
      transport: this.#transport,
      store: store && new SealedStore(store, this.url, settings.key, warn),
      clock: this.#clock,
      warn,
      waitUntil: options.waitUntil,
    });
  }

  /** Return the labelled prompt, from the cache if it is fresh enough; throw only without a copy and a fallback. */
  async getPrompt(options: PromptOptions): Promise<Prompt> {
    this.#requireOpen();
    const key = toKey(options);
    const prompt = await this.#getPromptOrFallback(key, options);
    if (options.trace ?? true) await setSpanAttributes(prompt);
    return prompt;
  }

  async #getPromptOrFallback(key: PromptKey, options: PromptOptions): Promise<Prompt> {
    try {
      return await this.#cache.getPrompt(key, mergeCallOptions(this.#options, options), options.ttl);
    } catch (error) {
      if (options.fallback === undefined || !(error instanceof DramatisError) || isFinal(error)) throw error;
      return buildFallback(key, options.fallback, this.#clock());
    }
  }

  /** Render the prompt with facts of this call, by their names in the API; always requests the server. */
  async render(
    { agent, channel, label = PRODUCTION }: PromptName,
    facts: JsonObject = {},
    options: Partial<CallOptions> = {},
  ): Promise<Prompt> {
    const path = `${promptPath({ agent, channel })}:render`;
    const response = await this.#call(postRequest(path, { label, ...facts }), options);
    const prompt = await parsePrompt(response.content, response.etag, this.#clock());
    await setSpanAttributes(prompt);
    return prompt;
  }

  /** Fetch many prompts with one request for each 50, and cache them; a failure of one leaves the others. */
  async batchGet(names: readonly PromptName[], options: Partial<CallOptions> = {}): Promise<BatchResult[]> {
    const keys = names.map((name) => toKey(name));
    const results: BatchResult[] = [];
    for (let start = 0; start < keys.length; start += MAX_BATCH_SIZE) {
      const part = keys.slice(start, start + MAX_BATCH_SIZE);
      results.push(...(await fetchBatch(this.#cache, part, this.#clock, (request) => this.#call(request, options))));
    }
    return results;
  }

  /** Report the digest of the text that was used: the prompt's, or `text` if the bot changed it. */
  async report(
    prompt: Prompt,
    { text, requestId, path, reason, session }: ReportFacts = {},
    options: Partial<CallOptions> = {},
  ): Promise<JsonObject> {
    const body: Schemas["PromptReportInput"] = {
      agent: prompt.agent,
      channel: prompt.channel,
      digest: text === undefined ? prompt.servedDigest : await hashText(text),
      ...(prompt.ledgerId ? { ledger_id: prompt.ledgerId } : {}),
      ...(requestId ? { request_id: requestId } : {}),
      ...(path ? { path } : {}),
      ...(reason ? { reason } : {}),
      ...(session ? { session } : {}),
    };
    return (await this.#call(postRequest("prompts:report", body), options)).json();
  }

  /** Report without waiting; a failure is only a warning. */
  reportInBackground(prompt: Prompt, onFailure: () => void = () => undefined): void {
    const report = this.report(prompt).then(
      () => undefined,
      (error: unknown) => {
        this.#warn(`The report of ${prompt.agent} on ${prompt.channel} failed: ${String(error)}`);
        onFailure();
      },
    );
    this.#waitUntil?.(report);
  }

  /** Propose a memory of one agent, or of all agents; retries create one record. */
  async remember(
    text: string,
    { agent = null, ...facts }: { readonly agent?: string | null; readonly [fact: string]: unknown } = {},
    options: Partial<CallOptions> = {},
  ): Promise<Memory> {
    const response = await this.#call(postRequest("memories", { text, agent, ...facts }), options);
    return parseRecord<Schemas["Memory"], Memory>(response, (document) => ({
      id: requireNumber(document["id"]),
      text: requireText(document["text"]),
      agent: typeof document["agent"] === "string" ? document["agent"] : null,
      status: requireText(document["status"]),
    }));
  }

  /**
   * Return the full instructions of one of the agent's skills, as released.
   * `channel` is required if the agent has several channels that the key may use.
   */
  async skill(
    agent: string,
    name: string,
    options: Partial<CallOptions> & { channel?: string; label?: string } = {},
  ): Promise<Skill> {
    const { channel, label, ...call } = options;
    const query = new URLSearchParams({ ...(channel && { channel }), ...(label && { label }) }).toString();
    const path = `agents/${quoteSegment(agent)}/skills/${quoteSegment(name)}`;
    const response = await this.#call(getRequest(query ? `${path}?${query}` : path), call);
    return parseRecord<Schemas["ServedSkill"], Skill>(response, (document) => ({
      name: requireText(document["name"]),
      description: requireText(document["description"] ?? ""),
      body: requireText(document["body"]),
    }));
  }

  /** Mark a step of a task, counted from 0, as done or open; return the task. */
  async completeStep(
    task: number,
    step: number,
    isDone = true,
    options: Partial<CallOptions> = {},
  ): Promise<JsonObject> {
    const path = `tasks/${quoteSegment(task)}/steps/${quoteSegment(step)}:complete`;
    return (await this.#call(postRequest(path, { is_done: isDone } satisfies Schemas["TaskStepState"]), options)).json();
  }

  /** Wait until no request for a prompt is running. */
  async settle(): Promise<void> {
    await this.#cache.settle();
  }

  /** Abort running requests and start no more. */
  async close(): Promise<void> {
    this.#transport.close();
    await this.settle();
  }

  #requireOpen(): void {
    if (this.#transport.isClosed) throw new Error("This client is closed.");
  }

  /** Send a request and return the successful response, or throw. A 401 clears the prompt cache. */
  async #call(request: ApiRequest, options: Partial<CallOptions>): Promise<ApiResponse> {
    this.#requireOpen();
    const response = await this.#transport.send(request, mergeCallOptions(this.#options, options));
    if (response.isSuccess) return response;
    const error = response.toError();
    if (error instanceof Problem && error.status === 401) await this.#cache.clear();
    throw error;
  }
}

function toKey({ agent, channel, label = PRODUCTION, version }: PromptOptions): PromptKey {
  // Rejects names that would change the path before anything is cached.
  promptPath({ agent, channel });
  return { agent, channel, label, version: version ?? null };
}

function parseRecord<S, T>(response: ApiResponse, parse: (document: Unchecked<S>) => T): T {
  const document = requireDocument<S>(response.json());
  try {
    return parse(document);
  } catch (error) {
    throw new Unreachable("The response does not match the request.", { cause: error });
  }
}
