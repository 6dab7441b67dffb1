// Keyboard: Ctrl-K always; single keys ("?", "/" and an element's data-key) can be switched off in the help dialog (WCAG 2.1.4).
import { keep, recall } from "./storage.js";

function typing(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
}

function open(name) {
  document.dispatchEvent(new CustomEvent(`dr:${name}`));
}

export function singleKeys() {
  return {
    on: recall("single-keys") !== "off",
    init() {
      document.addEventListener("dr:help", () => this.$root.open || this.$root.showModal());
    },
    change(event) {
      this.on = event.currentTarget.checked;
      keep("single-keys", this.on ? null : "off");
    },
  };
}

export function listen() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      if (!document.getElementById("dr-palette")) return;
      event.preventDefault();
      open("palette");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]") || recall("single-keys") === "off") return;
    if (event.key === "?") open("help");
    const named = /^[a-z]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
    if (named) {
      event.preventDefault();
      named.click();
    }
    const search = document.querySelector("[data-search]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
    }
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) open(opener.dataset.open);
  });
}
