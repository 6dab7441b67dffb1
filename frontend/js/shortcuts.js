// Keyboard shortcuts, read from the table in the help dialog. Ctrl-K always works; the others can be switched off (WCAG 2.1.4).
import { moveRow, openRow, tickRow } from "./rows.js";
import { loadItem, storeItem } from "./storage.js";

// How long "g" waits for the letter of a page.
const SEQUENCE_TIMEOUT = 1500;
const NAMES = { Space: " " };
let goPressedAt = 0;

function isTyping(target) {
  if (!(target instanceof Element)) return false;
  const field = target.closest("input, textarea, select, [contenteditable]");
  return Boolean(field) && !["checkbox", "radio", "button", "submit"].includes(field.type);
}

function open(name) {
  document.dispatchEvent(new CustomEvent(`dr:${name}`));
}

function press(key) {
  const target = /^[a-z]$/.test(key) && document.querySelector(`[data-key="${key}"]`);
  if (!target?.checkVisibility?.()) return false;
  target.click();
  return true;
}

function focusSearch() {
  const field = document.querySelector("[data-search]");
  field?.focus();
  return Boolean(field);
}

// Each returns whether it did something; otherwise the browser handles the key.
const ACTIONS = {
  help: () => open("help") ?? true,
  next: () => moveRow(1),
  previous: () => moveRow(-1),
  open: (event) => event.key !== "Enter" && openRow(),
  tick: (event) => tickRow(event),
  search: focusSearch,
  press: (event) => press(event.key),
};

function keyActions() {
  const keys = new Map();
  document.querySelectorAll("#dr-help [data-does]").forEach((row) => {
    row.querySelectorAll("kbd").forEach((key) => keys.set(NAMES[key.textContent] ?? key.textContent, row.dataset.does));
  });
  return keys;
}

function onGo(event) {
  const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  goPressedAt = 0;
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
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || loadItem("single-keys") === "off") return;
  if (Date.now() - goPressedAt < SEQUENCE_TIMEOUT && onGo(event)) return event.preventDefault();
  if (event.key === "g") {
    goPressedAt = Date.now();
    return;
  }
  const action = ACTIONS[keyActions().get(event.key)] ?? ACTIONS.press;
  if (action(event)) event.preventDefault();
}

// --- the help dialog ---------------------------------------------------------------------------------------

function row(label, key) {
  const entry = document.createElement("div");
  const [term, about, kbd] = ["dt", "dd", "kbd"].map((tag) => document.createElement(tag));
  entry.dataset.own = "";
  term.textContent = label;
  kbd.className = "dr-kbd";
  kbd.textContent = key;
  about.append(kbd);
  entry.append(term, about);
  return entry;
}

// Lists the keys that the page adds with data-key, with their labels.
function listPageKeys(dialog) {
  const list = dialog.querySelector("#dr-page-keys");
  const known = keyActions();
  list.querySelectorAll("[data-own]").forEach((one) => one.remove());
  document.querySelectorAll("[data-key]").forEach((one) => {
    const label = one.dataset.keyLabel || one.getAttribute("aria-label") || one.textContent.trim();
    if (!known.has(one.dataset.key)) list.append(row(label, one.dataset.key));
  });
}

function refreshHelp(dialog) {
  listPageKeys(dialog);
  dialog.querySelectorAll("[data-shortcuts]").forEach((group) => {
    const rows = [...group.querySelectorAll("dl > div")];
    rows.forEach((one) => (one.hidden = Boolean(one.dataset.when) && !document.querySelector(one.dataset.when)));
    group.hidden = rows.every((one) => one.hidden);
  });
}

export function singleKeys() {
  return {
    on: loadItem("single-keys") !== "off",
    init() {
      document.addEventListener("dr:help", () => {
        if (this.$root.open) return;
        refreshHelp(this.$root);
        this.$root.showModal();
      });
    },
    change(event) {
      this.on = event.currentTarget.checked;
      storeItem("single-keys", this.on ? null : "off");
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
