/** Instructions for the AI SDK (`ai`): `generateText`, `streamText` and `ToolLoopAgent`. */

import type { SystemModelMessage } from "ai";

import type { Client } from "../client.ts";
import type { Prompt } from "../prompts.ts";
import { type AdapterOptions, loadPrompt } from "./load.ts";

export type { AdapterOptions } from "./load.ts";

export interface InstructionsOptions extends AdapterOptions {
  /** For Anthropic's models: how many system messages carry a cache mark; default 0, one plain text. */
  readonly maxMarks?: number;
}

export type Instructions = string | SystemModelMessage[];

/** Return `instructions` of `generateText` and `streamText`. */
export async function instructions(client: Client, options: InstructionsOptions): Promise<Instructions> {
  return toInstructions(await loadPrompt(client, options), options.maxMarks);
}

/** Return `prepareCall` of a `ToolLoopAgent`, which sets the instructions of each call. */
export function prepareCall(
  client: Client,
  options: InstructionsOptions,
): <Settings extends object>(settings: Settings) => Promise<Settings & { instructions: Instructions }> {
  return async (settings) => ({ ...settings, instructions: await instructions(client, options) });
}

export function toInstructions(prompt: Prompt, maxMarks = 0): Instructions {
  if (!maxMarks) return prompt.text;
  return prompt.toAnthropic({ maxMarks }).map((block) => ({
    role: "system",
    content: block.text,
    ...(block.cache_control ? { providerOptions: { anthropic: { cacheControl: block.cache_control } } } : {}),
  }));
}
