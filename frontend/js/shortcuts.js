// Keyboard: the table in the help dialog says which key does what. Ctrl-K always; the others can be switched off (WCAG 2.1.4).
import { moveRow, openRow, tickRow } from "./rows.js";
import { keep, recall } from "./storage.js";

// How long "g" waits for the letter of a place.
const PATIENCE = 1500;
const NAMES = { Space: " " };
let awaited = 0;

function typing(target) {
  if (!(target instanceof Element)) return false;
  const field = target.closest("input, textarea, select, [contenteditable]");
  return Boolean(field) && !["checkbox", "radio", "button", "submit"].includes(field.type);
}

function open(name) {
  document.dispatchEvent(new CustomEvent(`dr:${name}`));
}

function press(key) {
  const named = /^[a-z]$/.test(key) && document.querySelector(`[data-key="${key}"]`);
  if (!named?.checkVisibility?.()) return false;
  named.click();
  return true;
}

function search() {
  const field = document.querySelector("[data-search]");
  field?.focus();
  return Boolean(field);
}

// Each tells whether there was something to do, so that a key without meaning stays the browser's.
const VERBS = {
  help: () => open("help") ?? true,
  next: () => moveRow(1),
  previous: () => moveRow(-1),
  open: (event) => event.key !== "Enter" && openRow(),
  tick: (event) => tickRow(event),
  search,
  press: (event) => press(event.key),
};

function table() {
  const keys = new Map();
  document.querySelectorAll("#dr-help [data-does]").forEach((row) => {
    row.querySelectorAll("kbd").forEach((key) => keys.set(NAMES[key.textContent] ?? key.textContent, row.dataset.does));
  });
  return keys;
}

function onGo(event) {
  const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  awaited = 0;
  link?.click();
  return Boolean(link);
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    if (!document.getElementById("dr-palette")) return;
    event.preventDefault();
    open("palette");
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]") || recall("single-keys") === "off") return;
  if (Date.now() - awaited < PATIENCE && onGo(event)) return event.preventDefault();
  if (event.key === "g") {
    awaited = Date.now();
    return;
  }
  const verb = VERBS[table().get(event.key)] ?? VERBS.press;
  if (verb(event)) event.preventDefault();
}

// --- the help dialog ---------------------------------------------------------------------------------------

function row(words, key) {
  const made = document.createElement("div");
  const [term, about, kbd] = ["dt", "dd", "kbd"].map((tag) => document.createElement(tag));
  made.dataset.own = "";
  term.textContent = words;
  kbd.className = "dr-kbd";
  kbd.textContent = key;
  about.append(kbd);
  made.append(term, about);
  return made;
}

// What a page added by itself, in its own words.
function ownKeys(dialog) {
  const list = dialog.querySelector("#dr-page-keys");
  const known = table();
  list.querySelectorAll("[data-own]").forEach((one) => one.remove());
  document.querySelectorAll("[data-key]").forEach((one) => {
    const words = one.dataset.keyLabel || one.getAttribute("aria-label") || one.textContent.trim();
    if (!known.has(one.dataset.key)) list.append(row(words, one.dataset.key));
  });
}

function fit(dialog) {
  ownKeys(dialog);
  dialog.querySelectorAll("[data-shortcuts]").forEach((group) => {
    const rows = [...group.querySelectorAll("dl > div")];
    rows.forEach((one) => (one.hidden = Boolean(one.dataset.when) && !document.querySelector(one.dataset.when)));
    group.hidden = rows.every((one) => one.hidden);
  });
}

export function singleKeys() {
  return {
    on: recall("single-keys") !== "off",
    init() {
      document.addEventListener("dr:help", () => {
        if (this.$root.open) return;
        fit(this.$root);
        this.$root.showModal();
      });
    },
    change(event) {
      this.on = event.currentTarget.checked;
      keep("single-keys", this.on ? null : "off");
    },
  };
}

export function listen() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) open(opener.dataset.open);
  });
}
