// The light / dark / system menu. "system" means that no choice is stored.
import { loadItem, storeItem } from "./storage.js";

export function setTheme(chosen) {
  const fixed = chosen === "system" ? null : chosen;
  storeItem("theme", fixed);
  if (fixed) document.documentElement.dataset.theme = fixed;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new CustomEvent("dr:theme", { detail: chosen }));
}

export function themeSwitch() {
  return {
    chosen: loadItem("theme") || "system",
    init() {
      document.addEventListener("dr:theme", (event) => (this.chosen = event.detail));
    },
    choose(event) {
      setTheme(event.currentTarget.value);
      this.$root.open = false;
    },
    pressed() {
      return String(this.$el.value === this.chosen);
    },
  };
}
