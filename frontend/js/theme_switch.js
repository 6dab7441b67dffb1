// The light / dark / system menu. "system" is the absence of a choice.
import { keep, recall } from "./storage.js";

export function setTheme(chosen) {
  const fixed = chosen === "system" ? null : chosen;
  keep("theme", fixed);
  if (fixed) document.documentElement.dataset.theme = fixed;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new CustomEvent("dr:theme", { detail: chosen }));
}

export function themeSwitch() {
  return {
    chosen: recall("theme") || "system",
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
