/** Prompts in the formats of model providers, and as attributes of a trace. */

import type { JsonObject } from "./json.ts";
import type { Prompt } from "./prompts.ts";

/** A message to send together with the prompt. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface OpenAIChatTool {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

export interface OpenAIResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  strict: boolean;
}

export interface SystemBlock {
  type: "text";
  text: string;
  cache_control?: { type: "ephemeral" };
}

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: "object"; [name: string]: unknown };
}

export type Attributes = Record<string, string | number | boolean>;

export function openAIMessages(prompt: Prompt): ChatMessage[] {
  return [{ role: "system", content: prompt.text }, ...prompt.messages.map((message) => ({ ...message }))];
}

export function openAIChatTools(prompt: Prompt): OpenAIChatTool[] {
  return prompt.tools.map((tool) => ({
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: copySchema(tool.parameters) },
  }));
}

export function openAIResponsesTools(prompt: Prompt): OpenAIResponsesTool[] {
  return prompt.tools.map((tool) => ({
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: copySchema(tool.parameters),
    strict: false,
  }));
}

/** Mark the last cacheable blocks. A mark caches everything before it, so one mark caches the longest prefix. */
export function anthropicBlocks(prompt: Prompt, maxMarks: number): SystemBlock[] {
  const firstUncacheable = prompt.blocks.findIndex((block) => !block.isCacheable);
  const cacheable = firstUncacheable < 0 ? prompt.blocks.length : firstUncacheable;
  return prompt.blocks
    .map((block, index): SystemBlock => {
      const isMarked = index < cacheable && index >= cacheable - maxMarks;
      return { type: "text", text: block.text, ...(isMarked ? { cache_control: { type: "ephemeral" } } : {}) };
    })
    .filter((block) => block.text);
}

export function anthropicTools(prompt: Prompt): AnthropicTool[] {
  return prompt.tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    input_schema: { type: "object", ...copySchema(tool.parameters) },
  }));
}

/** Return the GenAI attributes of OpenTelemetry and our own; a fallback has no version, digest and ledger row. */
export function traceAttributes(prompt: Prompt): Attributes {
  const attributes: Attributes = {
    "gen_ai.prompt.name": `${prompt.agent}.${prompt.channel}`,
    "gen_ai.agent.name": prompt.agent,
    "dramatis.label": prompt.label,
  };
  if (prompt.isFallback) return { ...attributes, "dramatis.is_fallback": true };
  return {
    ...attributes,
    "gen_ai.prompt.version": String(prompt.version),
    "dramatis.digest": prompt.digest,
    "dramatis.ledger_id": prompt.ledgerId,
  };
}

/** Return a copy that the caller may change: cached prompts are shared. */
function copySchema(schema: JsonObject): Record<string, unknown> {
  return structuredClone(schema) as Record<string, unknown>;
}
