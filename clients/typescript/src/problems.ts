/** Errors: a problem reported by the server, or no response from it. */

/** Base class of the errors thrown for a server's response, or for the lack of one. */
export class DramatisError extends Error {
  override name = "DramatisError";
}

/** No response, or one that does not come from Dramatis, such as a proxy's error page. */
export class Unreachable extends DramatisError {
  override name = "Unreachable";
}

/** What is wrong with one value, and where it is in the request. */
export interface FieldError {
  readonly detail: string;
  readonly pointer: string;
  readonly parameter: string;
  readonly header: string;
}

export interface ProblemFields {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly title?: string;
  readonly errors?: readonly FieldError[];
  readonly requestId?: string;
  readonly retryAfter?: number | null;
}

/** The server's problem document (RFC 9457); `code` is for programs, `detail` is for display. */
export class Problem extends DramatisError {
  override name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly title: string;
  readonly errors: readonly FieldError[];
  readonly requestId: string;
  /** Seconds to wait before a retry, if the server sent Retry-After. */
  readonly retryAfter: number | null;

  constructor(fields: ProblemFields) {
    super(`${fields.status} ${fields.code}: ${fields.detail}`);
    this.status = fields.status;
    this.code = fields.code;
    this.detail = fields.detail;
    this.title = fields.title ?? "";
    this.errors = fields.errors ?? [];
    this.requestId = fields.requestId ?? "";
    this.retryAfter = fields.retryAfter ?? null;
  }
}
