/** Instructions for the OpenAI Agents SDK (`@openai/agents`). */

import type { Client } from "../client.ts";
import { type AdapterOptions, loadPrompt } from "./load.ts";

export type { AdapterOptions } from "./load.ts";

/**
 * Return a function for `new Agent({ instructions })`. The SDK calls it before each request to the model,
 * and the text stays the same as long as the version does.
 */
export function instructions(client: Client, options: AdapterOptions): () => Promise<string> {
  return async () => (await loadPrompt(client, options)).text;
}
