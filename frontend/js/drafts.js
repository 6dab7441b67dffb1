// Typed text that is not saved yet, mirrored in this browser so that a closed tab loses nothing.
import { keep, recall } from "./storage.js";

const PREFIX = "dr-draft:";
const SENT = "dr-draft-sent";
const DAYS = 14;

export function keptCopy(key) {
  try {
    return JSON.parse(recall(PREFIX + key));
  } catch {
    return null;
  }
}

export function keepCopy(key, values, revision) {
  keep(PREFIX + key, JSON.stringify({ values, revision, at: Date.now() }));
}

export function dropCopy(key) {
  keep(PREFIX + key, null);
}

export function formWith(key) {
  return document.querySelector(`form[data-draft-key="${CSS.escape(key)}"]:not([data-draft-drop])`);
}

// The form of this key is on its way; only the next page tells whether it was taken.
function note(event) {
  const { draftKey, draftDrop } = event.target.dataset;
  if (event.defaultPrevented || !draftKey) return;
  if (draftDrop !== undefined) dropCopy(draftKey);
  else remember(JSON.stringify({ key: draftKey, from: location.pathname }));
}

function remember(text) {
  try {
    if (text === null) sessionStorage.removeItem(SENT);
    else sessionStorage.setItem(SENT, text);
  } catch {
    // Blocked storage: nothing was mirrored either.
  }
}

function lastSent() {
  try {
    return JSON.parse(sessionStorage.getItem(SENT));
  } catch {
    return null;
  }
}

// A page of the workspace that follows the form and does not show it again: the server took the text.
// The log-in page or a fault may follow too, and then it did not.
function settle() {
  const sent = lastSent();
  if (!sent) return;
  remember(null);
  if (!document.querySelector(".dr-shell") || document.querySelector(".dr-fault")) return;
  if (formWith(sent.key) || !document.referrer) return;
  if (new URL(document.referrer).pathname === sent.from) dropCopy(sent.key);
}

function dropOld() {
  const limit = Date.now() - DAYS * 86_400_000;
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(PREFIX)) continue;
    const key = name.slice(PREFIX.length);
    if (!(keptCopy(key)?.at > limit)) dropCopy(key);
  }
}

export function listen() {
  document.addEventListener("submit", note);
  settle();
  try {
    dropOld();
  } catch {
    // Blocked storage has nothing old.
  }
}
