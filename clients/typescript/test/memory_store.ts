/** A store in memory, as a bot on a runtime without files would pass it. */

import type { PromptStore } from "../src/index.ts";

export class MemoryStore implements PromptStore {
  readonly values = new Map<string, Uint8Array>();

  async read(name: string): Promise<Uint8Array | null> {
    return this.values.get(name) ?? null;
  }

  async write(name: string, data: Uint8Array): Promise<void> {
    this.values.set(name, data);
  }

  async remove(name: string): Promise<void> {
    this.values.delete(name);
  }

  async removeAll(prefix: string): Promise<void> {
    for (const name of [...this.values.keys()]) if (name.startsWith(prefix)) this.values.delete(name);
  }
}
