// Calls a server with openapi-fetch and the types of openapi-typescript. Prints what it found as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.ts";

type Prompt = components["schemas"]["Prompt"];

const [url, key, agent, channel] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
const found: Record<string, unknown> = {};
let calls = 0;

/** Return the data of a response, or throw its problem. */
function get<T>(result: { data?: T; error?: components["schemas"]["Problem"] }): T {
  calls += 1;
  if (result.data === undefined) throw new Error(`${result.error?.code}: ${result.error?.detail}`);
  return result.data;
}

const path = { agent, channel };
const agents = get(await client.GET("/api/v1/agents", { params: { query: { limit: 10 } } }));
found.agents = agents.items.map((item) => item.slug);

const before = get(await client.GET("/api/v1/agents/{slug}", { params: { path: { slug: agent } } }));
const after = get(
  await client.PATCH("/api/v1/agents/{slug}", {
    params: { path: { slug: agent }, header: { "If-Match": before.etag } },
    body: { description: "Changed by openapi-fetch." },
  }),
);
found.layouts = [before.layout, after.layout];
found.description = after.description;

const prompt: Prompt = get(
  await client.GET("/api/v1/agents/{agent}/channels/{channel}/prompt", { params: { path } }),
);
found.prompt = [prompt.version, prompt.text.length, prompt.blocks.map((block) => block.text).join("") === prompt.text];

const memory = get(await client.POST("/api/v1/memories", { body: { text: "Written by openapi-fetch.", agent } }));
const memories = get(await client.GET("/api/v1/memories", { params: { query: { q: "openapi-fetch" } } }));
found.memories = memories.items.map((item) => item.text);
const one = get(await client.GET("/api/v1/memories/{id}", { params: { path: { id: memory.id } } }));
const edited = get(
  await client.PATCH("/api/v1/memories/{id}", {
    params: { path: { id: one.id }, header: { "If-Match": one.etag } },
    body: { source: "test" },
  }),
);
found.source = edited.source;
const archived = await client.DELETE("/api/v1/memories/{id}", {
  params: { path: { id: edited.id }, header: { "If-Match": edited.etag } },
});
calls += 1;
found.archived = archived.response.status;

const labels = get(await client.GET("/api/v1/agents/{agent}/channels/{channel}/labels", { params: { path } }));
found.labels = labels.items.map((label) => label.name);
const versions = get(await client.GET("/api/v1/agents/{agent}/channels/{channel}/versions", { params: { path } }));
const digest = versions.items[0]!.digest;
found.version = get(await client.GET("/api/v1/prompt-versions/{digest}", { params: { path: { digest } } })).digest === digest;

const batch = get(
  await client.POST("/api/v1/prompts:batchGet", {
    body: { prompts: [{ agent, channel }, { agent: "nobody", channel }] },
  }),
);
found.batch = batch.results.map((result) => (result.status === "served" ? result.prompt.agent : result.status));

const missing = await client.GET("/api/v1/agents/{slug}", { params: { path: { slug: "nobody" } } });
calls += 1;
found.problem = missing.error?.code;

console.log(JSON.stringify({ ...found, calls }));
