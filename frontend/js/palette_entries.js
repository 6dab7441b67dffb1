// Entries of the command palette: those of the page, search results of the server, and recent visits.
import { isSignedOut } from "./progress.js";
import { loadItem, storeItem } from "./storage.js";

const LIMIT = 40;
const RECENT = "palette-recent";
const MAX_VISITS = 18;

export function pageEntries() {
  const data = document.getElementById("dr-palette-data");
  return data ? JSON.parse(data.textContent) : [];
}

// Every search term must occur; matches at the start of the label or of a word score higher.
function score(entry, terms) {
  const label = entry.label.toLowerCase();
  const rest = `${entry.group ?? ""} ${entry.hint ?? ""} ${entry.words ?? ""}`.toLowerCase();
  let total = 0;
  for (const term of terms) {
    const at = label.indexOf(term);
    if (at === 0) total += 100;
    else if (at > 0) total += /\W/.test(label[at - 1]) ? 60 : 30;
    else if (rest.includes(term)) total += 10;
    else return -1;
  }
  return total - label.length / 100;
}

export function filterEntries(all, text) {
  const terms = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!terms.length) return all.slice(0, LIMIT);
  return all
    .map((entry) => [score(entry, terms), entry])
    .filter(([points]) => points >= 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, LIMIT)
    .map(([, entry]) => entry);
}

// Deduplicates by URL: a page that was also visited recently is shown once.
export function mergeEntries(...lists) {
  const keys = new Set();
  return lists
    .flat()
    .filter((entry) => {
      const key = entry.url ?? `${entry.post ?? ""}${entry.theme ?? ""}${entry.opens ?? ""}`;
      return !keys.has(key) && keys.add(key);
    })
    .slice(0, LIMIT);
}

// --- recent visits -----------------------------------------------------------------------------------------

function loadVisits() {
  try {
    return JSON.parse(loadItem(RECENT) ?? "[]").filter((entry) => typeof entry.url === "string");
  } catch {
    return [];
  }
}

// Visits of this workspace; the page supplies the translated group name.
export function recentEntries(base, group) {
  return loadVisits()
    .filter((entry) => entry.url.startsWith(base))
    .map((entry) => ({ ...entry, group }));
}

export function recordVisit({ label, hint, url, icon }) {
  if (!url) return;
  const others = loadVisits().filter((entry) => entry.url !== url);
  storeItem(RECENT, JSON.stringify([{ label, hint, url, icon }, ...others].slice(0, MAX_VISITS)));
}

export function clearVisits() {
  storeItem(RECENT, null);
}

// --- the server --------------------------------------------------------------------------------------------

export class SignedOut extends Error {}

export async function searchServer(address, text, signal) {
  const response = await fetch(`${address}?q=${encodeURIComponent(text)}`, {
    signal,
    headers: { Accept: "application/json" },
  });
  if (isSignedOut(response.url)) throw new SignedOut();
  if (!response.ok) throw new Error(String(response.status));
  return (await response.json()).results;
}
