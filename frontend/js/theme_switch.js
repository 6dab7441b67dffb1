// The light / dark / system menu. "system" is the absence of a choice.
import { keep, recall } from "./storage.js";

export function themeSwitch() {
  return {
    chosen: recall("theme") || "system",
    choose(event) {
      this.chosen = event.currentTarget.value;
      const fixed = this.chosen === "system" ? null : this.chosen;
      keep("theme", fixed);
      if (fixed) document.documentElement.dataset.theme = fixed;
      else delete document.documentElement.dataset.theme;
      this.$root.open = false;
    },
    pressed() {
      return String(this.$el.value === this.chosen);
    },
  };
}
