/** Copies of prompts outside of memory, each authenticated with an HMAC of the API key. */

import type { CacheEntry } from "./entries.ts";
import { MAX_AGE, STALE_WHILE_REVALIDATE } from "./entries.ts";
import { keyText, listKeyParts } from "./entry_index.ts";
import { type Bytes, concatBytes, decodeText, encodeText, fromHex, hashText, importMacKey, sign, toHex } from "./hashes.ts";
import { requireNumber, requireObject, requireText } from "./json.ts";
import { parsePrompt } from "./prompts.ts";
import type { PromptKey } from "./requests.ts";

/** Where copies are kept: a folder, or a key-value store of the platform. Names are `<folder>/<file>.json`. */
export interface PromptStore {
  read(name: string): Promise<Uint8Array | null>;
  /** Write the whole value; a reader never sees a part of it. */
  write(name: string, data: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
  /** Remove every name that begins with the prefix. */
  removeAll(prefix: string): Promise<void>;
}

const FORMAT = 1;
const NEWLINE = 0x0a;

/** Write and read entries in the file format of the Python client: a header line with the HMAC, then the content. */
export class SealedStore {
  readonly #store: PromptStore;
  readonly #folder: Promise<string>;
  readonly #macKey: Promise<CryptoKey>;
  readonly #warn: (message: string) => void;

  constructor(store: PromptStore, url: string, apiKey: string, warn: (message: string) => void) {
    this.#store = store;
    this.#folder = hashText(`${url}\0${apiKey}`).then((digest) => digest.slice(0, 32));
    this.#macKey = deriveMacKey(apiKey);
    this.#warn = warn;
  }

  async read(key: PromptKey): Promise<CacheEntry | undefined> {
    const name = await this.#name(key);
    try {
      const data = await this.#store.read(name);
      return data === null ? undefined : await this.#open(key, Uint8Array.from(data));
    } catch (error) {
      this.#warn(`A cached prompt cannot be used (${describe(error)}): ${name}`);
      return undefined;
    }
  }

  /** An error of the store is logged and not thrown, so the caller still gets the prompt. */
  async write(key: PromptKey, entry: CacheEntry): Promise<void> {
    try {
      await this.#store.write(await this.#name(key), await this.#close(key, entry));
    } catch (error) {
      this.#warn(`A prompt could not be cached: ${describe(error)}`);
    }
  }

  async remove(key: PromptKey): Promise<void> {
    await this.#removeQuietly(this.#store.remove(await this.#name(key)));
  }

  async clear(): Promise<void> {
    await this.#removeQuietly(this.#store.removeAll(`${await this.#folder}/`));
  }

  async #removeQuietly(removal: Promise<void>): Promise<void> {
    try {
      await removal;
    } catch (error) {
      this.#warn(`A cached prompt could not be removed. Remove it: ${describe(error)}`);
    }
  }

  async #name(key: PromptKey): Promise<string> {
    return `${await this.#folder}/${(await hashText(keyText(key))).slice(0, 32)}.json`;
  }

  async #open(key: PromptKey, data: Bytes): Promise<CacheEntry> {
    const end = data.indexOf(NEWLINE);
    if (end < 0) throw new TypeError("There is no header.");
    const line = decodeText(data.subarray(0, end));
    const header = requireObject(JSON.parse(line));
    const content = data.slice(end + 1);
    const signed = signedBytes(key, requireText(header["etag"]), numberIn(line, "fetched_at"), numberIn(line, "checked_at"), content);
    const isSealed = await crypto.subtle.verify("HMAC", await this.#macKey, fromHex(requireText(header["seal"])), signed);
    if (header["format"] !== FORMAT || !isSealed) throw new TypeError("The checksum does not match.");
    const fetchedAt = requireNumber(header["fetched_at"]);
    const prompt = await parsePrompt(content, requireText(header["etag"]), fetchedAt);
    const checkedAt = requireNumber(header["checked_at"]);
    return { prompt, content, fetchedAt, checkedAt, maxAge: MAX_AGE, staleFor: STALE_WHILE_REVALIDATE, retryAt: 0 };
  }

  async #close(key: PromptKey, entry: CacheEntry): Promise<Bytes> {
    const [etag, fetchedAt, checkedAt] = [entry.prompt.etag, formatFloat(entry.fetchedAt), formatFloat(entry.checkedAt)];
    const seal = toHex(await sign(await this.#macKey, signedBytes(key, etag, fetchedAt, checkedAt, entry.content)));
    const header =
      `{"format": ${FORMAT}, "etag": ${asciiJson(etag)}, "fetched_at": ${fetchedAt}, ` +
      `"checked_at": ${checkedAt}, "seal": "${seal}"}\n`;
    return concatBytes(encodeText(header), entry.content);
  }
}

async function deriveMacKey(apiKey: string): Promise<CryptoKey> {
  const secret = await sign(await importMacKey(encodeText(apiKey)), encodeText("dramatis-client copies"));
  return importMacKey(secret);
}

/** Return what the HMAC covers: a JSON list as Python writes it, then the content. */
function signedBytes(key: PromptKey, etag: string, fetchedAt: string, checkedAt: string, content: Bytes): Bytes {
  const values = [...[...listKeyParts(key), etag].map(asciiJson), fetchedAt, checkedAt];
  return concatBytes(encodeText(`[${values.join(", ")}]\n`), content);
}

/** Return a number of the header as it is written: Python tells 1000 from 1000.0. */
function numberIn(line: string, name: string): string {
  const match = new RegExp(`"${name}": ?(-?[0-9][0-9.e+-]*)[,}]`).exec(line);
  if (!match?.[1]) throw new TypeError("The header is not complete.");
  return match[1];
}

function formatFloat(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** Return JSON with all characters beyond ASCII escaped, as Python's `json.dumps` does. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
