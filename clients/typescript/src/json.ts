/** Checked access to parsed JSON: the response may come from something other than Dramatis. */

export type JsonObject = { readonly [name: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function requireObject(value: unknown): JsonObject {
  if (!isObject(value)) throw new TypeError("This is not an object.");
  return value;
}

/** A document with the fields of a type of the API, whose values are not checked yet. */
export type Unchecked<T> = { readonly [Name in keyof T]?: unknown };

/** Return an object whose fields have the names of a type of the API. */
export function requireDocument<T>(value: unknown): Unchecked<T> {
  return requireObject(value) as Unchecked<T>;
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
