/** A prompt, parsed from the server's JSON and checked against its digest. */

import { type Bytes, decodeText, encodeText, hashText } from "./hashes.ts";
import type { components } from "./api.ts";
import {
  type JsonObject,
  type Unchecked,
  listOf,
  requireDocument,
  requireNumber,
  requireObject,
  requireText,
} from "./json.ts";
import { Unreachable } from "./problems.ts";
import {
  type AnthropicTool,
  type Attributes,
  type ChatMessage,
  type Message,
  type OpenAIChatTool,
  type OpenAIResponsesTool,
  type SystemBlock,
  anthropicBlocks,
  anthropicTools,
  openAIChatTools,
  openAIMessages,
  openAIResponsesTools,
  traceAttributes,
} from "./formats.ts";

type Schemas = components["schemas"];

/** A part of the text; the joined blocks are the text. Cacheable blocks come first. */
export interface Block {
  readonly text: string;
  readonly volatility: string;
  readonly isCacheable: boolean;
}

/** One section's range in the text, in code points; `slot` names the slot that the call filled, if any. */
export interface Segment {
  readonly section: string;
  readonly volatility: string;
  readonly range: readonly [number, number];
  readonly slot: string | null;
  readonly isCacheable: boolean;
}

/** A tool definition: `parameters` is a JSON schema. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** Tokens of the version: `total` is `text` plus `tools`. */
export interface Tokens {
  readonly total: number;
  readonly text: number;
  readonly tools: number;
  readonly sections: { readonly [section: string]: number };
}

export interface PromptFields {
  readonly agent: string;
  readonly channel: string;
  readonly label: string;
  readonly text: string;
  /** The number of the version; 0 for a fallback. */
  readonly version: number;
  /** Digest of the version; `servedDigest` is the SHA-256 of the text. */
  readonly digest: string;
  readonly servedDigest: string;
  readonly layout: string;
  readonly createdAt: string;
  readonly blocks: readonly Block[];
  readonly segments: readonly Segment[];
  readonly tools: readonly Tool[];
  /** Messages to send together with the prompt. */
  readonly messages: readonly Message[];
  readonly slots: JsonObject;
  readonly tokens: Tokens;
  readonly warnings: readonly string[];
  /** The ledger row of the request that fetched this text; 0 for a fallback. */
  readonly ledgerId: number;
  readonly etag: string;
  /** The time and other slot values in the text are those of this time. */
  readonly fetchedAt: Date;
  /** Older than max-age (or `ttl`): a refresh is running, or the server is unavailable. */
  readonly isStale: boolean;
  /** The text is the caller's `fallback`: there was neither a response nor a copy. */
  readonly isFallback: boolean;
}

// Declaration merging: the class has the fields of the interface.
export interface Prompt extends PromptFields {}

/** The prompt text of one agent on one channel, with its metadata. */
export class Prompt {
  constructor(fields: PromptFields) {
    Object.assign(this, fields);
    Object.freeze(this);
  }

  /** Whether the text holds slot values, such as the time of the request. */
  get hasSlots(): boolean {
    return this.segments.some((segment) => segment.slot);
  }

  /** Messages of OpenAI's Chat Completions: the text as the system message, then `messages`. */
  toOpenAI(): ChatMessage[] {
    return openAIMessages(this);
  }

  /** Tool definitions of OpenAI's Chat Completions, or of its Responses API. */
  toOpenAITools(options?: { readonly api?: "chat" }): OpenAIChatTool[];
  toOpenAITools(options: { readonly api: "responses" }): OpenAIResponsesTool[];
  toOpenAITools({ api = "chat" }: { readonly api?: "chat" | "responses" } = {}): (
    | OpenAIChatTool
    | OpenAIResponsesTool
  )[] {
    return api === "chat" ? openAIChatTools(this) : openAIResponsesTools(this);
  }

  /** The `system` blocks of Anthropic's Messages API; the last `maxMarks` cacheable ones end a cached prefix. */
  toAnthropic({ maxMarks = 1 }: { readonly maxMarks?: number } = {}): SystemBlock[] {
    return anthropicBlocks(this, maxMarks);
  }

  toAnthropicTools(): AnthropicTool[] {
    return anthropicTools(this);
  }

  /** Attributes of an OpenTelemetry span. They never contain the text. */
  traceAttributes(): Attributes {
    return traceAttributes(this);
  }
}

