/** A cached prompt and how long it may be used without asking the server. */

import type { Bytes } from "./hashes.ts";
import { Prompt, parsePrompt } from "./prompts.ts";
import type { ApiResponse } from "./responses.ts";

/** The server's own values, used if a proxy has removed the Cache-Control header. */
export const MAX_AGE = 30;
export const STALE_WHILE_REVALIDATE = 300;
/** Seconds between requests while the server is unavailable; callers do not wait for them. */
const RETRY_DELAY = 5;
const MAX_RETRY_DELAY = 60;
/** Prompts with slot values, such as the time, are downloaded again after an hour, even for the same version. */
const SLOTS_MAX_AGE = 3_600;

/** What to do with an entry: "fetch" uses it only if the server is unavailable (stale-if-error). */
export type CacheAction = "serve" | "serve and refresh" | "fetch";

/** A prompt with the bytes it was parsed from; times are Unix seconds. */
export interface CacheEntry {
  readonly prompt: Prompt;
  readonly content: Bytes;
  readonly fetchedAt: number;
  readonly checkedAt: number;
  readonly maxAge: number;
  readonly staleFor: number;
  /** Set after a failed request: the server is not asked again before this time. */
  readonly retryAt: number;
}

/** `ttl` replaces max-age for one call; with 0 the call waits for the server. */
export function chooseAction(entry: CacheEntry, now: number, ttl?: number): CacheAction {
  const age = now - entry.checkedAt;
  const wait = entry.retryAt - now;
  if (isFresh(entry, now, ttl) || (wait > 0 && wait <= MAX_RETRY_DELAY)) return "serve";
  if (entry.retryAt) return "serve and refresh";
  if (ttl === 0) return "fetch";
  return age >= 0 && age < (ttl ?? entry.maxAge) + entry.staleFor ? "serve and refresh" : "fetch";
}

/** Return whether max-age has not passed; a clock that was set back makes no entry fresh. */
export function isFresh(entry: CacheEntry, now: number, ttl?: number): boolean {
  const age = now - entry.checkedAt;
  return age >= 0 && age < (ttl ?? entry.maxAge);
}

/** Return whether a 304 is good enough; old slot values, such as the time, are downloaded again. */
export function canRevalidate(entry: CacheEntry, now: number): boolean {
  const age = now - entry.fetchedAt;
  return !entry.prompt.hasSlots || (age >= 0 && age < SLOTS_MAX_AGE);
}

export function toPrompt(entry: CacheEntry, now: number, ttl?: number): Prompt {
  const isStale = !isFresh(entry, now, ttl);
  return isStale ? new Prompt({ ...entry.prompt, isStale }) : entry.prompt;
}

export async function createEntry(response: ApiResponse, now: number): Promise<CacheEntry> {
  const prompt = await parsePrompt(response.content, response.etag, now);
  const { content } = response;
  return { prompt, content, fetchedAt: now, checkedAt: now, retryAt: 0, ...getLifetimes(response) };
}

export function revalidate(entry: CacheEntry, response: ApiResponse, now: number): CacheEntry {
  return { ...entry, checkedAt: now, retryAt: 0, ...getLifetimes(response) };
}

export function delayRetry(entry: CacheEntry, now: number, retryAfter: number | null): CacheEntry {
  return { ...entry, retryAt: now + Math.min(Math.max(RETRY_DELAY, retryAfter ?? 0), MAX_RETRY_DELAY) };
}

function getLifetimes(response: ApiResponse): { maxAge: number; staleFor: number } {
  return {
    maxAge: response.cacheDirective("max-age") ?? MAX_AGE,
    staleFor: response.cacheDirective("stale-while-revalidate") ?? STALE_WHILE_REVALIDATE,
  };
}
