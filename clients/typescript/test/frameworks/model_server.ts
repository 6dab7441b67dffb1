/** Loopback server that records what a framework sends to a model, and answers as the model would. */

import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export interface ModelRequest {
  readonly path: string;
  readonly body: {
    readonly model: string;
    readonly messages?: readonly { readonly role: string; readonly content: unknown }[];
    readonly system?: unknown;
    readonly instructions?: string;
  };
}

const CHAT_COMPLETION = {
  id: "c1",
  object: "chat.completion",
  created: 1772895305,
  model: "test-model",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Aye.", refusal: null } }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
};
const MESSAGE = {
  id: "m1",
  type: "message",
  role: "assistant",
  model: "test-model",
  content: [{ type: "text", text: "Aye." }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
};
const RESPONSE = {
  id: "r1",
  object: "response",
  created_at: 1772895305,
  model: "test-model",
  status: "completed",
  error: null,
  incomplete_details: null,
  output: [
    {
      id: "o1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Aye.", annotations: [] }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 1, total_tokens: 4, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
};

export class ModelServer {
  readonly requests: ModelRequest[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const path = request.url ?? "";
        this.requests.push({ path, body: JSON.parse(Buffer.concat(parts).toString()) as ModelRequest["body"] });
        const answer = path.endsWith("/messages") ? MESSAGE : path.endsWith("/responses") ? RESPONSE : CHAT_COMPLETION;
        response.writeHead(200, { "Content-Type": "application/json" });
        response.end(JSON.stringify(answer));
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  get last(): ModelRequest["body"] {
    const request = this.requests.at(-1);
    if (!request) throw new Error("There was no request.");
    return request.body;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export async function startModelServer(t: TestContext): Promise<ModelServer> {
  const server = new ModelServer();
  await server.start();
  t.after(() => server.stop());
  return server;
}
