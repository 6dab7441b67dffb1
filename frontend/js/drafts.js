// Copies of unsaved form input in localStorage, so that a closed tab loses nothing.
import { loadItem, storeItem } from "./storage.js";

const PREFIX = "dr-draft:";
const SENT = "dr-draft-sent";
const DAYS = 14;

export function loadCopy(key) {
  try {
    return JSON.parse(loadItem(PREFIX + key));
  } catch {
    return null;
  }
}

export function storeCopy(key, values, revision) {
  storeItem(PREFIX + key, JSON.stringify({ values, revision, at: Date.now() }));
}

export function dropCopy(key) {
  storeItem(PREFIX + key, null);
}

export function formWith(key) {
  return document.querySelector(`form[data-draft-key="${CSS.escape(key)}"]:not([data-draft-drop])`);
}

// Remembers the submitted form; only the next page shows whether the server saved it.
function rememberSubmit(event) {
  const { draftKey, draftDrop } = event.target.dataset;
  if (event.defaultPrevented || !draftKey) return;
  if (draftDrop !== undefined) dropCopy(draftKey);
  else storeSent(JSON.stringify({ key: draftKey, from: location.pathname }));
}

function storeSent(text) {
  try {
    if (text === null) sessionStorage.removeItem(SENT);
    else sessionStorage.setItem(SENT, text);
  } catch {
    // Storage is blocked, so there is no copy either.
  }
}

function loadSent() {
  try {
    return JSON.parse(sessionStorage.getItem(SENT));
  } catch {
    return null;
  }
}

// Drops the copy if the page after the submit is a workspace page without the form: the server has saved the text.
// After the sign-in page or an error page the copy stays.
function dropSavedCopy() {
  const sent = loadSent();
  if (!sent) return;
  storeSent(null);
  if (!document.querySelector(".dr-shell") || document.querySelector(".dr-fault")) return;
  if (formWith(sent.key) || !document.referrer) return;
  if (new URL(document.referrer).pathname === sent.from) dropCopy(sent.key);
}

function dropExpired() {
  const limit = Date.now() - DAYS * 86_400_000;
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(PREFIX)) continue;
    const key = name.slice(PREFIX.length);
    if (!(loadCopy(key)?.at > limit)) dropCopy(key);
  }
}

export function listen() {
  document.addEventListener("submit", rememberSubmit);
  dropSavedCopy();
  try {
    dropExpired();
  } catch {
    // Storage is blocked, so there is nothing to expire.
  }
}
