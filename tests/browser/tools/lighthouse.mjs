// Audits the accessibility of open pages with Lighthouse. Arguments: the port of Chromium's debugger.
// Each line of the input is a part of a page's address; the answer is a line of JSON with the score and the
// failed audits. Lighthouse audits the page as it is (snapshot), so it is neither loaded again nor resized.
import { createInterface } from "node:readline";
import { snapshot } from "lighthouse";
import { connect } from "puppeteer-core";

const browser = await connect({ browserURL: `http://127.0.0.1:${process.argv[2]}`, defaultViewport: null });
const flags = {
  onlyCategories: ["accessibility"],
  formFactor: "desktop",
  screenEmulation: { disabled: true },
  throttlingMethod: "provided",
  logLevel: "silent",
};

async function findPage(address) {
  for (const target of browser.targets()) {
    if (target.type() === "page" && target.url().includes(address)) return target.page();
  }
  throw new Error(`No open page has the address ${address}`);
}

async function audit(address) {
  const { lhr } = await snapshot(await findPage(address), { flags });
  const weights = new Map(lhr.categories.accessibility.auditRefs.map(({ id, weight }) => [id, weight]));
  const failed = Object.values(lhr.audits).filter(({ id, score }) => weights.get(id) && score !== null && score < 1);
  return {
    score: Math.round(lhr.categories.accessibility.score * 100),
    failed: failed.map(({ id, details }) => `${id}: ${(details?.items ?? []).map(({ node }) => node?.selector).join(" | ")}`),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await audit(line.trim()).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.disconnect();
