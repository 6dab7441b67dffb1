// What the palette offers: entries of the page, entries the server finds, and where somebody went last.
import { isSignedOut } from "./progress.js";
import { keep, recall } from "./storage.js";

const LIMIT = 40;
const RECENT = "palette-recent";
const KEPT = 6;

export function pageEntries() {
  const data = document.getElementById("dr-palette-data");
  return data ? JSON.parse(data.textContent) : [];
}

// Every typed word must occur; the earlier and the closer to a word's start, the better.
function score(entry, words) {
  const label = entry.label.toLowerCase();
  const rest = `${entry.group ?? ""} ${entry.hint ?? ""}`.toLowerCase();
  let total = 0;
  for (const word of words) {
    const at = label.indexOf(word);
    if (at === 0) total += 100;
    else if (at > 0) total += /\W/.test(label[at - 1]) ? 60 : 30;
    else if (rest.includes(word)) total += 10;
    else return -1;
  }
  return total - label.length / 100;
}

export function matches(all, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return all.slice(0, LIMIT);
  return all
    .map((entry) => [score(entry, words), entry])
    .filter(([points]) => points >= 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, LIMIT)
    .map(([, entry]) => entry);
}

// No address twice: what is a page and was visited lately is shown once.
export function joined(...lists) {
  const seen = new Set();
  return lists
    .flat()
    .filter((entry) => {
      const mark = entry.url ?? `${entry.post ?? ""}${entry.theme ?? ""}${entry.opens ?? ""}`;
      return !seen.has(mark) && seen.add(mark);
    })
    .slice(0, LIMIT);
}

// --- lately ------------------------------------------------------------------------------------------------

function kept() {
  try {
    return JSON.parse(recall(RECENT) ?? "[]").filter((entry) => typeof entry.url === "string");
  } catch {
    return [];
  }
}

// Only of this workspace, and in words the page gives.
export function recent(base, group) {
  return kept()
    .filter((entry) => entry.url.startsWith(base))
    .map((entry) => ({ ...entry, group }));
}

export function noteVisit({ label, hint, url, icon }) {
  if (!url) return;
  const others = kept().filter((entry) => entry.url !== url);
  keep(RECENT, JSON.stringify([{ label, hint, url, icon }, ...others].slice(0, KEPT * 3)));
}

export function forgetVisits() {
  keep(RECENT, null);
}

// --- the server --------------------------------------------------------------------------------------------

export class SignedOut extends Error {}

export async function ask(address, text, signal) {
  const answer = await fetch(`${address}?q=${encodeURIComponent(text)}`, {
    signal,
    headers: { Accept: "application/json" },
  });
  if (isSignedOut(answer.url)) throw new SignedOut();
  if (!answer.ok) throw new Error(String(answer.status));
  return (await answer.json()).results;
}
