/** In-memory index of cache entries. */

import { type CacheEntry, canRevalidate } from "./entries.ts";
import type { PromptKey } from "./requests.ts";

/** Previous versions, so that a roll back needs no download. They expire: their text may have been erased. */
const MAX_PREVIOUS = 3;
const PREVIOUS_MAX_AGE = 3_600;

/** Hold each prompt's current entry and its previous versions. */
export class EntryIndex {
  readonly #current = new Map<string, CacheEntry>();
  readonly #previous = new Map<string, readonly CacheEntry[]>();

  get(key: PromptKey): CacheEntry | undefined {
    return this.#current.get(keyText(key));
  }

  put(key: PromptKey, entry: CacheEntry): void {
    const name = keyText(key);
    const replaced = this.#current.get(name);
    this.#current.set(name, entry);
    const candidates = [...(replaced ? [replaced] : []), ...(this.#previous.get(name) ?? [])];
    const oldest = entry.checkedAt - PREVIOUS_MAX_AGE;
    const previous = candidates.filter((one) => one.prompt.etag !== entry.prompt.etag && one.checkedAt > oldest);
    this.#previous.set(name, previous.slice(0, MAX_PREVIOUS));
  }

  /** Return the entries that a 304 response may confirm, by ETag; the current one first. */
  listByEtag(key: PromptKey, now: number): Map<string, CacheEntry> {
    const current = this.get(key);
    const entries = [...(current ? [current] : []), ...(this.#previous.get(keyText(key)) ?? [])];
    return new Map(entries.filter((entry) => canRevalidate(entry, now)).map((entry) => [entry.prompt.etag, entry]));
  }

  remove(key: PromptKey): void {
    this.#current.delete(keyText(key));
    this.#previous.delete(keyText(key));
  }

  clear(): void {
    this.#current.clear();
    this.#previous.clear();
  }
}

/** Return the parts of a key as text; slugs contain no NUL. */
export function keyText(key: PromptKey): string {
  return listKeyParts(key).join("\0");
}

export function listKeyParts(key: PromptKey): string[] {
  return [key.agent, key.channel, key.label, ...(key.version === null ? [] : [String(key.version)])];
}
