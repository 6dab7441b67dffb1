// A bot that performs one call per line of its input; used by test_typescript_package.py.
import { createInterface } from "node:readline";
import { Client, Problem, Unreachable } from "@dramatis/client";

let now;
const client = new Client({ retryDelayMs: 100, warn: () => undefined, clock: () => now ?? Date.now() / 1000 });
for await (const line of createInterface({ input: process.stdin })) {
  const [method, ...args] = JSON.parse(line);
  let result;
  try {
    if (method === "clock") result = now = args[0];
    else if (method === "report") result = await client.report(await client.getPrompt(args[0]), ...args.slice(1));
    else result = await client[method](...args);
  } catch (error) {
    result = { error: error.name, status: error.status, code: error.code, message: error.message };
    if (!(error instanceof Problem || error instanceof Unreachable)) result.error = error.stack;
  }
  console.log(JSON.stringify(result ?? null));
}
