/** Requests as plain data, without the API key. */

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The cache key of a prompt. */
export interface PromptKey {
  readonly agent: string;
  readonly channel: string;
  readonly label: string;
  readonly version: number | null;
}

export const API_ROOT = "/api/v1/";
const ADDRESS_HINT = "Use the base URL of the server, for example https://dramatis.example.com.";

/** Return the normalized server URL; reject passwords, queries and fragments, which would be logged. */
export function validateServerUrl(url: string): string {
  const trimmed = url.trim();
  const match = /^(https?):\/\/([^/?#@\s]+)(\/[^?#@\s]*)?$/.exec(trimmed);
  if (!match || !URL.canParse(trimmed)) {
    throw new TypeError(`The server URL must start with http:// or https://. ${ADDRESS_HINT}`);
  }
  return trimmed.replace(/\/+$/, "");
}

export function getRequest(path: string): ApiRequest {
  return { method: "GET", path: API_ROOT + path, headers: {} };
}

/** Build a POST with an Idempotency-Key, so that retries have one effect. */
export function postRequest(path: string, body: unknown): ApiRequest {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  return { method: "POST", path: API_ROOT + path, headers, body: JSON.stringify(body) };
}

export function promptRequest(key: PromptKey, etags: Iterable<string>): ApiRequest {
  const known = [...etags].join(", ");
  const query = new URLSearchParams({ label: key.label });
  if (key.version !== null) query.set("version", String(key.version));
  const path = `${API_ROOT}${promptPath(key)}?${query}`;
  return { method: "GET", path, headers: known ? { "If-None-Match": known } : {} };
}

export function promptPath(key: { readonly agent: string; readonly channel: string }): string {
  return `agents/${quoteSegment(key.agent)}/channels/${quoteSegment(key.channel)}/prompt`;
}

/** Return a name as one quoted path segment; "." and ".." are rejected. */
export function quoteSegment(name: string | number): string {
  const text = String(name);
  if (/^\.*$/.test(text)) throw new TypeError(`${JSON.stringify(text)} cannot be a name.`);
  return encodeURIComponent(text);
}
