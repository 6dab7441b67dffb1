/** What every adapter does with a prompt: load it and report it. */

import type { Client, PromptOptions } from "../client.ts";
import type { Prompt } from "../prompts.ts";

export interface AdapterOptions extends PromptOptions {
  /** Report each loaded version to the server once, in the background; default false. */
  readonly report?: boolean;
  /** Called with each prompt before it is used, such as to set attributes of another tracer. */
  readonly onPrompt?: (prompt: Prompt) => void;
}

const reported = new WeakMap<Client, Set<string>>();

export async function loadPrompt(client: Client, options: AdapterOptions): Promise<Prompt> {
  const prompt = await client.getPrompt(options);
  if (options.report) reportOnce(client, prompt);
  options.onPrompt?.(prompt);
  return prompt;
}

/** Report a text once per client. A failed report is tried again with the next call. */
function reportOnce(client: Client, prompt: Prompt): void {
  const done = reported.get(client) ?? new Set();
  reported.set(client, done);
  const name = [prompt.agent, prompt.channel, prompt.label, prompt.servedDigest, prompt.ledgerId].join("\0");
  if (done.has(name)) return;
  done.add(name);
  client.reportInBackground(prompt, () => done.delete(name));
}
