/** clients/behaviour.json, which describes every client of Dramatis. */

import { readFileSync } from "node:fs";

import type { StubResponse } from "./stub_server.ts";

export interface Expectation {
  readonly problem?: Record<string, unknown>;
  readonly unreachable?: boolean;
  readonly [field: string]: unknown;
}

export interface Step {
  readonly clock?: number;
  readonly respond?: readonly StubResponse[];
  readonly server?: "start" | "stop";
  readonly call?: string;
  readonly with?: Record<string, unknown>;
  readonly times?: number;
  readonly at_least?: number;
  readonly expect?: Expectation;
  readonly settle?: boolean;
  readonly requests?: { readonly count: number; readonly last?: Record<string, unknown> };
  readonly client?: { readonly key?: string };
  readonly files?: number;
  readonly damage?: { readonly replace?: string; readonly by?: string; readonly truncate?: number };
}

export interface Case {
  readonly name: string;
  readonly has_folder?: boolean;
  readonly steps: readonly Step[];
}

interface StoredFile {
  readonly url: string;
  readonly prompt: { readonly agent: string; readonly channel: string; readonly label: string; readonly version?: number };
  readonly path: string;
  readonly header: string;
  readonly content: string;
}

interface Format {
  readonly name: string;
  readonly text: string;
  readonly version: number;
  readonly changes: Record<string, unknown>;
  readonly openai: unknown;
  readonly openai_tools: unknown;
  readonly openai_responses_tools: unknown;
  readonly anthropic: Record<string, unknown>;
  readonly anthropic_tools: unknown;
  readonly trace_attributes: unknown;
}

interface Behaviour {
  readonly key: string;
  readonly cases: readonly Case[];
  readonly files: readonly StoredFile[];
  readonly formats: readonly Format[];
}

// The tests run in the package's folder.
export const behaviour = JSON.parse(readFileSync("../behaviour.json", "utf-8")) as Behaviour;
