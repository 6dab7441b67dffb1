/** TypeScript client of Dramatis: fetch prompts, and use the cached copy while the server is unavailable. */

export type { BatchResult } from "./batch.ts";
export { Client, type ClientOptions, type Memory, type PromptName, type PromptOptions, type ReportFacts, type Skill } from "./client.ts";
export { DiskStore } from "./disk_store.ts";
export type {
  AnthropicTool,
  Attributes,
  ChatMessage,
  Message,
  OpenAIChatTool,
  OpenAIResponsesTool,
  SystemBlock,
} from "./formats.ts";
export { DramatisError, type FieldError, Problem, Unreachable } from "./problems.ts";
export { type Block, Prompt, type PromptFields, type Segment, type Tokens, type Tool } from "./prompts.ts";
export type { CallOptions } from "./settings.ts";
export type { PromptStore } from "./store.ts";
