/** Trace attributes and the header traceparent, if @opentelemetry/api is installed. */

import type { Attributes } from "./formats.ts";
import type { Prompt } from "./prompts.ts";

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

interface Span {
  setAttributes(attributes: Attributes): unknown;
  spanContext(): SpanContext;
}

interface TraceApi {
  readonly trace: { getActiveSpan(): Span | undefined };
  isSpanContextValid(context: SpanContext): boolean;
}

let traceApi: Promise<TraceApi | null> | undefined;

/** Set `traceAttributes()` of the prompt on the current span. They never contain the text. */
export async function setSpanAttributes(prompt: Prompt): Promise<void> {
  (await loadTraceApi())?.trace.getActiveSpan()?.setAttributes(prompt.traceAttributes());
}

/** Return the header traceparent (W3C Trace Context) of the current span, or nothing. */
export async function buildTraceHeaders(): Promise<{ readonly traceparent?: string }> {
  const api = await loadTraceApi();
  const context = api?.trace.getActiveSpan()?.spanContext();
  if (!api || !context || !api.isSpanContextValid(context)) return {};
  const flags = context.traceFlags & 1 ? "01" : "00";
  return { traceparent: `00-${context.traceId}-${context.spanId}-${flags}` };
}

function loadTraceApi(): Promise<TraceApi | null> {
  return (traceApi ??= importTraceApi());
}

async function importTraceApi(): Promise<TraceApi | null> {
  // In a variable, so that bundlers do not need the package.
  const name = "@opentelemetry/api";
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as TraceApi;
  } catch {
    return null;
  }
}
