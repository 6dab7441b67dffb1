// Calls a server with the client of @hey-api/openapi-ts. Prints what it found as JSON.
import { client } from "./generated/hey/client.gen.ts";
import * as api from "./generated/hey/index.ts";

const [url, key, agent, channel] = process.argv.slice(2) as [string, string, string, string];
client.setConfig({ baseUrl: url, auth: key });
const found: Record<string, unknown> = {};
let calls = 0;

/** Return the data of a response, or throw its problem. */
function get<T>(result: { data?: T; error?: api.Problem | undefined }): NonNullable<T> {
  calls += 1;
  if (result.data === undefined || result.data === null) throw new Error(JSON.stringify(result.error));
  return result.data;
}

const path = { agent, channel };
const agents = get(await api.listAgents({ query: { limit: 10 } }));
found.agents = agents.items.map((item) => item.slug);

const before: api.Agent = get(await api.getAgent({ path: { slug: agent } }));
const patch: api.AgentPatch = { description: "Changed by hey-api." };
const after = get(await api.updateAgent({ path: { slug: agent }, headers: { "If-Match": before.etag }, body: patch }));
found.layouts = [before.layout, after.layout];
found.description = after.description;

const prompt: api.Prompt = get(await api.getPrompt({ path }));
found.prompt = [prompt.version, prompt.text.length, prompt.blocks.map((block) => block.text).join("") === prompt.text];

const memory = get(await api.createMemory({ body: { text: "Written by hey-api.", agent } }));
const memories = get(await api.listMemories({ query: { q: "hey-api" } }));
found.memories = memories.items.map((item) => item.text);
const one = get(await api.getMemory({ path: { id: memory.id } }));
const edited = get(
  await api.updateMemory({ path: { id: one.id }, headers: { "If-Match": one.etag }, body: { source: "test" } }),
);
found.source = edited.source;
const archived = await api.archiveMemory({ path: { id: edited.id }, headers: { "If-Match": edited.etag } });
calls += 1;
found.archived = archived.response?.status;

const labels = get(await api.listPromptLabels({ path }));
found.labels = labels.items.map((label) => label.name);
const versions = get(await api.listPromptVersions({ path }));
const digest = versions.items[0]!.digest;
found.version = get(await api.getPromptVersion({ path: { digest } })).digest === digest;

const batch = get(
  await api.batchGetPrompts({ body: { prompts: [{ agent, channel }, { agent: "nobody", channel }] } }),
);
found.batch = batch.results.map((result) => (result.status === "served" ? result.prompt.agent : result.status));

const missing = await api.getAgent({ path: { slug: "nobody" } });
calls += 1;
found.problem = missing.error?.code;

console.log(JSON.stringify({ ...found, calls }));
