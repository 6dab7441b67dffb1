/** Checked access to parsed JSON: the response may come from something other than Dramatis. */

export type JsonObject = { readonly [name: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function requireObject(value: unknown): JsonObject {
  if (!isObject(value)) throw new TypeError("This is not an object.");
  return value;
}

export function requireText(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("This is not text.");
  return value;
}

export function requireNumber(value: unknown): number {
  if (typeof value !== "number") throw new TypeError("This is not a number.");
  return value;
}

/** Return a list; null and a missing value are an empty one. */
export function listOf<T>(value: unknown, parse: (item: unknown) => T): readonly T[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new TypeError("This is not a list.");
  return Object.freeze(value.map((item) => parse(item)));
}
