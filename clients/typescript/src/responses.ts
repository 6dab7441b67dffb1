/** HTTP responses, parsed defensively: a proxy may have answered instead of the server. */

import { type Bytes, decodeText } from "./hashes.ts";
import type { components } from "./api.ts";
import { type JsonObject, type Unchecked, isObject } from "./json.ts";
import { type FieldError, Problem, Unreachable } from "./problems.ts";

const PROBLEM_TYPE = "application/problem+json";

/** Status, headers and body of one response. */
export class ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly content: Bytes;

  constructor(status: number, headers: Headers, content: Bytes) {
    this.status = status;
    this.headers = headers;
    this.content = content;
  }

  get isSuccess(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get etag(): string {
    return this.headers.get("etag") ?? "";
  }

  /** Retry-After in seconds; the server never sends the date form, which is ignored. */
  get retryAfter(): number | null {
    const header = (this.headers.get("retry-after") ?? "").trim();
    return /^[0-9]{1,9}$/.test(header) ? Number(header) : null;
  }

  /** A numeric directive of Cache-Control. */
  cacheDirective(name: string): number | null {
    const header = (this.headers.get("cache-control") ?? "").toLowerCase();
    const match = new RegExp(`(?:^|[\\s,])${name}=([0-9]{1,9})(?![0-9])`).exec(header);
    return match ? Number(match[1]) : null;
  }

  json(): JsonObject {
    let value: unknown;
    try {
      value = JSON.parse(decodeText(this.content));
    } catch (error) {
      throw new Unreachable(`The response (${this.status}) is not JSON.`, { cause: error });
    }
    if (!isObject(value)) throw new Unreachable(`The response (${this.status}) is not a JSON object.`);
    return value;
  }

  /** Return the server's problem document (RFC 9457), or null if a proxy has answered. */
  parseProblem(): Problem | null {
    const type = (this.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
    if (type !== PROBLEM_TYPE) return null;
    try {
      return buildProblem(this.json(), this.status, this.retryAfter);
    } catch {
      return null;
    }
  }

  /** Return the error to throw for an unsuccessful response. */
  toError(): Problem | Unreachable {
    return this.parseProblem() ?? new Unreachable(`The response (${this.status}) did not come from Dramatis.`);
  }
}

type Schemas = components["schemas"];

export function buildProblem(document: Unchecked<Schemas["Problem"]>, status: number, retryAfter: number | null): Problem {
  if (typeof document["code"] !== "string") throw new TypeError("This is not a problem.");
  const errors = Array.isArray(document["errors"]) ? document["errors"].filter(isObject) : [];
  return new Problem({
    status,
    code: document["code"],
    detail: textOf(document["detail"]),
    title: textOf(document["title"]),
    errors: errors.map(buildFieldError),
    requestId: textOf(document["request_id"]),
    retryAfter,
  });
}

function buildFieldError(error: Unchecked<Schemas["FieldError"]>): FieldError {
  return {
    detail: textOf(error["detail"]),
    pointer: textOf(error["pointer"]),
    parameter: textOf(error["parameter"]),
    header: textOf(error["header"]),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
