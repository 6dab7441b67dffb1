/** Many prompts in one request, each with its own status. */

import { type PromptCache, isFinal } from "./cache.ts";
import { type CacheEntry, canRevalidate, toPrompt } from "./entries.ts";
import { encodeText } from "./hashes.ts";
import { type JsonObject, requireNumber, requireObject } from "./json.ts";
import { DramatisError, Unreachable } from "./problems.ts";
import { type Prompt, encodePrompt } from "./prompts.ts";
import { type ApiRequest, type PromptKey, postRequest } from "./requests.ts";
import { ApiResponse } from "./responses.ts";

export const MAX_BATCH_SIZE = 50;

/** The prompt, or why there is none. */
export interface BatchResult {
  readonly agent: string;
  readonly channel: string;
  readonly label: string;
  readonly prompt: Prompt | null;
  readonly error: DramatisError | null;
}

/** Fetch up to 50 prompts and cache them. If the server is unavailable, cached copies are used. */
export async function fetchBatch(
  cache: PromptCache,
  keys: readonly PromptKey[],
  clock: () => number,
  call: (request: ApiRequest) => Promise<ApiResponse>,
): Promise<BatchResult[]> {
  const copies = await Promise.all(keys.map((key) => cache.load(key)));
  const prompts = keys.map(({ agent, channel, label }, index) => {
    const copy = copies[index];
    const known = copy && canRevalidate(copy, clock()) ? { known_digest: copy.prompt.digest } : {};
    return { agent, channel, label, ...known };
  });
  let responses: (ApiResponse | DramatisError)[];
  try {
    responses = splitBatch(await call(postRequest("prompts:batchGet", { prompts })), copies);
  } catch (error) {
    if (!(error instanceof DramatisError) || isFinal(error)) throw error;
    responses = keys.map(() => error);
  }
  return Promise.all(keys.map((key, index) => storeResult(cache, key, copies[index], responses[index], clock)));
}

/** Return each result as the response that a request for this prompt alone would have. */
function splitBatch(response: ApiResponse, copies: readonly (CacheEntry | undefined)[]): ApiResponse[] {
  const results = response.json()["results"];
  if (!Array.isArray(results) || results.length !== copies.length) {
    throw new Unreachable("The response does not have one result for each prompt.");
  }
  try {
    return results.map((result: unknown, index) => toResponse(requireObject(result), copies[index]));
  } catch (error) {
    throw new Unreachable("The response is not a list of prompts.", { cause: error });
  }
}

function toResponse(result: JsonObject, copy: CacheEntry | undefined): ApiResponse {
  switch (result["status"]) {
    case "served":
      return new ApiResponse(200, new Headers(), encodePrompt(requireObject(result["prompt"])));
    case "not_modified":
      return new ApiResponse(304, new Headers({ ETag: copy?.prompt.etag ?? "" }), new Uint8Array());
    default: {
      const problem = requireObject(result["problem"]);
      const headers = new Headers({ "Content-Type": "application/problem+json" });
      return new ApiResponse(requireNumber(problem["status"]), headers, encodeText(JSON.stringify(problem)));
    }
  }
}

async function storeResult(
  cache: PromptCache,
  key: PromptKey,
  copy: CacheEntry | undefined,
  response: ApiResponse | DramatisError | undefined,
  clock: () => number,
): Promise<BatchResult> {
  const { agent, channel, label } = key;
  try {
    if (!(response instanceof ApiResponse)) throw response;
    const known = new Map(copy ? [[copy.prompt.etag, copy]] : []);
    const { prompt } = await cache.storeResponse(key, response, known);
    return { agent, channel, label, prompt, error: null };
  } catch (error) {
    try {
      const entry = await cache.handleFailure(key, copy, error);
      return { agent, channel, label, prompt: toPrompt(entry, clock()), error: null };
    } catch (failure) {
      if (!(failure instanceof DramatisError)) throw failure;
      return { agent, channel, label, prompt: null, error: failure };
    }
  }
}
