/** Middleware for agents of LangChain (`langchain`, `createAgent`). */

import { type AgentMiddleware, SystemMessage, createMiddleware } from "langchain";

import type { Client } from "../client.ts";
import type { Prompt } from "../prompts.ts";
import { type AdapterOptions, loadPrompt } from "./load.ts";

export type { AdapterOptions } from "./load.ts";

export interface MiddlewareOptions extends AdapterOptions {
  /** For Anthropic's models: how many blocks of the system message carry cache_control; default 0, plain text. */
  readonly maxMarks?: number;
}

/** Return middleware that sets the prompt as the system message of each request to the model. */
export function promptMiddleware(client: Client, options: MiddlewareOptions): AgentMiddleware {
  return createMiddleware({
    name: "DramatisPrompt",
    wrapModelCall: async (request, handler) => {
      const prompt = await loadPrompt(client, options);
      return handler({ ...request, systemMessage: toSystemMessage(prompt, options.maxMarks ?? 0) });
    },
  });
}

export function toSystemMessage(prompt: Prompt, maxMarks = 0): SystemMessage {
  return new SystemMessage({ content: maxMarks ? prompt.toAnthropic({ maxMarks }).map((block) => ({ ...block })) : prompt.text });
}