/** Parse a prompt; throw Unreachable if this is no prompt, or if the text does not match its digest. */
export async function parsePrompt(content: Uint8Array, etag: string, fetchedAt: number): Promise<Prompt> {
  let prompt: Prompt;
  try {
    prompt = buildPrompt(requireDocument(JSON.parse(decodeText(content))), etag, fetchedAt);
  } catch (error) {
    throw new Unreachable("The response is not a prompt.", { cause: error });
  }
  if ((await hashText(prompt.text)) !== prompt.servedDigest) {
    throw new Unreachable("The prompt does not match its digest. It was changed in transit.");
  }
  return prompt;
}

/** Return the bytes to cache of a prompt that arrived inside another document. */
export function encodePrompt(document: JsonObject): Bytes {
  return encodeText(JSON.stringify(document));
}

/** Return the caller's own text as a prompt without version, tools and ledger row. */
export async function buildFallback(
  name: { readonly agent: string; readonly channel: string; readonly label: string },
  text: string,
  now: number,
): Promise<Prompt> {
  return new Prompt({
    agent: name.agent,
    channel: name.channel,
    label: name.label,
    text,
    version: 0,
    digest: "",
    servedDigest: await hashText(text),
    layout: "",
    createdAt: "",
    blocks: [{ text, volatility: "", isCacheable: false }],
    segments: [],
    tools: [],
    messages: [],
    slots: {},
    tokens: { total: 0, text: 0, tools: 0, sections: {} },
    warnings: [],
    ledgerId: 0,
    etag: "",
    fetchedAt: new Date(now * 1000),
    isStale: true,
    isFallback: true,
  });
}

function buildPrompt(document: Unchecked<Schemas["Prompt"]>, etag: string, fetchedAt: number): Prompt {
  const text = requireText(document["text"]);
  const digest = requireText(document["digest"]);
  const blocks = listOf(document["blocks"], parseBlock);
  if (blocks.map((block) => block.text).join("") !== text) throw new TypeError("The blocks do not match the text.");
  return new Prompt({
    agent: requireText(document["agent"]),
    channel: requireText(document["channel"]),
    label: requireText(document["label"]),
    text,
    version: requireNumber(document["version"]),
    digest,
    servedDigest: requireText(document["served_digest"]),
    layout: requireText(document["layout"]),
    createdAt: requireText(document["created_at"]),
    blocks,
    segments: listOf(document["segments"], parseSegment),
    tools: listOf(document["tools"], parseTool),
    messages: listOf(document["messages"], parseMessage),
    slots: Object.freeze(requireObject(document["slots"] ?? {})),
    tokens: parseTokens(requireDocument(document["tokens"])),
    warnings: listOf(document["warnings"], requireText),
    ledgerId: requireNumber(document["ledger_id"]),
    etag: etag || `W/"${digest}"`,
    fetchedAt: new Date(fetchedAt * 1000),
    isStale: false,
    isFallback: false,
  });
}

function parseBlock(value: unknown): Block {
  const item = requireDocument<Schemas["PromptBlock"]>(value);
  return Object.freeze({
    text: requireText(item["text"]),
    volatility: requireText(item["volatility"]),
    isCacheable: item["is_cacheable"] === true,
  });
}

function parseSegment(value: unknown): Segment {
  const item = requireDocument<Schemas["PromptSegment"]>(value);
  const [start, end] = listOf(item["range"], requireNumber);
  return Object.freeze({
    section: requireText(item["section"]),
    volatility: requireText(item["volatility"]),
    range: [requireNumber(start), requireNumber(end)] as const,
    slot: typeof item["slot"] === "string" ? item["slot"] : null,
    isCacheable: item["is_cacheable"] === true,
  });
}

function parseTool(value: unknown): Tool {
  const item = requireDocument<Schemas["ToolDefinition"]>(value);
  return Object.freeze({
    name: requireText(item["name"]),
    description: requireText(item["description"] ?? ""),
    parameters: requireObject(item["parameters"] ?? { type: "object", properties: {} }),
  });
}

function parseMessage(value: unknown): Message {
  const item = requireDocument<Schemas["Message"]>(value);
  const role = requireText(item["role"]) as Message["role"];
  return Object.freeze({ role, content: requireText(item["content"]) });
}

function parseTokens(item: Unchecked<Schemas["TokenCounts"]>): Tokens {
  const sections = Object.entries(requireObject(item["sections"] ?? {}));
  return Object.freeze({
    total: requireNumber(item["total"]),
    text: requireNumber(item["text"] ?? item["total"]),
    tools: requireNumber(item["tools"] ?? 0),
    sections: Object.freeze(Object.fromEntries(sections.map(([name, count]) => [name, requireNumber(count)]))),
  });
}
